// The source of the runs: the local server, or the data in a self-contained page.

import { PageSource } from "./page_source.js";

const RUNS_PAGE = 500;

/** @returns {ServerSource|PageSource} */
export function openSource() {
  const carried = document.getElementById("run");
  return carried ? new PageSource(JSON.parse(carried.textContent ?? "")) : new ServerSource();
}

/** The server does not answer. */
export class Ended extends Error {}

/** Sends requests to the server; answers are JSON, refusals an `Error` with the reason. */
class ServerSource {
  /** @type {string|null} which run is the only one; the server may have many */
  home = null;

  /**
   * Every run, a page at a time: thousands take a while.
   * @param {(runs: any[], total: number, reports: any[]) => void} onPage
   */
  async runs(onPage) {
    const runs = [];
    let reports = [];
    for (let total = 1; runs.length < total;) {
      const page = await ask("runs", { from: runs.length, count: RUNS_PAGE });
      total = page.rows.length ? page.total : runs.length;
      runs.push(...page.rows);
      if (page.shadowReports.length) reports = page.shadowReports;
      onPage(runs, total, reports);
    }
  }

  run(run) {
    return ask("run", { run });
  }

  /** The same, after reading on. */
  runFurther(run) {
    return ask("run", { run, more: 1 });
  }

  /** @param {{from: number, count: number, kind?: string, state?: string, q?: string}} wanted */
  steps(run, wanted) {
    return ask("steps", { run, ...wanted });
  }

  /** The row of an event among the matching steps, or null. */
  async place(run, seq, wanted) {
    return (await ask("place", { run, seq, ...wanted })).row;
  }

  /** The event of the nearest failed step, or null. */
  async failure(run, seq, isBack, wanted) {
    return (await ask("failure", { run, seq, back: isBack ? 1 : null, ...wanted })).seq;
  }

  detail(run, seq) {
    return ask("detail", { run, seq });
  }

  conversation(run, from, count) {
    return ask("conversation", { run, from, count });
  }

  async divergences(run) {
    return (await ask("divergences", { run })).receipts;
  }

  /** The tree of forks, parents first. */
  async forks(run) {
    return (await ask("forks", { run })).nodes;
  }

  /** A shadow report. */
  shadow(name) {
    return ask("shadow", { name });
  }

  /** The moments with known files. */
  files(run) {
    return ask("files", { run });
  }

  /** The files at one moment, and the changes since the one before. */
  filesAt(run, number) {
    return ask("files-at", { run, number });
  }

  check(run) {
    return ask("check", { run });
  }

  /** The summary of a comparison, or its progress. */
  diff(a, b) {
    return ask("diff", { a, b });
  }

  diffRows(a, b, from, count) {
    return ask("diff-rows", { a, b, from, count });
  }

  diffChange(a, b, place) {
    return ask("diff-change", { a, b, place });
  }
}

async function ask(what, parameters) {
  const known = Object.entries(parameters).filter(
    ([, value]) => value !== "" && value !== null && value !== undefined,
  );
  const response = await fetch(`api/${what}?${new URLSearchParams(known)}`).catch(() => {
    throw new Ended("The viewer has stopped. Start it again with: reenact view");
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error ?? response.statusText);
  return answer;
}

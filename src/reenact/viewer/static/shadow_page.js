// A shadow report: recorded runs beside those with a changed agent, prompt or model.

import { h, link, recorded } from "./dom.js";
import { factList } from "./facts.js";
import { toDiff, toRun, toRuns } from "./route.js";
import { count, duration, plural } from "./text.js";

const WORDS = { failed: "failed", tools: "other tools", words: "other words", same: "the same" };
const COLUMNS = [
  "Run",
  "Result",
  "As recorded",
  "Baseline",
  "Candidate",
  "First difference",
  "Tokens",
  "Time",
];
const SHOWN = 300;

/** @returns {Promise<import("./main.js").Page>} */
export async function shadowPage(source, route) {
  const report = await source.shadow(route.name);
  const parts = report.steps ? stepsReport(report) : runsReport(report);
  const element = h(
    "article.run.shadow",
    { "aria-label": "Shadow report" },
    h("p.crumbs", {}, link("a", toRuns(), {}, "Runs"), " / shadow report"),
    ...parts,
  );
  const onKey = (key) => {
    if (key !== "Escape") return false;
    location.hash = toRuns();
    return true;
  };
  return { element, title: report.name, go: () => {}, onKey };
}

function runsReport(report) {
  const { comparison: found, counts, runs, samples } = report;
  const tone = !report.isConclusive ? "" : report.isWorse ? ".is-error" : ".is-ok";
  const points = (share) => `${share > 0 ? "+" : ""}${Math.round(share * 100)}`;
  const facts = [
    ["Runs", count(found.runs)],
    ["Set apart", report.setApart ? count(report.setApart) : null],
    ["Samples of each", count(samples)],
    ["Asked with", changeWords(report.change)],
    ["Judged by", report.test ?? "whether they ended well"],
    ["Baseline", report.baseline === "replayed" ? "replayed strictly" : "as recorded"],
    ["Passed in the recording", rate(found.recorded)],
    ["Passed now", rate(found.candidate)],
    ["Difference", `${points(found.difference)} points (${points(found.low)} to ${points(found.high)})`],
    ["Better, worse", `${count(found.better)}, ${count(found.worse)}`],
    ["p", found.pValue.toPrecision(2)],
    ["pass^k", samples > 1 ? powers(report.passPower) : null],
  ];
  const order = Object.keys(WORDS);
  const sorted = [...runs].sort((one, other) => rank(one, order) - rank(other, order));
  return [
    heading(report.name, report.verdict, tone),
    interrupted(report),
    bar(counts),
    factList(facts),
    table(
      [...COLUMNS, ...(hasCost(runs) ? ["Cost"] : [])],
      sorted.map((run) => runRow(run, report, hasCost(runs))),
    ),
  ];
}

const hasCost = (runs) => runs.some(({ recorded: before }) => before.cost !== null && before.cost !== undefined);
const rank = (run, order) => (run.setApart ? order.length : order.indexOf(run.difference ?? "same"));

function heading(name, verdict, tone = "") {
  return h("div.title", {}, recorded("h1", name), recorded(`span.outcome${tone}`, verdict));
}

function interrupted({ isInterrupted }) {
  return isInterrupted ? h("p.notice", {}, "It was interrupted: this covers what was finished by then.") : null;
}

/** The counts as a bar; the text beside it has the same numbers. */
function bar(counts) {
  const known = Object.entries(WORDS).filter(([name]) => counts[name]);
  const total = known.reduce((sum, [name]) => sum + counts[name], 0) || 1;
  const parts = known.map(([name]) => {
    const part = h(`span.is-${name}`);
    part.style.width = `${(100 * counts[name]) / total}%`;
    return part;
  });
  const words = known.map(([name, word]) => `${count(counts[name])} ${word}`).join(", ");
  return h("div.tally-bar", {}, h("div.bar", { "aria-hidden": "true" }, ...parts), h("p", {}, words || "No run to compare"));
}

function runRow(run, report, isPriced) {
  const { recorded: before, candidates = [], difference = "same", first = null, setApart = "" } = run;
  const name = before.run
    ? link("a", toRun(before.run), {}, recorded("span", before.run))
    : recorded("span", run.path);
  if (setApart)
    return row(
      [h("td", {}, name), h("td", {}, "set apart"), recorded("td.muted", short(setApart), { colspan: isPriced ? 7 : 6 })],
      ".apart",
    );
  const now = candidates[0] ?? {};
  const shown = candidates.find((each) => each.run);
  const passed = candidates.filter((each) => each.passed ?? true).length;
  const verdict = report.samples > 1 ? `${passed} of ${candidates.length} pass` : passes(passed > 0);
  const told = (field) => (now.problem ? null : mean(candidates, field));
  const figures = [
    pair(before.tokens ?? 0, told("tokens"), (number) => count(Math.round(number))),
    pair(before.durationMs ?? 0, told("durationMs"), duration),
    ...(isPriced ? [pair(before.cost, told("cost"), (number) => number.toFixed(4))] : []),
  ];
  return row([
    h("td", {}, name),
    h("td", {}, h(`span.result.is-${difference}`, {}, WORDS[difference])),
    h("td.short", {}, passes(before.passed ?? true)),
    h("td.short", {}, report.baseline === "replayed" ? "reproduced" : "not run"),
    h(
      "td.short",
      {},
      verdict,
      ...(shown && before.run ? [" ", link("a", toDiff(before.run, shown.run), {}, "Compare")] : []),
    ),
    h("td", {}, ...firstWords(first)),
    ...figures.map((figure) => h("td.short", {}, figure)),
  ]);
}

function firstWords(first) {
  if (!first) return [];
  const now = recorded("code", short(first.candidate));
  return first.recorded ? [recorded("code", short(first.recorded)), " → ", now] : [now];
}

function pair(before, now, told) {
  const words = [before, now].map((value) => (value === null || value === undefined ? "–" : told(value)));
  return words.join(" → ");
}

function mean(candidates, name) {
  const known = candidates.filter((each) => !each.problem).map((each) => each[name] ?? (name === "cost" ? null : 0));
  const values = known.filter((value) => value !== null);
  return values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null;
}

const passes = (isPassed) => (isPassed ? "passes" : h("span.result.is-failed", {}, "fails"));

function stepsReport(report) {
  const facts = [
    ["Asked with", changeWords(report.change)],
    ["Requests", count(report.steps.length)],
    ["Same tools", rate(report.tools)],
    ["Same arguments", rate(report.arguments)],
    ["Same words", rate(report.words)],
    ["Without an answer", report.failed ? count(report.failed) : null],
    ["Left out", report.leftOut ? `${plural(report.leftOut, "call")} without a request as it was sent` : null],
  ];
  return [
    heading(report.name, "step by step"),
    interrupted(report),
    factList(facts),
    table(["Request", "Result", "Recorded", "Now"], report.steps.map(stepRow)),
  ];
}

function stepRow(step) {
  const place = `${step.path}: event ${step.seq}`;
  const name = step.run
    ? link("a", toRun(step.run, { seq: step.seq }), {}, recorded("span", place))
    : recorded("span", place);
  const kind = step.problem ? "failed" : step.sameArguments ? "same" : step.sameTools ? "words" : "tools";
  const word = { failed: "no answer", same: "the same", words: "other arguments", tools: "other tools" }[kind];
  return row([
    h("td", {}, name),
    h("td", {}, h(`span.result.is-${kind}`, {}, word)),
    h("td", {}, recorded("code", short(step.recorded))),
    h("td", {}, recorded("code", short(step.problem || step.candidate || ""))),
  ]);
}

function table(names, rows) {
  const head = h("tr", {}, ...names.map((name) => h("th", { scope: "col" }, name)));
  return h(
    "div.scroll",
    { tabindex: 0, role: "region", "aria-label": "Runs of the report" },
    h("table.shadow-runs", {}, h("thead", {}, head), h("tbody", {}, ...rows)),
  );
}

const row = (cells, kind = "") => h(`tr${kind}`, {}, ...cells);
const rate = ({ count: number, total, low, high }) =>
  `${count(number)} of ${count(total)} (${Math.round(low * 100)} % to ${Math.round(high * 100)} %)`;
const powers = (power) =>
  Object.entries(power)
    .map(([k, chance]) => `${k}: ${Math.round(chance * 100)} %`)
    .join(", ");
const changeWords = (change) =>
  Object.entries(change)
    .map(([name, value]) => `${name} ${short(String(value))}`)
    .join(", ") || null;
const short = (text) => (text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text);

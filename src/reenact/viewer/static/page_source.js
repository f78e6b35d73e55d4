// The run that a self-contained page has in it.

import { termsOf } from "./terms.js";

/**
 * Answers like the server, from the data in *carried*.
 * @typedef {{run: any, steps: any[], details: Object<string, any>, turns: any[]}} RunData
 * @typedef {RunData & {receipts: any[], report: any, forks: any[], files: any, filesAt: any[]}} Carried
 */
export class PageSource {
  /** @param {Carried} carried */
  constructor(carried) {
    this.carried = carried;
    /** The only run. */
    this.home = carried.run.line.id;
  }

  async runs(onPage) {
    onPage([this.carried.run.line], 1, []);
  }

  async run() {
    return this.carried.run;
  }

  async steps(_run, wanted) {
    const found = this.wanted(wanted);
    return {
      total: found.length,
      isComplete: true,
      rows: found.slice(wanted.from, wanted.from + wanted.count),
    };
  }

  async place(_run, seq, wanted) {
    const row = this.wanted(wanted).findIndex((step) => step.seq === seq || step.outcomeSeq === seq);
    return row < 0 ? null : row;
  }

  async failure(_run, seq, isBack, wanted) {
    const failed = this.wanted({ ...wanted, state: "error" });
    const found = isBack ? failed.findLast((step) => step.seq < seq) : failed.find((step) => step.seq > seq);
    return found?.seq ?? null;
  }

  async detail(_run, seq) {
    const step = this.carried.steps.find((one) => one.seq === seq || one.outcomeSeq === seq);
    const found = this.carried.details[step?.seq ?? seq];
    if (!found) throw new Error(`there is no event ${seq} in this page`);
    return found;
  }

  async conversation(_run, from) {
    return { rows: from ? [] : this.carried.turns, next: null };
  }

  async divergences() {
    return this.carried.receipts;
  }

  async forks() {
    return this.carried.forks;
  }

  async files() {
    return this.carried.files;
  }

  async filesAt(_run, number) {
    return this.carried.filesAt[number];
  }

  async check() {
    return { report: this.carried.report };
  }

  wanted({ kind, state, q }) {
    const fits = termsOf(q ?? "");
    return this.carried.steps.filter((step) => {
      return (!kind || step.kind === kind) && (!state || step.state === state) && fits(step, this.text(step));
    });
  }

  /** All recorded texts of a step, in lower case. */
  text(step) {
    return JSON.stringify([step.name, this.carried.details[step.seq].events]).toLowerCase();
  }
}

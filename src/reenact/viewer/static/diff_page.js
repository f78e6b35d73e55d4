// Two runs side by side: every step with its counterpart, and their differences.

import { changeView, pair } from "./change_view.js";
import { fill, h, link, recorded } from "./dom.js";
import { factList } from "./facts.js";
import { Pages } from "./pages.js";
import { toRuns } from "./route.js";
import { stepWords } from "./step_row.js";
import { count, duration } from "./text.js";
import { VirtualList } from "./virtual_list.js";

const ROW_HEIGHT = 32;
const POLL_MS = 300;
const SIGNS = { same: " ", changed: "≠", added: "+", removed: "−" };

/** @returns {Promise<import("./main.js").Page>} */
export async function diffPage(source, route) {
  const view = new Diff(source, route.a, route.b, await finished(source, route.a, route.b));
  await view.load();
  return {
    element: view.element,
    title: `${route.a} and ${route.b}`,
    go: () => {},
    onKey: (key) => view.onKey(key),
    onShown: () => view.onShown(),
  };
}

async function finished(source, a, b) {
  for (;;) {
    const answer = await source.diff(a, b);
    if (answer.counts) return answer;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

class Diff {
  constructor(source, a, b, summary) {
    this.source = source;
    this.a = a;
    this.b = b;
    this.summary = summary;
    this.pages = new Pages(
      (from, number) => source.diffRows(a, b, from, number),
      () => this.list.refresh(),
    );
    this.list = new VirtualList({
      label: "Steps of both runs",
      rowHeight: ROW_HEIGHT,
      cells: (index) => cells(this.pages.get(index)),
      rowClass: (index) => `.is-${this.pages.get(index)?.mark ?? "coming"}`,
      onSight: (first, last) => this.pages.want(first, last),
      onSelect: (index) => this.show(index),
      onOpen: () => this.change.focus(),
    });
    this.change = h("aside.inspector", { "aria-label": "The selected step", tabindex: -1 });
    const steps = h("section.calls", { "aria-label": "Steps" }, head(a, b), this.list.element);
    this.body = h("div.timeline.pairs", {}, steps, this.change);
    this.element = h("article.run", { "aria-label": "Comparison" }, heading(a, b, summary), this.body);
  }

  async load() {
    this.list.reset((await this.pages.begin()).total);
  }

  async show(index) {
    this.wanted = index;
    const found = await this.source.diffChange(this.a, this.b, index);
    if (this.wanted !== index) return;
    this.body.classList.add("has-event");
    fill(this.change, h("div.inspected", {}, ...changeView(this.a, this.b, found)));
  }

  onKey(key) {
    const { list } = this;
    if (key === "j") list.select(list.selected + 1);
    else if (key === "k") list.select(list.selected - 1);
    else if (key === "n" || key === "p") this.toDifference(key === "n" ? 1 : -1);
    else if (key === "Escape") this.leave();
    else return false;
    return true;
  }

  async toDifference(direction) {
    for (
      let index = this.list.selected + direction;
      index >= 0 && index < this.list.count;
      index += direction
    ) {
      const row = this.pages.get(index) ?? (await this.pages.reach(index));
      if (row.mark !== "same") return this.list.select(index);
    }
  }

  leave() {
    if (document.activeElement === this.change) this.list.element.focus();
    else location.hash = toRuns();
  }

  onShown() {
    this.list.draw();
    this.list.element.focus({ preventScroll: true });
    if (this.summary.first !== null) this.list.select(this.summary.first);
  }
}

function heading(a, b, { counts, totals, outcome, forks }) {
  const said = ["changed", "added", "removed"]
    .filter((mark) => counts[mark])
    .map((mark) => `${count(counts[mark])} ${mark}`);
  const verdict =
    said.length || outcome.length ? said.join(", ") || "the same steps, another result" : "the same";
  return h(
    "header.run-head",
    {},
    h("p.crumbs", {}, link("a", toRuns(), {}, "Runs"), " / comparison"),
    h(
      "div.title",
      {},
      h("h1", {}, recorded("span", a), h("span.muted", {}, " and "), recorded("span", b)),
      h(`span.outcome.is-${verdict === "the same" ? "ok" : "error"}`, {}, verdict),
    ),
    ...forks.map((words) => recorded("p.muted", words)),
    factList(totalFacts(totals)),
    ...outcome.map((one) => h("section.part", {}, recorded("h3", one.path), pair(one))),
  );
}

function totalFacts([left, right]) {
  /** @type {[string, (run: any) => string][]} */
  const facts = [
    ["Steps", (run) => count(run.steps)],
    ["Errors", (run) => count(run.errors)],
    ["Took", (run) => duration(run.durationMs)],
    ["Tokens", (run) => `${count(run.inputTokens)} → ${count(run.outputTokens)}`],
  ];
  return facts.map(([name, told]) => [name, [...new Set([told(left), told(right)])].join(" | ")]);
}

function head(a, b) {
  return h("div.head", { "aria-hidden": "true" }, h("span"), recorded("span", a), recorded("span", b));
}

function cells(row) {
  if (!row) return [h("span.cell", { role: "gridcell" }, "…")];
  return [
    h("span.cell.sign", { role: "gridcell", "aria-label": row.mark }, SIGNS[row.mark]),
    h("span.cell.call", { role: "gridcell" }, ...sideWords(row.left)),
    h("span.cell.call", { role: "gridcell" }, ...sideWords(row.right)),
  ];
}

function sideWords(step) {
  return step ? [h("span.seq", {}, step.seq), ...stepWords(step)] : [];
}

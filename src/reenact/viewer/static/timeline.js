// The steps of a run by start time, each with a time bar; the selected step is shown beside them.

import { fill, h } from "./dom.js";
import { choice, searchField } from "./fields.js";
import { inspector } from "./inspector.js";
import { Pages } from "./pages.js";
import { replaceRoute, toRun } from "./route.js";
import { count, plural } from "./text.js";
import { stepCells } from "./step_row.js";
import { VirtualList } from "./virtual_list.js";
import { Waterfall, trackCount } from "./waterfall.js";

const ROW_HEIGHT = 32;
const STATES = ["ok", "error", "cancelled", "open"];
const POLL_MS = 100;
const FOLLOW_MS = 2000;
const LONG_RUN_STEPS = 400;

export async function timelineView(source, run, route) {
  const view = new Timeline(source, run);
  await view.begin(route);
  return {
    element: view.element,
    go: (next) => view.go(next),
    onKey: (key) => view.onKey(key),
    onShown: () => view.onShown(),
  };
}

class Timeline {
  constructor(source, run) {
    this.source = source;
    this.run = run;
    this.id = run.line.id;
    this.filter = {};
    /** @type {number|null} */
    this.seq = null;
    /** @type {Pages|undefined} */
    this.pages = undefined;
    /** @type {number|undefined} */
    this.startMs = undefined;
    this.isFitted = run.counts.steps > LONG_RUN_STEPS;
    this.tally = h("p.tally", { role: "status" });
    this.fields = h("div.fields", { role: "search" });
    this.list = new VirtualList({
      label: "Steps of the run",
      rowHeight: ROW_HEIGHT,
      cells: (index) => this.cellsAt(index),
      rowClass: (index) => `.is-${this.pages?.get(index)?.state ?? "coming"}`,
      onSight: (first, last) => this.onSight(first, last),
      onSelect: (index) => this.onSelect(index),
      onOpen: () => this.inspector.focus(),
    });
    this.inspector = inspector(source, this.id, () => this.close());
    const calls = h("section.calls", { "aria-label": "Timeline" });
    this.waterfall = new Waterfall(calls);
    const head = h(
      "div.head",
      { "aria-hidden": "true" },
      h("span"),
      h("span"),
      h("span", {}, "Step"),
      h("span.took", {}, "Took"),
      this.waterfall.axis,
    );
    fill(calls, this.fields, head, this.list.element);
    this.element = h("div.timeline", {}, calls, this.inspector.element);
  }

  async begin(route) {
    await this.narrow(route.filter);
    await this.go(route);
  }

  async narrow(filter) {
    this.filter = filter;
    this.drawFields();
    await this.load();
  }

  /** Fetch the matching steps from the beginning. */
  async load() {
    const wanted = this.wanted();
    const load = (from, number) => this.source.steps(this.id, { from, count: number, ...wanted });
    const pages = new Pages(load, () => this.onArrival());
    this.pages = pages;
    const answer = await pages.begin();
    if (pages !== this.pages) return;
    // Before the first step there is only the start of the program, often seconds.
    this.startMs ??= answer.rows[0]?.atMs ?? 0;
    this.list.reset(answer.total);
    this.tell(answer);
    this.follow(pages, answer.isComplete);
  }

  /** Continue until all steps are known, or while the run is being recorded. */
  async follow(pages, isComplete) {
    const isGrowing = this.run.header.state === "open";
    if (isComplete && !isGrowing) return;
    await new Promise((resolve) => setTimeout(resolve, isComplete ? FOLLOW_MS : POLL_MS));
    if (pages !== this.pages || (this.isShown && !this.element.isConnected)) return;
    const answer = await pages.more();
    if (pages !== this.pages) return;
    if (answer.total !== this.list.count) this.list.grow(answer.total);
    this.tell(answer);
    this.follow(pages, answer.isComplete);
  }

  tell({ total, isComplete }) {
    const isAll = !Object.values(this.wanted()).some(Boolean);
    const found = isAll ? plural(total, "step") : `${count(total)} found`;
    this.tally.textContent = isComplete ? found : `${found} so far`;
  }

  wanted() {
    const { q, kind, state } = this.filter;
    return { q, kind, state };
  }

  async go(route) {
    if (!isSame(route.filter, this.filter)) await this.narrow(route.filter);
    if (route.seq === this.seq) return;
    this.seq = route.seq;
    this.element.classList.toggle("has-event", Boolean(route.seq));
    if (!route.seq) return this.inspector.clear();
    this.inspector.show(route.seq);
    const row = await this.source.place(this.id, route.seq, this.wanted());
    if (row === null || this.seq !== route.seq) return;
    if (row >= this.list.count) this.list.grow(row + 1);
    this.list.select(row, { quietly: true });
  }

  async set(name, value) {
    this.filter = { ...this.filter, [name]: value };
    replaceRoute(toRun(this.id, { seq: this.seq, filter: this.filter }));
    await this.load();
  }

  drawFields() {
    this.search = searchField("Search steps", this.filter.q, (value) => this.set("q", value));
    const kinds = choice("kind", Object.keys(this.run.counts.kinds), this.filter.kind, (value) =>
      this.set("kind", value),
    );
    const states = choice("outcome", STATES, this.filter.state, (value) => this.set("state", value));
    this.fit = h(
      "button",
      {
        type: "button",
        "aria-pressed": String(this.isFitted),
        title: "Scale time to the visible rows (z)",
        onclick: () => this.toggleFit(),
      },
      "Fit time",
    );
    fill(this.fields, this.search.element, kinds, states, this.fit, h("span.spring"), this.tally);
  }

  toggleFit() {
    this.isFitted = !this.isFitted;
    this.fit?.setAttribute("aria-pressed", String(this.isFitted));
    this.list.draw();
  }

  onArrival() {
    this.list.refresh();
    if (this.awaited) this.onSelect(this.list.selected);
  }

  onSight(first, last) {
    this.pages?.want(first, last);
    const steps = [];
    for (let index = first; index < last; index++) steps.push(this.pages?.get(index));
    const known = steps.filter(Boolean);
    const digits = String(known.at(-1)?.seq ?? 0).length;
    this.element.style.setProperty("--digits", `${8 * digits + 12}px`);
    this.element.style.setProperty("--tracks", `${10 * trackCount(this.run.counts.columns)}px`);
    this.scale(known);
  }

  /** Scale the time axis to the visible steps, or to the whole run. */
  scale(known) {
    if (!this.isFitted) {
      const startMs = this.startMs ?? 0;
      this.waterfall.span(startMs, Math.max(this.run.counts.durationMs, startMs + 1));
    } else if (known.length) {
      const ends = known.map((step) => step.atMs + (step.tookMs ?? 0));
      this.waterfall.span(Math.min(...known.map((step) => step.atMs)), Math.max(...ends));
    }
  }

  onSelect(index) {
    const step = this.pages?.get(index);
    this.awaited = !step;
    if (!step) return;
    this.seq = step.seq;
    this.element.classList.add("has-event");
    replaceRoute(toRun(this.id, { seq: step.seq, filter: this.filter }));
    this.inspector.show(step.seq);
  }

  close() {
    this.seq = null;
    this.element.classList.remove("has-event");
    this.inspector.clear();
    replaceRoute(toRun(this.id, { filter: this.filter }));
    this.list.element.focus();
  }

  cellsAt(index) {
    const step = this.pages?.get(index);
    return stepCells(step, this.run.counts.columns, this.isDiverged(step));
  }

  /** Whether a replay differed from the step. */
  isDiverged(step) {
    return this.run.diverged.some((seq) => seq === step?.seq || seq === step?.outcomeSeq);
  }

  onKey(key) {
    const { list } = this;
    if (key === "/") this.search?.input.focus();
    else if (key === "j") list.select(list.selected + 1);
    else if (key === "k") list.select(list.selected - 1);
    else if (key === "n" || key === "p") this.toFailure(key === "p");
    else if (key === "z") this.toggleFit();
    else if (key === "Enter" && list.selected >= 0) this.inspector.focus();
    else if (key === "Escape") return this.leave();
    else return false;
    return true;
  }

  /** Leave the field or the call first, then the selected step; the page leaves the run. */
  leave() {
    const isElsewhere = document.activeElement?.closest(".fields, .inspector");
    if (isElsewhere) this.list.element.focus();
    else if (this.seq) this.close();
    else return false;
    return true;
  }

  async toFailure(isBack) {
    const seq = await this.source.failure(this.id, this.seq ?? 0, isBack, this.wanted());
    if (seq !== null) location.hash = toRun(this.id, { seq, filter: this.filter });
  }

  onShown() {
    this.isShown = true;
    this.list.draw();
    if (this.list.selected >= 0) this.list.select(this.list.selected, { quietly: true });
    this.list.element.focus({ preventScroll: true });
  }
}

function isSame(filter, other) {
  return ["q", "kind", "state"].every((name) => (filter[name] ?? "") === (other[name] ?? ""));
}

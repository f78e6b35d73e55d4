// All runs: search, filters, order, and the choice of two to compare.

import { announce } from "./announce.js";
import { fill, h, link, recorded } from "./dom.js";
import { choice, searchField } from "./fields.js";
import { CHOICES, matchingRuns, orderOf, orderedRuns } from "./run_order.js";
import { replaceRoute, toDiff, toRun, toRuns, toShadow } from "./route.js";
import { count, duration, moment, plural, size } from "./text.js";
import { VirtualList } from "./virtual_list.js";

const COLUMNS = [
  ["name", "Run"],
  ["model", "Model"],
  ["kind", "Kind"],
  ["startedMs", "Started"],
  ["tookMs", "Took"],
  ["sizeBytes", "Size"],
];
const ROW_HEIGHT = 44;

/** @returns {Promise<import("./main.js").Page>} */
export async function runsPage(source, route) {
  const view = new RunsView(route.filter);
  const loading = new Promise((resolve, reject) => {
    source.runs((runs, total, reports) => resolve(view.take(runs, total, reports))).catch(reject);
  });
  await loading;
  return {
    element: view.element,
    title: "Runs",
    go: (next) => view.apply(next.filter),
    onKey: (key) => view.onKey(key),
    onShown: () => view.focus(),
  };
}

class RunsView {
  constructor(filter) {
    this.runs = [];
    /** @type {any[]} */
    this.shown = [];
    this.filter = filter;
    this.chosen = new Set();
    this.compare = h("span.compare");
    this.tally = h("p.tally", { role: "status" });
    this.list = new VirtualList({
      label: "Runs",
      rowHeight: ROW_HEIGHT,
      cells: (index) => this.cells(this.shown[index]),
      onOpen: (index) => (location.hash = toRun(this.shown[index].id)),
    });
    this.search = searchField("Search runs", filter.q, (value) => this.set("q", value));
    this.choices = h("div.fields");
    this.fields = h("div.fields", { role: "search" }, this.search.element, this.choices);
    this.reports = h("div.reports");
    this.head = h("div.head", { role: "presentation" });
    const title = h("div.title", {}, h("h1", {}, "Runs"), this.tally, h("span.spring"), this.compare);
    this.element = h(
      "section.runs",
      { "aria-label": "Runs" },
      title,
      this.reports,
      this.fields,
      this.head,
      this.list.element,
    );
  }

  /** The runs found so far, of *total*. */
  take(runs, total, reports) {
    this.runs = runs;
    fill(this.reports, ...reports.map(reportLine));
    this.isComing = runs.length < total;
    this.apply(this.filter);
  }

  apply(filter) {
    this.filter = filter;
    const { input } = this.search;
    if (document.activeElement !== input) input.value = filter.q ?? "";
    this.drawFields();
    this.narrow();
  }

  set(name, value) {
    this.filter = { ...this.filter, [name]: value };
    replaceRoute(toRuns(this.filter));
    this.narrow();
  }

  narrow() {
    this.shown = orderedRuns(matchingRuns(this.runs, this.filter), this.filter);
    this.drawHead();
    this.list.reset(this.shown.length);
    const all = `${plural(this.runs.length, "run")}${this.isComing ? " so far" : ""}`;
    this.tally.textContent =
      this.shown.length === this.runs.length ? all : `${count(this.shown.length)} of ${all}`;
  }

  drawFields() {
    const options = (name) => [...new Set(this.runs.map((run) => run[name]).filter(Boolean))].sort();
    const choices = CHOICES.map((name) =>
      choice(name, options(name), this.filter[name], (value) => this.set(name, value)),
    );
    fill(this.choices, ...choices);
  }

  drawHead() {
    const { key, isDown } = orderOf(this.filter);
    const cells = COLUMNS.map(([name, label]) => {
      const isKey = name === key;
      const sort = () => this.set("sort", isKey && !isDown ? `-${name}` : name);
      const arrow = isKey ? (isDown ? " ↓" : " ↑") : "";
      const said = isKey ? `${label}, sorted ${isDown ? "descending" : "ascending"}` : `Sort by ${label}`;
      return h(`button.cell.${name}`, { type: "button", "aria-label": said, onclick: sort }, label + arrow);
    });
    fill(this.head, h("span.cell.pick"), h("span.cell.status"), ...cells);
  }

  cells(run) {
    const pick = h("input", {
      type: "checkbox",
      tabindex: -1,
      "aria-label": "Compare this run",
      onchange: () => this.pick(run.id),
    });
    pick.checked = this.chosen.has(run.id);
    return [
      h("span.cell.pick", { role: "gridcell" }, pick),
      h("span.cell.status", { role: "gridcell" }, statusMark(run.status)),
      h(
        "span.cell.name",
        { role: "gridcell" },
        link("a.run-name", toRun(run.id), { tabindex: -1 }, recorded("span", run.name)),
        run.problem ? recorded("span.note", run.problem) : null,
      ),
      recorded("span.cell.model", run.model ?? "", { role: "gridcell" }),
      recorded("span.cell.kind", run.kind, { role: "gridcell" }),
      h("span.cell.startedMs", { role: "gridcell" }, moment(run.startedMs)),
      h("span.cell.tookMs", { role: "gridcell" }, duration(run.tookMs)),
      h("span.cell.sizeBytes", { role: "gridcell" }, run.sizeBytes ? size(run.sizeBytes) : ""),
    ];
  }

  pick(id) {
    if (!this.chosen.delete(id)) this.chosen.add(id);
    while (this.chosen.size > 2) this.chosen.delete(this.chosen.values().next().value);
    this.list.refresh();
    const [a, b] = this.chosen;
    fill(
      this.compare,
      b === undefined
        ? a === undefined
          ? ""
          : "Select one more to compare"
        : link("a.button", toDiff(a, b), {}, "Compare the two"),
    );
    if (b !== undefined) announce("Two runs selected");
  }

  onKey(key) {
    if (key === "/") this.search.input.focus();
    else if (key === "j") this.list.select(this.list.selected + 1);
    else if (key === "k") this.list.select(this.list.selected - 1);
    else if (key === "Enter" && this.list.selected >= 0)
      location.hash = toRun(this.shown[this.list.selected].id);
    else if (key === "x" && this.list.selected >= 0) this.pick(this.shown[this.list.selected].id);
    else if (key === "Escape") this.list.element.focus();
    else return false;
    return true;
  }

  focus() {
    this.list.element.focus({ preventScroll: true });
    this.list.draw();
  }
}

/** A shadow report and its verdict. */
function reportLine({ name, verdict }) {
  return h(
    "p.report",
    {},
    h("span.muted", {}, "Shadow report "),
    link("a", toShadow(name), {}, recorded("span", name)),
    recorded("span.muted", ` ${verdict}`),
  );
}

/** A coloured dot, with the word for all readers. */
export function statusMark(status) {
  return h(`span.status-mark.is-${status.replace(/\W/g, "")}`, {}, status);
}

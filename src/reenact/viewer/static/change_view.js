// The differences of one step between two runs, or a step that only one run has.

import { h, link, recorded } from "./dom.js";
import { jsonTree } from "./json_tree.js";
import { toRun } from "./route.js";
import { kindLabel } from "./step_row.js";

const TOLD = {
  same: "Both runs did the same here.",
  added: "Only the right run did this.",
  removed: "Only the left run did this.",
};

/**
 * @typedef {Object} Change
 * @property {any} row
 * @property {any[]} [changes]
 * @property {Object<string, string[]>} [texts]
 * @property {Object<string, string[][]>} [words]
 */

/** @param {string} a @param {string} b @param {Change} change */
export function changeView(a, b, { row, changes = [], texts = {}, words = {} }) {
  const step = row.right ?? row.left;
  const title = [
    kindLabel(step.kind),
    recorded("h2", step.name),
    h(`span.outcome.is-${row.mark}`, {}, row.mark),
  ];
  const places = h("p.muted.links", {}, place(a, row.left, "left"), place(b, row.right, "right"));
  return [
    h("header", {}, h("div.title", {}, ...title), places),
    ...changes.map((one) => changeSection(one, texts[one.path], words[one.path])),
    changes.length ? null : h("p.muted", {}, TOLD[row.mark] ?? ""),
  ];
}

function place(run, step, side) {
  return step ? link("a", toRun(run, { seq: step.seq }), {}, `event ${step.seq} ${side}`) : null;
}

function changeSection(one, lines, words) {
  const shown = lines ? h("pre.code.text-diff", { tabindex: 0 }, ...lines.map(diffLine)) : pair(one);
  const marked = words ? h("pre.code.text-diff.words", { tabindex: 0 }, ...words.map(diffWord)) : null;
  return h("section.part", {}, recorded("h3", one.path), marked, shown);
}

function diffWord([mark, text]) {
  const name = { "+": "ins.added", "-": "del.removed" }[mark] ?? "span";
  return recorded(name, text);
}

export function diffLine(line) {
  const mark = { "+": ".added", "-": ".removed" }[line[0]] ?? "";
  return recorded(`span.line${mark}`, `${line}\n`);
}

/** The left and the right value at one path. */
export function pair(one) {
  return h("div.sides", {}, side(one, "left", "removed"), side(one, "right", "added"));
}

function side(one, name, tone) {
  const shown = name in one ? jsonTree(one[name], { open: 2 }) : h("span.muted", {}, "nothing");
  return h(`div.side.${tone}`, { "aria-label": name, role: "group" }, shown);
}

// A step on one line.

import { h, recorded } from "./dom.js";
import { kindClass } from "./kinds.js";
import { duration } from "./text.js";
import { bar, tracks } from "./waterfall.js";

const SHOWN_DEPTH = 12;

/** The cells of a row of the timeline. */
export function stepCells(step, columns, isDiverged) {
  if (!step) return [h("span.cell.seq", { role: "gridcell" }, "…")];
  const when = `at ${duration(step.atMs)}, task ${step.lane}`;
  return [
    h("span.cell.seq", { role: "gridcell" }, step.seq),
    h("span.cell.tracks", { "aria-hidden": "true" }, ...tracks(step, columns)),
    h("span.cell.call", { role: "gridcell" }, ...indents(step), ...stepWords(step, isDiverged)),
    h("span.cell.took", { role: "gridcell" }, duration(step.tookMs)),
    h("span.cell.bar", { role: "gridcell", "aria-label": when }, bar(step)),
  ];
}

/** The name, the request and the outcome. */
export function stepWords(step, isDiverged = false) {
  const told = step.state === "ok" ? (step.came ?? "") : [step.state, step.came].filter(Boolean).join(": ");
  return [
    kindLabel(step.kind),
    recorded("span.name", step.name),
    isDiverged ? h("span.diverged", { title: "A replay differed here" }, "≠ ") : null,
    recorded("span.asked", step.asked ?? ""),
    told ? h("span.arrow", { "aria-label": "gave" }, "→") : null,
    told ? recorded(`span.came.is-${step.state}`, told) : null,
  ];
}

export function kindLabel(kind) {
  return recorded(`span.kind.k-${kindClass(kind)}`, kind);
}

function indents({ depth = 0 }) {
  return Array.from({ length: Math.min(depth, SHOWN_DEPTH) }, () =>
    h("span.indent", { "aria-hidden": "true" }),
  );
}

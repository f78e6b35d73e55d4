// Bars in time: when a call was made and how long it took; what ran in parallel has tracks of its own.

import { h } from "./dom.js";
import { kindClass } from "./kinds.js";
import { duration } from "./text.js";

const TICKS = 4;
const SHOWN_TRACKS = 8;

/** The scale of the bars; a bar knows its own times, the scale is set once for all of them. */
export class Waterfall {
  /** @param {HTMLElement} element around all bars */
  constructor(element) {
    this.element = element;
    this.axis = h("span.axis");
    this.fromMs = NaN;
    this.spanMs = NaN;
  }

  /** Let the bars show the time between two moments. */
  span(fromMs, toMs) {
    const spanMs = Math.max(toMs - fromMs, 1);
    if (this.fromMs === fromMs && this.spanMs === spanMs) return;
    this.fromMs = fromMs;
    this.spanMs = spanMs;
    this.element.style.setProperty("--from", String(fromMs));
    this.element.style.setProperty("--span", String(spanMs));
    this.axis.replaceChildren(...Array.from({ length: TICKS + 1 }, (_, tick) => this.tick(tick)));
  }

  tick(tick) {
    const sinceMs = (this.spanMs * tick) / TICKS;
    // A short stretch late in a run: its ends would read the same.
    const isFar = tick > 0 && this.fromMs > this.spanMs;
    const label = h("span.tick", {}, isFar ? `+${duration(sinceMs)}` : duration(this.fromMs + sinceMs));
    label.style.left = `${(100 * tick) / TICKS}%`;
    return label;
  }
}

/** @param {{atMs: number, tookMs?: number, state: string, kind: string}} step */
export function bar(step) {
  const element = h(`span.span.k-${kindClass(step.kind)}.is-${step.state}`);
  element.style.setProperty("--at", String(step.atMs));
  element.style.setProperty("--took", String(step.tookMs ?? 0));
  return element;
}

/** One line per call that was open when the step began, and a knot for the step itself. */
export function tracks(step, columns) {
  const beside = new Set(step.beside ?? []);
  const own = Math.min(step.column ?? 0, SHOWN_TRACKS - 1);
  return Array.from({ length: trackCount(columns) }, (_, column) => {
    const mark = column === own ? `.own.k-${kindClass(step.kind)}` : beside.has(column) ? ".through" : "";
    return h(`span.track${mark}`);
  });
}

export function trackCount(columns) {
  return columns > 1 ? Math.min(columns, SHOWN_TRACKS) : 0;
}

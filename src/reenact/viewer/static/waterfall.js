// Time bars: the start and the duration of each call; parallel calls have their own tracks.

import { h } from "./dom.js";
import { kindClass } from "./kinds.js";
import { duration } from "./text.js";

const TICKS = 4;
const SHOWN_TRACKS = 8;

/** The time scale, which all bars share. */
export class Waterfall {
  /** @param {HTMLElement} element around all bars */
  constructor(element) {
    this.element = element;
    this.axis = h("span.axis");
    this.fromMs = NaN;
    this.spanMs = NaN;
  }

  /** Set the start and the end of the scale. */
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
    // For a short time late in a run, both ends would have the same label.
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

/** One line for each call that was open when the step began, and a dot for the step itself. */
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

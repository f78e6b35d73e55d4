// A list of any length with only the visible rows in the document.

import { h } from "./dom.js";

const MARGIN_ROWS = 12;

/**
 * @typedef {Object} ListOptions
 * @property {string} label the name of the list for screen readers
 * @property {number} rowHeight in pixels, the same for every row
 * @property {(index: number) => HTMLElement[]} cells the cells of row *index*
 * @property {(first: number, last: number) => void} [onSight] called with the visible rows
 * @property {(index: number) => void} [onSelect]
 * @property {(index: number) => void} [onOpen] Enter or a second click on the selected row
 * @property {(index: number) => string} [rowClass]
 */

export class VirtualList {
  /** @param {ListOptions} options */
  constructor(options) {
    this.options = options;
    this.count = 0;
    this.selected = -1;
    this.told = -1; // the row that `onSelect` was called for, or that the page shows anyway
    this.rows = new Map();
    this.space = h("div.rows", { role: "presentation" });
    this.element = h(
      "div.list",
      { role: "grid", "aria-label": options.label, tabindex: 0, "aria-rowcount": 0, "aria-readonly": "true" },
      this.space,
    );
    this.name = `list${++VirtualList.made}`;
    this.element.addEventListener("scroll", () => this.schedule(), { passive: true });
    this.element.addEventListener("focus", () => this.selected < 0 && this.markFirst());
    this.element.addEventListener("keydown", (event) => this.onKey(event));
    this.space.addEventListener("click", (event) => this.onClick(event));
    new ResizeObserver(() => this.schedule()).observe(this.element);
  }

  static made = 0;

  /** Show *count* rows, all new. */
  reset(count) {
    this.count = count;
    this.selected = this.told = -1;
    this.element.removeAttribute("aria-activedescendant");
    this.element.setAttribute("aria-rowcount", String(count));
    this.space.style.height = `${count * this.options.rowHeight}px`;
    this.refresh();
  }

  /** Add rows at the end; the present ones stay. */
  grow(count) {
    this.count = count;
    this.element.setAttribute("aria-rowcount", String(count));
    this.space.style.height = `${count * this.options.rowHeight}px`;
    this.schedule();
  }

  /** Draw the visible rows again after their content changed. */
  refresh() {
    this.space.replaceChildren();
    this.rows.clear();
    this.draw();
  }

  schedule() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.draw();
    });
  }

  /** @returns {[number, number]} the first visible row, and the one after the last */
  inSight() {
    const { scrollTop, clientHeight } = this.element;
    const first = Math.floor(scrollTop / this.options.rowHeight);
    const last = Math.ceil((scrollTop + clientHeight) / this.options.rowHeight);
    return [Math.max(0, first), Math.min(this.count, last)];
  }

  draw() {
    const [sightFirst, sightLast] = this.inSight();
    const first = Math.max(0, sightFirst - MARGIN_ROWS);
    const last = Math.min(this.count, sightLast + MARGIN_ROWS);
    for (const [index, row] of this.rows) {
      if (index < first || index >= last) {
        row.remove();
        this.rows.delete(index);
      }
    }
    for (let index = first; index < last; index++) {
      if (!this.rows.has(index)) this.add(index);
    }
    this.options.onSight?.(sightFirst, sightLast);
  }

  add(index) {
    const isSelected = index === this.selected;
    const row = h(
      `div.row${this.options.rowClass?.(index) ?? ""}${isSelected ? ".selected" : ""}`,
      {
        role: "row",
        id: `${this.name}-${index}`,
        "aria-rowindex": index + 1,
        "aria-selected": String(isSelected),
      },
      ...this.options.cells(index),
    );
    row.style.transform = `translateY(${index * this.options.rowHeight}px)`;
    this.rows.set(index, row);
    this.space.append(row);
  }

  /** Select a row, scroll to it, and call `onSelect`. */
  select(index, { quietly = false } = {}) {
    if (!this.count) return;
    const bounded = Math.min(Math.max(index, 0), this.count - 1);
    const before = this.selected;
    this.selected = bounded;
    this.reveal(bounded);
    this.draw();
    this.mark(before);
    this.mark(bounded);
    this.element.setAttribute("aria-activedescendant", `${this.name}-${bounded}`);
    const isNews = this.told !== bounded;
    this.told = bounded;
    if (!quietly && isNews) this.options.onSelect?.(bounded);
  }

  /** Select the first row for the keyboard; nothing is shown of it before it is selected again. */
  markFirst() {
    this.select(0, { quietly: true });
    this.told = -1;
  }

  mark(index) {
    const row = this.rows.get(index);
    row?.classList.toggle("selected", index === this.selected);
    row?.setAttribute("aria-selected", String(index === this.selected));
  }

  reveal(index) {
    const top = index * this.options.rowHeight;
    const { scrollTop, clientHeight } = this.element;
    if (top < scrollTop) this.element.scrollTop = top;
    else if (top + this.options.rowHeight > scrollTop + clientHeight) {
      const isFar = top > scrollTop + 2 * clientHeight;
      this.element.scrollTop = top - (isFar ? clientHeight / 3 : clientHeight - this.options.rowHeight);
    }
  }

  onClick(event) {
    const row = event.target.closest("[aria-rowindex]");
    if (!row || event.target.closest("a, button, input")) return;
    this.select(Number(row.getAttribute("aria-rowindex")) - 1);
    this.options.onOpen?.(this.selected);
  }

  onKey(event) {
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.options.rowHeight) - 1);
    const steps = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -this.count,
      End: this.count,
    };
    if (event.key in steps) {
      event.preventDefault();
      this.select(this.selected + steps[event.key]);
    } else if (event.key === "Enter" && this.selected >= 0 && event.target === this.element) {
      event.preventDefault();
      this.options.onOpen?.(this.selected);
    }
  }
}

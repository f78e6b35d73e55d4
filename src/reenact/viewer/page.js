// made of static/*.js by make viewer: sha256:f4f78d5a4c9f1aab4da7bc6f67bae6eb432f26650417665a3e88c11352e079a0

// src/reenact/viewer/static/text.js
var UNSEEN = /(?![\n\t]|(?<=\P{ASCII})[\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
function visible(text) {
  return String(text).replace(UNSEEN, (mark2) => {
    const code = mark2.codePointAt(0) ?? 0;
    if (code < 32) return String.fromCodePoint(9216 + code);
    return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}
function duration(ms) {
  if (ms === null || ms === void 0) return "";
  if (ms < 1e3) return `${Math.round(ms)} ms`;
  if (ms < 6e4) return `${(ms / 1e3).toFixed(2)} s`;
  const seconds = Math.round(ms / 1e3);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor(seconds % 3600 / 60)} min`;
}
function count(number) {
  return number.toLocaleString("en");
}
function plural(number, word) {
  return `${count(number)} ${word}${number === 1 ? "" : "s"}`;
}
function size(bytes) {
  if (bytes < 1e3) return `${bytes} B`;
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}
function moment(ms) {
  if (ms === null || ms === void 0) return "";
  const options = { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" };
  return new Date(ms).toLocaleString("en-GB", options);
}

// src/reenact/viewer/static/dom.js
var REFUSED = /* @__PURE__ */ new Set(["href", "src", "srcdoc", "style", "action", "formaction"]);
function h(selector, attributes = {}, ...children) {
  const [tag, ...classes] = selector.split(".");
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  for (const [name, value2] of Object.entries(attributes)) setAttribute(element, name, value2);
  element.append(...children.filter((child) => child !== null && child !== void 0).map(asNode));
  return (
    /** @type {Made<S>} */
    element
  );
}
function byId(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no element ${id}`);
  return element;
}
function link(selector, hash, attributes = {}, ...children) {
  const element = h(selector, attributes, ...children);
  if (!hash.startsWith("#/")) throw new Error(`not a link inside this page: ${hash}`);
  element.setAttribute("href", hash);
  return element;
}
function fill(element, ...children) {
  element.replaceChildren(...children.filter((child) => child !== null).map(asNode));
}
function recorded(selector, text, attributes = {}) {
  return h(selector, attributes, visible(text));
}
function asNode(child) {
  return child instanceof Node ? child : document.createTextNode(String(child));
}
function setAttribute(element, name, value2) {
  if (REFUSED.has(name)) throw new Error(`${name} is not set this way`);
  if (typeof value2 === "function") element.addEventListener(name.replace(/^on/, ""), value2);
  else if (value2 !== null && value2 !== void 0 && value2 !== false) {
    element.setAttribute(name, value2 === true ? "" : String(value2));
  }
}

// src/reenact/viewer/static/json_tree.js
var SHOWN_MEMBERS = 100;
var SHOWN_CHARACTERS = 1200;
var SUMMARY_CHARACTERS = 80;
function jsonTree(value2, { open = 1, marked = /* @__PURE__ */ new Set(), path = "$" } = {}) {
  const context = { open: open - 1, marked, path };
  const isOpen = isBranch(value2) && open > 0;
  return h("div.json", {}, isOpen ? members(value2, context) : node(null, value2, { ...context, open }));
}
function isBranch(value2) {
  return typeof value2 === "object" && value2 !== null && Object.keys(value2).length > 0;
}
function node(key, value2, context) {
  return isBranch(value2) ? branch(key, value2, context) : leaf(key, value2, context);
}
function branch(key, value2, { open, marked, path }) {
  const leadsToMark = [...marked].some(
    (mark2) => mark2 === path || mark2.startsWith(`${path}.`) || mark2.startsWith(`${path}[`)
  );
  const summary = h("summary", {}, ...keyed(key), recorded("span.gist", gist(value2)));
  const element = h(
    `details${marked.has(path) ? ".differs" : ""}`,
    { open: open > 0 || leadsToMark },
    summary
  );
  const build = () => {
    if (element.children.length === 1) element.append(members(value2, { open: open - 1, marked, path }));
  };
  element.addEventListener("toggle", build);
  if (element.open) build();
  return element;
}
function members(value2, context, from = 0) {
  const entries = Object.entries(value2);
  const isList = Array.isArray(value2);
  const group = h("div.members");
  for (const [key, child] of entries.slice(from, from + SHOWN_MEMBERS)) {
    group.append(node(key, child, { ...context, path: childPath(context.path, isList ? Number(key) : key) }));
  }
  const left = entries.length - from - SHOWN_MEMBERS;
  if (left > 0) {
    const more = () => button.replaceWith(...members(value2, context, from + SHOWN_MEMBERS).childNodes);
    const button = h("button.more", { type: "button", onclick: more }, `${count(left)} more`);
    group.append(button);
  }
  return group;
}
function leaf(key, value2, { marked, path }) {
  const mark2 = marked.has(path) ? ".differs" : "";
  return h(`div.leaf${mark2}`, {}, ...keyed(key), scalar(value2));
}
function scalar(value2) {
  if (typeof value2 !== "string") return recorded(`span.${typeof value2}`, JSON.stringify(value2));
  return value2 ? clipped("span.string", value2) : h("span.string", {}, '""');
}
function clipped(selector, text, limit = SHOWN_CHARACTERS) {
  if (text.length <= limit) return recorded(selector, text);
  const element = recorded(selector, text.slice(0, limit));
  const whole = () => element.replaceChildren(visible(text));
  element.append(
    h("button.more", { type: "button", onclick: whole }, `… ${count(text.length - limit)} more characters`)
  );
  return element;
}
function keyed(key) {
  return key === null ? [] : [recorded("span.key", key), h("span.colon", { "aria-hidden": "true" }, ": ")];
}
function gist(value2) {
  if (Array.isArray(value2)) return `[ ${count(value2.length)} ]`;
  const keys = Object.keys(value2).join(", ");
  return `{ ${keys.length > SUMMARY_CHARACTERS ? `${keys.slice(0, SUMMARY_CHARACTERS)}…` : keys} }`;
}
function childPath(path, key) {
  if (typeof key === "number") return `${path}[${key}]`;
  return /^[\p{ID_Start}_]\p{ID_Continue}*$/u.test(key) ? `${path}.${key}` : `${path}[${JSON.stringify(key)}]`;
}

// src/reenact/viewer/static/route.js
var TABS = ["timeline", "conversation", "state", "divergences", "forks", "files"];
function parseRoute(hash) {
  const [path, query = ""] = hash.replace(/^#/, "").split("?", 2);
  const parts = path.split("/").filter(Boolean).map(decoded);
  const filter = Object.fromEntries(new URLSearchParams(query));
  if (parts[0] === "run" && parts[1]) return runRoute(parts, filter);
  if (parts[0] === "diff" && parts[2]) return { page: "diff", a: parts[1], b: parts[2], filter };
  if (parts[0] === "shadow" && parts[1]) return { page: "shadow", name: parts[1], filter };
  return { page: "runs", filter };
}
function runRoute([, run, what, number], filter) {
  const seq = what === "event" && /^[1-9][0-9]*$/.test(number ?? "") ? Number(number) : null;
  const tab = TABS.includes(what) ? what : "timeline";
  return { page: "run", run, tab, seq, filter };
}
var toRuns = (filter = {}) => `#/${asQuery(filter)}`;
var toShadow = (name) => `#/shadow/${encodeURIComponent(name)}`;
var toDiff = (a, b) => `#/diff/${encodeURIComponent(a)}/${encodeURIComponent(b)}`;
function toRun(run, { tab = "timeline", seq = null, filter = {} } = {}) {
  const place3 = seq ? `/event/${seq}` : tab === "timeline" ? "" : `/${tab}`;
  return `#/run/${encodeURIComponent(run)}${place3}${asQuery(filter)}`;
}
function replaceRoute(hash) {
  history.replaceState(null, "", hash);
}
function asQuery(filter) {
  const query = new URLSearchParams(Object.entries(filter).filter(([, value2]) => value2)).toString();
  return query && `?${query}`;
}
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

// src/reenact/viewer/static/kinds.js
var COLOURED = ["model", "tool", "state", "network", "process", "message"];
function kindClass(kind) {
  return COLOURED.includes(kind) ? kind : "chance";
}

// src/reenact/viewer/static/waterfall.js
var TICKS = 4;
var SHOWN_TRACKS = 8;
var Waterfall = class {
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
    const sinceMs = this.spanMs * tick / TICKS;
    const isFar = tick > 0 && this.fromMs > this.spanMs;
    const label = h("span.tick", {}, isFar ? `+${duration(sinceMs)}` : duration(this.fromMs + sinceMs));
    label.style.left = `${100 * tick / TICKS}%`;
    return label;
  }
};
function bar(step) {
  const element = h(`span.span.k-${kindClass(step.kind)}.is-${step.state}`);
  element.style.setProperty("--at", String(step.atMs));
  element.style.setProperty("--took", String(step.tookMs ?? 0));
  return element;
}
function tracks(step, columns) {
  const beside = new Set(step.beside ?? []);
  const own = Math.min(step.column ?? 0, SHOWN_TRACKS - 1);
  return Array.from({ length: trackCount(columns) }, (_, column) => {
    const mark2 = column === own ? `.own.k-${kindClass(step.kind)}` : beside.has(column) ? ".through" : "";
    return h(`span.track${mark2}`);
  });
}
function trackCount(columns) {
  return columns > 1 ? Math.min(columns, SHOWN_TRACKS) : 0;
}

// src/reenact/viewer/static/step_row.js
var SHOWN_DEPTH = 12;
function stepCells(step, columns, isDiverged) {
  if (!step) return [h("span.cell.seq", { role: "gridcell" }, "…")];
  const when = `at ${duration(step.atMs)}, task ${step.lane}`;
  return [
    h("span.cell.seq", { role: "gridcell" }, step.seq),
    h("span.cell.tracks", { "aria-hidden": "true" }, ...tracks(step, columns)),
    h("span.cell.call", { role: "gridcell" }, ...indents(step), ...stepWords(step, isDiverged)),
    h("span.cell.took", { role: "gridcell" }, duration(step.tookMs)),
    h("span.cell.bar", { role: "gridcell", "aria-label": when }, bar(step))
  ];
}
function stepWords(step, isDiverged = false) {
  const told = step.state === "ok" ? step.came ?? "" : [step.state, step.came].filter(Boolean).join(": ");
  return [
    kindLabel(step.kind),
    recorded("span.name", step.name),
    isDiverged ? h("span.diverged", { title: "A replay differed here" }, "≠ ") : null,
    recorded("span.asked", step.asked ?? ""),
    told ? h("span.arrow", { "aria-label": "gave" }, "→") : null,
    told ? recorded(`span.came.is-${step.state}`, told) : null
  ];
}
function kindLabel(kind) {
  return recorded(`span.kind.k-${kindClass(kind)}`, kind);
}
function indents({ depth = 0 }) {
  return Array.from(
    { length: Math.min(depth, SHOWN_DEPTH) },
    () => h("span.indent", { "aria-hidden": "true" })
  );
}

// src/reenact/viewer/static/change_view.js
var TOLD = {
  same: "Both runs did the same here.",
  added: "Only the right run did this.",
  removed: "Only the left run did this."
};
function changeView(a, b, { row: row2, changes = [], texts = {}, words = {} }) {
  const step = row2.right ?? row2.left;
  const title = [
    kindLabel(step.kind),
    recorded("h2", step.name),
    h(`span.outcome.is-${row2.mark}`, {}, row2.mark)
  ];
  const places = h("p.muted.links", {}, place(a, row2.left, "left"), place(b, row2.right, "right"));
  return [
    h("header", {}, h("div.title", {}, ...title), places),
    ...changes.map((one) => changeSection(one, texts[one.path], words[one.path])),
    changes.length ? null : h("p.muted", {}, TOLD[row2.mark] ?? "")
  ];
}
function place(run, step, side3) {
  return step ? link("a", toRun(run, { seq: step.seq }), {}, `event ${step.seq} ${side3}`) : null;
}
function changeSection(one, lines, words) {
  const shown = lines ? h("pre.code.text-diff", { tabindex: 0 }, ...lines.map(diffLine)) : pair(one);
  const marked = words ? h("pre.code.text-diff.words", { tabindex: 0 }, ...words.map(diffWord)) : null;
  return h("section.part", {}, recorded("h3", one.path), marked, shown);
}
function diffWord([mark2, text]) {
  const name = { "+": "ins.added", "-": "del.removed" }[mark2] ?? "span";
  return recorded(name, text);
}
function diffLine(line) {
  const mark2 = { "+": ".added", "-": ".removed" }[line[0]] ?? "";
  return recorded(`span.line${mark2}`, `${line}
`);
}
function pair(one) {
  return h("div.sides", {}, side(one, "left", "removed"), side(one, "right", "added"));
}
function side(one, name, tone) {
  const shown = name in one ? jsonTree(one[name], { open: 2 }) : h("span.muted", {}, "nothing");
  return h(`div.side.${tone}`, { "aria-label": name, role: "group" }, shown);
}

// src/reenact/viewer/static/facts.js
function factList(pairs) {
  const known = pairs.filter(([, value2]) => value2 !== null && value2 !== void 0 && value2 !== "");
  return h(
    "dl.facts",
    {},
    ...known.map(([name, value2]) => h("div", {}, h("dt", {}, name), recorded("dd", value2)))
  );
}

// src/reenact/viewer/static/pages.js
var PAGE_ROWS = 200;
var KEPT_PAGES = 50;
var SETTLE_MS = 30;
var Pages = class {
  /**
   * @param {(from: number, count: number) => Promise<{total: number, isComplete: boolean, rows: any[]}>} load
   * @param {() => void} onArrival
   */
  constructor(load, onArrival) {
    this.load = load;
    this.onArrival = onArrival;
    this.pages = /* @__PURE__ */ new Map();
  }
  /** The first answer: the number of rows, and whether that is final. */
  begin() {
    return this.fetch(0);
  }
  /** Update the number of rows; a page that was not full is fetched again. */
  async more() {
    const answer = await this.load(0, 0);
    for (const [page2, rows] of this.pages) {
      if (rows && rows.length < PAGE_ROWS && page2 * PAGE_ROWS + rows.length < answer.total)
        this.pages.delete(page2);
    }
    return answer;
  }
  /** Row *index*, or `undefined` if it was not fetched yet. */
  get(index) {
    return this.pages.get(Math.floor(index / PAGE_ROWS))?.[index % PAGE_ROWS];
  }
  /** Row *index*, fetched if needed. */
  async reach(index) {
    await this.fetch(Math.floor(index / PAGE_ROWS));
    return this.get(index);
  }
  /** Fetch the missing rows from *first* to *last* when scrolling has stopped. */
  want(first, last) {
    clearTimeout(this.timer);
    const missing = [];
    for (let page2 = Math.floor(first / PAGE_ROWS); page2 * PAGE_ROWS < last; page2++) {
      if (!this.pages.has(page2)) missing.push(page2);
    }
    if (missing.length)
      this.timer = setTimeout(() => missing.forEach((page2) => this.arrive(page2)), SETTLE_MS);
  }
  async arrive(page2) {
    try {
      await this.fetch(page2);
      this.onArrival();
    } catch {
      this.pages.delete(page2);
    }
  }
  async fetch(page2) {
    this.pages.set(page2, null);
    const answer = await this.load(page2 * PAGE_ROWS, PAGE_ROWS);
    this.pages.set(page2, answer.rows);
    while (this.pages.size > KEPT_PAGES) this.pages.delete([...this.pages.keys()][0]);
    return answer;
  }
};

// src/reenact/viewer/static/virtual_list.js
var MARGIN_ROWS = 12;
var VirtualList = class _VirtualList {
  /** @param {ListOptions} options */
  constructor(options) {
    this.options = options;
    this.count = 0;
    this.selected = -1;
    this.told = -1;
    this.rows = /* @__PURE__ */ new Map();
    this.space = h("div.rows", { role: "presentation" });
    this.element = h(
      "div.list",
      { role: "grid", "aria-label": options.label, tabindex: 0, "aria-rowcount": 0, "aria-readonly": "true" },
      this.space
    );
    this.name = `list${++_VirtualList.made}`;
    this.element.addEventListener("scroll", () => this.schedule(), { passive: true });
    this.element.addEventListener("focus", () => this.selected < 0 && this.markFirst());
    this.element.addEventListener("keydown", (event) => this.onKey(event));
    this.space.addEventListener("click", (event) => this.onClick(event));
    new ResizeObserver(() => this.schedule()).observe(this.element);
  }
  static made = 0;
  /** Show *count* rows, all new. */
  reset(count2) {
    this.count = count2;
    this.selected = this.told = -1;
    this.element.removeAttribute("aria-activedescendant");
    this.element.setAttribute("aria-rowcount", String(count2));
    this.space.style.height = `${count2 * this.options.rowHeight}px`;
    this.refresh();
  }
  /** Add rows at the end; the present ones stay. */
  grow(count2) {
    this.count = count2;
    this.element.setAttribute("aria-rowcount", String(count2));
    this.space.style.height = `${count2 * this.options.rowHeight}px`;
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
    for (const [index, row2] of this.rows) {
      if (index < first || index >= last) {
        row2.remove();
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
    const row2 = h(
      `div.row${this.options.rowClass?.(index) ?? ""}${isSelected ? ".selected" : ""}`,
      {
        role: "row",
        id: `${this.name}-${index}`,
        "aria-rowindex": index + 1,
        "aria-selected": String(isSelected)
      },
      ...this.options.cells(index)
    );
    row2.style.transform = `translateY(${index * this.options.rowHeight}px)`;
    this.rows.set(index, row2);
    this.space.append(row2);
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
    const row2 = this.rows.get(index);
    row2?.classList.toggle("selected", index === this.selected);
    row2?.setAttribute("aria-selected", String(index === this.selected));
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
    const row2 = event.target.closest("[aria-rowindex]");
    if (!row2 || event.target.closest("a, button, input")) return;
    this.select(Number(row2.getAttribute("aria-rowindex")) - 1);
    this.options.onOpen?.(this.selected);
  }
  onKey(event) {
    const page2 = Math.max(1, Math.floor(this.element.clientHeight / this.options.rowHeight) - 1);
    const steps = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page2,
      PageUp: -page2,
      Home: -this.count,
      End: this.count
    };
    if (event.key in steps) {
      event.preventDefault();
      this.select(this.selected + steps[event.key]);
    } else if (event.key === "Enter" && this.selected >= 0 && event.target === this.element) {
      event.preventDefault();
      this.options.onOpen?.(this.selected);
    }
  }
};

// src/reenact/viewer/static/diff_page.js
var ROW_HEIGHT = 32;
var POLL_MS = 300;
var SIGNS = { same: " ", changed: "≠", added: "+", removed: "−" };
async function diffPage(source2, route) {
  const view = new Diff(source2, route.a, route.b, await finished(source2, route.a, route.b));
  await view.load();
  return {
    element: view.element,
    title: `${route.a} and ${route.b}`,
    go: () => {
    },
    onKey: (key) => view.onKey(key),
    onShown: () => view.onShown()
  };
}
async function finished(source2, a, b) {
  for (; ; ) {
    const answer = await source2.diff(a, b);
    if (answer.counts) return answer;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
var Diff = class {
  constructor(source2, a, b, summary) {
    this.source = source2;
    this.a = a;
    this.b = b;
    this.summary = summary;
    this.pages = new Pages(
      (from, number) => source2.diffRows(a, b, from, number),
      () => this.list.refresh()
    );
    this.list = new VirtualList({
      label: "Steps of both runs",
      rowHeight: ROW_HEIGHT,
      cells: (index) => cells(this.pages.get(index)),
      rowClass: (index) => `.is-${this.pages.get(index)?.mark ?? "coming"}`,
      onSight: (first, last) => this.pages.want(first, last),
      onSelect: (index) => this.show(index),
      onOpen: () => this.change.focus()
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
    for (let index = this.list.selected + direction; index >= 0 && index < this.list.count; index += direction) {
      const row2 = this.pages.get(index) ?? await this.pages.reach(index);
      if (row2.mark !== "same") return this.list.select(index);
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
};
function heading(a, b, { counts, totals, outcome, forks }) {
  const said = ["changed", "added", "removed"].filter((mark2) => counts[mark2]).map((mark2) => `${count(counts[mark2])} ${mark2}`);
  const verdict = said.length || outcome.length ? said.join(", ") || "the same steps, another result" : "the same";
  return h(
    "header.run-head",
    {},
    h("p.crumbs", {}, link("a", toRuns(), {}, "Runs"), " / comparison"),
    h(
      "div.title",
      {},
      h("h1", {}, recorded("span", a), h("span.muted", {}, " and "), recorded("span", b)),
      h(`span.outcome.is-${verdict === "the same" ? "ok" : "error"}`, {}, verdict)
    ),
    ...forks.map((words) => recorded("p.muted", words)),
    factList(totalFacts(totals)),
    ...outcome.map((one) => h("section.part", {}, recorded("h3", one.path), pair(one)))
  );
}
function totalFacts([left, right]) {
  const facts = [
    ["Steps", (run) => count(run.steps)],
    ["Errors", (run) => count(run.errors)],
    ["Took", (run) => duration(run.durationMs)],
    ["Tokens", (run) => `${count(run.inputTokens)} → ${count(run.outputTokens)}`]
  ];
  return facts.map(([name, told]) => [name, [.../* @__PURE__ */ new Set([told(left), told(right)])].join(" | ")]);
}
function head(a, b) {
  return h("div.head", { "aria-hidden": "true" }, h("span"), recorded("span", a), recorded("span", b));
}
function cells(row2) {
  if (!row2) return [h("span.cell", { role: "gridcell" }, "…")];
  return [
    h("span.cell.sign", { role: "gridcell", "aria-label": row2.mark }, SIGNS[row2.mark]),
    h("span.cell.call", { role: "gridcell" }, ...sideWords(row2.left)),
    h("span.cell.call", { role: "gridcell" }, ...sideWords(row2.right))
  ];
}
function sideWords(step) {
  return step ? [h("span.seq", {}, step.seq), ...stepWords(step)] : [];
}

// src/reenact/viewer/static/keys.js
var KEYS = [
  ["j  k", "next, previous row"],
  ["Enter", "open the selected row"],
  ["Esc", "leave: the field, the event, the run"],
  ["/", "search"],
  ["n  p", "next, previous failure"],
  ["z", "scale time to the visible rows"],
  ["x", "select a run to compare"],
  ["1 2 3 4 5 6", "timeline, conversation, state, divergences, forks, files"],
  ["v", "verify the run"],
  ["t", "light or dark"],
  ["?", "this help"]
];
function listen(onKey2) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (isTyping(event.target) && event.key !== "Escape") return;
    if (document.querySelector("dialog[open]")) return;
    if (onKey2(event.key)) event.preventDefault();
  });
}
function showHelp() {
  const dialog = h("dialog.help", { "aria-labelledby": "help-title" });
  const rows = KEYS.map(
    ([keys, meaning]) => h("div", {}, h("dt", {}, ...keys.split(/\s+/).map((key) => h("kbd", {}, key))), h("dd", {}, meaning))
  );
  const close = h("button", { type: "button", onclick: () => dialog.close() }, "Close");
  fill(dialog, h("h2", { id: "help-title" }, "Keyboard"), h("dl", {}, ...rows), close);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
function isTyping(target) {
  return target instanceof HTMLElement && target.matches("input:not([type=checkbox]), select, textarea");
}

// src/reenact/viewer/static/announce.js
function announce(text) {
  byId("announcer").textContent = text;
}

// src/reenact/viewer/static/badge.js
var POLL_MS2 = 400;
var SHOWN_FINDINGS = 200;
function verifyButton(source2, run) {
  const button = h(
    "button.badge",
    { type: "button", title: "Check every digest, link and number (v)", "aria-live": "polite" },
    "Verify"
  );
  const findings = h("div.findings");
  const element = h("div.verification", {}, button, findings);
  let isRunning = false;
  async function verify() {
    if (isRunning) return;
    isRunning = true;
    try {
      showReport(await finished2(source2, run, (share) => showProgress(button, share)));
    } catch (error) {
      showVerdict(button, "bad", `Cannot be verified: ${error instanceof Error ? error.message : error}`);
    }
    isRunning = false;
  }
  function showReport(report) {
    const errors = report.findings.filter((finding) => finding.severity !== "warning").length;
    const warnings = report.findings.length - errors;
    const said = errors ? plural(errors, "problem") : warnings ? `Verified, ${plural(warnings, "warning")}` : "Verified";
    showVerdict(button, errors ? "bad" : "good", said);
    fill(findings, report.findings.length ? findingList(report.findings) : "");
  }
  button.addEventListener("click", verify);
  return { element, verify };
}
async function finished2(source2, run, onProgress) {
  for (; ; ) {
    const answer = await source2.check(run);
    if (answer.report) return answer.report;
    if (answer.problem) throw new Error(answer.problem);
    onProgress(answer.share);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS2));
  }
}
function showProgress(button, share) {
  button.className = "badge is-running";
  button.textContent = `Verifying… ${Math.floor(share * 100)} %`;
}
function showVerdict(button, verdict, said) {
  button.className = `badge is-${verdict}`;
  button.textContent = `${verdict === "good" ? "✓" : "✗"} ${said}`;
  announce(said);
}
function findingList(findings) {
  const items = findings.slice(0, SHOWN_FINDINGS).map((finding) => {
    const place3 = [finding.file, finding.line].filter((part) => part !== void 0 && part !== null).join(":");
    return h(
      `li.${finding.severity === "warning" ? "warning" : "error"}`,
      {},
      recorded("span.code", finding.code),
      recorded("span.place", place3),
      recorded("span.what", finding.message)
    );
  });
  const left = findings.length - items.length;
  if (left > 0) items.push(h("li", {}, `… and ${left} more; reenact verify --json lists all`));
  return h("details", { open: true }, h("summary", {}, "Findings"), h("ul", {}, ...items));
}

// src/reenact/viewer/static/prose.js
var SHOWN_CHARACTERS2 = 6e3;
function prose(text) {
  const element = h("div.prose");
  const shown = text.length > SHOWN_CHARACTERS2 ? text.slice(0, SHOWN_CHARACTERS2) : text;
  element.append(...blocks(shown));
  if (shown !== text) {
    const whole = () => element.replaceChildren(...blocks(text));
    element.append(h("button.more", { type: "button", onclick: whole }, "Show the whole text"));
  }
  return element;
}
function blocks(text) {
  return text.split(/^```(.*)$/m).flatMap(block);
}
function block(part, position) {
  const place3 = position % 4;
  if (place3 === 1 || place3 === 3) return [];
  if (place3 === 2) return [h("pre.code", { tabindex: 0 }, recorded("code", part.replace(/^\n|\n$/g, "")))];
  return part.split(/\n\s*\n/).filter((paragraph) => paragraph.trim()).map((paragraph) => h("p", {}, ...inline(paragraph.trim())));
}
function inline(text) {
  return text.split(/(`[^`\n]+`|\*\*[^*\n]+\*\*)/).map((part) => {
    if (/^`.+`$/.test(part)) return recorded("code", part.slice(1, -1));
    if (/^\*\*.+\*\*$/.test(part)) return recorded("strong", part.slice(2, -2));
    return recorded("span", part);
  });
}

// src/reenact/viewer/static/parts.js
var FORMS = {
  text: (part) => prose(part.text),
  thinking: (part) => h("details.thinking", {}, h("summary", {}, "Thinking"), prose(part.text || "Sealed by the provider.")),
  tool_call: (part) => card("calls", part.name, part.arguments ?? part.argumentsText),
  tool_result: (part) => h(`div${part.isError ? ".failed" : ""}`, {}, value(part.content)),
  refusal: (part) => h("div.failed", {}, prose(part.text)),
  media: (part) => recorded("p.muted", `${part.mediaType ?? "media"} ${part.url ?? part.fileId ?? part.digest ?? ""}`),
  failure: (part) => h("div.failed", {}, value(part.value))
};
function partView(part) {
  return (FORMS[part.kind] ?? ((other) => value(other.value)))(part);
}
function value(shown) {
  return typeof shown === "string" ? h("pre.code", { tabindex: 0 }, clipped("code", shown, 4e3)) : jsonTree(shown ?? null, { open: 2 });
}
function card(verb, name, given2) {
  return h(
    "div.call-card",
    {},
    h("div.call-name", {}, `${verb} `, recorded("code", name)),
    given2 === void 0 ? null : jsonTree(given2, { open: 2 })
  );
}

// src/reenact/viewer/static/conversation.js
var PAGE_TURNS = 60;
async function conversationView(source2, run) {
  const turns = h("ol.turns");
  const more = h("button.more", { type: "button", onclick: load }, "Read on");
  const element = h("section.conversation", { "aria-label": "Conversation" }, turns, more);
  const hasLanes = run.counts.columns > 1;
  let next = 0;
  async function load() {
    const rows = [];
    do {
      const page2 = await source2.conversation(run.line.id, next, PAGE_TURNS);
      rows.push(...page2.rows);
      next = page2.next;
    } while (!rows.length && next !== null);
    turns.append(...rows.map((row2) => turn(run.line.id, row2, hasLanes)));
    if (next === null) turns.append(...finalOutput(run, rows.at(-1)));
    more.hidden = next === null;
    if (next === null && !turns.children.length)
      fill(element, h("p.empty", {}, "This run has no messages."));
  }
  await load();
  return { element };
}
function finalOutput({ header: { finalOutput: output } }, lastTurn) {
  const isSaid = lastTurn?.parts.some((part) => part.text === output);
  if (output === void 0 || output === null || isSaid) return [];
  const kind = typeof output === "string" ? { kind: "text", text: output } : { kind: "data", value: output };
  const said = h("div.said", {}, h("div.speaker", {}, h("span.role", {}, "final output")), partView(kind));
  return [h("li.turn.r-assistant", {}, said)];
}
function turn(run, row2, hasLanes) {
  const who = hasLanes ? `${row2.role} · task ${row2.lane}` : row2.role;
  const seq = link(
    "a.seq",
    toRun(run, { seq: row2.seq }),
    { "aria-label": `Event ${row2.seq}` },
    `#${row2.seq}`
  );
  const said = h(
    "div.said",
    {},
    h("div.speaker", {}, recorded("span.role", who), seq),
    ...row2.parts.map(partView)
  );
  return h(`li.turn.r-${roleClass(row2.role)}`, {}, said);
}
function roleClass(role) {
  return ["user", "assistant", "system", "tool"].includes(role) ? role : "other";
}

// src/reenact/viewer/static/divergences.js
async function divergencesView(source2, run) {
  const receipts = await source2.divergences(run.line.id);
  const element = h(
    "section.divergences",
    { "aria-label": "Divergences" },
    ...receipts.map((receipt) => receiptView(run, receipt))
  );
  if (!receipts.length) element.append(nothing());
  return { element };
}
function nothing() {
  return h(
    "p.empty",
    {},
    "There is no replay receipt of this run. Write one with ",
    h("code", {}, "reenact replay DIR --receipt FILE -- CMD"),
    " and name it beside the run."
  );
}
function receiptView(run, { file, receipt }) {
  const { verdict, divergences, liveCallsRefused: refused, matching, replayedAt, notes } = receipt;
  const summary = [
    moment(replayedAt),
    `${matching.policy} policy`,
    plural(divergences.length, "divergence"),
    plural(refused.length, "refused live call")
  ];
  return h(
    "section.receipt",
    {},
    h(
      "header.title",
      {},
      recorded("h2", file),
      h(`span.outcome.is-${verdict === "reproduced" ? "ok" : "error"}`, {}, verdict)
    ),
    h("p.muted", {}, summary.filter(Boolean).join(" · ")),
    ...divergences.map((divergence) => divergenceView(run, divergence)),
    refused.length ? h("h3", {}, "Tried to go live") : null,
    ...refused.map(
      (call) => recorded("p.refused", `${call.kind} ${call.target}${call.frame ? `, ${call.frame}` : ""}`)
    ),
    ...notes.map((note2) => recorded("p.muted", note2))
  );
}
function divergenceView(run, found) {
  const place3 = found.eventSeq ? link("a", toRun(run.line.id, { seq: found.eventSeq }), {}, `event ${found.eventSeq}`) : null;
  const title = h("h3", {}, recorded("code", found.code), " ", recorded("span", found.detail));
  const facts = [
    ["Called from", found.sourceLine],
    ...(found.callers ?? []).map((caller) => ["by", caller]),
    ["Task", found.lane]
  ].filter(([, value2]) => value2);
  return h(
    "article.divergence",
    {},
    title,
    h("p.muted", {}, place3, ...facts.flatMap(([name, value2]) => [` · ${name} `, recorded("code", value2)])),
    ...differenceTable(found.differences ?? []),
    sides(found),
    found.files?.length ? h("pre.code.text-diff", { tabindex: 0 }, ...found.files.map(diffLine)) : null,
    candidates(run, found.candidates ?? [])
  );
}
function differenceTable(differences) {
  if (!differences.length) return [];
  const rows = differences.map(
    (one) => h("tr", {}, recorded("th", one.path, { scope: "row" }), side2("expected", one), side2("observed", one))
  );
  const head2 = h(
    "tr",
    {},
    ...["Path", "Expected", "Observed"].map((name) => h("th", { scope: "col" }, name))
  );
  return [
    h(
      "div.scroll",
      { tabindex: 0, role: "region", "aria-label": "Differences" },
      h("table.differences", {}, h("thead", {}, head2), h("tbody", {}, ...rows))
    )
  ];
}
function side2(name, difference) {
  return name in difference ? recorded(`td.${name}`, JSON.stringify(difference[name])) : h(`td.${name}.nothing`, {}, "nothing");
}
function sides({ expected, observed, jsonPath, differences = [] }) {
  const marked = new Set(markedPaths(jsonPath, differences));
  return h(
    "div.sides",
    {},
    ...sideView("Expected", "expected", expected, marked),
    ...sideView("Observed", "observed", observed, marked)
  );
}
function markedPaths(jsonPath, differences) {
  if (!jsonPath) return [];
  const [first] = differences;
  if (!first || !jsonPath.endsWith(first.path.slice(1))) return [jsonPath];
  const base = jsonPath.slice(0, jsonPath.length - first.path.length + 1);
  return differences.map(({ path }) => base + path.slice(1));
}
function sideView(title, name, value2, marked) {
  const shown = value2 ? jsonTree({ type: value2.type, data: value2.data }, { open: 2, marked }) : h("p.empty", {}, "nothing");
  return [h(`section.side.${name}`, { "aria-label": title }, h("h4", {}, title), shown)];
}
function candidates(run, found) {
  if (!found.length) return null;
  const items = found.map(
    (one) => h(
      "li",
      {},
      link("a", toRun(run.line.id, { seq: one.eventSeq }), {}, `event ${one.eventSeq}`),
      recorded(
        "span",
        ` ${one.name}, task ${one.lane}: ${one.differences ? `differs at ${plural(one.differences, "place")}` : "the same call"}${one.isTaken ? ", already taken" : ""}`
      )
    )
  );
  return h("details", {}, h("summary", {}, "Nearest recorded calls"), h("ul", {}, ...items));
}

// src/reenact/viewer/static/files.js
var MARKS = { added: "added", removed: "removed", changed: "changed", mode: "mode", renamed: "renamed" };
async function filesView(source2, run) {
  const { moments } = await source2.files(run.line.id);
  const tree = h("div.file-tree", { role: "region", "aria-label": "File tree", tabindex: 0 });
  const changes = h("div.file-changes", { role: "region", "aria-label": "Changes", tabindex: 0 });
  const buttons = moments.map(
    (moment2, number) => h("button.moment", { type: "button", onclick: () => choose(number) }, ...momentLabel(moment2, number))
  );
  const list = h("ol.moments", {}, ...buttons.map((button) => h("li", {}, button)));
  const element = h("section.files", { "aria-label": "Files of the run" }, list, tree, changes);
  let chosen = -1;
  async function choose(number) {
    chosen = number;
    buttons.forEach((button, each) => button.setAttribute("aria-pressed", String(each === number)));
    element.setAttribute("aria-busy", "true");
    const shown = await source2.filesAt(run.line.id, number);
    if (chosen !== number) return;
    fill(tree, treeView(shown), shown.isShort ? h("p.muted", {}, "Not all files are shown.") : null);
    fill(changes, ...changesView(run.line.id, moments[number], shown.changes, number));
    element.setAttribute("aria-busy", "false");
  }
  await choose(moments.length > 1 ? 1 : 0);
  return { element };
}
function momentLabel({ seq, isEnd, changes }, number) {
  const name = number === 0 ? "Start" : isEnd ? "End" : `#${seq}`;
  return [h("span.seq", {}, name), h("span.muted", {}, number === 0 ? "" : plural(changes, "change"))];
}
function treeView({ files, changes }) {
  const how = new Map(changes.map((change2) => [change2.path, change2.how]));
  const gone = changes.filter((change2) => change2.how === "removed");
  const root = { folders: /* @__PURE__ */ new Map(), files: [] };
  for (const file of [...files, ...gone.map(({ path }) => ({ path, kind: path.endsWith("/") ? "folder" : "file" }))])
    place2(root, file, how.get(file.path));
  return files.length + gone.length ? branch2(root) : h("p.empty", {}, "There are no files.");
}
function place2(root, file, how) {
  const parts = file.path.replace(/\/$/, "").split("/");
  const isFolder = file.kind === "folder";
  let folder = root;
  for (const part of isFolder ? parts : parts.slice(0, -1)) {
    if (!folder.folders.has(part)) folder.folders.set(part, { folders: /* @__PURE__ */ new Map(), files: [], how: void 0 });
    folder = folder.folders.get(part);
    folder.isChanged ||= how !== void 0;
  }
  if (isFolder) folder.how = how;
  else folder.files.push({ ...file, name: parts[parts.length - 1], how });
}
function branch2({ folders, files }) {
  const byName = (one, other) => one < other ? -1 : 1;
  const below = [...folders].sort(([one], [other]) => byName(one, other)).map(
    ([name, folder]) => h(
      "li",
      {},
      h(
        "details",
        { open: folder.isChanged === true },
        h("summary", {}, recorded("span.name", `${name}/`), mark(folder.how)),
        branch2(folder)
      )
    )
  );
  const here = files.sort((one, other) => byName(one.name, other.name)).map(
    (file) => h(
      `li.file${file.kind === "left-out" ? ".left-out" : ""}`,
      {},
      recorded("span.name", file.target ? `${file.name} → ${file.target}` : file.name),
      mark(file.how),
      h("span.muted", {}, note(file))
    )
  );
  return h("ul.branch", {}, ...below, ...here);
}
function note({ kind, why, hidden, sizeBytes }) {
  if (kind === "left-out") return `not recorded: ${why}`;
  return `${sizeBytes === void 0 ? "" : `${count(sizeBytes)} B`}${hidden ? ", secrets hidden" : ""}`;
}
function mark(how) {
  return how && MARKS[how] ? h(`span.how.is-${MARKS[how]}`, {}, MARKS[how]) : null;
}
function changesView(run, { seq }, changes, number) {
  const head2 = h(
    "p.muted.links",
    {},
    number === 0 ? "The files at the start of the run." : `${plural(changes.length, "change")} `,
    seq && number ? link("a", toRun(run, { seq }), {}, `event ${seq}`) : null
  );
  return [head2, ...changes.map(fileChange)];
}
function fileChange({ path, how, diff, cameFrom }) {
  const title = [mark(how), recorded("span.name", cameFrom ? `${path} (was ${cameFrom})` : path)];
  const lines = diff.length ? h("pre.code.text-diff", { tabindex: 0 }, ...diff.map(diffLine)) : null;
  return h("section.part", {}, h("h2.file-title", {}, ...title), lines);
}

// src/reenact/viewer/static/fields.js
var TYPING_MS = 120;
function searchField(label, value2, onChange) {
  const input = h("input", {
    type: "search",
    placeholder: `${label}  /`,
    "aria-label": label,
    spellcheck: "false",
    autocomplete: "off"
  });
  input.value = value2 ?? "";
  let timer = 0;
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => onChange(input.value.trim()), TYPING_MS);
  });
  return { element: h("div.search", {}, input), input };
}
function choice(name, options, value2, onChange) {
  const select = h("select", { "aria-label": `Filter by ${name}`, onchange: () => onChange(select.value) });
  select.append(new Option(`Any ${name}`, ""));
  const known = value2 && !options.includes(value2) ? [...options, value2] : options;
  for (const option of known) select.append(new Option(visible(option), option));
  select.value = value2 ?? "";
  return h("label.choice", {}, select);
}

// src/reenact/viewer/static/run_order.js
var LATEST_FIRST = "-startedMs";
var CHOICES = ["status", "model", "kind"];
function matchingRuns(runs, filter) {
  const words = (filter.q ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  return runs.filter((run) => {
    const text = [run.name, run.model, run.kind, run.status, run.problem].join(" ").toLowerCase();
    const isChosen = CHOICES.every((name) => !filter[name] || run[name] === filter[name]);
    return isChosen && words.every((word) => text.includes(word));
  });
}
function orderOf(filter) {
  const sort = filter.sort ?? LATEST_FIRST;
  return { key: sort.replace(/^-/, ""), isDown: sort.startsWith("-") };
}
function orderedRuns(runs, filter) {
  const { key, isDown } = orderOf(filter);
  const sign = isDown ? -1 : 1;
  return [...runs].sort((a, b) => sign * compared(a[key], b[key]) || compared(a.name, b.name));
}
function compared(a, b) {
  if (typeof a === "string" && typeof b === "string") return a.localeCompare(b, "en", { numeric: true });
  const [one, other] = [a ?? -1, b ?? -1];
  return one < other ? -1 : Number(one > other);
}

// src/reenact/viewer/static/runs_page.js
var COLUMNS = [
  ["name", "Run"],
  ["model", "Model"],
  ["kind", "Kind"],
  ["startedMs", "Started"],
  ["tookMs", "Took"],
  ["sizeBytes", "Size"]
];
var ROW_HEIGHT2 = 44;
async function runsPage(source2, route) {
  const view = new RunsView(route.filter);
  const loading = new Promise((resolve, reject) => {
    source2.runs((runs, total, reports) => resolve(view.take(runs, total, reports))).catch(reject);
  });
  await loading;
  return {
    element: view.element,
    title: "Runs",
    go: (next) => view.apply(next.filter),
    onKey: (key) => view.onKey(key),
    onShown: () => view.focus()
  };
}
var RunsView = class {
  constructor(filter) {
    this.runs = [];
    this.shown = [];
    this.filter = filter;
    this.chosen = /* @__PURE__ */ new Set();
    this.compare = h("span.compare");
    this.tally = h("p.tally", { role: "status" });
    this.list = new VirtualList({
      label: "Runs",
      rowHeight: ROW_HEIGHT2,
      cells: (index) => this.cells(this.shown[index]),
      onOpen: (index) => location.hash = toRun(this.shown[index].id)
    });
    this.search = searchField("Search runs", filter.q, (value2) => this.set("q", value2));
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
      this.list.element
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
  set(name, value2) {
    this.filter = { ...this.filter, [name]: value2 };
    replaceRoute(toRuns(this.filter));
    this.narrow();
  }
  narrow() {
    this.shown = orderedRuns(matchingRuns(this.runs, this.filter), this.filter);
    this.drawHead();
    this.list.reset(this.shown.length);
    const all = `${plural(this.runs.length, "run")}${this.isComing ? " so far" : ""}`;
    this.tally.textContent = this.shown.length === this.runs.length ? all : `${count(this.shown.length)} of ${all}`;
  }
  drawFields() {
    const options = (name) => [...new Set(this.runs.map((run) => run[name]).filter(Boolean))].sort();
    const choices = CHOICES.map(
      (name) => choice(name, options(name), this.filter[name], (value2) => this.set(name, value2))
    );
    fill(this.choices, ...choices);
  }
  drawHead() {
    const { key, isDown } = orderOf(this.filter);
    const cells2 = COLUMNS.map(([name, label]) => {
      const isKey = name === key;
      const sort = () => this.set("sort", isKey && !isDown ? `-${name}` : name);
      const arrow = isKey ? isDown ? " ↓" : " ↑" : "";
      const said = isKey ? `${label}, sorted ${isDown ? "descending" : "ascending"}` : `Sort by ${label}`;
      return h(`button.cell.${name}`, { type: "button", "aria-label": said, onclick: sort }, label + arrow);
    });
    fill(this.head, h("span.cell.pick"), h("span.cell.status"), ...cells2);
  }
  cells(run) {
    const pick = h("input", {
      type: "checkbox",
      tabindex: -1,
      "aria-label": "Compare this run",
      onchange: () => this.pick(run.id)
    });
    pick.checked = this.chosen.has(run.id);
    return [
      h("span.cell.pick", { role: "gridcell" }, pick),
      h("span.cell.status", { role: "gridcell" }, statusMark(run.status)),
      h(
        "span.cell.name",
        { role: "gridcell" },
        link("a.run-name", toRun(run.id), { tabindex: -1 }, recorded("span", run.name)),
        run.problem ? recorded("span.note", run.problem) : null
      ),
      recorded("span.cell.model", run.model ?? "", { role: "gridcell" }),
      recorded("span.cell.kind", run.kind, { role: "gridcell" }),
      h("span.cell.startedMs", { role: "gridcell" }, moment(run.startedMs)),
      h("span.cell.tookMs", { role: "gridcell" }, duration(run.tookMs)),
      h("span.cell.sizeBytes", { role: "gridcell" }, run.sizeBytes ? size(run.sizeBytes) : "")
    ];
  }
  pick(id) {
    if (!this.chosen.delete(id)) this.chosen.add(id);
    while (this.chosen.size > 2) this.chosen.delete(this.chosen.values().next().value);
    this.list.refresh();
    const [a, b] = this.chosen;
    fill(
      this.compare,
      b === void 0 ? a === void 0 ? "" : "Select one more to compare" : link("a.button", toDiff(a, b), {}, "Compare the two")
    );
    if (b !== void 0) announce("Two runs selected");
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
};
function reportLine({ name, verdict }) {
  return h(
    "p.report",
    {},
    h("span.muted", {}, "Shadow report "),
    link("a", toShadow(name), {}, recorded("span", name)),
    recorded("span.muted", ` ${verdict}`)
  );
}
function statusMark(status) {
  return h(`span.status-mark.is-${status.replace(/\W/g, "")}`, {}, status);
}

// src/reenact/viewer/static/forks.js
var COPIED_MS = 1500;
async function forksView(source2, run) {
  const nodes = await source2.forks(run.line.id);
  const element = h(
    "section.forks",
    { "aria-label": "Forks" },
    nodes.length > 1 ? treeView2(run.line.id, nodes) : nothing2()
  );
  return { element };
}
function nothing2() {
  return h(
    "p.empty",
    {},
    "None of the runs here is a fork of this run. Select a step in the timeline to see how to fork there."
  );
}
function treeView2(run, nodes) {
  const root = h("ul.tree");
  const lists = [root];
  for (const node2 of nodes) {
    const below = h("ul.tree");
    lists[node2.depth].append(h("li", {}, nodeView(run, node2), below));
    lists[node2.depth + 1] = below;
  }
  for (const list of root.querySelectorAll("ul:empty")) list.remove();
  return root;
}
function nodeView(run, node2) {
  const name = node2.isThis ? recorded("strong.name", node2.name, { "aria-current": "true" }) : node2.run ? link("a.name", toRun(node2.run), {}, recorded("span", node2.name)) : recorded("span.name.muted", node2.name);
  const isParent = node2.at === void 0 || node2.at === null;
  const place3 = isParent ? "recorded" : node2.at ? `forked at event ${count(node2.at)}` : "forked from the start";
  return h(
    "div.node",
    {},
    name,
    node2.status ? statusMark(node2.status) : h("span.muted", {}, "no longer there"),
    h("span.muted", {}, place3),
    isParent ? null : recorded("code.changed", node2.change || "no change"),
    node2.run && !node2.isThis ? link("a", toDiff(run, node2.run), {}, "Compare") : null
  );
}
function forkSection(run, { choices = [], why = "", seq = null } = {}) {
  if (!choices.length && !why) return null;
  const around = seq ? link("a", toRun(run, { seq }), {}, `event ${seq}`) : null;
  return h(
    "details.folded.fork",
    {},
    h("summary", {}, "Fork from here"),
    why ? h("p.muted", {}, `${why} `, around) : null,
    ...choices.map(choiceView),
    choices.length ? h("p.muted", {}, "Replace the outcome with your own and run this where the agent is.") : null
  );
}
function choiceView({ label, text }) {
  const code = recorded("code", text);
  const button = h("button.more", { type: "button", "aria-label": `Copy: ${label}` }, "Copy");
  button.addEventListener("click", () => copy(text, code, button));
  return h(
    "div.choice-of-fork",
    {},
    h("div.title", {}, h("h4", {}, label), h("span.spring"), button),
    h("pre.code", { tabindex: 0 }, code)
  );
}
async function copy(text, code, button) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
    announce("Copied");
    setTimeout(() => button.textContent = "Copy", COPIED_MS);
  } catch {
    getSelection()?.selectAllChildren(code);
    announce("Selected; copy it with the keyboard");
  }
}

// src/reenact/viewer/static/state.js
var PAGE_CHANGES = 50;
async function stateView(source2, run) {
  const changes = h("ol.changes");
  const more = h("button.more", { type: "button", onclick: load }, "More");
  const element = h("section.state", { "aria-label": "State and memory" }, changes, more);
  let shown = 0;
  async function load() {
    const page2 = await source2.steps(run.line.id, { from: shown, count: PAGE_CHANGES, kind: "state" });
    const found = await Promise.all(page2.rows.map((step) => source2.detail(run.line.id, step.seq)));
    shown += page2.rows.length;
    changes.append(...found.map((detail) => change(run.line.id, detail)));
    more.hidden = page2.isComplete && shown >= page2.total;
    more.textContent = page2.isComplete ? plural(page2.total - shown, "more change") : "Look for more";
    if (page2.isComplete && !page2.total)
      fill(element, h("p.empty", {}, "This run recorded no reads or changes of state."));
  }
  await load();
  return { element };
}
function change(run, { step, payloads: { request, response, error } }) {
  const { type, source: source2, group_id: group, path, content, details } = request ?? {};
  const place3 = [source2, group, path].filter(Boolean).join(" · ");
  const kept = error ?? content ?? details ?? response;
  const seq = link(
    "a.seq",
    toRun(run, { seq: step.seq }),
    { "aria-label": `Event ${step.seq}` },
    `#${step.seq}`
  );
  return h(
    `li.change.is-${step.state}`,
    {},
    h(
      "div.change-head",
      {},
      recorded("span.kind.k-state", type ?? step.name),
      recorded("span.place", place3),
      h("span.spring"),
      h("span.when", {}, duration(step.atMs)),
      seq
    ),
    kept === void 0 || kept === null ? null : typeof kept === "string" ? prose(kept) : jsonTree(kept, { open: 2 })
  );
}

// src/reenact/viewer/static/inspector.js
function inspector(source2, run, onClose) {
  const body = h("div.inspected");
  const element = h("aside.inspector", { "aria-label": "The selected call", tabindex: -1 }, body);
  let wanted = null;
  async function show2(seq) {
    wanted = seq;
    const detail = await source2.detail(run, seq).catch((error) => ({ problem: error.message }));
    if (wanted !== seq) return;
    const close = h(
      "button.plain.close",
      { type: "button", "aria-label": "Close", title: "Close (Esc)", onclick: onClose },
      "×"
    );
    fill(
      body,
      heading2(run, detail, close),
      ...notices(detail),
      ...sections(detail.step, detail.payloads ?? {}),
      forkSection(run, detail.fork),
      ...rawEvents(detail.events ?? [])
    );
    element.scrollTop = 0;
  }
  function clear() {
    wanted = null;
    fill(body);
  }
  return { element, show: show2, clear, focus: () => element.focus() };
}
function heading2(run, { step, events = [] }, close) {
  if (!step)
    return h(
      "header",
      {},
      h("div.title", {}, recorded("h2", events[0]?.type ?? "Event"), h("span.spring"), close)
    );
  const { tokens } = step;
  const facts = [
    ["Events", [.../* @__PURE__ */ new Set([step.seq, step.outcomeSeq ?? step.seq])].join(" → ")],
    ["Task", step.lane],
    ["At", duration(step.atMs)],
    ["Took", duration(step.tookMs)],
    ["Tokens", tokens ? `${count(tokens.input ?? 0)} → ${count(tokens.output ?? 0)}` : ""],
    ["Cost", step.cost === void 0 ? "" : step.cost.toFixed(4)]
  ];
  const kind = kindLabel(step.kind);
  const outcome = h(`span.outcome.is-${step.state}`, {}, step.state);
  const around = step.parentSeq ? h(
    "p.muted",
    {},
    "Made inside ",
    link("a", toRun(run, { seq: step.parentSeq }), {}, `event ${step.parentSeq}`)
  ) : null;
  return h(
    "header",
    {},
    h("div.title", {}, kind, recorded("h2", step.name), outcome, h("span.spring"), close),
    factList(facts),
    around
  );
}
function notices({ problem, problems = [], isShort }) {
  const told = [
    problem,
    ...problems,
    isShort ? "This is too large to be shown here; reenact show --at prints it." : null
  ];
  return told.filter(Boolean).map((text) => recorded("p.notice", text, { role: "alert" }));
}
function sections(step, payloads) {
  if (payloads.conversation) return conversationSections(payloads);
  return [
    given(payloads.request) ? section(requestTitle(step), value(payloads.request)) : null,
    given(payloads.response) ? section(step.kind === "tool" ? "Result" : "Value", value(payloads.response)) : null,
    ...outcomeSections(payloads)
  ].filter(Boolean);
}
function conversationSections(payloads) {
  const { system, messages = [], answer = [], tools = [], params = {}, stopReason } = payloads.conversation;
  const last = messages.findLastIndex((message) => message.role === "assistant") + 1;
  const earlier = messages.slice(0, last);
  return [
    system ? section("System", prose(system)) : null,
    earlier.length ? folded(
      `${plural(earlier.length, "earlier message")}`,
      () => h("div.messages", {}, ...earlier.map(messageView))
    ) : null,
    ...messages.slice(last).map((message) => section(speaker(message), ...message.parts.map(partView))),
    answer.length ? section(stopReason ? `Answer (${stopReason})` : "Answer", ...answer.map(partView)) : null,
    ...outcomeSections(payloads),
    tools.length ? folded(`${plural(tools.length, "tool")} offered`, () => jsonTree(tools)) : null,
    Object.keys(params).length ? folded("Parameters", () => jsonTree(params)) : null
  ].filter(Boolean);
}
function outcomeSections({ error, pieces }) {
  return [
    given(error) ? h("section.part.is-bad", {}, h("h3", {}, "Error"), value(error)) : null,
    pieces ? folded(`${plural(pieces.length, "piece")} of the stream`, () => jsonTree(pieces)) : null
  ];
}
function messageView({ role, parts }) {
  return h("div.message", {}, recorded("h4", speaker({ role, parts })), ...parts.map(partView));
}
function speaker({ role, parts }) {
  return parts.length && parts.every((part) => part.kind === "tool_result") ? "tool" : role;
}
function section(title, ...shown) {
  return h("section.part", {}, recorded("h3", title), ...shown);
}
function folded(title, build) {
  const details = h("details.folded", {}, recorded("summary", title));
  details.addEventListener("toggle", () => details.children.length > 1 || details.append(build()));
  return details;
}
function rawEvents(events) {
  const raw = events.map(
    (event) => folded(
      `Event ${event.seq ?? ""} ${visible(event.type ?? event.event ?? "")}`,
      () => jsonTree(event, { open: 2 })
    )
  );
  return raw.length ? [h("section.part", {}, h("h3", {}, "As recorded"), ...raw)] : [];
}
function requestTitle({ kind }) {
  return { tool: "Arguments", state: "Change" }[kind] ?? "Request";
}
function given(shown) {
  return shown !== void 0 && shown !== null;
}

// src/reenact/viewer/static/timeline.js
var ROW_HEIGHT3 = 32;
var STATES = ["ok", "error", "cancelled", "open"];
var POLL_MS3 = 100;
var FOLLOW_MS = 2e3;
var LONG_RUN_STEPS = 400;
async function timelineView(source2, run, route) {
  const view = new Timeline(source2, run);
  await view.begin(route);
  return {
    element: view.element,
    go: (next) => view.go(next),
    onKey: (key) => view.onKey(key),
    onShown: () => view.onShown()
  };
}
var Timeline = class {
  constructor(source2, run) {
    this.source = source2;
    this.run = run;
    this.id = run.line.id;
    this.filter = {};
    this.seq = null;
    this.pages = void 0;
    this.startMs = void 0;
    this.isFitted = run.counts.steps > LONG_RUN_STEPS;
    this.tally = h("p.tally", { role: "status" });
    this.fields = h("div.fields", { role: "search" });
    this.list = new VirtualList({
      label: "Steps of the run",
      rowHeight: ROW_HEIGHT3,
      cells: (index) => this.cellsAt(index),
      rowClass: (index) => `.is-${this.pages?.get(index)?.state ?? "coming"}`,
      onSight: (first, last) => this.onSight(first, last),
      onSelect: (index) => this.onSelect(index),
      onOpen: () => this.inspector.focus()
    });
    this.inspector = inspector(source2, this.id, () => this.close());
    const calls = h("section.calls", { "aria-label": "Timeline" });
    this.waterfall = new Waterfall(calls);
    const head2 = h(
      "div.head",
      { "aria-hidden": "true" },
      h("span"),
      h("span"),
      h("span", {}, "Step"),
      h("span.took", {}, "Took"),
      this.waterfall.axis
    );
    fill(calls, this.fields, head2, this.list.element);
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
    this.startMs ??= answer.rows[0]?.atMs ?? 0;
    this.list.reset(answer.total);
    this.tell(answer);
    this.follow(pages, answer.isComplete);
  }
  /** Continue until all steps are known, or while the run is being recorded. */
  async follow(pages, isComplete) {
    const isGrowing = this.run.header.state === "open";
    if (isComplete && !isGrowing) return;
    await new Promise((resolve) => setTimeout(resolve, isComplete ? FOLLOW_MS : POLL_MS3));
    if (pages !== this.pages || this.isShown && !this.element.isConnected) return;
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
    const row2 = await this.source.place(this.id, route.seq, this.wanted());
    if (row2 === null || this.seq !== route.seq) return;
    if (row2 >= this.list.count) this.list.grow(row2 + 1);
    this.list.select(row2, { quietly: true });
  }
  async set(name, value2) {
    this.filter = { ...this.filter, [name]: value2 };
    replaceRoute(toRun(this.id, { seq: this.seq, filter: this.filter }));
    await this.load();
  }
  drawFields() {
    this.search = searchField("Search steps", this.filter.q, (value2) => this.set("q", value2));
    const kinds = choice(
      "kind",
      Object.keys(this.run.counts.kinds),
      this.filter.kind,
      (value2) => this.set("kind", value2)
    );
    const states = choice("outcome", STATES, this.filter.state, (value2) => this.set("state", value2));
    this.fit = h(
      "button",
      {
        type: "button",
        "aria-pressed": String(this.isFitted),
        title: "Scale time to the visible rows (z)",
        onclick: () => this.toggleFit()
      },
      "Fit time"
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
};
function isSame(filter, other) {
  return ["q", "kind", "state"].every((name) => (filter[name] ?? "") === (other[name] ?? ""));
}

// src/reenact/viewer/static/run_page.js
var VIEWS = {
  timeline: timelineView,
  conversation: conversationView,
  state: stateView,
  divergences: divergencesView,
  forks: forksView,
  files: filesView
};
var POLL_MS4 = 100;
var FOLLOW_MS2 = 2e3;
var LABELS = {
  timeline: "Timeline",
  conversation: "Conversation",
  state: "State",
  divergences: "Divergences",
  forks: "Forks",
  files: "Files"
};
async function runPage(source2, route) {
  const run = await source2.run(route.run);
  const page2 = new RunPage(source2, run);
  await page2.go(route);
  return {
    element: page2.element,
    title: run.line.name,
    go: (next) => page2.go(next),
    onKey: (key) => page2.onKey(key),
    onShown: () => {
      page2.view.onShown?.();
      page2.watch();
    }
  };
}
var RunPage = class {
  constructor(source2, run) {
    this.source = source2;
    this.run = run;
    this.badge = run.canVerify ? verifyButton(source2, run.line.id) : null;
    this.head = h("header.run-head");
    this.tabs = h("nav.tabs", { "aria-label": "Views of the run" });
    this.body = h("div.body");
    this.element = h("article.run", { "aria-label": "Run" }, this.head, this.tabs, this.body);
    this.drawHead();
  }
  /** Update the counts while a large run is read, or a run is being recorded. */
  async watch() {
    while (!this.run.counts.isComplete || this.run.header.state === "open") {
      await new Promise((resolve) => setTimeout(resolve, this.run.counts.isComplete ? FOLLOW_MS2 : POLL_MS4));
      if (!this.element.isConnected) return;
      Object.assign(this.run, await this.source.runFurther(this.run.line.id));
      this.drawHead();
    }
  }
  drawHead() {
    fill(this.head, ...header(this.run, this.source.home, this.badge?.element ?? null));
  }
  /** Show the tab and the event that *route* names. */
  async go(route) {
    if (this.tab === route.tab) return this.view.go?.(route);
    this.tab = route.tab;
    this.drawTabs();
    const view = await VIEWS[route.tab](this.source, this.run, route);
    if (this.tab !== route.tab) return;
    this.view = view;
    fill(this.body, this.view.element);
    if (this.element.isConnected) this.view.onShown?.();
  }
  drawTabs() {
    const tabs = this.shownTabs().map((tab) => {
      const number = tab === "divergences" && this.run.divergences ? h("span.number", {}, count(this.run.divergences)) : null;
      const current = tab === this.tab ? "page" : null;
      return link(
        "a.tab",
        toRun(this.run.line.id, { tab }),
        { "aria-current": current },
        `${LABELS[tab]} `,
        number
      );
    });
    fill(this.tabs, ...tabs);
  }
  /** Only captures have forks, and only runs with recorded files have files. */
  shownTabs() {
    const shown = { forks: this.run.canFork, files: this.run.hasFiles };
    return TABS.filter((tab) => shown[tab] ?? true);
  }
  onKey(key) {
    if (this.view?.onKey?.(key)) return true;
    if (key === "v") this.badge?.verify();
    else if (key >= "1" && key <= String(this.shownTabs().length))
      location.hash = toRun(this.run.line.id, { tab: this.shownTabs()[Number(key) - 1] });
    else if (key === "Escape") location.hash = toRuns();
    else return false;
    return true;
  }
};
function header({ line, header: said, counts }, home, badge) {
  const { tokens } = counts;
  const facts = [
    ["Model", line.model],
    ["Started", moment(line.startedMs)],
    ["Took", duration(line.tookMs ?? counts.durationMs)],
    ["Steps", counts.isComplete ? count(counts.steps) : `${count(counts.steps)} so far`],
    ["Tokens", tokens ? `${count(tokens.input ?? 0)} → ${count(tokens.output ?? 0)}` : null],
    ["Cost", counts.cost === void 0 || counts.cost === null ? null : counts.cost.toFixed(4)],
    ["Errors", counts.states.error ? count(counts.states.error) : null],
    ["Fork of", said.forkedFrom],
    ["Command", said.command?.join(" ")]
  ];
  const notices2 = [line.problem, counts.problem, ...said.warnings ?? []].filter(Boolean);
  return [
    h("p.crumbs", {}, home ? "Run" : link("a", toRuns(), {}, "Runs"), " / ", recorded("span", line.kind)),
    h("div.title", {}, recorded("h1", line.name), statusMark(line.status), h("span.spring"), badge),
    ...notices2.map((notice) => recorded("p.notice", notice, { role: "alert" })),
    factList(facts)
  ];
}

// src/reenact/viewer/static/shadow_page.js
var WORDS = { failed: "failed", tools: "other tools", words: "other words", same: "the same" };
var COLUMNS2 = [
  "Run",
  "Result",
  "As recorded",
  "Baseline",
  "Candidate",
  "First difference",
  "Tokens",
  "Time"
];
var SHOWN = 300;
async function shadowPage(source2, route) {
  const report = await source2.shadow(route.name);
  const parts = report.steps ? stepsReport(report) : runsReport(report);
  const element = h(
    "article.run.shadow",
    { "aria-label": "Shadow report" },
    h("p.crumbs", {}, link("a", toRuns(), {}, "Runs"), " / shadow report"),
    ...parts
  );
  const onKey2 = (key) => {
    if (key !== "Escape") return false;
    location.hash = toRuns();
    return true;
  };
  return { element, title: report.name, go: () => {
  }, onKey: onKey2 };
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
    ["pass^k", samples > 1 ? powers(report.passPower) : null]
  ];
  const order = Object.keys(WORDS);
  const sorted = [...runs].sort((one, other) => rank(one, order) - rank(other, order));
  return [
    heading3(report.name, report.verdict, tone),
    interrupted(report),
    bar2(counts),
    factList(facts),
    table(
      [...COLUMNS2, ...hasCost(runs) ? ["Cost"] : []],
      sorted.map((run) => runRow(run, report, hasCost(runs)))
    )
  ];
}
var hasCost = (runs) => runs.some(({ recorded: before }) => before.cost !== null && before.cost !== void 0);
var rank = (run, order) => run.setApart ? order.length : order.indexOf(run.difference ?? "same");
function heading3(name, verdict, tone = "") {
  return h("div.title", {}, recorded("h1", name), recorded(`span.outcome${tone}`, verdict));
}
function interrupted({ isInterrupted }) {
  return isInterrupted ? h("p.notice", {}, "It was interrupted: this covers what was finished by then.") : null;
}
function bar2(counts) {
  const known = Object.entries(WORDS).filter(([name]) => counts[name]);
  const total = known.reduce((sum, [name]) => sum + counts[name], 0) || 1;
  const parts = known.map(([name]) => {
    const part = h(`span.is-${name}`);
    part.style.width = `${100 * counts[name] / total}%`;
    return part;
  });
  const words = known.map(([name, word]) => `${count(counts[name])} ${word}`).join(", ");
  return h("div.tally-bar", {}, h("div.bar", { "aria-hidden": "true" }, ...parts), h("p", {}, words || "No run to compare"));
}
function runRow(run, report, isPriced) {
  const { recorded: before, candidates: candidates2 = [], difference = "same", first = null, setApart = "" } = run;
  const name = before.run ? link("a", toRun(before.run), {}, recorded("span", before.run)) : recorded("span", run.path);
  if (setApart)
    return row(
      [h("td", {}, name), h("td", {}, "set apart"), recorded("td.muted", short(setApart), { colspan: isPriced ? 7 : 6 })],
      ".apart"
    );
  const now = candidates2[0] ?? {};
  const shown = candidates2.find((each) => each.run);
  const passed = candidates2.filter((each) => each.passed ?? true).length;
  const verdict = report.samples > 1 ? `${passed} of ${candidates2.length} pass` : passes(passed > 0);
  const told = (field) => now.problem ? null : mean(candidates2, field);
  const figures = [
    pair2(before.tokens ?? 0, told("tokens"), (number) => count(Math.round(number))),
    pair2(before.durationMs ?? 0, told("durationMs"), duration),
    ...isPriced ? [pair2(before.cost, told("cost"), (number) => number.toFixed(4))] : []
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
      ...shown && before.run ? [" ", link("a", toDiff(before.run, shown.run), {}, "Compare")] : []
    ),
    h("td", {}, ...firstWords(first)),
    ...figures.map((figure) => h("td.short", {}, figure))
  ]);
}
function firstWords(first) {
  if (!first) return [];
  const now = recorded("code", short(first.candidate));
  return first.recorded ? [recorded("code", short(first.recorded)), " → ", now] : [now];
}
function pair2(before, now, told) {
  const words = [before, now].map((value2) => value2 === null || value2 === void 0 ? "–" : told(value2));
  return words.join(" → ");
}
function mean(candidates2, name) {
  const known = candidates2.filter((each) => !each.problem).map((each) => each[name] ?? (name === "cost" ? null : 0));
  const values = known.filter((value2) => value2 !== null);
  return values.length ? values.reduce((sum, value2) => sum + value2, 0) / values.length : null;
}
var passes = (isPassed) => isPassed ? "passes" : h("span.result.is-failed", {}, "fails");
function stepsReport(report) {
  const facts = [
    ["Asked with", changeWords(report.change)],
    ["Requests", count(report.steps.length)],
    ["Same tools", rate(report.tools)],
    ["Same arguments", rate(report.arguments)],
    ["Same words", rate(report.words)],
    ["Without an answer", report.failed ? count(report.failed) : null],
    ["Left out", report.leftOut ? `${plural(report.leftOut, "call")} without a request as it was sent` : null]
  ];
  return [
    heading3(report.name, "step by step"),
    interrupted(report),
    factList(facts),
    table(["Request", "Result", "Recorded", "Now"], report.steps.map(stepRow))
  ];
}
function stepRow(step) {
  const place3 = `${step.path}: event ${step.seq}`;
  const name = step.run ? link("a", toRun(step.run, { seq: step.seq }), {}, recorded("span", place3)) : recorded("span", place3);
  const kind = step.problem ? "failed" : step.sameArguments ? "same" : step.sameTools ? "words" : "tools";
  const word = { failed: "no answer", same: "the same", words: "other arguments", tools: "other tools" }[kind];
  return row([
    h("td", {}, name),
    h("td", {}, h(`span.result.is-${kind}`, {}, word)),
    h("td", {}, recorded("code", short(step.recorded))),
    h("td", {}, recorded("code", short(step.problem || step.candidate || "")))
  ]);
}
function table(names, rows) {
  const head2 = h("tr", {}, ...names.map((name) => h("th", { scope: "col" }, name)));
  return h(
    "div.scroll",
    { tabindex: 0, role: "region", "aria-label": "Runs of the report" },
    h("table.shadow-runs", {}, h("thead", {}, head2), h("tbody", {}, ...rows))
  );
}
var row = (cells2, kind = "") => h(`tr${kind}`, {}, ...cells2);
var rate = ({ count: number, total, low, high }) => `${count(number)} of ${count(total)} (${Math.round(low * 100)} % to ${Math.round(high * 100)} %)`;
var powers = (power) => Object.entries(power).map(([k, chance]) => `${k}: ${Math.round(chance * 100)} %`).join(", ");
var changeWords = (change2) => Object.entries(change2).map(([name, value2]) => `${name} ${short(String(value2))}`).join(", ") || null;
var short = (text) => text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;

// src/reenact/viewer/static/terms.js
var isInTask = (step, fits, value2) => fits(step.lane) || [".", "/", "~", ":"].some((mark2) => step.lane.startsWith(`${value2}${mark2}`));
var KEYS2 = {
  kind: (step, fits) => fits(step.kind),
  name: (step, fits) => fits(step.name),
  tool: (step, fits) => step.kind === "tool" && fits(step.name),
  state: (step, fits) => fits(step.state),
  task: isInTask,
  lane: isInTask
};
var STATES2 = ["ok", "error", "cancelled", "open"];
function termsOf(words) {
  const terms = (words.match(/"[^"]*"|\S+/g) ?? []).map((word) => term(word.replaceAll('"', "")));
  return (step, text) => terms.every((fits) => fits(step, text));
}
function term(word) {
  const isNegated = word.startsWith("!");
  const body = isNegated ? word.slice(1) : word;
  const [, key, value2] = body.match(/^(\w+):(.+)$/) ?? (STATES2.includes(body) ? [body, "state", body] : []);
  const says = key === "text" ? value2 : body;
  const found = key in KEYS2 ? byKey(key, value2) : (_, text) => text.includes(says.toLowerCase());
  return (step, text) => found(step, text) !== isNegated;
}
function byKey(key, values) {
  const tests = values.split(",").map((value2) => {
    const pattern = new RegExp(
      `^${value2.replace(/[.+^${}()|[\]\\]/g, "\\$&").replace(/\*/g, ".*").replace(/\?/g, ".")}$`,
      "s"
    );
    return (step) => KEYS2[key](step, (text) => pattern.test(text), value2);
  });
  return (step) => tests.some((fits) => fits(step));
}

// src/reenact/viewer/static/page_source.js
var PageSource = class {
  /** @param {Carried} carried */
  constructor(carried) {
    this.carried = carried;
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
      rows: found.slice(wanted.from, wanted.from + wanted.count)
    };
  }
  async place(_run, seq, wanted) {
    const row2 = this.wanted(wanted).findIndex((step) => step.seq === seq || step.outcomeSeq === seq);
    return row2 < 0 ? null : row2;
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
};

// src/reenact/viewer/static/source.js
var RUNS_PAGE = 500;
function openSource() {
  const carried = document.getElementById("run");
  return carried ? new PageSource(JSON.parse(carried.textContent ?? "")) : new ServerSource();
}
var Ended = class extends Error {
};
var ServerSource = class {
  /** @type {string|null} which run is the only one; the server may have many */
  home = null;
  /**
   * Every run, a page at a time: thousands take a while.
   * @param {(runs: any[], total: number, reports: any[]) => void} onPage
   */
  async runs(onPage) {
    const runs = [];
    let reports = [];
    for (let total = 1; runs.length < total; ) {
      const page2 = await ask("runs", { from: runs.length, count: RUNS_PAGE });
      total = page2.rows.length ? page2.total : runs.length;
      runs.push(...page2.rows);
      if (page2.shadowReports.length) reports = page2.shadowReports;
      onPage(runs, total, reports);
    }
  }
  run(run) {
    return ask("run", { run });
  }
  /** The same, after reading on. */
  runFurther(run) {
    return ask("run", { run, more: 1 });
  }
  /** @param {{from: number, count: number, kind?: string, state?: string, q?: string}} wanted */
  steps(run, wanted) {
    return ask("steps", { run, ...wanted });
  }
  /** The row of an event among the matching steps, or null. */
  async place(run, seq, wanted) {
    return (await ask("place", { run, seq, ...wanted })).row;
  }
  /** The event of the nearest failed step, or null. */
  async failure(run, seq, isBack, wanted) {
    return (await ask("failure", { run, seq, back: isBack ? 1 : null, ...wanted })).seq;
  }
  detail(run, seq) {
    return ask("detail", { run, seq });
  }
  conversation(run, from, count2) {
    return ask("conversation", { run, from, count: count2 });
  }
  async divergences(run) {
    return (await ask("divergences", { run })).receipts;
  }
  /** The tree of forks, parents first. */
  async forks(run) {
    return (await ask("forks", { run })).nodes;
  }
  /** A shadow report. */
  shadow(name) {
    return ask("shadow", { name });
  }
  /** The moments with known files. */
  files(run) {
    return ask("files", { run });
  }
  /** The files at one moment, and the changes since the one before. */
  filesAt(run, number) {
    return ask("files-at", { run, number });
  }
  check(run) {
    return ask("check", { run });
  }
  /** The summary of a comparison, or its progress. */
  diff(a, b) {
    return ask("diff", { a, b });
  }
  diffRows(a, b, from, count2) {
    return ask("diff-rows", { a, b, from, count: count2 });
  }
  diffChange(a, b, place3) {
    return ask("diff-change", { a, b, place: place3 });
  }
};
async function ask(what, parameters) {
  const known = Object.entries(parameters).filter(
    ([, value2]) => value2 !== "" && value2 !== null && value2 !== void 0
  );
  const response = await fetch(`api/${what}?${new URLSearchParams(known)}`).catch(() => {
    throw new Ended("The viewer has stopped. Start it again with: reenact view");
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error ?? response.statusText);
  return answer;
}

// src/reenact/viewer/static/theme.js
var KEY = "reenact.theme";
function applyTheme() {
  const chosen = remembered();
  if (chosen) document.documentElement.dataset.theme = chosen;
}
function toggleTheme() {
  const next = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  try {
    localStorage.setItem(KEY, next);
  } catch {
  }
}
function themeButton() {
  return h(
    "button.plain",
    {
      type: "button",
      title: "Light or dark (t)",
      "aria-label": "Switch between light and dark",
      onclick: toggleTheme
    },
    "◐"
  );
}
function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}
function remembered() {
  try {
    const value2 = localStorage.getItem(KEY);
    return value2 === "dark" || value2 === "light" ? value2 : null;
  } catch {
    return null;
  }
}

// src/reenact/viewer/static/main.js
var PAGES = { runs: runsPage, run: runPage, diff: diffPage, shadow: shadowPage };
var main = byId("main");
var source = openSource();
var page = null;
var pageName = "";
async function show() {
  const route = parseRoute(location.hash);
  if (route.page === "runs" && source.home) return location.replace(toRun(source.home));
  const name = [route.page, route.run, route.a, route.b, route.name].join("\n");
  if (page && pageName === name) return page.go(route);
  page = null;
  pageName = name;
  main.setAttribute("aria-busy", "true");
  const next = await PAGES[route.page](source, route).catch(problemPage);
  if (pageName !== name) return;
  page = next;
  fill(main, next.element);
  main.removeAttribute("aria-busy");
  document.title = `${visible(next.title)} · reenact`;
  next.onShown?.();
}
function problemPage(error) {
  const element = h(
    "section.problem",
    { role: "alert" },
    h("h1", {}, "This cannot be shown"),
    h("p", {}, visible(error.message)),
    link("a", toRuns(), {}, "All runs")
  );
  return { element, title: "Problem", go: () => {
  }, onKey: () => false };
}
function onKey(key) {
  if (page?.onKey(key)) return true;
  const actions = { "?": showHelp, t: toggleTheme };
  actions[key]?.();
  return key in actions;
}
function topBar() {
  const brand = link(
    "a.brand",
    toRuns(),
    { "aria-label": "reenact: all runs" },
    h("span.mark", { "aria-hidden": "true" }),
    "reenact"
  );
  const help = h(
    "button.plain",
    { type: "button", title: "Keyboard (?)", "aria-label": "Keyboard help", onclick: showHelp },
    "?"
  );
  return [brand, h("span.spring"), themeButton(), help];
}
function onUnanswered(event) {
  if (!(event.reason instanceof Ended)) return;
  event.preventDefault();
  fill(byId("notices"), h("p.notice", { role: "alert" }, event.reason.message));
}
applyTheme();
fill(byId("top"), ...topBar());
byId("skip").addEventListener("click", () => main.focus());
listen(onKey);
addEventListener("hashchange", show);
addEventListener("unhandledrejection", onUnanswered);
show();

// A JSON value that opens level by level; each level is built when it is opened.

import { h, recorded } from "./dom.js";
import { count, visible } from "./text.js";

const SHOWN_MEMBERS = 100;
const SHOWN_CHARACTERS = 1200;
const SUMMARY_CHARACTERS = 80;

/**
 * @param {any} value
 * @param {{open?: number, marked?: Set<string>, path?: string}} [options]
 *   *open*: the number of open levels; *marked*: paths to mark, which are opened
 */
export function jsonTree(value, { open = 1, marked = new Set(), path = "$" } = {}) {
  const context = { open: open - 1, marked, path };
  const isOpen = isBranch(value) && open > 0;
  return h("div.json", {}, isOpen ? members(value, context) : node(null, value, { ...context, open }));
}

function isBranch(value) {
  return typeof value === "object" && value !== null && Object.keys(value).length > 0;
}

function node(key, value, context) {
  return isBranch(value) ? branch(key, value, context) : leaf(key, value, context);
}

function branch(key, value, { open, marked, path }) {
  const leadsToMark = [...marked].some(
    (mark) => mark === path || mark.startsWith(`${path}.`) || mark.startsWith(`${path}[`),
  );
  const summary = h("summary", {}, ...keyed(key), recorded("span.gist", gist(value)));
  const element = h(
    `details${marked.has(path) ? ".differs" : ""}`,
    { open: open > 0 || leadsToMark },
    summary,
  );
  const build = () => {
    if (element.children.length === 1) element.append(members(value, { open: open - 1, marked, path }));
  };
  element.addEventListener("toggle", build);
  if (element.open) build();
  return element;
}

function members(value, context, from = 0) {
  const entries = Object.entries(value);
  const isList = Array.isArray(value);
  const group = h("div.members");
  for (const [key, child] of entries.slice(from, from + SHOWN_MEMBERS)) {
    group.append(node(key, child, { ...context, path: childPath(context.path, isList ? Number(key) : key) }));
  }
  const left = entries.length - from - SHOWN_MEMBERS;
  if (left > 0) {
    const more = () => button.replaceWith(...members(value, context, from + SHOWN_MEMBERS).childNodes);
    const button = h("button.more", { type: "button", onclick: more }, `${count(left)} more`);
    group.append(button);
  }
  return group;
}

function leaf(key, value, { marked, path }) {
  const mark = marked.has(path) ? ".differs" : "";
  return h(`div.leaf${mark}`, {}, ...keyed(key), scalar(value));
}

function scalar(value) {
  if (typeof value !== "string") return recorded(`span.${typeof value}`, JSON.stringify(value));
  return value ? clipped("span.string", value) : h("span.string", {}, '""');
}

/** A long text, shown in full on request. */
export function clipped(selector, text, limit = SHOWN_CHARACTERS) {
  if (text.length <= limit) return recorded(selector, text);
  const element = recorded(selector, text.slice(0, limit));
  const whole = () => element.replaceChildren(visible(text));
  element.append(
    h("button.more", { type: "button", onclick: whole }, `… ${count(text.length - limit)} more characters`),
  );
  return element;
}

function keyed(key) {
  return key === null ? [] : [recorded("span.key", key), h("span.colon", { "aria-hidden": "true" }, ": ")];
}

function gist(value) {
  if (Array.isArray(value)) return `[ ${count(value.length)} ]`;
  const keys = Object.keys(value).join(", ");
  return `{ ${keys.length > SUMMARY_CHARACTERS ? `${keys.slice(0, SUMMARY_CHARACTERS)}…` : keys} }`;
}

/** The path of a member, as in divergences. */
export function childPath(path, key) {
  if (typeof key === "number") return `${path}[${key}]`;
  return /^[\p{ID_Start}_]\p{ID_Continue}*$/u.test(key)
    ? `${path}.${key}`
    : `${path}[${JSON.stringify(key)}]`;
}

// Creates elements without parsing text as HTML.

import { visible } from "./text.js";

/** Attributes that may contain a URL or a script are never set. */
const REFUSED = new Set(["href", "src", "srcdoc", "style", "action", "formaction"]);

/**
 * The type of the element that a selector makes: `"input.wide"` an HTMLInputElement.
 * @template {string} S
 * @typedef {S extends `${infer Tag}.${string}` ? Tagged<Tag> : Tagged<S>} Made
 */

/**
 * @template {string} T
 * @typedef {T extends keyof HTMLElementTagNameMap ? HTMLElementTagNameMap[T] : HTMLElement} Tagged
 */

/**
 * An element: `h("span.kind.tool", {title: "…"}, "text", child)`.
 * Functions become listeners, `true` an empty attribute, `false` and `null` none.
 * @template {string} S
 * @param {S} selector a tag and its classes
 * @param {Object<string, any>} [attributes]
 * @param {...(Node|string|number|null|undefined)} children
 * @returns {Made<S>}
 */
export function h(selector, attributes = {}, ...children) {
  const [tag, ...classes] = selector.split(".");
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  for (const [name, value] of Object.entries(attributes)) setAttribute(element, name, value);
  element.append(...children.filter((child) => child !== null && child !== undefined).map(asNode));
  return /** @type {Made<S>} */ (element);
}

/**
 * The element of index.html with that id.
 * @param {string} id
 */
export function byId(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no element ${id}`);
  return element;
}

/**
 * A link inside this page; *hash* is one that `route.js` made.
 * @param {string} selector
 * @param {string} hash
 * @param {Object<string, any>} [attributes]
 * @param {...(Node|string|number|null|undefined)} children
 */
export function link(selector, hash, attributes = {}, ...children) {
  const element = h(selector, attributes, ...children);
  if (!hash.startsWith("#/")) throw new Error(`not a link inside this page: ${hash}`);
  element.setAttribute("href", hash);
  return element;
}

/** @param {Element} element @param {...(Node|string|null)} children */
export function fill(element, ...children) {
  element.replaceChildren(...children.filter((child) => child !== null).map(asNode));
}

/** A recorded text; invisible and reordering characters are replaced by visible marks. */
export function recorded(selector, text, attributes = {}) {
  return h(selector, attributes, visible(text));
}

function asNode(child) {
  return child instanceof Node ? child : document.createTextNode(String(child));
}

function setAttribute(element, name, value) {
  if (REFUSED.has(name)) throw new Error(`${name} is not set this way`);
  if (typeof value === "function") element.addEventListener(name.replace(/^on/, ""), value);
  else if (value !== null && value !== undefined && value !== false) {
    element.setAttribute(name, value === true ? "" : String(value));
  }
}

// Announces changes to screen readers.

import { byId } from "./dom.js";

/** @param {string} text */
export function announce(text) {
  byId("announcer").textContent = text;
}

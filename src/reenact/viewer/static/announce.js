// What a screen reader is told when something changes out of its sight.

import { byId } from "./dom.js";

/** @param {string} text */
export function announce(text) {
  byId("announcer").textContent = text;
}

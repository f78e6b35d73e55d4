// A row of names and values.

import { h, recorded } from "./dom.js";

/** @param {any[][]} pairs names and values; those without a value are left out */
export function factList(pairs) {
  const known = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return h(
    "dl.facts",
    {},
    ...known.map(([name, value]) => h("div", {}, h("dt", {}, name), recorded("dd", value))),
  );
}

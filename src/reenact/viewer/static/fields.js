// The filter fields of lists.

import { h } from "./dom.js";
import { visible } from "./text.js";

const TYPING_MS = 120;

/** @param {(value: string) => void} onChange told when the typing pauses */
export function searchField(label, value, onChange) {
  const input = h("input", {
    type: "search",
    placeholder: `${label}  /`,
    "aria-label": label,
    spellcheck: "false",
    autocomplete: "off",
  });
  input.value = value ?? "";
  let timer = 0;
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => onChange(input.value.trim()), TYPING_MS);
  });
  return { element: h("div.search", {}, input), input };
}

/** A selection of one of *options*, or all. */
export function choice(name, options, value, onChange) {
  const select = h("select", { "aria-label": `Filter by ${name}`, onchange: () => onChange(select.value) });
  select.append(new Option(`Any ${name}`, ""));
  const known = value && !options.includes(value) ? [...options, value] : options;
  for (const option of known) select.append(new Option(visible(option), option));
  select.value = value ?? "";
  return h("label.choice", {}, select);
}

// The keyboard: one table of keys, shown by `?`.

import { fill, h } from "./dom.js";

export const KEYS = [
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
  ["?", "this help"],
];

/** @param {(key: string) => boolean} onKey whether the current page handled the key */
export function listen(onKey) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (isTyping(event.target) && event.key !== "Escape") return;
    if (document.querySelector("dialog[open]")) return;
    if (onKey(event.key)) event.preventDefault();
  });
}

/** Show the table of keys. */
export function showHelp() {
  const dialog = h("dialog.help", { "aria-labelledby": "help-title" });
  const rows = KEYS.map(([keys, meaning]) =>
    h("div", {}, h("dt", {}, ...keys.split(/\s+/).map((key) => h("kbd", {}, key))), h("dd", {}, meaning)),
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

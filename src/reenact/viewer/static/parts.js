// The parts of a message: text, thinking, tool calls and results, and others.

import { h, recorded } from "./dom.js";
import { clipped, jsonTree } from "./json_tree.js";
import { prose } from "./prose.js";

const FORMS = {
  text: (part) => prose(part.text),
  thinking: (part) =>
    h("details.thinking", {}, h("summary", {}, "Thinking"), prose(part.text || "Sealed by the provider.")),
  tool_call: (part) => card("calls", part.name, part.arguments ?? part.argumentsText),
  tool_result: (part) => h(`div${part.isError ? ".failed" : ""}`, {}, value(part.content)),
  refusal: (part) => h("div.failed", {}, prose(part.text)),
  media: (part) =>
    recorded("p.muted", `${part.mediaType ?? "media"} ${part.url ?? part.fileId ?? part.digest ?? ""}`),
  failure: (part) => h("div.failed", {}, value(part.value)),
};

/** @param {{kind: string}} part as the view model writes it */
export function partView(part) {
  return (FORMS[part.kind] ?? ((other) => value(other.value)))(part);
}

/** Text as text, everything else as a tree. */
export function value(shown) {
  return typeof shown === "string"
    ? h("pre.code", { tabindex: 0 }, clipped("code", shown, 4000))
    : jsonTree(shown ?? null, { open: 2 });
}

function card(verb, name, given) {
  return h(
    "div.call-card",
    {},
    h("div.call-name", {}, `${verb} `, recorded("code", name)),
    given === undefined ? null : jsonTree(given, { open: 2 }),
  );
}

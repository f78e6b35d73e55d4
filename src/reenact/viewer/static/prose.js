// Texts of people and models: paragraphs, fenced code, inline code and emphasis; links stay text.

import { h, recorded } from "./dom.js";

const SHOWN_CHARACTERS = 6000;

/** @param {string} text */
export function prose(text) {
  const element = h("div.prose");
  const shown = text.length > SHOWN_CHARACTERS ? text.slice(0, SHOWN_CHARACTERS) : text;
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

/** Of every four parts: text, the name of a language, code, nothing. */
function block(part, position) {
  const place = position % 4;
  if (place === 1 || place === 3) return [];
  if (place === 2) return [h("pre.code", { tabindex: 0 }, recorded("code", part.replace(/^\n|\n$/g, "")))];
  return part
    .split(/\n\s*\n/)
    .filter((paragraph) => paragraph.trim())
    .map((paragraph) => h("p", {}, ...inline(paragraph.trim())));
}

function inline(text) {
  return text.split(/(`[^`\n]+`|\*\*[^*\n]+\*\*)/).map((part) => {
    if (/^`.+`$/.test(part)) return recorded("code", part.slice(1, -1));
    if (/^\*\*.+\*\*$/.test(part)) return recorded("strong", part.slice(2, -2));
    return recorded("span", part);
  });
}

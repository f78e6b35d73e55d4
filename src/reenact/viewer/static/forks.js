// The tree of forks that a run belongs to, and the commands that fork at a step.

import { announce } from "./announce.js";
import { h, link, recorded } from "./dom.js";
import { toDiff, toRun } from "./route.js";
import { statusMark } from "./runs_page.js";
import { count } from "./text.js";

const COPIED_MS = 1500;

export async function forksView(source, run) {
  const nodes = await source.forks(run.line.id);
  const element = h(
    "section.forks",
    { "aria-label": "Forks" },
    nodes.length > 1 ? treeView(run.line.id, nodes) : nothing(),
  );
  return { element };
}

function nothing() {
  return h(
    "p.empty",
    {},
    "None of the runs here is a fork of this run. Select a step in the timeline to see how to fork there.",
  );
}

/** Nested lists, because screen readers read them as a tree. */
function treeView(run, nodes) {
  const root = h("ul.tree");
  const lists = [root];
  for (const node of nodes) {
    const below = h("ul.tree");
    lists[node.depth].append(h("li", {}, nodeView(run, node), below));
    lists[node.depth + 1] = below;
  }
  for (const list of root.querySelectorAll("ul:empty")) list.remove();
  return root;
}

function nodeView(run, node) {
  const name = node.isThis
    ? recorded("strong.name", node.name, { "aria-current": "true" })
    : node.run
      ? link("a.name", toRun(node.run), {}, recorded("span", node.name))
      : recorded("span.name.muted", node.name);
  const isParent = node.at === undefined || node.at === null;
  const place = isParent ? "recorded" : node.at ? `forked at event ${count(node.at)}` : "forked from the start";
  return h(
    "div.node",
    {},
    name,
    node.status ? statusMark(node.status) : h("span.muted", {}, "no longer there"),
    h("span.muted", {}, place),
    isParent ? null : recorded("code.changed", node.change || "no change"),
    node.run && !node.isThis ? link("a", toDiff(run, node.run), {}, "Compare") : null,
  );
}

/** The commands that fork at a step; nothing if that is impossible. */
export function forkSection(run, { choices = [], why = "", seq = null } = {}) {
  if (!choices.length && !why) return null;
  const around = seq ? link("a", toRun(run, { seq }), {}, `event ${seq}`) : null;
  return h(
    "details.folded.fork",
    {},
    h("summary", {}, "Fork from here"),
    why ? h("p.muted", {}, `${why} `, around) : null,
    ...choices.map(choiceView),
    choices.length ? h("p.muted", {}, "Replace the outcome with your own and run this where the agent is.") : null,
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
    h("pre.code", { tabindex: 0 }, code),
  );
}

/** If the page may not write to the clipboard, the text is selected, and the user copies it. */
async function copy(text, code, button) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
    announce("Copied");
    setTimeout(() => (button.textContent = "Copy"), COPIED_MS);
  } catch {
    getSelection()?.selectAllChildren(code);
    announce("Selected; copy it with the keyboard");
  }
}

// The run as a conversation, one turn below the other.

import { fill, h, link, recorded } from "./dom.js";
import { partView } from "./parts.js";
import { toRun } from "./route.js";

const PAGE_TURNS = 60;

export async function conversationView(source, run) {
  const turns = h("ol.turns");
  const more = h("button.more", { type: "button", onclick: load }, "Read on");
  const element = h("section.conversation", { "aria-label": "Conversation" }, turns, more);
  const hasLanes = run.counts.columns > 1;
  let next = 0;

  async function load() {
    // A long part of a run without messages needs several requests.
    const rows = [];
    do {
      const page = await source.conversation(run.line.id, next, PAGE_TURNS);
      rows.push(...page.rows);
      next = page.next;
    } while (!rows.length && next !== null);
    turns.append(...rows.map((row) => turn(run.line.id, row, hasLanes)));
    if (next === null) turns.append(...finalOutput(run, rows.at(-1)));
    more.hidden = next === null;
    if (next === null && !turns.children.length)
      fill(element, h("p.empty", {}, "This run has no messages."));
  }

  await load();
  return { element };
}

/** The final output of the run, if it is not in a message. */
function finalOutput({ header: { finalOutput: output } }, lastTurn) {
  const isSaid = lastTurn?.parts.some((part) => part.text === output);
  if (output === undefined || output === null || isSaid) return [];
  const kind = typeof output === "string" ? { kind: "text", text: output } : { kind: "data", value: output };
  const said = h("div.said", {}, h("div.speaker", {}, h("span.role", {}, "final output")), partView(kind));
  return [h("li.turn.r-assistant", {}, said)];
}

/** @param {{role: string, seq: number, lane: string, parts: any[]}} row */
function turn(run, row, hasLanes) {
  const who = hasLanes ? `${row.role} · task ${row.lane}` : row.role;
  const seq = link(
    "a.seq",
    toRun(run, { seq: row.seq }),
    { "aria-label": `Event ${row.seq}` },
    `#${row.seq}`,
  );
  const said = h(
    "div.said",
    {},
    h("div.speaker", {}, recorded("span.role", who), seq),
    ...row.parts.map(partView),
  );
  return h(`li.turn.r-${roleClass(row.role)}`, {}, said);
}

export function roleClass(role) {
  return ["user", "assistant", "system", "tool"].includes(role) ? role : "other";
}

// One step in full: the request, the outcome, and the events as in the file.

import { fill, h, link, recorded } from "./dom.js";
import { factList } from "./facts.js";
import { forkSection } from "./forks.js";
import { jsonTree } from "./json_tree.js";
import { partView, value } from "./parts.js";
import { prose } from "./prose.js";
import { toRun } from "./route.js";
import { kindLabel } from "./step_row.js";
import { count, duration, plural, visible } from "./text.js";

/** @param {string} run @param {() => void} onClose */
export function inspector(source, run, onClose) {
  const body = h("div.inspected");
  const element = h("aside.inspector", { "aria-label": "The selected call", tabindex: -1 }, body);
  let wanted = null;

  async function show(seq) {
    wanted = seq;
    const detail = await source.detail(run, seq).catch((error) => ({ problem: error.message }));
    if (wanted !== seq) return;
    const close = h(
      "button.plain.close",
      { type: "button", "aria-label": "Close", title: "Close (Esc)", onclick: onClose },
      "×",
    );
    fill(
      body,
      heading(run, detail, close),
      ...notices(detail),
      ...sections(detail.step, detail.payloads ?? {}),
      forkSection(run, detail.fork),
      ...rawEvents(detail.events ?? []),
    );
    element.scrollTop = 0;
  }

  function clear() {
    wanted = null;
    fill(body);
  }

  return { element, show, clear, focus: () => element.focus() };
}

function heading(run, { step, events = [] }, close) {
  if (!step)
    return h(
      "header",
      {},
      h("div.title", {}, recorded("h2", events[0]?.type ?? "Event"), h("span.spring"), close),
    );
  const { tokens } = step;
  const facts = [
    ["Events", [...new Set([step.seq, step.outcomeSeq ?? step.seq])].join(" → ")],
    ["Task", step.lane],
    ["At", duration(step.atMs)],
    ["Took", duration(step.tookMs)],
    ["Tokens", tokens ? `${count(tokens.input ?? 0)} → ${count(tokens.output ?? 0)}` : ""],
    ["Cost", step.cost === undefined ? "" : step.cost.toFixed(4)],
  ];
  const kind = kindLabel(step.kind);
  const outcome = h(`span.outcome.is-${step.state}`, {}, step.state);
  const around = step.parentSeq
    ? h(
        "p.muted",
        {},
        "Made inside ",
        link("a", toRun(run, { seq: step.parentSeq }), {}, `event ${step.parentSeq}`),
      )
    : null;
  return h(
    "header",
    {},
    h("div.title", {}, kind, recorded("h2", step.name), outcome, h("span.spring"), close),
    factList(facts),
    around,
  );
}

function notices({ problem, problems = [], isShort }) {
  const told = [
    problem,
    ...problems,
    isShort ? "This is too large to be shown here; reenact show --at prints it." : null,
  ];
  return told.filter(Boolean).map((text) => recorded("p.notice", text, { role: "alert" }));
}

/** The content of the step, each part under its own heading. */
function sections(step, payloads) {
  if (payloads.conversation) return conversationSections(payloads);
  return [
    given(payloads.request) ? section(requestTitle(step), value(payloads.request)) : null,
    given(payloads.response)
      ? section(step.kind === "tool" ? "Result" : "Value", value(payloads.response))
      : null,
    ...outcomeSections(payloads),
  ].filter(Boolean);
}

function conversationSections(payloads) {
  const { system, messages = [], answer = [], tools = [], params = {}, stopReason } = payloads.conversation;
  const last = messages.findLastIndex((message) => message.role === "assistant") + 1;
  const earlier = messages.slice(0, last);
  return [
    system ? section("System", prose(system)) : null,
    earlier.length
      ? folded(`${plural(earlier.length, "earlier message")}`, () =>
          h("div.messages", {}, ...earlier.map(messageView)),
        )
      : null,
    ...messages.slice(last).map((message) => section(speaker(message), ...message.parts.map(partView))),
    answer.length ? section(stopReason ? `Answer (${stopReason})` : "Answer", ...answer.map(partView)) : null,
    ...outcomeSections(payloads),
    tools.length ? folded(`${plural(tools.length, "tool")} offered`, () => jsonTree(tools)) : null,
    Object.keys(params).length ? folded("Parameters", () => jsonTree(params)) : null,
  ].filter(Boolean);
}

function outcomeSections({ error, pieces }) {
  return [
    given(error) ? h("section.part.is-bad", {}, h("h3", {}, "Error"), value(error)) : null,
    pieces ? folded(`${plural(pieces.length, "piece")} of the stream`, () => jsonTree(pieces)) : null,
  ];
}

function messageView({ role, parts }) {
  return h("div.message", {}, recorded("h4", speaker({ role, parts })), ...parts.map(partView));
}

/** Some providers send tool results with the role of the user. */
function speaker({ role, parts }) {
  return parts.length && parts.every((part) => part.kind === "tool_result") ? "tool" : role;
}

function section(title, ...shown) {
  return h("section.part", {}, recorded("h3", title), ...shown);
}

/** Closed at first; the content is built when it is opened. */
function folded(title, build) {
  const details = h("details.folded", {}, recorded("summary", title));
  details.addEventListener("toggle", () => details.children.length > 1 || details.append(build()));
  return details;
}

function rawEvents(events) {
  const raw = events.map((event) =>
    folded(`Event ${event.seq ?? ""} ${visible(event.type ?? event.event ?? "")}`, () =>
      jsonTree(event, { open: 2 }),
    ),
  );
  return raw.length ? [h("section.part", {}, h("h3", {}, "As recorded"), ...raw)] : [];
}

function requestTitle({ kind }) {
  return { tool: "Arguments", state: "Change" }[kind] ?? "Request";
}

function given(shown) {
  return shown !== undefined && shown !== null;
}

// The divergences of replays: expected and observed side by side, with the differing path marked.

import { diffLine } from "./change_view.js";
import { h, link, recorded } from "./dom.js";
import { jsonTree } from "./json_tree.js";
import { toRun } from "./route.js";
import { moment, plural } from "./text.js";

export async function divergencesView(source, run) {
  const receipts = await source.divergences(run.line.id);
  const element = h(
    "section.divergences",
    { "aria-label": "Divergences" },
    ...receipts.map((receipt) => receiptView(run, receipt)),
  );
  if (!receipts.length) element.append(nothing());
  return { element };
}

function nothing() {
  return h(
    "p.empty",
    {},
    "There is no replay receipt of this run. Write one with ",
    h("code", {}, "reenact replay DIR --receipt FILE -- CMD"),
    " and name it beside the run.",
  );
}

function receiptView(run, { file, receipt }) {
  const { verdict, divergences, liveCallsRefused: refused, matching, replayedAt, notes } = receipt;
  const summary = [
    moment(replayedAt),
    `${matching.policy} policy`,
    plural(divergences.length, "divergence"),
    plural(refused.length, "refused live call"),
  ];
  return h(
    "section.receipt",
    {},
    h(
      "header.title",
      {},
      recorded("h2", file),
      h(`span.outcome.is-${verdict === "reproduced" ? "ok" : "error"}`, {}, verdict),
    ),
    h("p.muted", {}, summary.filter(Boolean).join(" · ")),
    ...divergences.map((divergence) => divergenceView(run, divergence)),
    refused.length ? h("h3", {}, "Tried to go live") : null,
    ...refused.map((call) =>
      recorded("p.refused", `${call.kind} ${call.target}${call.frame ? `, ${call.frame}` : ""}`),
    ),
    ...notes.map((note) => recorded("p.muted", note)),
  );
}

function divergenceView(run, found) {
  const place = found.eventSeq
    ? link("a", toRun(run.line.id, { seq: found.eventSeq }), {}, `event ${found.eventSeq}`)
    : null;
  const title = h("h3", {}, recorded("code", found.code), " ", recorded("span", found.detail));
  const facts = [
    ["Called from", found.sourceLine],
    ...(found.callers ?? []).map((caller) => ["by", caller]),
    ["Task", found.lane],
  ].filter(([, value]) => value);
  return h(
    "article.divergence",
    {},
    title,
    h("p.muted", {}, place, ...facts.flatMap(([name, value]) => [` · ${name} `, recorded("code", value)])),
    ...differenceTable(found.differences ?? []),
    sides(found),
    found.files?.length ? h("pre.code.text-diff", { tabindex: 0 }, ...found.files.map(diffLine)) : null,
    candidates(run, found.candidates ?? []),
  );
}

function differenceTable(differences) {
  if (!differences.length) return [];
  const rows = differences.map((one) =>
    h("tr", {}, recorded("th", one.path, { scope: "row" }), side("expected", one), side("observed", one)),
  );
  const head = h(
    "tr",
    {},
    ...["Path", "Expected", "Observed"].map((name) => h("th", { scope: "col" }, name)),
  );
  return [
    h(
      "div.scroll",
      { tabindex: 0, role: "region", "aria-label": "Differences" },
      h("table.differences", {}, h("thead", {}, head), h("tbody", {}, ...rows)),
    ),
  ];
}

function side(name, difference) {
  return name in difference
    ? recorded(`td.${name}`, JSON.stringify(difference[name]))
    : h(`td.${name}.nothing`, {}, "nothing");
}

/** The two events, opened down to their difference. */
function sides({ expected, observed, jsonPath, differences = [] }) {
  const marked = new Set(markedPaths(jsonPath, differences));
  return h(
    "div.sides",
    {},
    ...sideView("Expected", "expected", expected, marked),
    ...sideView("Observed", "observed", observed, marked),
  );
}

/** Paths of differences are relative to the request; *jsonPath*, the first of them, to the event. */
function markedPaths(jsonPath, differences) {
  if (!jsonPath) return [];
  const [first] = differences;
  if (!first || !jsonPath.endsWith(first.path.slice(1))) return [jsonPath];
  const base = jsonPath.slice(0, jsonPath.length - first.path.length + 1);
  return differences.map(({ path }) => base + path.slice(1));
}

function sideView(title, name, value, marked) {
  const shown = value
    ? jsonTree({ type: value.type, data: value.data }, { open: 2, marked })
    : h("p.empty", {}, "nothing");
  return [h(`section.side.${name}`, { "aria-label": title }, h("h4", {}, title), shown)];
}

function candidates(run, found) {
  if (!found.length) return null;
  const items = found.map((one) =>
    h(
      "li",
      {},
      link("a", toRun(run.line.id, { seq: one.eventSeq }), {}, `event ${one.eventSeq}`),
      recorded(
        "span",
        ` ${one.name}, task ${one.lane}: ${one.differences ? `differs at ${plural(one.differences, "place")}` : "the same call"}${one.isTaken ? ", already taken" : ""}`,
      ),
    ),
  );
  return h("details", {}, h("summary", {}, "Nearest recorded calls"), h("ul", {}, ...items));
}

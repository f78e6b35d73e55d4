// The verifier to read first: capture directories with their payloads, and logs in both dialects, written from
// docs/formats. It needs Node and nothing else: json.mjs reads and writes canonical JSON, schema.mjs stands for the
// JSON Schema library that your language has. `node conformance/js/verify.mjs [KIT]` runs the cases of its formats and
// names the others; judge.mjs runs those.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Refused, canonical, digest, hash, isHash, linesOf, parse } from "./json.mjs";
import { equal, isObject, schemaProblem } from "./schema.mjs";
import { blobPath, eventsOf, treesIn, verifyFiles, verifyParent } from "./files.mjs";

export const found = (code, line = null, path = null, severity = "error") => ({ code, line, path, severity });
export const warned = (code, line = null, path = null) => found(code, line, path, "warning");

// Every call once, every outcome behind its call: links are [line, is it a call, its id].
function follow(links, codes, severity) {
  const [waiting, called, findings] = [new Map(), new Set(), []];
  for (const [line, isCall, id] of links) {
    if (isCall && called.has(id)) findings.push(found(codes.second, line));
    else if (!isCall && !waiting.has(id)) findings.push(found(called.has(id) ? codes.again : codes.alone, line));
    if (!isCall) waiting.delete(id);
    else waiting.set(id, line) && called.add(id);
  }
  return { findings, unanswered: [...waiting.values()].map((line) => found(codes.open, line, null, severity)) };
}

// REPLAY.jsonl in both dialects

export const DIALECTS = {
  type: { schema: "replay-log", time: "ts", id: "step_id" },
  event: { schema: "replay-log-legacy", time: "t", id: "id" },
};
const KINDS = "ReplayHeader SessionStart PlanStart ToolCall ToolResult StepComplete Verification SessionEnd".split(" ");
const LOG_CODES = { second: "second_call", again: "second_result", alone: "result_without_call", open: "no_result" };
// Milliseconds; a leap second is the one before it.
export const moment = (text) => Date.parse(text.replace(/:60(?=\.|Z|[+-])/, ":59").replace(/(\.\d{3})\d+/, "$1"));

export function readLog(file, schemas, lenient = true) {
  const log = { events: [], findings: [], cut: null, trajectory: "", tag: null };
  for (const [line, text] of linesOf(readFileSync(file))) {
    log.trajectory += `${text.toString("latin1")}\n`;
    try {
      const event = parse(text);
      if (!isObject(event)) throw new Refused("no object", "$");
      log.tag ??= "type" in event ? "type" : "event";
      const kind = event[log.tag];
      const isNewer = kind === "ReplayHeader" && typeof event.replay_version === "bigint" && event.replay_version > 1n;
      log.isNewer ||= isNewer;
      const path = schemaProblem(schemas[DIALECTS[log.tag].schema], event);
      if (path) throw new Refused("breaks the schema", path);
      if (log.cut === null) log.events.push({ line, event, kind });
    } catch (error) {
      log.findings.push(found("line_unreadable", line, error.path));
      if (!lenient) log.cut ??= line;
    }
  }
  if (log.isNewer || !log.tag) throw new Refused("no log of a known version");
  return log;
}

export function verifyLog(file, schemas, lenient = false) {
  const log = readLog(file, schemas, lenient);
  const { time, id } = DIALECTS[log.tag];
  const findings = [...log.findings];
  const find = (code, entry) => findings.push(found(code, entry?.line ?? 1));
  const isFullHash = (text) => isHash(text.replace(/^hmac-/, "")); // a published hash may be keyed
  const of = (...kinds) => log.events.filter((entry) => kinds.includes(entry.kind));
  const isMarked = ({ event, kind }) => "seal" in event || "published" in event || kind === "SealLeaves";
  const isPublished = log.events.slice(0, 2).some(isMarked);
  for (const entry of of("ToolCall")) {
    const { params, params_hash: claimed } = entry.event;
    if (params === undefined && !isPublished) find("no_params", entry);
    if (params === undefined ? !isFullHash(claimed) : digest(params) !== claimed) find("params_hash", entry);
  }
  for (const entry of of("ToolResult")) if (!isFullHash(entry.event.output_hash)) find("output_hash", entry);
  for (const entry of of("PlanStart")) if (!isFullHash(entry.event.plan_hash)) find("plan_hash", entry);
  for (const entry of of("Verification")) {
    const { commands, exit_codes: codes } = entry.event;
    if (commands && commands.length !== codes.length) find("exit_codes", entry);
  }
  const timed = of(...KINDS).filter(({ event }) => event[time] !== undefined);
  const isBack = ({ event }, i) => i && moment(timed[i - 1].event[time]) - moment(event[time]) > 1000;
  findings.push(...timed.filter(isBack).map(({ line }) => warned("time", line)));
  const [first] = log.events;
  const [starts, [end]] = [of("SessionStart"), of("SessionEnd")];
  if (first && first.kind !== "ReplayHeader") find("no_header", first);
  of("ReplayHeader").filter((entry) => entry !== first).forEach((entry) => find("second_header", entry));
  if (!starts.length && !log.findings.length && !isPublished) find("no_start", first);
  starts.slice(1).forEach((entry) => find("second_start", entry));
  const named = of(...KINDS).filter(({ event }) => event.session_id !== undefined);
  const isNew = ({ event }, i) => i && named.findIndex((other) => other.event.session_id === event.session_id) === i;
  named.filter(isNew).forEach((entry) => find("foreign_event", entry));
  if (end && end !== log.events.at(-1)) find("after_end", log.events[log.events.indexOf(end) + 1]);
  const links = of("ToolCall", "ToolResult").map(({ line, event, kind }) => [line, kind === "ToolCall", event[id]]);
  const linked = follow(links, LOG_CODES, end && !isPublished ? "error" : "warning");
  findings.push(...linked.findings);
  if (log.cut !== null) return [...findings, warned("not_checked", log.cut)];
  findings.push(...linked.unanswered);
  if (!end) return [...findings, warned("no_end", log.events.at(-1)?.line ?? 1)];
  const latency = of("ToolResult").reduce((sum, { event }) => sum + Number(event.latency_ms), 0);
  const { total_tool_calls: calls, total_latency_ms: total } = end.event;
  if (calls !== undefined && !equal(calls, of("ToolCall").length)) find("total_tool_calls", end);
  const rounding = 1e-9 * Math.max(Number(total), latency);
  if (total !== undefined && Math.abs(Number(total) - latency) > rounding) find("total_latency_ms", end);
  return findings;
}

// Capture directories

const CODES = { second: "second_call", again: "second_outcome", alone: "outcome_without_call", open: "no_outcome" };

function readManifest(directory, schemas, findings) {
  try {
    const manifest = parse(readFileSync(join(directory, "manifest.json")));
    const path = schemaProblem(schemas["capture-manifest"], manifest);
    if (path) throw new Refused("breaks the schema", path);
    if (!/^[^/\\]+$/.test(manifest.eventLogPath)) return { leadsOut: true };
    const { manifestHash, ...integrity } = manifest.integrity;
    if (manifestHash !== undefined && manifestHash !== digest({ ...manifest, integrity })) {
      findings.push(found("manifest_changed"));
      return null;
    }
    const isOdd = (rule) => Object.keys(rule).some((name) => !["path", "mask", "call"].includes(name));
    const odd = (manifest.volatile ?? []).findIndex(isOdd);
    if (odd >= 0) throw new Refused("an unknown member", `$.volatile[${odd}]`);
    return manifest;
  } catch (error) {
    findings.push(found("manifest_unreadable", null, error.path));
    return null;
  }
}

export function verifyCapture(directory, schemas) {
  if (!existsSync(join(directory, "manifest.json"))) throw new Refused("no capture");
  const findings = [];
  const find = (code, entry) => findings.push(found(code, entry?.line ?? null));
  const manifest = readManifest(directory, schemas, findings);
  if (manifest?.leadsOut) throw new Refused("a path leads out of the directory");
  const homes = [directory];
  const bytes = eventsOf(directory, manifest, homes);
  if (bytes === null) return [...findings, found("parent_changed")];
  const events = [];
  for (const [line, text] of linesOf(bytes)) {
    try {
      const event = parse(text);
      const path = schemaProblem(schemas["capture-event"], event);
      if (path) throw new Refused("breaks the schema", path);
      events.push({ line, event, run: `${event.captureId} ${event.runId}` });
    } catch (error) {
      findings.push(found("event_unreadable", line, error.path));
    }
  }
  const runs = [...new Set(events.map(({ run }) => run))];
  runs.slice(1).forEach((name) => find("foreign_event", events.find(({ run }) => run === name)));
  events.filter(({ line, event }) => !equal(event.seq, line)).forEach((entry) => find("sequence", entry));
  const isBack = ({ event }, i) => i && Number(events[i - 1].event.ts) - Number(event.ts) > 1000;
  findings.push(...events.filter(isBack).map(({ line }) => warned("time", line)));
  const isStart = ({ event }) => event.type === "run_start";
  if (events.length && !isStart(events[0])) find("no_start", events[0]);
  events.slice(1).filter(isStart).forEach((entry) => find("second_start", entry));
  const end = events.find(({ event }) => event.type === "run_end");
  if (end && end !== events.at(-1)) find("after_end", events[events.indexOf(end) + 1]);
  const calls = ["tool_call", "llm_request"];
  const isCall = ({ type, data }) => calls.includes(type) || (type === "nondeterministic" && "request" in data);
  const linked = events.filter(({ event }) => event.data.callId !== undefined && event.type !== "state_mutation");
  const links = linked.map(({ line, event }) => [line, isCall(event), event.data.callId]);
  const followed = follow(links, CODES, "warning");
  findings.push(...followed.findings, ...(end ? followed.unanswered : []));
  if (manifest) {
    if (manifest.integrity.manifestHash === undefined) find("manifest_hash");
    if (manifest.integrity.eventsHash !== hash(bytes)) find("events_changed");
    if (!equal(manifest.eventCount, linesOf(bytes).length)) find("event_count");
    if (runs.length && !runs.includes(`${manifest.captureId} ${manifest.runId}`)) find("foreign_manifest");
    if (manifest.status === "ok" && !end) find("no_end");
    const told = [manifest.error ?? "", ...(manifest.warnings ?? [])];
    if (told.some((text) => text.startsWith("recording failed"))) find("recording_failed");
    if (existsSync(join(directory, "recovered.json")) && manifest.error !== "interrupted") find("recovered_mark");
    if (manifest.fork) findings.push(...verifyParent(directory, manifest.fork));
  }
  const trees = new Map(events.toReversed().flatMap((entry) => treesIn(entry).map((tree) => [tree, entry.line])));
  if (manifest?.workspaceEnd && !trees.has(manifest.workspaceEnd)) trees.set(manifest.workspaceEnd, end.line);
  return [...findings, ...verifyFiles(homes, events, trees)];
}

// What the payloads of calls stand for: blobs, texts, and members of earlier requests.
function verifyPayloads(directory, wanted) {
  const events = linesOf(readFileSync(join(directory, "events.jsonl"))).map(([, text]) => parse(text));
  const resolve = (value, before) => {
    if (Array.isArray(value)) return value.map((item) => resolve(item, before));
    if (!isObject(value)) return value;
    if ("$blob" in value) return resolve(parse(readFileSync(blobPath(directory, value.$blob))), before);
    if ("$json" in value) return resolve(parse(value.$json), before);
    const members = Object.entries(value);
    if (!("$ref" in value)) return Object.fromEntries(members.map(([key, child]) => [key, resolve(child, before)]));
    const { call, path, items } = value.$ref;
    const isNamed = ({ type, data }, i) => i < before && type === "llm_request" && data.callId === call;
    const place = events.findIndex(isNamed);
    if (place < 0) throw new Refused("no such call before this one");
    const whole = resolve(path.reduce((inside, key) => inside?.[key], events[place].data.request), place);
    if (whole === undefined || (items !== undefined && whole.length < items)) throw new Refused("not there");
    return items === undefined ? whole : [...whole.slice(0, Number(items)), ...resolve(value.then, before)];
  };
  const isGood = (data, name, index) => {
    try {
      const [whole, expected] = [resolve(data[name], index), wanted[data.callId][name]];
      const isWanted = expected === undefined || canonical(expected) === canonical(whole);
      return isWanted && (data.requestHash ?? digest(whole)) === digest(whole);
    } catch (error) {
      if (error instanceof Refused) return false;
      throw error;
    }
  };
  return events.flatMap(({ data }, index) => {
    const names = ["request", "response"].filter((name) => data.callId in wanted && name in data);
    const wrong = names.filter((name) => !isGood(data, name, index));
    return wrong.map((name) => found("payload", null, `$.${data.callId}.${name}`));
  });
}

// The cases of these formats, when this file is run and not imported

export const FORMATS = ["canonical-json", "capture", "fork", "payload", "replay-log", "replay-log-legacy", "workspace"];

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { report, runCanonical, runCases, schemas } = await import("./kit.mjs");
  const results = runCases(FORMATS, (folder, { artifact, lenient, resolved }) => {
    const path = join(folder, artifact);
    const findings = artifact === "capture" ? verifyCapture(path, schemas) : verifyLog(path, schemas, lenient);
    return resolved ? [...findings, ...verifyPayloads(path, parse(readFileSync(join(folder, resolved))))] : findings;
  });
  report([...runCanonical(), ...results], FORMATS);
}

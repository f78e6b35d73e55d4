// A verifier of every format, written from docs/formats: `node conformance/js/verify.mjs [KIT]` holds it against
// the kit. It needs Node and nothing else.
import { createPublicKey, verify as verifySignature } from "node:crypto";
import { existsSync, readFileSync, readdirSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Refused, canonical, childPath, digest, equal, hash, isDouble, isHash, isNumber, isObject, linesOf, moment, parse, schemaProblem, sha256 } from "./json.mjs";
import { judge, normalize } from "./judge.mjs";
import { parseYaml } from "./yaml.mjs";

const KIT = process.argv[2] ?? join(dirname(fileURLToPath(import.meta.url)), "..");
const SCHEMAS = Object.fromEntries(readdirSync(join(KIT, "schemas")).map((file) => [basename(file, ".json"), parse(readFileSync(join(KIT, "schemas", file)))]));
const found = (code, line = null, path = null, severity = "error") => ({ code, line, path, severity });
const warned = (code, line = null, path = null) => found(code, line, path, "warning");
const invalid = (path, line = null) => [found("invalid", line, path)];
const byteHash = (file) => hash(readFileSync(file));

// Documents of one JSON value

function document(schema, rules = () => []) {
  return (file) => {
    const value = parse(readFileSync(file));
    const path = versionProblem(value) ?? schemaProblem(SCHEMAS[typeof schema === "string" ? schema : schema(value)], value);
    return path ? invalid(path) : rules(value);
  };
}

// A bundle, case, trace, result or summary of version 0; a policy's version is a number and its schema's matter.
function versionProblem(value) {
  const version = value?.schema_version;
  return typeof version === "string" && !/^0+\.\d+$/.test(version) ? "$.schema_version" : null;
}

const hashForms = (record, names, path) => names.filter((name) => typeof record[name] === "string" && !isHash(record[name])).map((name) => found(name, null, childPath(path, name)));

const receipt = document((value) => ("schema" in value ? "receipt" : "receipt-legacy"), (value) => {
  const checked = value.verification;
  return [
    ...hashForms(value, ["trajectory_hash", "plan_hash"], "$"),
    ...(value.tool_calls ?? []).flatMap((call, i) => hashForms(call, ["params_hash", "output_hash"], `$.tool_calls[${i}]`)),
    ...(isObject(checked) && checked.commands_run.length !== checked.exit_codes.length ? [found("exit_codes", null, "$.verification.exit_codes")] : []),
  ];
});

const replayReceipt = document("replay-receipt", (value) => {
  const proved = value.divergences.length || value.liveCallsRefused.length ? "diverged" : "reproduced";
  return [...hashForms(value.capture, ["eventsHash"], "$.capture"), ...(value.verdict === proved ? [] : [found("verdict", null, "$.verdict")])];
});

const trace = document("trace", (value) => {
  const seen = new Set();
  for (const [index, event] of value.events.entries()) {
    const path = `$.events[${index}]`;
    if (event.seq !== BigInt(index + 1)) return invalid(`${path}.seq`);
    if (seen.has(event.event_id)) return invalid(`${path}.event_id`);
    if (event.parent_event_id !== null && !seen.has(event.parent_event_id)) return invalid(`${path}.parent_event_id`);
    seen.add(event.event_id);
  }
  const calls = value.events.filter((event) => event.type === "tool_call").length;
  return equal(value.metrics.tool_call_count, calls) ? [] : [found("tool_call_count", null, "$.metrics.tool_call_count")];
});

const result = document("result", (value) => {
  if ((value.status === "error") !== Boolean(value.error)) return invalid("$.error");
  const failed = value.assertions.some((one) => one.status === "fail" && one.severity === "critical");
  return value.status === "error" || value.status === (failed ? "fail" : "pass") ? [] : invalid("$.status");
});

const summary = document("suite-summary", (value) => {
  const count = (status) => value.tests.filter((test) => test.status === status).length;
  const counts = { total: value.tests.length, passed: count("pass"), failed: count("fail"), errors: count("error") };
  const wrong = Object.keys(counts).find((name) => !equal(value[name], counts[name]));
  return wrong ? invalid(`$.${wrong}`) : [];
});

function bundle(file) {
  const value = parse(readFileSync(file));
  const findings = [];
  const find = (code, path) => findings.push(found(code, null, path));
  const missing = (object, path, ...keys) => keys.filter((key) => object[key] == null).forEach((key) => find("missing_field", childPath(path, key)));
  for (const key of ["schema_version", "scenario", "input_messages", "script", "status", "metrics"]) if (!(key in value)) find("missing_field", `$.${key}`);
  const version = typeof value.schema_version === "number" ? String(value.schema_version) : value.schema_version;
  if ("schema_version" in value && (typeof version !== "string" || versionProblem({ schema_version: version }))) find("unknown_version", "$.schema_version");
  const scenario = value.scenario ?? { trigger: "user_message" };
  if (!isObject(scenario)) find("wrong_type", "$.scenario");
  else {
    if (scenario.trigger == null) find("missing_field", "$.scenario.trigger");
    else if (!["user_message", "scheduler"].includes(scenario.trigger)) find("unknown_trigger", "$.scenario.trigger");
    if (scenario.trigger === "scheduler") missing(scenario, "$.scenario", "scheduler_context");
  }
  const steps = ["message_received", "tool_call", "tool_result", "memory_read", "memory_write", "error", "final_output"];
  const required = { tool_call: ["tool", "call_id"], tool_result: ["tool", "call_id", "success"] };
  const calls = new Set();
  if (!Array.isArray(value.script ?? [])) find("wrong_type", "$.script");
  for (const [index, step] of (Array.isArray(value.script) ? value.script : []).entries()) {
    const path = `$.script[${index}]`;
    if (!isObject(step)) find("wrong_type", path);
    else if (step.type == null) find("missing_field", `${path}.type`);
    else if (!steps.includes(step.type)) find("unknown_type", `${path}.type`);
    else {
      missing(step, path, ...(required[step.type] ?? []));
      if (step.type === "tool_call") calls.add(step.call_id);
      else if (["tool_result", "error"].includes(step.type) && typeof step.call_id === "string" && !calls.has(step.call_id)) find("unknown_call", `${path}.call_id`);
    }
  }
  const outputs = value.final_output != null ? [value.final_output] : [value.script ?? []].flat().filter((step) => step?.type === "final_output");
  if (value.status === "success" && !outputs.some((output) => output?.content != null)) find("missing_field", "$.final_output.content");
  if (!isObject(value.metrics ?? {})) find("wrong_type", "$.metrics");
  else if ("metrics" in value && !("timing_ms_total" in value.metrics)) find("missing_field", "$.metrics.timing_ms_total");
  if (!findings.length) {
    const wrong = schemaProblem(SCHEMAS.bundle, { ...value, schema_version: version });
    if (wrong) find("wrong_type", wrong);
    const ids = value.script.map((step, index) => step.event_id ?? `evt-${index + 1}`);
    ids.forEach((id, index) => ids.indexOf(id) < index && find("duplicate_event_id", `$.script[${index}].event_id`));
  }
  return value.adapter === "nanoclaw-replay" ? findings : [...findings, warned("foreign_adapter", null, "$.adapter")];
}

// Actions, verifiable records and packs of them

function walk(schema, value, path = "") {
  const type = { object: isObject(value), array: Array.isArray(value), number: isNumber(value), string: typeof value === "string", boolean: typeof value === "boolean", any: true, enum: typeof value === "string" }[schema.type];
  const below = (key) => (path ? `${path}.${key}` : key);
  if (!type) return [["invalid_type", path]];
  if (schema.type === "object") {
    const known = new Set(schema.fields.map((field) => field.name));
    const fields = schema.fields.flatMap((field) => field.name in value ? walk(field.schema, value[field.name], below(field.name)) : field.required ?? true ? [["missing_field", below(field.name)]] : []);
    return [...fields, ...(schema.extras ? [] : Object.keys(value).filter((key) => !known.has(key)).sort().map((key) => ["unexpected_field", below(key)]))];
  }
  if (schema.type === "array") return [...(value.length < (schema.minimum ?? 0) ? [["array_too_small", path]] : []), ...value.flatMap((item, i) => walk(schema.items, item, `${path}[${i}]`))];
  if (schema.type === "number" && value < (schema.minimum ?? -Infinity)) return [["number_below_minimum", path]];
  if (schema.type === "number" && value > (schema.maximum ?? Infinity)) return [["number_above_maximum", path]];
  return schema.type === "enum" && !schema.values.includes(value) ? [["invalid_enum_value", path]] : [];
}

function inexact(value, path = "") {
  if (Array.isArray(value)) return value.flatMap((item, i) => inexact(item, `${path}[${i}]`));
  if (isObject(value)) return Object.entries(value).flatMap(([key, child]) => inexact(child, path ? `${path}.${key}` : key));
  return typeof value === "bigint" && !isDouble(value) ? [["invalid_type", path]] : [];
}

function actionProblems(value) {
  const output = isObject(value) && isObject(value.output) ? value.output : {};
  const says = (typeof output.content === "string" && output.content) || (Array.isArray(output.tool_calls) && output.tool_calls.length);
  const empty = ["agent_id", "action_id", "occurred_at_unix_ms"].filter((key) => value?.[key] === "").map((key) => ["empty_field", key]);
  return [...walk(SCHEMAS["agent.action.replay.v1"].input_schema, value), ...empty, ...(says ? [] : [["empty_output", "output"]]), ...inexact(value)];
}

const judgeAction = (value, line) => actionProblems(value).map(([code, path]) => found(code, line, path ? `$.${path}` : "$"));

function action(file) {
  const bytes = readFileSync(file);
  if (!file.endsWith(".jsonl")) return judgeAction(parse(bytes, "jcs"), isOneLine(bytes) ? 1 : null);
  return eachLine(bytes, judgeAction);
}

const isOneLine = (bytes) => linesOf(bytes).length === 1;

function eachLine(bytes, judge) {
  return linesOf(bytes).flatMap(([number, text]) => {
    let value;
    try {
      value = parse(text, "jcs");
    } catch (error) {
      return [found("line_unreadable", number, error.path)];
    }
    return judge(value, number);
  });
}

const jcsDigest = (value) => sha256(canonical(value, "jcs")).toString("hex");

function recordDigests(record) {
  const { subject } = record;
  const compute = (make) => {
    try {
      return isObject(subject) ? jcsDigest(make()) : null;
    } catch (error) {
      if (error instanceof Refused) return null;
      throw error;
    }
  };
  const part = (key) => {
    if (key in subject) return subject[key];
    throw new Refused(`no ${key}`);
  };
  return {
    subject_digest: compute(() => subject),
    record_digest: compute(() => ({ vdr_version: "0", profile: record.profile, subject })),
    input_digest: compute(() => ({ model: part("model"), params: subject.params ?? null, input: part("input") })),
    output_digest: compute(() => part("output")),
  };
}

function judgeRecord(record, line = null) {
  const claimed = isObject(record.receipt) ? record.receipt : {};
  const failed = Object.entries(recordDigests(record)).filter(([name, computed]) => computed === null || claimed[name] !== computed).map(([name]) => name);
  const capsule = claimed.capsule_digest ?? record.capsule_digest;
  const checks = [
    ...(record.vdr_version === "0" ? [] : ["version"]),
    ...(record.profile === "ai.agent.action" ? [] : ["profile"]),
    ...(actionProblems(record.subject).length ? ["subject"] : []),
    ...(claimed.alg === "sha-256" ? [] : ["algorithm"]),
    ...failed,
    ...(capsule === undefined || /^[0-9a-f]{64}$/.test(capsule) ? [] : ["capsule_digest"]),
  ].map((name) => found(name, line));
  const isForeign = /^[0-9a-f]{64}$/.test(capsule) && capsule !== jcsDigest(SCHEMAS["agent.action.replay.v1"]);
  return isForeign ? [...checks, warned("capsule_digest", line)] : checks;
}

function pack(file, expected) {
  const bytes = readFileSync(file);
  const records = [];
  const judge = (value, line) => (records.push(value), judgeRecord(value, line));
  const findings = bytes[0] === 0x5b ? parse(bytes, "jcs").flatMap((value) => judge(value, null)) : eachLine(bytes, judge);
  const digests = [...new Set(records.map((record) => recordDigests(record).record_digest))].sort();
  const whole = sha256(digests.map((one) => `${one}\n`).join("")).toString("hex");
  return findings.length || expected.pack === whole ? findings : [found("pack")];
}

// REPLAY.jsonl in both dialects

const DIALECTS = {
  type: { schema: "replay-log", time: "ts", key: "step_id" },
  event: { schema: "replay-log-legacy", time: "t", key: "id" },
};
const KNOWN = new Set(["ReplayHeader", "SessionStart", "PlanStart", "ToolCall", "ToolResult", "StepComplete", "Verification", "SessionEnd"]);

function readLog(file, lenient = true) {
  const log = { events: [], findings: [], cut: null, trajectory: "" };
  for (const [number, text] of linesOf(readFileSync(file))) {
    log.trajectory += `${text.toString("latin1")}\n`;
    try {
      const value = parse(text);
      if (!isObject(value)) throw new Refused("no object", "$");
      log.tag ??= "type" in value ? "type" : "event";
      const { schema } = DIALECTS[log.tag];
      if (value[log.tag] === "ReplayHeader" && typeof value.replay_version === "bigint" && value.replay_version > 1n) log.newer = true;
      const path = schemaProblem(SCHEMAS[schema], value);
      if (path) throw new Refused("breaks the schema", path);
      if (log.cut === null) log.events.push([number, value, value[log.tag]]);
    } catch (error) {
      log.findings.push(found("line_unreadable", number, error.path));
      if (!lenient) log.cut ??= number;
    }
  }
  if (log.newer || !log.tag) throw new Refused("no log of a known version");
  return log;
}

function follow(links, codes) {
  const [waiting, called, findings] = [new Map(), new Set(), []];
  for (const [line, isCall, key] of links) {
    if (isCall) {
      if (called.has(key)) findings.push(found(codes.second, line));
      called.add(key);
      waiting.set(key, line);
    } else if (!waiting.delete(key)) findings.push(found(called.has(key) ? codes.again : codes.alone, line));
  }
  return { findings, unanswered: [...waiting.values()].map((line) => found(codes.open, line, null, codes.severity)) };
}

function replayLog(file, expected) {
  const log = readLog(file, expected.lenient ?? false);
  const { time, key } = DIALECTS[log.tag];
  const findings = [...log.findings];
  const named = (kind) => log.events.filter(([, , name]) => name === kind);
  const form = (name, [line, event]) => isHash(event[name].replace(/^hmac-/, "")) || findings.push(found(name, line));
  const isPublished = log.events.slice(0, 2).some(([, event]) => "seal" in event || "published" in event || event[log.tag] === "SealLeaves");
  let before = null;
  const sessions = new Map();
  for (const [line, event, kind] of log.events.filter(([, , name]) => KNOWN.has(name))) {
    if (event[time] !== undefined) {
      if (before !== null && before - moment(event[time]) > 1000) findings.push(warned("time", line));
      before = moment(event[time]);
    }
    if (event.session_id !== undefined && !sessions.has(event.session_id)) sessions.set(event.session_id, line);
    if (kind === "ToolCall" && event.params !== undefined) digest(event.params) === event.params_hash || findings.push(found("params_hash", line));
    else if (kind === "ToolCall") isPublished || findings.push(found("no_params", line)), form("params_hash", [line, event]);
    else if (kind === "ToolResult") form("output_hash", [line, event]);
    else if (kind === "PlanStart") form("plan_hash", [line, event]);
    else if (kind === "Verification" && event.commands && event.commands.length !== event.exit_codes.length) findings.push(found("exit_codes", line));
  }
  const [first] = log.events;
  if (first && first[2] !== "ReplayHeader") findings.push(found("no_header", first[0]));
  named("ReplayHeader").filter(([line]) => line !== first[0]).forEach(([line]) => findings.push(found("second_header", line)));
  if (!named("SessionStart").length && !log.findings.length && !isPublished) findings.push(found("no_start", first?.[0] ?? 1));
  named("SessionStart").slice(1).forEach(([line]) => findings.push(found("second_start", line)));
  [...sessions.values()].slice(1).forEach((line) => findings.push(found("foreign_event", line)));
  const [end] = named("SessionEnd");
  const behind = end && log.events.find(([line]) => line > end[0]);
  if (behind) findings.push(found("after_end", behind[0]));
  const uses = log.events.filter(([, , kind]) => kind === "ToolCall" || kind === "ToolResult");
  const links = follow(uses.map(([line, event, kind]) => [line, kind === "ToolCall", event[key]]), { second: "second_call", again: "second_result", alone: "result_without_call", open: "no_result", severity: named("SessionEnd").length && !isPublished ? "error" : "warning" });
  findings.push(...links.findings);
  if (log.cut !== null) return [...findings, warned("not_checked", log.cut)];
  findings.push(...links.unanswered);
  if (!end) return [...findings, warned("no_end", log.events.at(-1)?.[0] ?? 1)];
  const latency = named("ToolResult").reduce((sum, [, event]) => sum + Number(event.latency_ms), 0);
  const { total_tool_calls: calls, total_latency_ms: total } = end[1];
  if (calls !== undefined && !equal(calls, named("ToolCall").length)) findings.push(found("total_tool_calls", end[0]));
  if (total !== undefined && Math.abs(Number(total) - latency) > 1e-9 * Math.max(Number(total), latency)) findings.push(found("total_latency_ms", end[0]));
  return findings;
}

// A log beside its receipt, or beside another log

function usesOf(log) {
  const [waiting, uses] = [new Map(), []];
  for (const [line, event, kind] of log.events) {
    const key = event[DIALECTS[log.tag].key];
    if (kind === "ToolCall") waiting.set(key, [line, event]);
    else if (kind === "ToolResult" && waiting.has(key)) {
      const [callLine, call] = waiting.get(key);
      waiting.delete(key);
      uses.push({ ...event, tool: call.tool, params_hash: call.params_hash, id: key, line, callLine });
    }
  }
  return [...uses, ...[...waiting].map(([id, [line, call]]) => ({ tool: call.tool, params_hash: call.params_hash, output_hash: "none", id, line, isOpen: true }))];
}

function match(ours, theirs, keys) {
  const [pairs, left] = [[], [...theirs]];
  let rest = ours;
  for (const key of keys) {
    rest = rest.filter((one) => {
      const place = left.findIndex((other) => canonical(key(other)) === canonical(key(one)));
      if (place >= 0) pairs.push([one, left.splice(place, 1)[0]]);
      return place < 0;
    });
  }
  return { pairs, ours: rest, theirs: left };
}

const BY_CONTENT = [(e) => [e.tool, e.params_hash, e.output_hash], (e) => [e.tool, e.params_hash], (e) => [e.tool]];
const differs = (a, b) => a !== undefined && b !== undefined && !(isNumber(a) && isNumber(b) ? Math.fround(Number(a)) === Math.fround(Number(b)) : canonical(a) === canonical(b));

const tagOf = (effect) => (isObject(effect) ? ["type", "kind", "tag", "effect", "name"].map((name) => effect[name]).find((tag) => typeof tag === "string") ?? canonical(effect) : String(effect));

function entryDiffers(name, ours, theirs) {
  if (ours === undefined || theirs === undefined) return false;
  if (name === "side_effects") return canonical(ours.map(tagOf).sort()) !== canonical(theirs.map(tagOf).sort());
  if (name === "error" && typeof theirs === "string" && ours) return ![ours.name, ours.message, `${ours.name}: ${ours.message}`].includes(theirs);
  return differs(ours, theirs);
}

function withReceipt(file, receiptFile) {
  const [log, claim] = [readLog(file), parse(readFileSync(receiptFile))];
  const isCurrent = "schema" in claim;
  const uses = usesOf(log).filter((use) => !use.isOpen).map((use) => ({ ...use, error: log.tag === "type" ? use.error ?? null : undefined }));
  const { pairs, ours, theirs } = match(uses, (claim.tool_calls ?? []).map((call, place) => ({ ...call, place })), isCurrent ? BY_CONTENT : [(entry) => [entry.id]]);
  const compared = ["tool", "params_hash", "output_hash", "ok", "error", "latency_ms", "step_utility", "side_effects"];
  const [start, end] = ["SessionStart", "SessionEnd"].map((name) => log.events.find(([, , kind]) => kind === name) ?? [null, null]);
  const findings = [];
  const claimed = (isOther, line) => isOther && findings.push(found("receipt_differs", line));
  if (start[1] && start[1].session_id !== claim.session_id) findings.push(found("receipt_session", start[0]));
  if (isCurrent && claim.trajectory_hash !== hash(Buffer.from(log.trajectory, "latin1"))) findings.push(found("trajectory_hash"));
  pairs.forEach(([use, entry]) => claimed(compared.some((name) => entryDiffers(name, use[name], entry[name])), use.line));
  findings.push(...ours.map((use) => found("receipt_lacks", use.line)), ...theirs.map(() => found("log_lacks")));
  const listed = pairs.sort((a, b) => a[1].place - b[1].place).map(([use]) => use);
  const isOrdered = (order) => listed.every((use, i) => !i || listed[i - 1][order] <= use[order]);
  const moved = listed.find((use, i) => i && use.line < listed[i - 1].line);
  if (!isOrdered("line") && !isOrdered("callLine")) findings.push(found("receipt_order", moved.line));
  if (start[1]) claimed(claim.policy_bundle_id !== (start[1].policy_bundle_id ?? start[1].policy_version ?? null), start[0]);
  const late = (text, [line, event], seconds) => {
    const by = text && event?.[DIALECTS[log.tag].time] ? (moment(text) - moment(event[DIALECTS[log.tag].time])) / 1000 : 0;
    claimed(by < -1 || by > seconds, line);
  };
  const ran = log.events.filter(([, , kind]) => kind === "Verification").flatMap(([, e]) => e.commands ? e.commands.map((command, i) => ({ command, exit_code: e.exit_codes[i], delta: i ? 0n : e.verification_delta })) : [{ ...e, delta: e.verification_delta ?? 0n }]);
  if (isCurrent) {
    for (const [name, value] of Object.entries(start[1] ? claim.repo ?? {} : {})) claimed(value !== start[1].repo?.[name], start[0]);
    late(claim.created_at, end, 60);
    if (claim.verification && claim.verification.length !== ran.length) claimed(true, null);
    else (claim.verification ?? []).forEach((one, i) => ["command", "exit_code", "cwd", "duration_ms", "verification_delta"].forEach((name) => claimed(one[name] !== undefined && !equal(one[name], ran[i][name]), null)));
    return findings;
  }
  late(claim.started_at, start, 1);
  late(claim.completed_at, end, 1);
  if (end[1]) claimed(differs(claim.final_confidence, end[1].confidence), end[0]);
  if (log.tag === "event") {
    claimed(claim.issue_number !== undefined && claim.issue_number !== (start[1]?.issue_number ?? null), start[0]);
    const plan = log.events.find(([, , kind]) => kind === "PlanStart")?.[1].plan_hash ?? null;
    claimed(claim.plan_hash !== undefined && claim.plan_hash !== plan, null);
  }
  const checks = claim.verification;
  if (checks) {
    claimed(canonical(checks.commands_run) !== canonical(ran.map((run) => run.command)), null);
    claimed(canonical(checks.exit_codes) !== canonical(ran.map((run) => run.exit_code)), null);
    claimed(!equal(checks.verification_delta, ran.reduce((sum, run) => sum + run.delta, 0n)), null);
  }
  return findings;
}

function withOtherLog(file, other) {
  const { pairs, ours, theirs } = match(usesOf(readLog(file)), usesOf(readLog(other)), BY_CONTENT);
  let latest = 0;
  const findings = [];
  for (const [use, entry] of pairs) {
    const differing = ["tool", "params_hash", "output_hash"].filter((name) => use[name] !== entry[name]);
    if (differing.length) findings.push(found(differing.join() === "output_hash" ? "output_differs" : "call_differs", use.line));
    else if (entry.line < latest) findings.push(warned("call_order", use.line));
    else latest = entry.line;
  }
  return [...findings, ...ours.map((use) => found("call_added", use.line)), ...theirs.map(() => found("call_missing"))];
}

// Capture directories

const blobsIn = (value) => (isObject(value) ? [...(typeof value.$blob === "string" ? [value.$blob] : []), ...Object.values(value).flatMap(blobsIn)] : Array.isArray(value) ? value.flatMap(blobsIn) : []);

function readManifest(file, findings) {
  try {
    const manifest = parse(readFileSync(file));
    const path = schemaProblem(SCHEMAS["capture-manifest"], manifest);
    if (path) throw new Refused("breaks the schema", path);
    if (!/^[^/\\]+$/.test(manifest.eventLogPath)) return null;
    const { manifestHash, ...integrity } = manifest.integrity;
    if (manifestHash !== undefined && manifestHash !== digest({ ...manifest, integrity })) return findings.push(found("manifest_changed")), {};
    const odd = (manifest.volatile ?? []).findIndex((rule) => Object.keys(rule).some((name) => !["path", "mask", "call"].includes(name)));
    if (odd >= 0) throw new Refused("an unknown member", `$.volatile[${odd}]`);
    return manifest;
  } catch (error) {
    findings.push(found("manifest_unreadable", null, error.path));
    return {};
  }
}

function capture(directory) {
  const findings = [];
  if (!existsSync(join(directory, "manifest.json"))) throw new Refused("no capture");
  const manifest = readManifest(join(directory, "manifest.json"), findings);
  if (manifest === null) throw new Refused("a path leads out of the directory");
  const bytes = readFileSync(join(directory, "events.jsonl"));
  const lines = linesOf(bytes);
  const [events, blobs, runs] = [[], new Map(), new Map()];
  for (const [number, text] of lines) {
    try {
      const event = parse(text);
      const path = schemaProblem(SCHEMAS["capture-event"], event);
      if (path) throw new Refused("breaks the schema", path);
      events.push([number, event]);
      blobsIn(event).forEach((name) => blobs.has(name) || blobs.set(name, number));
      const run = `${event.captureId} ${event.runId}`;
      if (!runs.has(run)) runs.set(run, number);
    } catch (error) {
      findings.push(found("event_unreadable", number, error.path));
    }
  }
  events.filter(([number, event]) => !equal(event.seq, number)).forEach(([number]) => findings.push(found("sequence", number)));
  events.forEach(([number, event], i) => i && Number(events[i - 1][1].ts) - Number(event.ts) > 1000 && findings.push(warned("time", number)));
  if (events.length && events[0][1].type !== "run_start") findings.push(found("no_start", events[0][0]));
  events.slice(1).filter(([, event]) => event.type === "run_start").forEach(([number]) => findings.push(found("second_start", number)));
  [...runs.values()].slice(1).forEach((line) => findings.push(found("foreign_event", line)));
  const end = events.find(([, event]) => event.type === "run_end");
  const behind = end && events.find(([number]) => number > end[0]);
  if (behind) findings.push(found("after_end", behind[0]));
  const linked = events.filter(([, event]) => event.data.callId !== undefined && event.type !== "state_mutation");
  const isCall = ({ type, data }) => (type === "nondeterministic" ? data.request !== undefined : type === "tool_call" || type === "llm_request");
  const links = follow(linked.map(([number, event]) => [number, isCall(event), event.data.callId]), { second: "second_call", again: "second_outcome", alone: "outcome_without_call", open: "no_outcome", severity: "warning" });
  findings.push(...links.findings, ...(end ? links.unanswered : []));
  if (manifest.version !== undefined) {
    if (manifest.integrity.eventsHash !== hash(bytes)) findings.push(found("events_changed"));
    if (!equal(manifest.eventCount, lines.length)) findings.push(found("event_count"));
    if (runs.size && !runs.has(`${manifest.captureId} ${manifest.runId}`)) findings.push(found("foreign_manifest"));
    if (manifest.status === "ok" && !end) findings.push(found("no_end"));
    if (manifest.integrity.manifestHash === undefined) findings.push(found("manifest_hash"));
    if ([manifest.error ?? "", ...(manifest.warnings ?? [])].some((told) => told.startsWith("recording failed"))) findings.push(found("recording_failed"));
    if (existsSync(join(directory, "recovered.json")) && manifest.error !== "interrupted") findings.push(found("recovered_mark"));
  }
  const home = join(directory, "blobs", "sha256");
  const entries = existsSync(home) ? readdirSync(home, { withFileTypes: true }) : [];
  const stored = entries.filter((entry) => entry.isDirectory()).flatMap(({ name }) => readdirSync(join(home, name)).map((rest) => `sha256:${name}${rest}`));
  const own = ["manifest.json", "recovered.json", "blobs", "events.jsonl", "parts"];
  const names = readdirSync(directory).filter((name) => !name.startsWith(".tmp-"));
  findings.push(...names.filter((name) => !own.includes(name)).map(() => warned("extra_file")), ...entries.filter((entry) => !entry.isDirectory()).map(() => warned("extra_file")));
  if (names.includes("parts")) findings.push(found("parts_left"));
  for (const [name, line] of blobs) {
    const file = join(home, name.slice(7, 9), name.slice(9));
    if (!existsSync(file)) findings.push(found("blob_missing", line));
    else if (byteHash(file) !== name) findings.push(found("blob_damaged", line));
  }
  return [...findings, ...stored.filter((name) => !blobs.has(name)).map(() => warned("blob_unused"))];
}

function withReplayReceipt(directory, file) {
  const { capture: claimed } = parse(readFileSync(file));
  const bytes = readFileSync(join(directory, "events.jsonl"));
  return [claimed.eventsHash !== hash(bytes), !equal(claimed.eventCount, linesOf(bytes).length)].filter(Boolean).map(() => found("receipt_differs"));
}

// What the payloads of calls stand for: blobs, texts, and members of earlier requests.
function withPayloads(directory, wanted) {
  const events = linesOf(readFileSync(join(directory, "events.jsonl"))).map(([, text]) => parse(text));
  const stored = (name) => parse(readFileSync(join(directory, "blobs", "sha256", name.slice(7, 9), name.slice(9))));
  const resolve = (value, before) => {
    if (Array.isArray(value)) return value.map((item) => resolve(item, before));
    if (!isObject(value)) return value;
    if ("$blob" in value) return resolve(stored(value.$blob), before);
    if ("$json" in value) return resolve(parse(value.$json), before);
    if (!("$ref" in value)) return Object.fromEntries(Object.entries(value).map(([key, child]) => [key, resolve(child, before)]));
    const { call, path, items } = value.$ref;
    const place = events.findIndex((event, i) => i < before && event.type === "llm_request" && event.data.callId === call);
    if (place < 0) throw new Refused("no such call before this one");
    const whole = resolve(path.reduce((inside, key) => inside?.[key], events[place].data.request), place);
    if (whole === undefined || (items !== undefined && whole.length < items)) throw new Refused("not there");
    return items === undefined ? whole : [...whole.slice(0, Number(items)), ...resolve(value.then, before)];
  };
  return events.flatMap(({ data }, index) => ["request", "response"].filter((name) => data.callId in wanted && name in data).flatMap((name) => {
    try {
      const [whole, expected] = [resolve(data[name], index), wanted[data.callId][name]];
      if ((expected === undefined || canonical(expected) === canonical(whole)) && (data.requestHash ?? digest(whole)) === digest(whole)) return [];
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
    }
    return [found("payload", null, `$.${data.callId}.${name}`)];
  }));
}

// Seals, published logs, disclosures

const isBase64 = (text) => /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text);
const leafOf = (commitments) => sha256(Buffer.from([0]), ...commitments);
const commitment = (name, salt, value) => sha256(Buffer.from([2]), Buffer.from(salt, "hex"), canonical([name, value]));
const node = (left, right) => sha256(Buffer.from([1]), left, right);
const half = (count) => 2 ** Math.floor(Math.log2(count - 1));
const rootOf = (leaves) => (leaves.length === 0 ? sha256("") : leaves.length === 1 ? leaves[0] : node(rootOf(leaves.slice(0, half(leaves.length))), rootOf(leaves.slice(half(leaves.length)))));

function rootByPath(leaf, index, count, path) {
  if (index < 0 || index >= count) return null;
  if (count === 1) return path.length ? null : leaf;
  if (!path.length) return null;
  const [split, last] = [half(count), Buffer.from(path.at(-1), "hex")];
  const side = index < split ? rootByPath(leaf, index, split, path.slice(0, -1)) : rootByPath(leaf, index - split, count - split, path.slice(0, -1));
  return side && (index < split ? node(side, last) : node(last, side));
}

function readSeal(file) {
  const envelope = parse(readFileSync(file));
  if (envelope.payloadType !== "application/vnd.reenact.seal+json") throw new Refused("no seal", "$.payloadType");
  if (!envelope.signatures.length) throw new Refused("not signed", "$.signatures");
  if (!isBase64(envelope.payload)) throw new Refused("no base64", "$.payload");
  envelope.signatures.forEach(({ sig }, i) => {
    if (!isBase64(sig)) throw new Refused("no base64", `$.signatures[${i}].sig`);
  });
  const payload = Buffer.from(envelope.payload, "base64");
  const seal = parse(payload);
  const path = schemaProblem(SCHEMAS.seal, seal);
  if (path) throw new Refused("breaks the schema", path);
  return { envelope, payload, seal };
}

function isSigned({ envelope, payload }, keyFile) {
  const key = createPublicKey(readFileSync(keyFile));
  const type = envelope.payloadType;
  const message = Buffer.concat([Buffer.from(`DSSEv1 ${Buffer.byteLength(type)} ${type} ${payload.length} `), payload]);
  return envelope.signatures.some(({ sig }) => Buffer.from(sig, "base64").length === 64 && verifySignature(null, message, key, Buffer.from(sig, "base64")));
}

function seal(file) {
  try {
    readSeal(file);
    return [];
  } catch (error) {
    return invalid(error.path);
  }
}

const disclosure = document("disclosure", (value) => (("leaf" in value) === ("fields" in value) ? invalid("$") : []));

function withSeal(file, sealFile, keyFile, findings) {
  const signed = readSeal(sealFile);
  if (!isSigned(signed, keyFile)) return [...findings, found("seal_signature")];
  const sealed = signed.seal;
  if (file === sealFile || findings.some(({ code }) => code === "invalid")) return findings;
  if (statSync(file).isDirectory()) return [...findings, ...sealedCapture(file, sealed.capture)];
  if (file.endsWith(".json")) return [...findings, ...sealedDisclosure(parse(readFileSync(file)), sealed)];
  const values = linesOf(readFileSync(file)).map(([number, text]) => [number, parse(text)]);
  if (values.slice(0, 2).some(([, value]) => "seal" in value || Object.values(value).includes("SealLeaves"))) return publishedLog(values, sealed, findings);
  if (sealed.log.trajectoryHash === undefined) return [...findings, found("seal_foreign")];
  return sealed.log.trajectoryHash === hash(Buffer.from(readLog(file).trajectory, "latin1")) ? findings : [...findings, found("seal_log")];
}

function sealedCapture(directory, sealed) {
  const manifest = join(directory, "manifest.json");
  if (!sealed || parse(readFileSync(manifest)).runId !== sealed.runId) return [found("seal_foreign")];
  return [
    ...(byteHash(manifest) === sealed.manifestHash ? [] : [found("seal_manifest")]),
    ...(byteHash(join(directory, "events.jsonl")) === sealed.eventsHash ? [] : [found("seal_events")]),
  ];
}

function sealedDisclosure(value, sealed) {
  const tree = value.tree === "events" ? sealed.capture?.events : sealed.log.lines;
  if (!tree) return [found("seal_foreign")];
  const leaf = value.leaf ? Buffer.from(value.leaf, "hex") : leafOf(value.fields.map((entry) => (typeof entry === "string" ? Buffer.from(entry, "hex") : commitment(entry[0], entry[1], entry[2]))));
  const root = rootByPath(leaf, Number(value.position) - 1, Number(tree.count), value.path);
  return root?.toString("hex") === tree.root ? [] : [found("seal_disclosure")];
}

const fieldsOf = (value, path = "$") => Object.entries(value).flatMap(([key, child]) => (isObject(child) && Object.keys(child).length ? fieldsOf(child, childPath(path, key)) : [[childPath(path, key), child]]));

function publishedLog(values, sealed, findings) {
  const tag = { current: "type", legacy: "event" }[sealed.log.dialect];
  const listed = values.filter(([, value]) => value[tag] === "SealLeaves" && Object.keys(value).length === 3);
  const block = Buffer.concat(listed.map(([, value]) => Buffer.from(value.leaves, "base64")));
  const leaves = Array.from({ length: block.length / 32 }, (_, i) => block.subarray(32 * i, 32 * i + 32));
  const misplaced = listed.find(([line], i) => (i ? line !== listed[i - 1][0] + 1 : line > 2));
  if (misplaced) return [...findings, found("seal_leaves", misplaced[0])];
  if (!leaves.length || rootOf(leaves).toString("hex") !== sealed.log.lines.root) return [...findings, found("seal_leaves")];
  const [seen, places, own] = [new Set(), new Map(leaves.map((leaf, i) => [leaf.toString("hex"), i + 1])), []];
  let [last, isWithheld] = [0, false];
  for (const [line, value] of values.filter((one) => !listed.includes(one))) {
    const { seal: proof, ...shown } = value;
    if (!proof) { own.push(found("seal_proof", line, "$")); continue; }
    const isHidden = proof.fields === undefined;
    if (isHidden && canonical(shown) !== canonical({ [tag]: "Withheld" })) { own.push(found("seal_proof", line, "$.seal")); continue; }
    const fields = new Map(fieldsOf(shown));
    const opened = (proof.fields ?? []).filter(Array.isArray).map(([name]) => name.replace(/^(open|private|paranoid):/, ""));
    if (!isHidden) own.push(...[...fields.keys()].filter((name) => !opened.includes(name)).map((name) => found("seal_unproven", line, name)));
    const leaf = isHidden ? proof.leaf : leafOf(proof.fields.map((entry) => (Array.isArray(entry) ? commitment(entry[0], entry[1], fields.get(entry[0].replace(/^(open|private|paranoid):/, ""))) : Buffer.from(entry, "hex")))).toString("hex");
    const position = places.get(leaf);
    if (position === undefined) own.push(found("seal_line", line));
    else if (!equal(proof.at, position)) own.push(found("seal_proof", line, "$.seal.at"));
    else {
      if (seen.has(position)) own.push(found("seal_repeated", line));
      else if (position < last) own.push(found("seal_order", line));
      seen.add(position);
      last = Math.max(last, position);
      isWithheld ||= isHidden;
    }
  }
  for (let position = 1; position <= leaves.length; position++) if (!seen.has(position) && (position === 1 || seen.has(position - 1))) own.push(found("seal_missing"));
  const ofWhole = ["result_without_call", "no_result", "total_tool_calls", "total_latency_ms", "no_end"];
  return [...findings.map((one) => (isWithheld && ofWhole.includes(one.code) ? { ...one, severity: "warning" } : one)), ...own];
}

// Test cases and policies, in YAML

const nearest = (lines, path) => {
  for (; ; path = path.replace(/(\.[^.[\]]+|\[[^[\]]*\])$/, "")) if (lines.has(path)) return lines.get(path);
};

const SOURCES = ["replay_file", "capture", "replay_log", "command"];
const LISTS = { "": ["tags"], tools: ["available"], expected: ["failure_categories"], reporting: ["redact_fields"] };

function withLists(value, names) {
  const listed = (one) => (one === null || Array.isArray(one) || isObject(one) ? one : [one]);
  return Object.assign(Object.create(null), value, Object.fromEntries(names.filter((name) => name in value).map((name) => [name, listed(value[name])])));
}

function testCase(file) {
  const { value: written, lines } = parseYaml(readFileSync(file));
  const value = withLists(written, LISTS[""]);
  for (const name of ["tools", "expected", "reporting"]) if (isObject(value[name])) value[name] = withLists(value[name], LISTS[name]);
  if (Array.isArray(value.assertions)) value.assertions = value.assertions.map((one) => (isObject(one) ? withLists(one, ["requires_capabilities"]) : one));
  if (typeof value.schema_version === "number") value.schema_version = String(value.schema_version);
  const findings = [];
  const find = (code, path, severity) => findings.push(found(code, nearest(lines, path), path, severity));
  const { $defs } = SCHEMAS["test-case"];
  const closed = { $: "TestCase", "$.scenario": "CaseScenario", "$.tools": "Tools", "$.adapter_input": "AdapterInput", "$.expected": "Expected", "$.reporting": "Reporting" };
  (Array.isArray(value.assertions) ? value.assertions : []).forEach((_, i) => (closed[`$.assertions[${i}]`] = "Assertion"));
  const at = (path) => path.split(/[.[\]]+/).slice(1).filter(Boolean).reduce((inside, key) => inside?.[key], value);
  for (const [path, name] of Object.entries(closed)) {
    const inside = at(path);
    if (!isObject(inside)) continue;
    for (const key of Object.keys(inside)) {
      const below = childPath(path, key);
      if (!(key in $defs[name].properties)) find("unknown_key", below, "warning");
      else if (!(below in closed && isObject(inside[key])) && below !== "$.assertions") {
        const wrong = schemaProblem($defs[name].properties[key], inside[key], below, $defs);
        if (wrong) find("wrong_type", wrong);
      }
    }
    $defs[name].required.filter((key) => !(key in inside)).forEach((key) => find("missing_field", childPath(path, key)));
  }
  if (versionProblem(value)) find("unknown_version", "$.schema_version");
  const given = SOURCES.filter((key) => isObject(value.adapter_input) && key in value.adapter_input).join();
  if (isObject(value.adapter_input) && !SOURCES.includes(given) && given !== "capture,command") find("ambiguous_source", "$.adapter_input");
  if (value.mode === "live") find("live_mode", "$.mode", "warning");
  if (Array.isArray(value.assertions) && !value.assertions.length) find("no_assertions", "$.assertions");
  const ids = Array.isArray(value.assertions) ? value.assertions.map((one) => one?.id) : [];
  ids.forEach((id, i) => typeof id === "string" && ids.indexOf(id) < i && find("duplicate_id", `$.assertions[${i}].id`, "warning"));
  return findings;
}

function policyProblem(value) {
  if (!equal(value.schema_version, 1n)) return "$.schema_version";
  const path = schemaProblem(SCHEMAS.policy, value);
  if (path) return path;
  for (const [index, rule] of value.rules.entries()) {
    if (value.rules.findIndex(({ id }) => id === rule.id) < index) return `$.rules[${index}].id`;
    for (const [name, condition] of Object.entries(rule.arguments ?? {})) {
      const below = childPath(`$.rules[${index}].arguments`, name);
      if (!Object.keys(condition).length) return below;
      if (condition.matches !== undefined && !isLinear(condition.matches)) return `${below}.matches`;
    }
  }
  return null;
}

function isLinear(pattern) { // RE2 has neither look-around nor back-references
  try {
    new RegExp(pattern, "u");
    return !/\(\?<?[=!]|\\[1-9]|\\k</.test(pattern);
  } catch {
    return false;
  }
}

function policy(file) {
  const { value, lines } = parseYaml(readFileSync(file));
  const path = policyProblem(value);
  return path ? invalid(path, nearest(lines, path)) : [];
}

const STRICTEST = ["deny", "review", "allow"];
const like = (globs, name) => (globs ?? []).some((glob) => new RegExp(`^(?:${glob.replace(/[.+^${}()|\\]/g, "\\$&").replace(/\*/g, ".*").replace(/\?/g, ".")})$`, "su").test(name));
const leaves = (value) => (isObject(value) ? Object.values(value).flatMap(leaves) : Array.isArray(value) ? value.flatMap(leaves) : [value]);

function named(value, name) {
  if (Array.isArray(value)) return value.flatMap((item) => named(item, name));
  if (!isObject(value)) return [undefined]; // of which nothing can be told
  const [first, ...rest] = name.split(".");
  return [...(name in value ? leaves(value[name]) : []), ...(rest.length && first in value ? named(value[first], rest.join(".")) : [])];
}

const TESTS = {
  equals: (leaf, wanted) => (leaf === undefined ? null : equal(leaf, wanted)),
  one_of: (leaf, wanted) => (leaf === undefined ? null : wanted.some((one) => equal(leaf, one))),
  matches: (leaf, wanted) => (leaf === undefined ? null : new RegExp(wanted, "u").test(typeof leaf === "string" ? leaf : canonical(leaf))),
  at_least: (leaf, wanted) => (isNumber(leaf) ? leaf >= wanted : null),
  at_most: (leaf, wanted) => (isNumber(leaf) ? leaf <= wanted : null),
  above: (leaf, wanted) => (isNumber(leaf) ? leaf > wanted : null),
  below: (leaf, wanted) => (isNumber(leaf) ? leaf < wanted : null),
};

function applies(rule, { name, arguments: given }) {
  if (!like(rule.tools, name)) return false;
  return Object.entries(rule.arguments ?? {}).every(([argument, condition]) => {
    const answers = (argument === "*" ? leaves(given) : named(given, argument)).map((leaf) => {
      const told = Object.entries(condition).map(([word, wanted]) => TESTS[word](leaf, wanted));
      return told.includes(false) ? false : told.includes(null) ? null : true;
    });
    return rule.verdict === "allow" ? answers.length > 0 && answers.every((answer) => answer === true) : answers.some((answer) => answer !== false);
  });
}

function callOf(call) {
  if (!isObject(call)) return null;
  if ("function" in call) return "name" in call || !isObject(call.function) || "function" in call.function ? null : callOf(call.function);
  const given = ["arguments", "args", "input"].filter((key) => key in call);
  if (typeof call.name !== "string" || given.length > 1) return null;
  const raw = given.length ? call[given[0]] : {};
  return { name: call.name, arguments: typeof raw === "string" ? parse(raw || "{}") : raw };
}

function decide(file, value) {
  const fallback = [file.default ?? "deny", "default"];
  const written = (call) => {
    const readable = callOf(call);
    if (!readable) return ["deny", "tool call"];
    const rules = STRICTEST.flatMap((verdict) => file.rules.filter((rule) => rule.verdict === verdict));
    const rule = rules.find((one) => applies(one, readable));
    return rule ? [rule.verdict, rule.id] : fallback;
  };
  if (isObject(value) && ("name" in value || "function" in value)) return written(value);
  if (actionProblems(value).length) return ["deny", "action"];
  const { output, model } = value;
  const decisions = (output.tool_calls ?? []).map(written);
  const used = { tool_calls: (output.tool_calls ?? []).length, input_tokens: output.usage?.input_tokens, output_tokens: output.usage?.output_tokens };
  for (const [name, amount] of Object.entries(used)) {
    if (file.budgets?.[name] !== undefined && (amount === undefined || amount > file.budgets[name])) decisions.push([file.budgets.beyond ?? "deny", `budgets.${name}`]);
  }
  const full = [model.provider, model.name, model.version].filter((part) => part !== undefined).join("/");
  const list = file.models && STRICTEST.find((verdict) => like(file.models[verdict], full));
  if (file.models) decisions.push(list ? [list, `models.${list}`] : fallback);
  return STRICTEST.map((verdict) => decisions.find(([one]) => one === verdict)).find(Boolean) ?? ["allow", "no tool call"];
}

// The kit

const READERS = { "RECEIPT.json": receipt, "receipt.json": replayReceipt, "replay.json": bundle, "trace.json": trace, "result.json": result, "summary.json": summary, "action.json": action, "actions.jsonl": action,
  "record.json": (file) => judgeRecord(parse(readFileSync(file), "jcs")), "pack.json": pack, "pack.jsonl": pack, "REPLAY.jsonl": replayLog, "PUBLISHED.jsonl": replayLog, capture, "SEAL.json": seal, "DISCLOSURE.json": disclosure, "test.yaml": testCase, "policy.yaml": policy };

// What a case shows, or null where the artifact cannot be read at all.
function verifyCase(folder, expected) {
  const file = join(folder, expected.artifact);
  const beside = (name) => expected[name] && join(folder, expected[name]);
  try {
    let findings = READERS[expected.artifact](file, expected);
    if (beside("receipt")) findings = [...findings, ...(expected.artifact === "capture" ? withReplayReceipt : withReceipt)(file, beside("receipt"))];
    if (beside("key")) findings = withSeal(file, beside("seal") ?? file, beside("key"), findings);
    if (beside("resolved")) findings = [...findings, ...withPayloads(file, parse(readFileSync(beside("resolved"))))];
    if (beside("against")) findings = [...findings, ...withOtherLog(file, beside("against"))];
    return findings;
  } catch (error) {
    if (error instanceof Refused) return null;
    throw error;
  }
}

const told = (findings) => findings && findings.map(({ code, line, path, severity }) => `${severity} ${code} ${line} ${path}`).sort().join("\n");

function* failures() {
  for (const format of readdirSync(KIT)) {
    for (const name of statSync(join(KIT, format)).isDirectory() ? readdirSync(join(KIT, format)) : []) {
      const folder = join(KIT, format, name);
      if (!existsSync(join(folder, "expected.json"))) continue;
      const expected = JSON.parse(readFileSync(join(folder, "expected.json")));
      const [ours, wanted] = [told(verifyCase(folder, expected)), expected.exit === 2 ? null : told(expected.findings)];
      yield [`${format}/${name}`, ours === wanted || `expected\n${wanted}\nfound\n${ours}`];
    }
  }
  for (const profile of ["replay", "jcs"]) {
    for (const vector of parse(readFileSync(join(KIT, "canonical-json", `${profile}.json`)))) {
      let text = null;
      try {
        text = canonical(parse(vector.json, profile), profile);
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
      }
      yield [`canonical-json/${profile}: ${vector.about}`, text === vector.canonical || `expected ${vector.canonical}, found ${text}`];
    }
  }
  for (const { about, bundle: made, started_at: started, trace: wanted } of parse(readFileSync(join(KIT, "bundle-trace", "traces.json")))) {
    const ours = normalize(made, started);
    const wrong = Object.keys(wanted).find((name) => canonical(ours[name]) !== canonical(wanted[name]));
    yield [`bundle-trace: ${about}`, !wrong || `${wrong}: expected ${canonical(wanted[wrong])}, found ${canonical(ours[wrong])}`];
  }
  const { bundles, judgements, started_at: started } = parse(readFileSync(join(KIT, "judgement", "judgements.json")));
  for (const { type, run, params, status, event_refs } of judgements) {
    const ours = judge(type, params, normalize(bundles[run], started));
    if (ours) yield [`judgement: ${type} of ${run}`, canonical(ours) === canonical({ status, event_refs }) || `expected ${status} ${event_refs}, found ${ours.status} ${ours.event_refs}`];
  }
  for (const { about, policy: file, value, verdict, rule } of parse(readFileSync(join(KIT, "policy-decision", "decisions.json")))) {
    const ours = policyProblem(file) ?? decide(file, value).join();
    yield [`policy-decision: ${about}`, ours === `${verdict},${rule}` || `expected ${verdict},${rule}, found ${ours}`];
  }
}

let [count, failed] = [0, 0];
for (const [name, good] of failures()) {
  count++;
  if (good === true) continue;
  failed++;
  console.log(`${name}: ${good}`);
}
console.log(`${count} cases, ${failed} failed`);
process.exitCode = failed || !count ? 1 : 0;

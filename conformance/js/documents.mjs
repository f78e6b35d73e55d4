// Documents of one JSON value, and logs and captures beside their receipts.
import { existsSync, readFileSync, readdirSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { Refused, canonical, digest, hash, isHash, linesOf, parse } from "./json.mjs";
import { schemas } from "./kit.mjs";
import { childPath, equal, isNumber, isObject, schemaProblem, unknownMembers } from "./schema.mjs";
import { DIALECTS, found, moment, readLog, warned } from "./verify.mjs";

export const invalid = (path, line = null) => [found("invalid", line, path)];

export function document(schema, rules = () => []) {
  return (file) => {
    const value = parse(readFileSync(file));
    const path =
      versionProblem(value) ?? schemaProblem(schemas[typeof schema === "string" ? schema : schema(value)], value);
    return path ? invalid(path) : rules(value);
  };
}

// A bundle, case, trace, result or summary of version 0; a policy's version is a number and its schema's matter.
export function versionProblem(value) {
  const version = value?.schema_version;
  return typeof version === "string" && !/^0+\.\d+$/.test(version) ? "$.schema_version" : null;
}

const hashForms = (record, names, path) =>
  names
    .filter((name) => typeof record[name] === "string" && !isHash(record[name]))
    .map((name) => found(name, null, childPath(path, name)));

export const unknown = (schema, value) =>
  unknownMembers(schemas[schema], value).map((path) => warned("unknown_member", null, path));

const shapeOf = (claim) => ("schema" in claim ? "receipt" : "receipt-legacy");

export const receipt = document(
  shapeOf,
  (value) => {
    const checked = value.verification;
    return [
      ...hashForms(value, ["trajectory_hash", "plan_hash"], "$"),
      ...(value.tool_calls ?? []).flatMap((call, i) =>
        hashForms(call, ["params_hash", "output_hash"], `$.tool_calls[${i}]`),
      ),
      ...(isObject(checked) && checked.commands_run.length !== checked.exit_codes.length
        ? [found("exit_codes", null, "$.verification.exit_codes")]
        : []),
      ...unknown(shapeOf(value), value),
    ];
  },
);

export const replayReceipt = document("replay-receipt", (value) => {
  const proved = value.divergences.length || value.liveCallsRefused.length ? "diverged" : "reproduced";
  return [
    ...hashForms(value.capture, ["eventsHash"], "$.capture"),
    ...hashForms(value.fingerprint, ["code", "packages"], "$.fingerprint"),
    ...hashForms(value, ["finalOutputHash"], "$"),
    ...unknown("replay-receipt", value),
    ...(value.verdict === proved ? [] : [found("verdict", null, "$.verdict")]),
  ];
});

export const trace = document("trace", (value) => {
  const seen = new Set();
  for (const [index, event] of value.events.entries()) {
    const path = `$.events[${index}]`;
    if (event.seq !== BigInt(index + 1)) return invalid(`${path}.seq`);
    if (seen.has(event.event_id)) return invalid(`${path}.event_id`);
    if (event.parent_event_id !== null && !seen.has(event.parent_event_id)) return invalid(`${path}.parent_event_id`);
    seen.add(event.event_id);
  }
  const calls = value.events.filter((event) => event.type === "tool_call").length;
  return equal(value.metrics.tool_call_count, calls)
    ? []
    : [found("tool_call_count", null, "$.metrics.tool_call_count")];
});

export const result = document("result", (value) => {
  if ((value.status === "error") !== Boolean(value.error)) return invalid("$.error");
  const failed = value.assertions.some((one) => one.status === "fail" && one.severity === "critical");
  return value.status === "error" || value.status === (failed ? "fail" : "pass") ? [] : invalid("$.status");
});

export const summary = document("suite-summary", (value) => {
  const count = (status) => value.tests.filter((test) => test.status === status).length;
  const counts = { total: value.tests.length, passed: count("pass"), failed: count("fail"), errors: count("error") };
  const wrong = Object.keys(counts).find((name) => !equal(value[name], counts[name]));
  return wrong ? invalid(`$.${wrong}`) : [];
});

// The normal distribution has 95 % of its weight between minus and plus this.
const Z = 1.959963984540054;

function rate(count, total) {
  if (!total) return { count: 0, total: 0, low: 0, high: 1 };
  const share = count / total;
  const spread = (Z * Z) / total;
  const middle = (share + spread / 2) / (1 + spread);
  const half = (Z / (1 + spread)) * Math.sqrt((share * (1 - share)) / total + spread / total / 4);
  const low = count === 0 ? 0 : Math.max(0, middle - half);
  return { count, total, low, high: count === total ? 1 : Math.min(1, middle + half) };
}

const rateFigures = (path, stated, count, total) =>
  Object.entries(rate(count, total)).map(([name, follows]) => [`${path}.${name}`, stated[name], follows]);

// Figures are compared as numbers, however they are written.
function falseFigure(figures) {
  const wrong = figures.find(([, stated, follows]) => !(Math.abs(Number(stated) - follows) <= 1e-9));
  return wrong ? invalid(wrong[0]) : [];
}

const add = (numbers) => numbers.reduce((total, number) => total + number, 0);
const mean = (numbers) => (numbers.length ? add(numbers) / numbers.length : 0);

// Bonett and Price: Wald's interval after one run was added for each direction.
function intervalOf(gains) {
  if (!gains.length) return [-1, 1];
  const seen = [...gains, 1, -1];
  const middle = mean(seen);
  const half = Z * Math.sqrt(mean(seen.map((gain) => (gain - middle) ** 2)) / seen.length);
  return [Math.max(-1, middle - half), Math.min(1, middle + half)];
}

// If nothing changed, the recorded outcome of a run is any of all that it had.
function pValue(pairs) {
  const chances = pairs.map((pair) => (Number(pair.recorded) + pair.passed) / (pair.samples + 1));
  const weights = chances
    .filter((chance) => chance > 0 && chance < 1)
    .reduce((before, chance) => [...before, 0].map((weight, i) => weight * (1 - chance) + (before[i - 1] ?? 0) * chance), [1]);
  const seen = pairs.filter((pair) => pair.recorded).length - chances.filter((chance) => chance === 1).length;
  return Math.min(1, 2 * Math.min(add(weights.slice(0, seen + 1)), add(weights.slice(seen))));
}

// By k: how likely a run passes k times out of k.
function passPower(pairs) {
  const most = pairs.length ? Math.min(...pairs.map((pair) => pair.samples)) : 0;
  const choose = (n, k) => (k > n ? 0 : Array.from({ length: k }, (_, i) => (n - i) / (i + 1)).reduce((a, b) => a * b, 1));
  const ks = Array.from({ length: most }, (_, i) => i + 1);
  return ks.map((k) => mean(pairs.map((pair) => choose(pair.passed, k) / choose(pair.samples, k))));
}

export const shadow = document("shadow", (value) => {
  const counted = value.runs.filter((run) => !run.setApart);
  const passed = (outcome) => outcome.passed ?? true;
  const unmade = value.runs.findIndex((run) => !run.setApart && !run.candidates?.length);
  if (unmade >= 0) return invalid(`$.runs[${unmade}].candidates`);
  const pairs = counted.map((run) => {
    const candidates = run.candidates;
    return { recorded: passed(run.recorded), passed: candidates.filter(passed).length, samples: candidates.length };
  });
  const sum = (number) => pairs.reduce((total, pair) => total + number(pair), 0);
  const gains = pairs.map((pair) => pair.passed / pair.samples - Number(pair.recorded));
  const [low, high] = intervalOf(gains);
  const power = passPower(pairs);
  const stated = value.comparison;
  const path = "$.comparison";
  return falseFigure([
    ["$.setApart", value.setApart, value.runs.length - counted.length],
    ...["same", "words", "tools", "failed"].map((name) => [
      `$.counts.${name}`,
      value.counts[name] ?? -1,
      counted.filter((run) => (run.difference ?? "same") === name).length,
    ]),
    [`${path}.runs`, stated.runs, pairs.length],
    ...rateFigures(`${path}.recorded`, stated.recorded, sum((pair) => Number(pair.recorded)), pairs.length),
    ...rateFigures(`${path}.candidate`, stated.candidate, sum((pair) => pair.passed), sum((pair) => pair.samples)),
    [`${path}.difference`, stated.difference, mean(gains)],
    [`${path}.low`, stated.low, low],
    [`${path}.high`, stated.high, high],
    [`${path}.better`, stated.better, gains.filter((gain) => gain > 0).length],
    [`${path}.worse`, stated.worse, gains.filter((gain) => gain < 0).length],
    [`${path}.pValue`, stated.pValue, pValue(pairs)],
    ["$.passPower", Object.keys(value.passPower).length, power.length],
    ...power.map((chance, index) => [`$.passPower.${index + 1}`, value.passPower[index + 1] ?? -1, chance]),
  ]);
});

export const shadowSteps = document("shadow-steps", (value) => {
  const answered = value.steps.filter((step) => !step.problem);
  const same = { tools: "sameTools", arguments: "sameArguments", words: "sameWords" };
  return falseFigure([
    ["$.failed", value.failed, value.steps.length - answered.length],
    ...Object.entries(same).flatMap(([name, member]) =>
      rateFigures(`$.${name}`, value[name], answered.filter((step) => step[member]).length, answered.length),
    ),
  ]);
});

export function bundle(file) {
  const value = parse(readFileSync(file));
  const findings = [];
  const find = (code, path) => findings.push(found(code, null, path));
  const missing = (object, path, ...keys) =>
    keys.filter((key) => object[key] == null).forEach((key) => find("missing_field", childPath(path, key)));
  for (const key of ["schema_version", "scenario", "input_messages", "script", "status", "metrics"])
    if (!(key in value)) find("missing_field", `$.${key}`);
  const version = typeof value.schema_version === "number" ? String(value.schema_version) : value.schema_version;
  if ("schema_version" in value && (typeof version !== "string" || versionProblem({ schema_version: version })))
    find("unknown_version", "$.schema_version");
  const scenario = value.scenario ?? { trigger: "user_message" };
  if (!isObject(scenario)) find("wrong_type", "$.scenario");
  else {
    if (scenario.trigger == null) find("missing_field", "$.scenario.trigger");
    else if (!["user_message", "scheduler"].includes(scenario.trigger)) find("unknown_trigger", "$.scenario.trigger");
    if (scenario.trigger === "scheduler") missing(scenario, "$.scenario", "scheduler_context");
  }
  const steps = [
    "message_received",
    "tool_call",
    "tool_result",
    "memory_read",
    "memory_write",
    "error",
    "final_output",
  ];
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
      else if (
        ["tool_result", "error"].includes(step.type) &&
        typeof step.call_id === "string" &&
        !calls.has(step.call_id)
      )
        find("unknown_call", `${path}.call_id`);
    }
  }
  const outputs =
    value.final_output != null
      ? [value.final_output]
      : [value.script ?? []].flat().filter((step) => step?.type === "final_output");
  if (value.status === "success" && !outputs.some((output) => output?.content != null))
    find("missing_field", "$.final_output.content");
  if (!isObject(value.metrics ?? {})) find("wrong_type", "$.metrics");
  else if ("metrics" in value && !("timing_ms_total" in value.metrics))
    find("missing_field", "$.metrics.timing_ms_total");
  if (!findings.length) {
    const wrong = schemaProblem(schemas.bundle, { ...value, schema_version: version });
    if (wrong) find("wrong_type", wrong);
    const ids = value.script.map((step, index) => step.event_id ?? `evt-${index + 1}`);
    ids.forEach((id, index) => ids.indexOf(id) < index && find("duplicate_event_id", `$.script[${index}].event_id`));
  }
  return value.adapter === "nanoclaw-replay" ? findings : [...findings, warned("foreign_adapter", null, "$.adapter")];
}

// A log beside its receipt, or beside another log

function usesOf(log) {
  const [waiting, uses] = [new Map(), []];
  for (const { line, event, kind } of log.events) {
    const key = event[DIALECTS[log.tag].id];
    if (kind === "ToolCall") waiting.set(key, [line, event]);
    else if (kind === "ToolResult" && waiting.has(key)) {
      const [callLine, call] = waiting.get(key);
      waiting.delete(key);
      uses.push({ ...event, tool: call.tool, params_hash: call.params_hash, id: key, line, callLine });
    }
  }
  return [
    ...uses,
    ...[...waiting].map(([id, [line, call]]) => ({
      tool: call.tool,
      params_hash: call.params_hash,
      output_hash: "none",
      id,
      line,
      isOpen: true,
    })),
  ];
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
const differs = (a, b) =>
  a !== undefined &&
  b !== undefined &&
  !(isNumber(a) && isNumber(b) ? Math.fround(Number(a)) === Math.fround(Number(b)) : canonical(a) === canonical(b));

const tagOf = (effect) =>
  isObject(effect)
    ? (["type", "kind", "tag", "effect", "name"].map((name) => effect[name]).find((tag) => typeof tag === "string") ??
      canonical(effect))
    : String(effect);

function entryDiffers(name, ours, theirs) {
  if (ours === undefined || theirs === undefined) return false;
  if (name === "side_effects") return canonical(ours.map(tagOf)) !== canonical(theirs.map(tagOf));
  if (name === "error" && typeof theirs === "string" && ours)
    return ![ours.name, ours.message, `${ours.name}: ${ours.message}`].includes(theirs);
  if (name === "error" && isObject(ours) && isObject(theirs))
    return Object.keys(theirs).some((member) => theirs[member] !== ours[member]);
  return differs(ours, theirs);
}

export function withReceipt(file, receiptFile) {
  const [log, claim] = [readLog(file, schemas), parse(readFileSync(receiptFile))];
  const isCurrent = "schema" in claim;
  const uses = usesOf(log)
    .filter((use) => !use.isOpen)
    .map((use) => ({ ...use, error: log.tag === "type" ? (use.error ?? null) : undefined }));
  const { pairs, ours, theirs } = match(
    claim.tool_calls ? uses : [],
    (claim.tool_calls ?? []).map((call, place) => ({ ...call, place })),
    isCurrent ? BY_CONTENT : [(entry) => [entry.id]],
  );
  const compared = ["tool", "params_hash", "output_hash", "ok", "error", "latency_ms", "step_utility", "side_effects"];
  const of = (name) => log.events.filter(({ kind }) => kind === name);
  const [start, end] = ["SessionStart", "SessionEnd"].map((name) => [of(name)[0]?.line ?? null, of(name)[0]?.event]);
  const findings = unknown(shapeOf(claim), claim);
  const claimed = (isOther, line) => isOther && findings.push(found("receipt_differs", line));
  if (start[1] && start[1].session_id !== claim.session_id) findings.push(found("receipt_session", start[0]));
  if (isCurrent && claim.trajectory_hash !== hash(Buffer.from(log.trajectory, "latin1")))
    findings.push(found("trajectory_hash"));
  pairs.forEach(([use, entry]) =>
    claimed(
      compared.some((name) => entryDiffers(name, use[name], entry[name])),
      use.line,
    ),
  );
  findings.push(...ours.map((use) => found("receipt_lacks", use.line)), ...theirs.map(() => found("log_lacks")));
  const listed = pairs.sort((a, b) => a[1].place - b[1].place).map(([use]) => use);
  const isOrdered = (order) => listed.every((use, i) => !i || listed[i - 1][order] <= use[order]);
  const moved = listed.find((use, i) => i && use.line < listed[i - 1].line);
  if (!isOrdered("line") && !isOrdered("callLine")) findings.push(found("receipt_order", moved.line));
  if (start[1])
    claimed(claim.policy_bundle_id !== (start[1].policy_bundle_id ?? start[1].policy_version ?? null), start[0]);
  const late = (text, [line, event], seconds) => {
    const by =
      text && event?.[DIALECTS[log.tag].time] ? (moment(text) - moment(event[DIALECTS[log.tag].time])) / 1000 : 0;
    claimed(by < -1 || by > seconds, line);
  };
  const ran = of("Verification").flatMap(({ event: e }) => {
    if (!e.commands) return [{ ...e, delta: e.verification_delta ?? 0n }];
    return e.commands.map((command, i) => ({
      command,
      exit_code: e.exit_codes[i],
      delta: i ? 0n : e.verification_delta,
    }));
  });
  if (isCurrent) {
    for (const [name, value] of Object.entries(start[1] ? (claim.repo ?? {}) : {}))
      claimed(value !== start[1].repo?.[name], start[0]);
    late(claim.created_at, end, 60);
    if (claim.verification && claim.verification.length !== ran.length) claimed(true, null);
    else
      (claim.verification ?? []).forEach((one, i) =>
        ["command", "exit_code", "cwd", "duration_ms", "verification_delta"].forEach((name) =>
          claimed(one[name] !== undefined && !equal(one[name], ran[i][name]), null),
        ),
      );
    return findings;
  }
  late(claim.started_at, start, 1);
  late(claim.completed_at, end, 1);
  if (end[1]) claimed(differs(claim.final_confidence, end[1].confidence), end[0]);
  if (log.tag === "event") {
    claimed(claim.issue_number !== undefined && claim.issue_number !== (start[1]?.issue_number ?? null), start[0]);
    const plan = of("PlanStart")[0]?.event.plan_hash ?? null;
    claimed(claim.plan_hash !== undefined && claim.plan_hash !== plan, null);
  }
  const checks = claim.verification;
  if (checks) {
    claimed(canonical(checks.commands_run) !== canonical(ran.map((run) => run.command)), null);
    claimed(canonical(checks.exit_codes) !== canonical(ran.map((run) => run.exit_code)), null);
    claimed(
      !equal(
        checks.verification_delta,
        ran.reduce((sum, run) => sum + run.delta, 0n),
      ),
      null,
    );
  }
  return findings;
}

export function withOtherLog(file, other) {
  const { pairs, ours, theirs } = match(usesOf(readLog(file, schemas)), usesOf(readLog(other, schemas)), BY_CONTENT);
  let latest = 0;
  const findings = [];
  for (const [use, entry] of pairs) {
    const differing = ["tool", "params_hash", "output_hash"].filter((name) => use[name] !== entry[name]);
    if (differing.length)
      findings.push(found(differing.join() === "output_hash" ? "output_differs" : "call_differs", use.line));
    else if (entry.line < latest) findings.push(warned("call_order", use.line));
    else latest = entry.line;
  }
  return [...findings, ...ours.map((use) => found("call_added", use.line)), ...theirs.map(() => found("call_missing"))];
}

export function withReplayReceipt(directory, file) {
  const receipt = parse(readFileSync(file));
  const { captureId, eventsHash, eventCount } = receipt.capture;
  const bytes = readFileSync(join(directory, "events.jsonl"));
  const manifest = parse(readFileSync(join(directory, "manifest.json")));
  const differing = [
    captureId !== manifest.captureId,
    eventsHash !== hash(bytes),
    !equal(eventCount, linesOf(bytes).length),
  ];
  return [
    ...differing.filter(Boolean).map(() => found("receipt_differs")),
    ...unknown("replay-receipt", receipt),
  ];
}

// The rows of a dataset beside its manifest. Whether a row is that of its run is left out: it takes a way from events to rows.
export function dataset(path) {
  const isFolder = statSync(path).isDirectory();
  const files = isFolder ? readdirSync(path).filter((name) => name.endsWith(".jsonl")) : [basename(path)];
  const folder = isFolder ? path : dirname(path);
  const findings = [];
  const written = writtenFiles(isFolder ? join(path, "dataset.manifest.json") : `${path}.manifest.json`, findings);
  const seen = new Set();
  for (const name of files.sort()) {
    const digests = [];
    const problems = rowProblems(join(folder, name), digests, seen);
    findings.push(...problems);
    const file = written?.find((each) => each.name === name);
    const code = written && wholeProblem(file, digests, problems.length === 0);
    if (code) findings.push(found(code));
  }
  const gone = isFolder ? (written ?? []).filter(({ name }) => !files.includes(name)) : [];
  return [...findings, ...gone.map(() => found("rows_missing"))];
}

function writtenFiles(manifest, findings) {
  if (!existsSync(manifest)) return void findings.push(warned("no_manifest"));
  let path = null;
  try {
    const value = parse(readFileSync(manifest));
    path = schemaProblem(schemas["dataset-manifest"], value);
    if (!path) return value.files;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
  }
  findings.push(found("manifest_unreadable", null, path));
}

function rowProblems(file, digests, seen) {
  return linesOf(readFileSync(file)).flatMap(([number, text]) => {
    let row = null;
    try {
      row = parse(text);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
    }
    if (!isObject(row)) return [found("row_unreadable", number)];
    digests.push(digest(row));
    if (row.provenance?.schema !== "reenact.dataset.v1")
      return [found("row_without_source", number, "$.provenance")];
    const source = canonical(row.provenance);
    const isSecond = seen.has(source);
    seen.add(source);
    return isSecond ? [found("row_twice", number)] : [];
  });
}

function wholeProblem(file, digests, isEachGood) {
  if (!file) return "rows_added";
  const count = Number(file.rows);
  if (digests.length !== count) return digests.length < count ? "rows_missing" : "rows_added";
  const whole = hash(digests.map((each) => `${each}\n`).join(""));
  return isEachGood && whole !== file.digest ? "rows_moved" : null;
}

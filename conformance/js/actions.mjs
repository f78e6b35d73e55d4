// Actions, verifiable records and packs of them.
import { readFileSync } from "node:fs";
import { Refused, canonical, isDouble, linesOf, parse, sha256 } from "./json.mjs";
import { schemas } from "./kit.mjs";
import { isNumber, isObject } from "./schema.mjs";
import { found, warned } from "./verify.mjs";

function walk(schema, value, path = "") {
  const type = {
    object: isObject(value),
    array: Array.isArray(value),
    number: isNumber(value),
    string: typeof value === "string",
    boolean: typeof value === "boolean",
    any: true,
    enum: typeof value === "string",
  }[schema.type];
  const below = (key) => (path ? `${path}.${key}` : key);
  if (!type) return [["invalid_type", path]];
  if (schema.type === "object") {
    const known = new Set(schema.fields.map((field) => field.name));
    const fields = schema.fields.flatMap((field) =>
      field.name in value
        ? walk(field.schema, value[field.name], below(field.name))
        : (field.required ?? true)
          ? [["missing_field", below(field.name)]]
          : [],
    );
    return [
      ...fields,
      ...(schema.extras
        ? []
        : Object.keys(value)
            .filter((key) => !known.has(key))
            .sort()
            .map((key) => ["unexpected_field", below(key)])),
    ];
  }
  if (schema.type === "array")
    return [
      ...(value.length < (schema.minimum ?? 0) ? [["array_too_small", path]] : []),
      ...value.flatMap((item, i) => walk(schema.items, item, `${path}[${i}]`)),
    ];
  if (schema.type === "number" && value < (schema.minimum ?? -Infinity)) return [["number_below_minimum", path]];
  if (schema.type === "number" && value > (schema.maximum ?? Infinity)) return [["number_above_maximum", path]];
  return schema.type === "enum" && !schema.values.includes(value) ? [["invalid_enum_value", path]] : [];
}

function inexact(value, path = "") {
  if (Array.isArray(value)) return value.flatMap((item, i) => inexact(item, `${path}[${i}]`));
  if (isObject(value))
    return Object.entries(value).flatMap(([key, child]) => inexact(child, path ? `${path}.${key}` : key));
  return typeof value === "bigint" && !isDouble(value) ? [["invalid_type", path]] : [];
}

export function actionProblems(value) {
  const output = isObject(value) && isObject(value.output) ? value.output : {};
  const says =
    (typeof output.content === "string" && output.content) ||
    (Array.isArray(output.tool_calls) && output.tool_calls.length);
  const empty = ["agent_id", "action_id", "occurred_at_unix_ms"]
    .filter((key) => value?.[key] === "")
    .map((key) => ["empty_field", key]);
  return [
    ...walk(schemas["agent.action.replay.v1"].input_schema, value),
    ...empty,
    ...(says ? [] : [["empty_output", "output"]]),
    ...inexact(value),
  ];
}

const judgeAction = (value, line) =>
  actionProblems(value).map(([code, path]) => found(code, line, path ? `$.${path}` : "$"));

export function action(file) {
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

export function judgeRecord(record, line = null) {
  const claimed = isObject(record.receipt) ? record.receipt : {};
  const failed = Object.entries(recordDigests(record))
    .filter(([name, computed]) => computed === null || claimed[name] !== computed)
    .map(([name]) => name);
  const capsule = claimed.capsule_digest ?? record.capsule_digest;
  const checks = [
    ...(record.vdr_version === "0" ? [] : ["version"]),
    ...(record.profile === "ai.agent.action" ? [] : ["profile"]),
    ...(actionProblems(record.subject).length ? ["subject"] : []),
    ...(claimed.alg === "sha-256" ? [] : ["algorithm"]),
    ...failed,
    ...(capsule === undefined || /^[0-9a-f]{64}$/.test(capsule) ? [] : ["capsule_digest"]),
  ].map((name) => found(name, line));
  const isForeign = /^[0-9a-f]{64}$/.test(capsule) && capsule !== jcsDigest(schemas["agent.action.replay.v1"]);
  return isForeign ? [...checks, warned("capsule_digest", line)] : checks;
}

export function pack(file, expected) {
  const bytes = readFileSync(file);
  const records = [];
  const judge = (value, line) => (records.push(value), judgeRecord(value, line));
  const findings =
    bytes[0] === 0x5b ? parse(bytes, "jcs").flatMap((value) => judge(value, null)) : eachLine(bytes, judge);
  const digests = [...new Set(records.map((record) => recordDigests(record).record_digest))].sort();
  const whole = sha256(digests.map((one) => `${one}\n`).join("")).toString("hex");
  return findings.length || expected.pack === whole ? findings : [found("pack")];
}

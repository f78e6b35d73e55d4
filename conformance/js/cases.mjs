// Test cases and policies, both in YAML, and what a policy decides.
import { readFileSync } from "node:fs";
import { actionProblems } from "./actions.mjs";
import { invalid, versionProblem } from "./documents.mjs";
import { canonical, parse } from "./json.mjs";
import { schemas } from "./kit.mjs";
import { childPath, equal, isNumber, isObject, schemaProblem } from "./schema.mjs";
import { found } from "./verify.mjs";
import { parseYaml } from "./yaml.mjs";

const nearest = (lines, path) => {
  for (; ; path = path.replace(/(\.[^.[\]]+|\[[^[\]]*\])$/, "")) if (lines.has(path)) return lines.get(path);
};

const SOURCES = ["replay_file", "capture", "replay_log", "command"];
const LISTS = { "": ["tags"], tools: ["available"], expected: ["failure_categories"], reporting: ["redact_fields"] };

function withLists(value, names) {
  const listed = (one) => (one === null || Array.isArray(one) || isObject(one) ? one : [one]);
  return Object.assign(
    Object.create(null),
    value,
    Object.fromEntries(names.filter((name) => name in value).map((name) => [name, listed(value[name])])),
  );
}

export function testCase(file) {
  const { value: written, lines } = parseYaml(readFileSync(file));
  const value = withLists(written, LISTS[""]);
  for (const name of ["tools", "expected", "reporting"])
    if (isObject(value[name])) value[name] = withLists(value[name], LISTS[name]);
  if (Array.isArray(value.assertions))
    value.assertions = value.assertions.map((one) => (isObject(one) ? withLists(one, ["requires_capabilities"]) : one));
  if (typeof value.schema_version === "number") value.schema_version = String(value.schema_version);
  const findings = [];
  const find = (code, path, severity) => findings.push(found(code, nearest(lines, path), path, severity));
  const { $defs } = schemas["test-case"];
  const closed = {
    $: "TestCase",
    "$.scenario": "CaseScenario",
    "$.tools": "Tools",
    "$.adapter_input": "AdapterInput",
    "$.expected": "Expected",
    "$.reporting": "Reporting",
  };
  (Array.isArray(value.assertions) ? value.assertions : []).forEach(
    (_, i) => (closed[`$.assertions[${i}]`] = "Assertion"),
  );
  const at = (path) =>
    path
      .split(/[.[\]]+/)
      .slice(1)
      .filter(Boolean)
      .reduce((inside, key) => inside?.[key], value);
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
    $defs[name].required
      .filter((key) => !(key in inside))
      .forEach((key) => find("missing_field", childPath(path, key)));
  }
  if (versionProblem(value)) find("unknown_version", "$.schema_version");
  const given = SOURCES.filter((key) => isObject(value.adapter_input) && key in value.adapter_input).join();
  if (isObject(value.adapter_input) && !SOURCES.includes(given) && given !== "capture,command")
    find("ambiguous_source", "$.adapter_input");
  if (value.mode === "live") find("live_mode", "$.mode", "warning");
  if (Array.isArray(value.assertions) && !value.assertions.length) find("no_assertions", "$.assertions");
  const ids = Array.isArray(value.assertions) ? value.assertions.map((one) => one?.id) : [];
  ids.forEach(
    (id, i) =>
      typeof id === "string" && ids.indexOf(id) < i && find("duplicate_id", `$.assertions[${i}].id`, "warning"),
  );
  return findings;
}

export function policyProblem(value) {
  if (!equal(value.schema_version, 1n)) return "$.schema_version";
  const path = schemaProblem(schemas.policy, value);
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

function isLinear(pattern) {
  // RE2 has neither look-around nor back-references
  try {
    new RegExp(pattern, "u");
    return !/\(\?<?[=!]|\\[1-9]|\\k</.test(pattern);
  } catch {
    return false;
  }
}

export function policy(file) {
  const { value, lines } = parseYaml(readFileSync(file));
  const path = policyProblem(value);
  return path ? invalid(path, nearest(lines, path)) : [];
}

const STRICTEST = ["deny", "review", "allow"];
const like = (globs, name) =>
  (globs ?? []).some((glob) =>
    new RegExp(
      `^(?:${glob
        .replace(/[.+^${}()|\\]/g, "\\$&")
        .replace(/\*/g, ".*")
        .replace(/\?/g, ".")})$`,
      "su",
    ).test(name),
  );
const leaves = (value) =>
  isObject(value) ? Object.values(value).flatMap(leaves) : Array.isArray(value) ? value.flatMap(leaves) : [value];

function named(value, name) {
  if (Array.isArray(value)) return value.flatMap((item) => named(item, name));
  if (!isObject(value)) return [undefined]; // of which nothing can be told
  const [first, ...rest] = name.split(".");
  return [
    ...(name in value ? leaves(value[name]) : []),
    ...(rest.length && first in value ? named(value[first], rest.join(".")) : []),
  ];
}

const TESTS = {
  equals: (leaf, wanted) => (leaf === undefined ? null : equal(leaf, wanted)),
  one_of: (leaf, wanted) => (leaf === undefined ? null : wanted.some((one) => equal(leaf, one))),
  matches: (leaf, wanted) =>
    leaf === undefined ? null : new RegExp(wanted, "u").test(typeof leaf === "string" ? leaf : canonical(leaf)),
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
    return rule.verdict === "allow"
      ? answers.length > 0 && answers.every((answer) => answer === true)
      : answers.some((answer) => answer !== false);
  });
}

function callOf(call) {
  if (!isObject(call)) return null;
  if ("function" in call)
    return "name" in call || !isObject(call.function) || "function" in call.function ? null : callOf(call.function);
  const given = ["arguments", "args", "input"].filter((key) => key in call);
  if (typeof call.name !== "string" || given.length > 1) return null;
  const raw = given.length ? call[given[0]] : {};
  return { name: call.name, arguments: typeof raw === "string" ? parse(raw || "{}") : raw };
}

export function decide(file, value) {
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
  const used = {
    tool_calls: (output.tool_calls ?? []).length,
    input_tokens: output.usage?.input_tokens,
    output_tokens: output.usage?.output_tokens,
  };
  for (const [name, amount] of Object.entries(used)) {
    if (file.budgets?.[name] !== undefined && (amount === undefined || amount > file.budgets[name]))
      decisions.push([file.budgets.beyond ?? "deny", `budgets.${name}`]);
  }
  const full = [model.provider, model.name, model.version].filter((part) => part !== undefined).join("/");
  const list = file.models && STRICTEST.find((verdict) => like(file.models[verdict], full));
  if (file.models) decisions.push(list ? [list, `models.${list}`] : fallback);
  return (
    STRICTEST.map((verdict) => decisions.find(([one]) => one === verdict)).find(Boolean) ?? ["allow", "no tool call"]
  );
}

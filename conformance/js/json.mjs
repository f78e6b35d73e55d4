// JSON read exactly and written canonically. Integers are BigInts and other numbers Numbers, so that 1 and 1.0
// stay apart; objects have no prototype, so that every key is just a key.
import { createHash } from "node:crypto";

export class Refused extends Error {
  constructor(reason, path = null, line = null) {
    super(reason);
    Object.assign(this, { path, line });
  }
}

export const childPath = (path, key) =>
  typeof key === "number" ? `${path}[${key}]` : /^[\p{L}_][\p{L}\p{N}_]*$/u.test(key) ? `${path}.${key}` : `${path}[${JSON.stringify(key)}]`;
export const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
export const isNumber = (value) => typeof value === "bigint" || typeof value === "number";

const TOKEN = /[ \t\n\r]*(?:([{}[\],:])|("(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")|(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?)|(true|false|null)|$)/uy;
const MAX_DEPTH = 254;

export function textOf(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new Refused("not UTF-8");
  }
}

export function parse(bytes, profile = "replay") {
  const text = typeof bytes === "string" ? bytes : textOf(bytes);
  const faults = []; // what is JSON, but has no canonical form; told only when all of it is JSON
  let at = 0;
  const next = () => {
    TOKEN.lastIndex = at;
    const token = TOKEN.exec(text);
    if (!token) throw new Refused(`not JSON at ${at}`);
    at = TOKEN.lastIndex;
    return token;
  };
  const string = (token, path) => {
    const value = JSON.parse(token);
    if (!value.isWellFormed?.() && /\p{Cs}/u.test(value)) faults.push(path);
    return value;
  };
  const value = ([, sign, quoted, number, word], path, depth) => {
    if (quoted !== undefined) return string(quoted, path);
    if (word) return { true: true, false: false, null: null }[word];
    if (number) return numberOf(number, path, profile, faults);
    if (sign !== "{" && sign !== "[") throw new Refused(`not JSON at ${at}`);
    if (depth >= MAX_DEPTH) throw new Refused("nested too deep", path);
    return sign === "[" ? array(path, depth) : object(path, depth);
  };
  const array = (path, depth) => {
    const items = [];
    for (let token = next(); ; token = next()) {
      if (token[1] === "]" && !items.length) return items;
      items.push(value(token, childPath(path, items.length), depth + 1));
      const [, sign] = next();
      if (sign === "]") return items;
      if (sign !== ",") throw new Refused(`not JSON at ${at}`);
    }
  };
  const object = (path, depth) => {
    const members = Object.create(null);
    for (let token = next(), first = true; ; token = next(), first = false) {
      if (token[1] === "}" && first) return members;
      if (token[2] === undefined || next()[1] !== ":") throw new Refused(`not JSON at ${at}`);
      const key = string(token[2], path);
      if (key in members) faults.push(path);
      members[key] = value(next(), childPath(path, key), depth + 1);
      const [, sign] = next();
      if (sign === "}") return members;
      if (sign !== ",") throw new Refused(`not JSON at ${at}`);
    }
  };
  const result = value(next(), "$", 0);
  if (next()[0].trim() !== "" || at < text.length) throw new Refused(`not JSON at ${at}`);
  if (faults.length) throw new Refused("has no canonical form", faults[0]);
  return result;
}

function numberOf(text, path, profile, faults) {
  if (!/^-?\d+$/.test(text)) {
    if (!Number.isFinite(Number(text))) faults.push(path);
    return Number(text);
  }
  const integer = BigInt(text);
  if (integer >= -(2n ** 63n) && integer < 2n ** 64n) return integer;
  if (profile !== "jcs" || !isDouble(integer)) faults.push(path);
  return Number(text);
}

export const isDouble = (integer) => String(Number(integer)) === String(integer);

export function canonical(value, profile = "replay", path = "$") {
  if (typeof value === "bigint") {
    if (profile === "jcs" && !isDouble(value)) throw new Refused("no double", path);
    return String(value);
  }
  if (typeof value === "number") return profile === "jcs" ? String(value) : floatText(value);
  if (Array.isArray(value)) return `[${value.map((item, i) => canonical(item, profile, childPath(path, i))).join()}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const keys = Object.keys(value); // by UTF-16 units for JCS, else by code points, whose order is that of UTF-8
  if (profile === "jcs") keys.sort();
  else keys.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonical(value[key], profile, childPath(path, key))}`).join()}}`;
}

function floatText(value) {
  const [digits, power] = Math.abs(value).toExponential().split("e"); // the shortest digits
  const exponent = Number(power);
  const sign = Object.is(value, -0) || value < 0 ? "-" : "";
  if (exponent < -5 || exponent >= 16) return `${sign}${digits}e${exponent}`;
  const all = digits.replace(".", "");
  if (exponent < 0) return `${sign}0.${"0".repeat(-exponent - 1)}${all}`;
  const padded = all.padEnd(exponent + 1, "0");
  return `${sign}${padded.slice(0, exponent + 1)}.${padded.slice(exponent + 1) || "0"}`;
}

export const sha256 = (...parts) => parts.reduce((hash, part) => hash.update(part), createHash("sha256")).digest();
export const hash = (bytes) => `sha256:${sha256(bytes).toString("hex")}`;
export const digest = (value) => hash(canonical(value));
export const isHash = (text) => /^sha256:[0-9a-f]{64}$/.test(text);

// Lines of a file without their ends, blank ones left out: [number, bytes].
export function linesOf(bytes) {
  const lines = [];
  const start = bytes.subarray(0, 3).equals(Buffer.from([0xef, 0xbb, 0xbf])) ? 3 : 0;
  for (let from = start, number = 1; from < bytes.length; number++) {
    const end = bytes.indexOf(10, from) < 0 ? bytes.length : bytes.indexOf(10, from);
    const line = bytes.subarray(from, bytes[end - 1] === 13 && end > from && end < bytes.length ? end - 1 : end);
    if (line.toString("latin1").trim()) lines.push([number, line]);
    from = end + 1;
  }
  return lines;
}

// The first of a value's problems under a JSON Schema, as a path; null where there is none.
export function schemaProblem(schema, value, path = "$", defs = schema.$defs) {
  const below = (child, inside, key) => schemaProblem(child, inside, key === undefined ? path : childPath(path, key), defs);
  if (schema === false) return path;
  if (schema.$ref) return below(defs[schema.$ref.split("/").pop()], value);
  if (schema.anyOf) {
    const options = schema.anyOf.map((option) => (option.$ref ? defs[option.$ref.split("/").pop()] : option));
    const problems = options.map((option) => below(option, value));
    if (problems.includes(null)) return null;
    const tagged = options.findIndex((option) => Object.values(option.properties ?? {}).some((p) => p.enum?.length === 1) &&
      Object.entries(option.properties).every(([name, p]) => p.enum?.length !== 1 || typeof p.enum[0] !== "string" || p.enum[0] === value?.[name]));
    const typed = options.findIndex((option) => typeFits(option.type, value));
    if (tagged < 0 && isObject(value) && "type" in value && options.length > 3) return childPath(path, "type");
    return problems[tagged >= 0 ? tagged : typed >= 0 ? typed : 0];
  }
  if (schema.type && !typeFits(schema.type, value)) return path;
  if (schema.enum && !schema.enum.some((option) => equal(option, value))) return path;
  if (schema.not?.enum?.some((option) => equal(option, value))) return path;
  if (isNumber(value) && (value < (schema.minimum ?? -Infinity) || value > (schema.maximum ?? Infinity))) return path;
  if (typeof value === "string") {
    if ([...value].length < (schema.minLength ?? 0) || (schema.pattern && !new RegExp(schema.pattern, "u").test(value))) return path;
    if (schema.format === "date-time" && !isTime(value)) return path;
  }
  if (Array.isArray(value)) {
    if (value.length < (schema.minItems ?? 0) || value.length > (schema.maxItems ?? Infinity)) return path;
    for (const [index, item] of value.entries()) {
      const problem = below(schema.prefixItems?.[index] ?? schema.items ?? {}, item, index);
      if (problem) return problem;
    }
  }
  if (!isObject(value)) return null;
  for (const name of schema.required ?? []) if (!(name in value)) return childPath(path, name);
  for (const [name, member] of Object.entries(value)) {
    const problem = below(schema.properties?.[name] ?? schema.additionalProperties ?? {}, member, name);
    if (problem) return problem;
  }
  return null;
}

function typeFits(type, value) {
  const fits = { string: typeof value === "string", integer: typeof value === "bigint", number: isNumber(value), boolean: typeof value === "boolean",
    array: Array.isArray(value), object: isObject(value), null: value === null };
  return type === undefined || [type].flat().some((name) => fits[name]);
}

export const equal = (a, b) => (isNumber(a) && isNumber(b) ? a == b : a === b); // eslint-disable-line eqeqeq

export function isTime(text) {
  const parts = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:Z|[+-](\d\d):(\d\d))$/.exec(text);
  if (!parts) return false;
  const [year, month, day, hour, minute, second, hours = 0, minutes = 0] = parts.slice(1).map((part) => Number(part ?? 0));
  const days = [31, (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1];
  return day >= 1 && day <= days && hour < 24 && minute < 60 && second <= 60 && hours < 24 && minutes < 60;
}
export const moment = (text) => Date.parse(text.replace(/:60(?=\.|Z|[+-])/, ":59").replace(/(\.\d{3})\d+/, "$1"));

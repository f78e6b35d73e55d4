// JSON read exactly, written canonically and digested, in the two profiles of docs/formats/canonical-json.md.
import { createHash } from "node:crypto";
import { childPath, isObject } from "./schema.mjs";

export class Refused extends Error {
  constructor(reason, path = null, line = null) {
    super(reason);
    Object.assign(this, { path, line });
  }
}

// Integers are BigInts and other numbers Numbers, so that 1 and 1.0 stay apart; objects have no
// prototype, so that every key is just a key.

const STRING = String.raw`"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"`;
const NUMBER = String.raw`-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?`;
const TOKEN = new RegExp(`[ \\t\\n\\r]*(?:([{}[\\],:])|(${STRING})|(${NUMBER})|(true|false|null)|$)`, "uy");
const MAX_DEPTH = 254;

export function parse(bytes, profile = "replay") {
  const text = typeof bytes === "string" ? bytes : decode(bytes);
  const faults = []; // what is JSON, but has no canonical form; told only when all of it is JSON
  let at = 0;
  const fail = () => {
    throw new Refused(`not JSON at ${at}`);
  };
  const next = () => {
    TOKEN.lastIndex = at;
    const token = TOKEN.exec(text) ?? fail();
    at = TOKEN.lastIndex;
    return token;
  };
  const string = (token, path) => {
    if (/\p{Cs}/u.test(JSON.parse(token))) faults.push(path);
    return JSON.parse(token);
  };
  const value = ([, sign, quoted, number, word], path, depth) => {
    if (quoted !== undefined) return string(quoted, path);
    if (word) return JSON.parse(word);
    if (number) return numberOf(number, profile) ?? (faults.push(path), 0);
    if (sign !== "{" && sign !== "[") fail();
    if (depth >= MAX_DEPTH) throw new Refused("nested too deep", path);
    return sign === "[" ? array(path, depth) : object(path, depth);
  };
  const isLast = (close) => {
    const [, sign] = next();
    return sign === close || (sign !== "," && fail());
  };
  const array = (path, depth) => {
    const items = [];
    for (let token = next(); token[1] !== "]" || items.length; token = next()) {
      items.push(value(token, childPath(path, items.length), depth + 1));
      if (isLast("]")) break;
    }
    return items;
  };
  const object = (path, depth) => {
    const members = Object.create(null);
    for (let token = next(), first = true; token[1] !== "}" || !first; token = next(), first = false) {
      if (token[2] === undefined || next()[1] !== ":") fail();
      const key = string(token[2], path);
      if (key in members) faults.push(path);
      members[key] = value(next(), childPath(path, key), depth + 1);
      if (isLast("}")) break;
    }
    return members;
  };
  const result = value(next(), "$", 0);
  if (next()[0].trim() !== "" || at < text.length) fail();
  if (faults.length) throw new Refused("has no canonical form", faults[0]);
  return result;
}

export function decode(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new Refused("not UTF-8");
  }
}

function numberOf(text, profile) {
  if (!/^-?\d+$/.test(text)) return Number.isFinite(Number(text)) ? Number(text) : null;
  const integer = BigInt(text);
  if (integer >= -(2n ** 63n) && integer < 2n ** 64n) return integer;
  return profile === "jcs" && isDouble(integer) ? Number(text) : null;
}

export const isDouble = (integer) => String(Number(integer)) === String(integer);

// Canonical JSON and digests

export function canonical(value, profile = "replay", path = "$") {
  if (typeof value === "bigint" && profile === "jcs" && !isDouble(value)) throw new Refused("no double", path);
  if (typeof value === "bigint") return String(value);
  if (typeof value === "number") return profile === "jcs" ? String(value) : floatText(value);
  const below = (key) => canonical(value[key], profile, childPath(path, key));
  if (Array.isArray(value)) return `[${value.map((_, index) => below(index)).join()}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const byCodePoint = (a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)); // the order of UTF-8
  const keys = Object.keys(value).sort(profile === "jcs" ? undefined : byCodePoint); // else by UTF-16 units
  return `{${keys.map((key) => `${JSON.stringify(key)}:${below(key)}`).join()}}`;
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
    const isCrlf = bytes[end - 1] === 13 && end > from && end < bytes.length;
    const line = bytes.subarray(from, isCrlf ? end - 1 : end);
    if (line.toString("latin1").trim()) lines.push([number, line]);
    from = end + 1;
  }
  return lines;
}

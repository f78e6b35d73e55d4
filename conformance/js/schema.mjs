// Values held against a JSON Schema, as far as the schemas of the kit go: what a library does in most languages.

export function childPath(path, key) {
  if (typeof key === "number") return `${path}[${key}]`;
  return /^[\p{L}_][\p{L}\p{N}_]*$/u.test(key) ? `${path}.${key}` : `${path}[${JSON.stringify(key)}]`;
}
export const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
export const isNumber = (value) => typeof value === "bigint" || typeof value === "number";

// The first of a value's problems under a JSON Schema, as a path; null where there is none.
export function schemaProblem(schema, value, path = "$", defs = schema.$defs) {
  const target = (one) => (one.$ref ? defs[one.$ref.split("/").pop()] : one);
  const same = (one) => schemaProblem(one, value, path, defs);
  const below = (child, inside, key) => schemaProblem(child, inside, childPath(path, key), defs);
  if (schema === false) return path;
  if (schema.$ref) return same(target(schema));
  if (schema.anyOf) {
    const options = schema.anyOf.map(target);
    const problems = options.map(same);
    return problems.includes(null) ? null : (problems[meantOption(options, value)] ?? childPath(path, "type"));
  }
  if (schema.type && !typeFits(schema.type, value)) return path;
  if (schema.enum && !schema.enum.some((option) => equal(option, value))) return path;
  if (schema.not?.enum?.some((option) => equal(option, value))) return path;
  if (isNumber(value) && (value < (schema.minimum ?? -Infinity) || value > (schema.maximum ?? Infinity))) return path;
  if (typeof value === "string") {
    if ([...value].length < (schema.minLength ?? 0)) return path;
    if (schema.pattern && !new RegExp(schema.pattern, "u").test(value)) return path;
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

// The paths of members that a schema with members of its own does not name, in a value that keeps to the schema.
export function unknownMembers(schema, value, path = "$", defs = schema.$defs) {
  if (schema.$ref) return unknownMembers(defs[schema.$ref.split("/").pop()], value, path, defs);
  if (schema.anyOf) {
    const meant = schema.anyOf.find((option) => schemaProblem(option, value, path, defs) === null);
    return meant ? unknownMembers(meant, value, path, defs) : [];
  }
  if (Array.isArray(value))
    return value.flatMap((item, i) => unknownMembers(schema.items ?? {}, item, childPath(path, i), defs));
  if (!isObject(value) || !schema.properties) return [];
  return Object.entries(value).flatMap(([name, member]) =>
    name in schema.properties
      ? unknownMembers(schema.properties[name], member, childPath(path, name), defs)
      : [childPath(path, name)],
  );
}

// The option whose one-valued members are those of the value, else one of its type; none for an unknown tag.
function meantOption(options, value) {
  const isTag = ([, one]) => typeof one.enum?.[0] === "string" && one.enum.length === 1;
  const tagged = options.findIndex(({ properties = {} }) => {
    const tags = Object.entries(properties).filter(isTag);
    return tags.length && tags.every(([name, one]) => one.enum[0] === value?.[name]);
  });
  if (tagged >= 0) return tagged;
  if (isObject(value) && "type" in value && options.length > 3) return -1;
  return Math.max(
    0,
    options.findIndex((option) => typeFits(option.type, value)),
  );
}

const TYPES = {
  string: (value) => typeof value === "string",
  integer: (value) => typeof value === "bigint",
  number: isNumber,
  boolean: (value) => typeof value === "boolean",
  array: Array.isArray,
  object: isObject,
  null: (value) => value === null,
};
const typeFits = (type, value) => type === undefined || [type].flat().some((name) => TYPES[name](value));

export const equal = (a, b) => (isNumber(a) && isNumber(b) ? a == b : a === b); // eslint-disable-line eqeqeq

export function isTime(text) {
  const parts = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:Z|[+-](\d\d):(\d\d))$/.exec(text);
  if (!parts) return false;
  const [year, month, day, hour, minute, second, hours, minutes] = parts.slice(1).map((part) => Number(part ?? 0));
  const isLeap = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
  const days = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1];
  return day >= 1 && day <= days && hour < 24 && minute < 60 && second <= 60 && hours < 24 && minutes < 60;
}

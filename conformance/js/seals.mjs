// Seals, published logs, disclosures.
import { createPublicKey, verify as verifySignature } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { document, invalid, unknown } from "./documents.mjs";
import { Refused, canonical, hash, linesOf, parse, sha256 } from "./json.mjs";
import { schemas } from "./kit.mjs";
import { childPath, equal, isObject, schemaProblem, unknownMembers } from "./schema.mjs";
import { found, readLog, warned } from "./verify.mjs";

const isBase64 = (text) => Buffer.from(text, "base64").toString("base64") === text; // one text for the same bytes
const leafOf = (commitments) => sha256(Buffer.from([0]), ...commitments);
const commitment = (name, salt, value) => sha256(Buffer.from([2]), Buffer.from(salt, "hex"), canonical([name, value]));
const node = (left, right) => sha256(Buffer.from([1]), left, right);
const half = (count) => 2 ** Math.floor(Math.log2(count - 1));
const rootOf = (leaves) =>
  leaves.length === 0
    ? sha256("")
    : leaves.length === 1
      ? leaves[0]
      : node(rootOf(leaves.slice(0, half(leaves.length))), rootOf(leaves.slice(half(leaves.length))));

function rootByPath(leaf, index, count, path) {
  if (index < 0 || index >= count) return null;
  if (count === 1) return path.length ? null : leaf;
  if (!path.length) return null;
  const [split, last] = [half(count), Buffer.from(path.at(-1), "hex")];
  const side =
    index < split
      ? rootByPath(leaf, index, split, path.slice(0, -1))
      : rootByPath(leaf, index - split, count - split, path.slice(0, -1));
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
  const path = schemaProblem(schemas.seal, seal);
  if (path) throw new Refused("breaks the schema", path);
  return { envelope, payload, seal };
}

function isSigned({ envelope, payload }, keyFile) {
  const key = createPublicKey(readFileSync(keyFile));
  const type = envelope.payloadType;
  const message = Buffer.concat([Buffer.from(`DSSEv1 ${Buffer.byteLength(type)} ${type} ${payload.length} `), payload]);
  return envelope.signatures.some(
    ({ sig }) =>
      Buffer.from(sig, "base64").length === 64 && verifySignature(null, message, key, Buffer.from(sig, "base64")),
  );
}

export function seal(file) {
  try {
    return unknownInEnvelope(readSeal(file).envelope);
  } catch (error) {
    return invalid(error.path);
  }
}

const ENVELOPE = {
  properties: { payload: {}, payloadType: {}, signatures: { items: { properties: { keyid: {}, sig: {} } } } },
};
const unknownInEnvelope = (envelope) =>
  unknownMembers(ENVELOPE, envelope).map((path) => warned("unknown_member", null, path));

const keyId = (key) => hash(key.export({ type: "spki", format: "der" }));

export const disclosure = document("disclosure", (value) =>
  "leaf" in value === "fields" in value ? invalid("$") : unknown("disclosure", value),
);

export function withSeal(file, sealFile, keyFile, findings) {
  const signed = readSeal(sealFile);
  if (!isSigned(signed, keyFile)) return [...findings, found("seal_signature")];
  const sealed = signed.seal;
  const named = signed.envelope.signatures.map(({ keyid }) => keyid);
  if (!named.includes(keyId(createPublicKey(readFileSync(keyFile)))))
    findings = [...findings, warned("seal_keyid", null, "$.signatures")];
  if (file !== sealFile) findings = [...findings, ...unknownInEnvelope(signed.envelope)];
  if (file === sealFile || findings.some(({ code }) => code === "invalid")) return findings;
  if (statSync(file).isDirectory()) return [...findings, ...sealedCapture(file, sealed.capture)];
  if (file.endsWith(".json")) return [...findings, ...sealedDisclosure(parse(readFileSync(file)), sealed)];
  const values = linesOf(readFileSync(file)).map(([number, text]) => [number, parse(text)]);
  if (values.slice(0, 2).some(([, value]) => "seal" in value || Object.values(value).includes("SealLeaves")))
    return publishedLog(values, sealed, findings);
  if (sealed.log.trajectoryHash === undefined) return [...findings, found("seal_foreign")];
  return sealed.log.trajectoryHash === hash(Buffer.from(readLog(file, schemas).trajectory, "latin1"))
    ? findings
    : [...findings, found("seal_log")];
}

function sealedCapture(directory, sealed) {
  const manifest = join(directory, "manifest.json");
  if (!sealed || parse(readFileSync(manifest)).runId !== sealed.runId) return [found("seal_foreign")];
  return [
    ...(hash(readFileSync(manifest)) === sealed.manifestHash ? [] : [found("seal_manifest")]),
    ...(hash(readFileSync(join(directory, "events.jsonl"))) === sealed.eventsHash ? [] : [found("seal_events")]),
  ];
}

function sealedDisclosure(value, sealed) {
  const tree = value.tree === "events" ? sealed.capture?.events : sealed.log.lines;
  if (!tree) return [found("seal_foreign")];
  const leaf = value.leaf
    ? Buffer.from(value.leaf, "hex")
    : leafOf(
        value.fields.map((entry) =>
          typeof entry === "string" ? Buffer.from(entry, "hex") : commitment(entry[0], entry[1], entry[2]),
        ),
      );
  const root = rootByPath(leaf, Number(value.position) - 1, Number(tree.count), value.path);
  return root?.toString("hex") === tree.root ? [] : [found("seal_disclosure")];
}

const fieldsOf = (value, path = "$") =>
  Object.entries(value).flatMap(([key, child]) =>
    isObject(child) && Object.keys(child).length
      ? fieldsOf(child, childPath(path, key))
      : [[childPath(path, key), child]],
  );

function publishedLog(values, sealed, findings) {
  const tag = { current: "type", legacy: "event" }[sealed.log.dialect];
  const listed = values.filter(([, value]) => value[tag] === "SealLeaves" && Object.keys(value).length === 3);
  const block = Buffer.concat(listed.map(([, value]) => Buffer.from(value.leaves, "base64")));
  const leaves = Array.from({ length: block.length / 32 }, (_, i) => block.subarray(32 * i, 32 * i + 32));
  const misplaced = listed.find(([line], i) => (i ? line !== listed[i - 1][0] + 1 : line > 2));
  if (misplaced) return [...findings, found("seal_leaves", misplaced[0])];
  if (!leaves.length || rootOf(leaves).toString("hex") !== sealed.log.lines.root)
    return [...findings, found("seal_leaves")];
  const [seen, places, own] = [new Set(), new Map(leaves.map((leaf, i) => [leaf.toString("hex"), i + 1])), []];
  let [last, isWithheld] = [0, false];
  for (const [line, value] of values.filter((one) => !listed.includes(one))) {
    const { seal: proof, ...shown } = value;
    if (!proof) {
      own.push(found("seal_proof", line, "$"));
      continue;
    }
    const isHidden = proof.fields === undefined;
    if (isHidden && canonical(shown) !== canonical({ [tag]: "Withheld" })) {
      own.push(found("seal_proof", line, "$.seal"));
      continue;
    }
    const fields = new Map(fieldsOf(shown));
    const opened = (proof.fields ?? [])
      .filter(Array.isArray)
      .map(([name]) => name.replace(/^(open|private|paranoid):/, ""));
    if (!isHidden)
      own.push(
        ...[...fields.keys()]
          .filter((name) => !opened.includes(name))
          .map((name) => found("seal_unproven", line, name)),
      );
    const leaf = isHidden
      ? proof.leaf
      : leafOf(
          proof.fields.map((entry) =>
            Array.isArray(entry)
              ? commitment(entry[0], entry[1], fields.get(entry[0].replace(/^(open|private|paranoid):/, "")))
              : Buffer.from(entry, "hex"),
          ),
        ).toString("hex");
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
  for (let position = 1; position <= leaves.length; position++)
    if (!seen.has(position) && (position === 1 || seen.has(position - 1))) own.push(found("seal_missing"));
  const ofWhole = ["result_without_call", "no_result", "total_tool_calls", "total_latency_ms", "no_end"];
  return [
    ...findings.map((one) => (isWithheld && ofWhole.includes(one.code) ? { ...one, severity: "warning" } : one)),
    ...own,
  ];
}

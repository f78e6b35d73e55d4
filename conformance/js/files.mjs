// What a capture has beside its events: blobs, the trees of a run's files (workspace.md), the events that a fork shares
// with its parent (capture.md, 2.11).
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { Refused, canonical, hash, parse } from "./json.mjs";
import { isObject } from "./schema.mjs";
import { found, warned } from "./verify.mjs";

const OWN_FILES = ["manifest.json", "recovered.json", "blobs", "events.jsonl", "parts"];
export const blobPath = (directory, name) => join(directory, "blobs", "sha256", name.slice(7, 9), name.slice(9));

// A fork begins with events of its parent, under its own ids, and shares blobs with it; null where these were changed.
export function eventsOf(directory, manifest, homes) {
  const own = readFileSync(join(directory, "events.jsonl"));
  if (manifest?.fork?.stored !== "suffix") return own;
  const { path, events, eventsHash } = manifest.fork.parent;
  const home = join(directory, path);
  if (!existsSync(join(home, "manifest.json"))) throw new Refused("the parent of a fork is not there");
  homes.push(home);
  const before = parse(readFileSync(join(home, "manifest.json")));
  const parents = eventsOf(home, before, homes);
  const shared = parents?.toString("latin1").split("\n").slice(0, Number(events)) ?? [];
  const lines = shared.map((line) => `${line}\n`);
  if (hash(Buffer.from(lines.join(""), "latin1")) !== eventsHash) return null;
  const named = (ids) => [`{"captureId":${canonical(ids.captureId)},`, `,"runId":${canonical(ids.runId)},"seq":`];
  const [[head, tail], [newHead, newTail]] = [named(before), named(manifest)];
  const renamed = lines.map((line) => {
    const place = line.lastIndexOf(tail);
    return newHead + line.slice(head.length, place) + newTail + line.slice(place + tail.length);
  });
  return Buffer.concat([Buffer.from(renamed.join(""), "latin1"), own]);
}

// What became of the parent since: a fork that has all of its events itself does without.
export function verifyParent(directory, fork) {
  const home = join(directory, fork.parent.path);
  if (!existsSync(join(home, "manifest.json"))) return [];
  const manifest = parse(readFileSync(join(home, "manifest.json")));
  if (manifest.captureId !== fork.parent.captureId) return [];
  const bytes = eventsOf(home, manifest, []);
  if (bytes === null) return [warned("parent_differs")];
  const lines = bytes.toString("latin1").split("\n").slice(0, Number(fork.parent.events));
  const of = (text) => hash(Buffer.from(text, "latin1"));
  if (of(lines.map((line) => `${line}\n`).join("")) !== fork.parent.eventsHash) return [warned("parent_differs")];
  if (of(lines.at(-1) ?? "") !== fork.parent.eventHash) return [found("parent_event")];
  return [undefined, hash(bytes)].includes(fork.parent.logHash) ? [] : [warned("parent_differs")];
}

export const treesIn = ({ event: { type, data } }) =>
  type === "run_start" && data.workspace
    ? [data.workspace.tree]
    : type === "state_mutation" && data.type === "workspace"
      ? [data.details.tree]
      : [];

// The blobs that a folder's tree names: [whether it is a tree, digest]; refuses what no recorder writes.
function readTree(bytes) {
  let last = null;
  return parse(bytes).entries.flatMap((entry) => {
    const refuse = (isBad, reason) => {
      if (isBad) throw new Refused(reason);
    };
    refuse((entry.name === undefined) === (entry.nameHex === undefined), "a name is given once");
    const name = Buffer.from(entry.name ?? entry.nameHex, entry.name === undefined ? "hex" : "utf8");
    const isText = Buffer.from(name.toString("utf8"), "utf8").equals(name);
    refuse(entry.nameHex !== undefined && isText, "text is not written in hex");
    refuse(["", ".", ".."].includes(entry.name) || name.includes("/") || name.includes(0), "no name of a file");
    refuse(last && Buffer.compare(last, name) >= 0, "names stand in order");
    last = name;
    refuse(!["file", "folder", "link", "left-out"].includes(entry.kind), "no such kind");
    if (entry.kind === "link") {
      let depth = 0;
      const isOut = (part) => (depth += part === ".." ? -1 : Number(!["", "."].includes(part))) < 0;
      refuse(entry.inside && (/^\//.test(entry.target) || entry.target.split("/").some(isOut)), "leads out");
    }
    if (!["file", "folder"].includes(entry.kind)) return [];
    const digestOf = entry.kind === "file" ? entry.blob : entry.tree;
    refuse(!/^[0-7]{3}$/.test(entry.mode ?? "") || !/^sha256:[0-9a-f]{64}$/.test(digestOf ?? ""), "no mode or digest");
    return entry.git ? [] : [[entry.kind === "folder", digestOf]];
  });
}

const blobsIn = (value) => (isObject(value) && typeof value.$blob === "string" ? [value.$blob] : []).concat(
  isObject(value) || Array.isArray(value) ? Object.values(value).flatMap(blobsIn) : []);

export function verifyFiles([directory, ...parents], events, trees) {
  const home = join(directory, "blobs", "sha256");
  const entries = existsSync(home) ? readdirSync(home, { withFileTypes: true }) : [];
  const folders = entries.filter((entry) => entry.isDirectory());
  const stored = folders.flatMap(({ name }) => readdirSync(join(home, name)).map((rest) => `sha256:${name}${rest}`));
  const names = readdirSync(directory).filter((name) => !name.startsWith(".tmp-"));
  const extra = names.filter((name) => !OWN_FILES.includes(name)).length + entries.length - folders.length;
  const findings = Array.from({ length: extra }, () => warned("extra_file"));
  if (names.includes("parts")) findings.push(found("parts_left"));
  const used = new Map(events.toReversed().flatMap(({ line, event }) => blobsIn(event).map((name) => [name, line])));
  const placeOf = (name) => [directory, ...parents].map((place) => blobPath(place, name)).find((path) => existsSync(path));
  const use = (isTree, name, line) => {
    const path = placeOf(name);
    const isNew = !used.has(name);
    if (isNew) used.set(name, line);
    if (!isTree || !isNew || !path || hash(readFileSync(path)) !== name) return;
    try {
      for (const [isBelow, below] of readTree(readFileSync(path))) use(isBelow, below, line);
    } catch (error) {
      findings.push(found("tree_unreadable", line));
    }
  };
  [...trees].sort((one, other) => one[1] - other[1]).forEach(([tree, line]) => use(true, tree, line));
  for (const [name, line] of used) {
    if (!placeOf(name)) findings.push(found("blob_missing", line));
    else if (hash(readFileSync(placeOf(name))) !== name) findings.push(found("blob_damaged", line));
  }
  return [...findings, ...stored.filter((name) => !used.has(name)).map(() => warned("blob_unused"))];
}

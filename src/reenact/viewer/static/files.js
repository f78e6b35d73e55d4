// The files of the run: a tree for each moment, and the changes since the moment before.

import { diffLine } from "./change_view.js";
import { fill, h, link, recorded } from "./dom.js";
import { toRun } from "./route.js";
import { count, plural } from "./text.js";

const MARKS = { added: "added", removed: "removed", changed: "changed", mode: "mode", renamed: "renamed" };

export async function filesView(source, run) {
  const { moments } = await source.files(run.line.id);
  const tree = h("div.file-tree", { role: "region", "aria-label": "File tree", tabindex: 0 });
  const changes = h("div.file-changes", { role: "region", "aria-label": "Changes", tabindex: 0 });
  const buttons = moments.map((moment, number) =>
    h("button.moment", { type: "button", onclick: () => choose(number) }, ...momentLabel(moment, number)),
  );
  const list = h("ol.moments", {}, ...buttons.map((button) => h("li", {}, button)));
  const element = h("section.files", { "aria-label": "Files of the run" }, list, tree, changes);
  let chosen = -1;

  async function choose(number) {
    chosen = number;
    buttons.forEach((button, each) => button.setAttribute("aria-pressed", String(each === number)));
    element.setAttribute("aria-busy", "true");
    const shown = await source.filesAt(run.line.id, number);
    if (chosen !== number) return;
    fill(tree, treeView(shown), shown.isShort ? h("p.muted", {}, "Not all files are shown.") : null);
    fill(changes, ...changesView(run.line.id, moments[number], shown.changes, number));
    element.setAttribute("aria-busy", "false");
  }

  await choose(moments.length > 1 ? 1 : 0);
  return { element };
}

function momentLabel({ seq, isEnd, changes }, number) {
  const name = number === 0 ? "Start" : isEnd ? "End" : `#${seq}`;
  return [h("span.seq", {}, name), h("span.muted", {}, number === 0 ? "" : plural(changes, "change"))];
}

/** Folders open and close; a removed file is shown at its old place. */
function treeView({ files, changes }) {
  const how = new Map(changes.map((change) => [change.path, change.how]));
  const gone = changes.filter((change) => change.how === "removed");
  const root = { folders: new Map(), files: [] };
  for (const file of [...files, ...gone.map(({ path }) => ({ path, kind: path.endsWith("/") ? "folder" : "file" }))])
    place(root, file, how.get(file.path));
  return files.length + gone.length ? branch(root) : h("p.empty", {}, "There are no files.");
}

function place(root, file, how) {
  const parts = file.path.replace(/\/$/, "").split("/");
  const isFolder = file.kind === "folder";
  let folder = root;
  for (const part of isFolder ? parts : parts.slice(0, -1)) {
    if (!folder.folders.has(part)) folder.folders.set(part, { folders: new Map(), files: [], how: undefined });
    folder = folder.folders.get(part);
    folder.isChanged ||= how !== undefined;
  }
  if (isFolder) folder.how = how;
  else folder.files.push({ ...file, name: parts[parts.length - 1], how });
}

function branch({ folders, files }) {
  const byName = (one, other) => (one < other ? -1 : 1);
  const below = [...folders].sort(([one], [other]) => byName(one, other)).map(([name, folder]) =>
    h(
      "li",
      {},
      h(
        "details",
        { open: folder.isChanged === true },
        h("summary", {}, recorded("span.name", `${name}/`), mark(folder.how)),
        branch(folder),
      ),
    ),
  );
  const here = files.sort((one, other) => byName(one.name, other.name)).map((file) =>
    h(
      `li.file${file.kind === "left-out" ? ".left-out" : ""}`,
      {},
      recorded("span.name", file.target ? `${file.name} → ${file.target}` : file.name),
      mark(file.how),
      h("span.muted", {}, note(file)),
    ),
  );
  return h("ul.branch", {}, ...below, ...here);
}

function note({ kind, why, hidden, sizeBytes }) {
  if (kind === "left-out") return `not recorded: ${why}`;
  return `${sizeBytes === undefined ? "" : `${count(sizeBytes)} B`}${hidden ? ", secrets hidden" : ""}`;
}

function mark(how) {
  return how && MARKS[how] ? h(`span.how.is-${MARKS[how]}`, {}, MARKS[how]) : null;
}

function changesView(run, { seq }, changes, number) {
  const head = h(
    "p.muted.links",
    {},
    number === 0 ? "The files at the start of the run." : `${plural(changes.length, "change")} `,
    seq && number ? link("a", toRun(run, { seq }), {}, `event ${seq}`) : null,
  );
  return [head, ...changes.map(fileChange)];
}

function fileChange({ path, how, diff, cameFrom }) {
  const title = [mark(how), recorded("span.name", cameFrom ? `${path} (was ${cameFrom})` : path)];
  const lines = diff.length ? h("pre.code.text-diff", { tabindex: 0 }, ...diff.map(diffLine)) : null;
  return h("section.part", {}, h("h2.file-title", {}, ...title), lines);
}

// The state of the run: all reads and changes of files, environment and memory, in order.

import { fill, h, link, recorded } from "./dom.js";
import { jsonTree } from "./json_tree.js";
import { prose } from "./prose.js";
import { toRun } from "./route.js";
import { duration, plural } from "./text.js";

const PAGE_CHANGES = 50;

export async function stateView(source, run) {
  const changes = h("ol.changes");
  const more = h("button.more", { type: "button", onclick: load }, "More");
  const element = h("section.state", { "aria-label": "State and memory" }, changes, more);
  let shown = 0;

  async function load() {
    const page = await source.steps(run.line.id, { from: shown, count: PAGE_CHANGES, kind: "state" });
    const found = await Promise.all(page.rows.map((step) => source.detail(run.line.id, step.seq)));
    shown += page.rows.length;
    changes.append(...found.map((detail) => change(run.line.id, detail)));
    more.hidden = page.isComplete && shown >= page.total;
    more.textContent = page.isComplete ? plural(page.total - shown, "more change") : "Look for more";
    if (page.isComplete && !page.total)
      fill(element, h("p.empty", {}, "This run recorded no reads or changes of state."));
  }

  await load();
  return { element };
}

function change(run, { step, payloads: { request, response, error } }) {
  const { type, source, group_id: group, path, content, details } = request ?? {};
  const place = [source, group, path].filter(Boolean).join(" · ");
  const kept = error ?? content ?? details ?? response;
  const seq = link(
    "a.seq",
    toRun(run, { seq: step.seq }),
    { "aria-label": `Event ${step.seq}` },
    `#${step.seq}`,
  );
  return h(
    `li.change.is-${step.state}`,
    {},
    h(
      "div.change-head",
      {},
      recorded("span.kind.k-state", type ?? step.name),
      recorded("span.place", place),
      h("span.spring"),
      h("span.when", {}, duration(step.atMs)),
      seq,
    ),
    kept === undefined || kept === null
      ? null
      : typeof kept === "string"
        ? prose(kept)
        : jsonTree(kept, { open: 2 }),
  );
}

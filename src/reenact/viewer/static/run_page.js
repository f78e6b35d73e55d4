// One run: its header, timeline, conversation, state, divergences, forks and files.

import { verifyButton } from "./badge.js";
import { conversationView } from "./conversation.js";
import { divergencesView } from "./divergences.js";
import { fill, h, link, recorded } from "./dom.js";
import { factList } from "./facts.js";
import { filesView } from "./files.js";
import { forksView } from "./forks.js";
import { TABS, toRun, toRuns } from "./route.js";
import { statusMark } from "./runs_page.js";
import { stateView } from "./state.js";
import { count, duration, moment } from "./text.js";
import { timelineView } from "./timeline.js";

const VIEWS = {
  timeline: timelineView,
  conversation: conversationView,
  state: stateView,
  divergences: divergencesView,
  forks: forksView,
  files: filesView,
};
const POLL_MS = 100;
const FOLLOW_MS = 2000;
const LABELS = {
  timeline: "Timeline",
  conversation: "Conversation",
  state: "State",
  divergences: "Divergences",
  forks: "Forks",
  files: "Files",
};

/** @returns {Promise<import("./main.js").Page>} */
export async function runPage(source, route) {
  const run = await source.run(route.run);
  const page = new RunPage(source, run);
  await page.go(route);
  return {
    element: page.element,
    title: run.line.name,
    go: (next) => page.go(next),
    onKey: (key) => page.onKey(key),
    onShown: () => {
      page.view.onShown?.();
      page.watch();
    },
  };
}

class RunPage {
  constructor(source, run) {
    this.source = source;
    this.run = run;
    this.badge = run.canVerify ? verifyButton(source, run.line.id) : null;
    this.head = h("header.run-head");
    this.tabs = h("nav.tabs", { "aria-label": "Views of the run" });
    this.body = h("div.body");
    this.element = h("article.run", { "aria-label": "Run" }, this.head, this.tabs, this.body);
    this.drawHead();
  }

  /** Update the counts while a large run is read, or a run is being recorded. */
  async watch() {
    while (!this.run.counts.isComplete || this.run.header.state === "open") {
      await new Promise((resolve) => setTimeout(resolve, this.run.counts.isComplete ? FOLLOW_MS : POLL_MS));
      if (!this.element.isConnected) return;
      Object.assign(this.run, await this.source.runFurther(this.run.line.id));
      this.drawHead();
    }
  }

  drawHead() {
    fill(this.head, ...header(this.run, this.source.home, this.badge?.element ?? null));
  }

  /** Show the tab and the event that *route* names. */
  async go(route) {
    if (this.tab === route.tab) return this.view.go?.(route);
    this.tab = route.tab;
    this.drawTabs();
    const view = await VIEWS[route.tab](this.source, this.run, route);
    if (this.tab !== route.tab) return;
    this.view = view;
    fill(this.body, this.view.element);
    if (this.element.isConnected) this.view.onShown?.();
  }

  drawTabs() {
    const tabs = this.shownTabs().map((tab) => {
      const number =
        tab === "divergences" && this.run.divergences
          ? h("span.number", {}, count(this.run.divergences))
          : null;
      const current = tab === this.tab ? "page" : null;
      return link(
        "a.tab",
        toRun(this.run.line.id, { tab }),
        { "aria-current": current },
        `${LABELS[tab]} `,
        number,
      );
    });
    fill(this.tabs, ...tabs);
  }

  /** Only captures have forks, and only runs with recorded files have files. */
  shownTabs() {
    const shown = { forks: this.run.canFork, files: this.run.hasFiles };
    return TABS.filter((tab) => shown[tab] ?? true);
  }

  onKey(key) {
    if (this.view?.onKey?.(key)) return true;
    if (key === "v") this.badge?.verify();
    else if (key >= "1" && key <= String(this.shownTabs().length))
      location.hash = toRun(this.run.line.id, { tab: this.shownTabs()[Number(key) - 1] });
    else if (key === "Escape") location.hash = toRuns();
    else return false;
    return true;
  }
}

function header({ line, header: said, counts }, home, badge) {
  const { tokens } = counts;
  const facts = [
    ["Model", line.model],
    ["Started", moment(line.startedMs)],
    ["Took", duration(line.tookMs ?? counts.durationMs)],
    ["Steps", counts.isComplete ? count(counts.steps) : `${count(counts.steps)} so far`],
    ["Tokens", tokens ? `${count(tokens.input ?? 0)} → ${count(tokens.output ?? 0)}` : null],
    ["Cost", counts.cost === undefined || counts.cost === null ? null : counts.cost.toFixed(4)],
    ["Errors", counts.states.error ? count(counts.states.error) : null],
    ["Fork of", said.forkedFrom],
    ["Command", said.command?.join(" ")],
  ];
  const notices = [line.problem, counts.problem, ...(said.warnings ?? [])].filter(Boolean);
  return [
    h("p.crumbs", {}, home ? "Run" : link("a", toRuns(), {}, "Runs"), " / ", recorded("span", line.kind)),
    h("div.title", {}, recorded("h1", line.name), statusMark(line.status), h("span.spring"), badge),
    ...notices.map((notice) => recorded("p.notice", notice, { role: "alert" })),
    factList(facts),
  ];
}

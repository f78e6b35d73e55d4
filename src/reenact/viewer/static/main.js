// The viewer: a bar at the top, and below it the page that the address names.

import { diffPage } from "./diff_page.js";
import { byId, fill, h, link } from "./dom.js";
import { listen, showHelp } from "./keys.js";
import { parseRoute, toRun, toRuns } from "./route.js";
import { runPage } from "./run_page.js";
import { runsPage } from "./runs_page.js";
import { shadowPage } from "./shadow_page.js";
import { Ended, openSource } from "./source.js";
import { visible } from "./text.js";
import { applyTheme, themeButton, toggleTheme } from "./theme.js";

/**
 * @typedef {Object} Page
 * @property {HTMLElement} element
 * @property {string} title
 * @property {(route: import("./route.js").Route) => void} go to another place of the same page
 * @property {(key: string) => boolean} onKey whether the page handled the key
 * @property {() => void} [onShown]
 */

const PAGES = { runs: runsPage, run: runPage, diff: diffPage, shadow: shadowPage };
const main = byId("main");
const source = openSource();

/** @type {Page|null} */
let page = null;
let pageName = "";

async function show() {
  const route = parseRoute(location.hash);
  if (route.page === "runs" && source.home) return location.replace(toRun(source.home));
  const name = [route.page, route.run, route.a, route.b, route.name].join("\n");
  if (page && pageName === name) return page.go(route);
  page = null;
  pageName = name;
  main.setAttribute("aria-busy", "true");
  const next = await PAGES[route.page](source, route).catch(problemPage);
  if (pageName !== name) return;
  page = next;
  fill(main, next.element);
  main.removeAttribute("aria-busy");
  document.title = `${visible(next.title)} · reenact`;
  next.onShown?.();
}

/** @param {Error} error @returns {Page} */
function problemPage(error) {
  const element = h(
    "section.problem",
    { role: "alert" },
    h("h1", {}, "This cannot be shown"),
    h("p", {}, visible(error.message)),
    link("a", toRuns(), {}, "All runs"),
  );
  return { element, title: "Problem", go: () => {}, onKey: () => false };
}

function onKey(key) {
  if (page?.onKey(key)) return true;
  const actions = { "?": showHelp, t: toggleTheme };
  actions[key]?.();
  return key in actions;
}

function topBar() {
  const brand = link(
    "a.brand",
    toRuns(),
    { "aria-label": "reenact: all runs" },
    h("span.mark", { "aria-hidden": "true" }),
    "reenact",
  );
  const help = h(
    "button.plain",
    { type: "button", title: "Keyboard (?)", "aria-label": "Keyboard help", onclick: showHelp },
    "?",
  );
  return [brand, h("span.spring"), themeButton(), help];
}

/** After a failed request the page stays, and shows that it may be outdated. */
function onUnanswered(event) {
  if (!(event.reason instanceof Ended)) return;
  event.preventDefault();
  fill(byId("notices"), h("p.notice", { role: "alert" }, event.reason.message));
}

applyTheme();
fill(byId("top"), ...topBar());
byId("skip").addEventListener("click", () => main.focus());
listen(onKey);
addEventListener("hashchange", show);
addEventListener("unhandledrejection", onUnanswered);
show();

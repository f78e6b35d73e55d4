// The current place in the viewer, as the part of the address after `#`.
//
// #/                          the runs          #/?q=…&status=…
// #/run/ID                    its timeline      #/run/ID?kind=tool&q=…
// #/run/ID/event/17           one event of it
// #/run/ID/conversation       … state, divergences, forks, files
// #/diff/A/B                  two runs side by side
// #/shadow/NAME               a shadow report

/**
 * @typedef {Object} Route
 * @property {"runs"|"run"|"diff"|"shadow"} page
 * @property {string} [run]
 * @property {string} [tab]
 * @property {number|null} [seq] the chosen event
 * @property {string} [a] the left run of a comparison
 * @property {string} [b]
 * @property {string} [name] of a shadow report
 * @property {Object<string, string>} filter
 */

export const TABS = ["timeline", "conversation", "state", "divergences", "forks", "files"];

/** @returns {Route} */
export function parseRoute(hash) {
  const [path, query = ""] = hash.replace(/^#/, "").split("?", 2);
  const parts = path.split("/").filter(Boolean).map(decoded);
  const filter = Object.fromEntries(new URLSearchParams(query));
  if (parts[0] === "run" && parts[1]) return runRoute(parts, filter);
  if (parts[0] === "diff" && parts[2]) return { page: "diff", a: parts[1], b: parts[2], filter };
  if (parts[0] === "shadow" && parts[1]) return { page: "shadow", name: parts[1], filter };
  return { page: "runs", filter };
}

/** @returns {Route} */
function runRoute([, run, what, number], filter) {
  const seq = what === "event" && /^[1-9][0-9]*$/.test(number ?? "") ? Number(number) : null;
  const tab = TABS.includes(what) ? what : "timeline";
  return { page: "run", run, tab, seq, filter };
}

export const toRuns = (filter = {}) => `#/${asQuery(filter)}`;
export const toShadow = (name) => `#/shadow/${encodeURIComponent(name)}`;
export const toDiff = (a, b) => `#/diff/${encodeURIComponent(a)}/${encodeURIComponent(b)}`;

/**
 * @param {string} run
 * @param {{tab?: string, seq?: number|null, filter?: Object<string, string>}} [place]
 */
export function toRun(run, { tab = "timeline", seq = null, filter = {} } = {}) {
  const place = seq ? `/event/${seq}` : tab === "timeline" ? "" : `/${tab}`;
  return `#/run/${encodeURIComponent(run)}${place}${asQuery(filter)}`;
}

/** Change the address without a new entry in the history. */
export function replaceRoute(hash) {
  history.replaceState(null, "", hash);
}

function asQuery(filter) {
  const query = new URLSearchParams(Object.entries(filter).filter(([, value]) => value)).toString();
  return query && `?${query}`;
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

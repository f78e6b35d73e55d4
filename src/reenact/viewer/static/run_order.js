// Filters and sorts the list of runs.

const LATEST_FIRST = "-startedMs";

export const CHOICES = ["status", "model", "kind"];

/** The runs that match the chosen fields and all the words. */
export function matchingRuns(runs, filter) {
  const words = (filter.q ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  return runs.filter((run) => {
    const text = [run.name, run.model, run.kind, run.status, run.problem].join(" ").toLowerCase();
    const isChosen = CHOICES.every((name) => !filter[name] || run[name] === filter[name]);
    return isChosen && words.every((word) => text.includes(word));
  });
}

/** @returns {{key: string, isDown: boolean}} */
export function orderOf(filter) {
  const sort = filter.sort ?? LATEST_FIRST;
  return { key: sort.replace(/^-/, ""), isDown: sort.startsWith("-") };
}

export function orderedRuns(runs, filter) {
  const { key, isDown } = orderOf(filter);
  const sign = isDown ? -1 : 1;
  return [...runs].sort((a, b) => sign * compared(a[key], b[key]) || compared(a.name, b.name));
}

function compared(a, b) {
  if (typeof a === "string" && typeof b === "string") return a.localeCompare(b, "en", { numeric: true });
  const [one, other] = [a ?? -1, b ?? -1];
  return one < other ? -1 : Number(one > other);
}

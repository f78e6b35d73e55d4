// The search of a self-contained page: the terms of `reenact show --filter`.

/** Whether a lane is the given one or below it. */
const isInTask = (step, fits, value) =>
  fits(step.lane) || [".", "/", "~", ":"].some((mark) => step.lane.startsWith(`${value}${mark}`));
const KEYS = {
  kind: (step, fits) => fits(step.kind),
  name: (step, fits) => fits(step.name),
  tool: (step, fits) => step.kind === "tool" && fits(step.name),
  state: (step, fits) => fits(step.state),
  task: isInTask,
  lane: isInTask,
};
const STATES = ["ok", "error", "cancelled", "open"];

/**
 * A function that tests whether a step matches all *words*.
 * @param {string} words
 * @returns {(step: any, text: string) => boolean} *text* has all recorded texts of the step, in lower case
 */
export function termsOf(words) {
  const terms = (words.match(/"[^"]*"|\S+/g) ?? []).map((word) => term(word.replaceAll('"', "")));
  return (step, text) => terms.every((fits) => fits(step, text));
}

function term(word) {
  const isNegated = word.startsWith("!");
  const body = isNegated ? word.slice(1) : word;
  const [, key, value] = body.match(/^(\w+):(.+)$/) ?? (STATES.includes(body) ? [body, "state", body] : []);
  const says = key === "text" ? value : body;
  const found = key in KEYS ? byKey(key, value) : (_, text) => text.includes(says.toLowerCase());
  return (step, text) => found(step, text) !== isNegated;
}

function byKey(key, values) {
  const tests = values.split(",").map((value) => {
    const pattern = new RegExp(
      `^${value
        .replace(/[.+^${}()|[\]\\]/g, "\\$&")
        .replace(/\*/g, ".*")
        .replace(/\?/g, ".")}$`,
      "s",
    );
    return (step) => KEYS[key](step, (text) => pattern.test(text), value);
  });
  return (step) => tests.some((fits) => fits(step));
}

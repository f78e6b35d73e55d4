// Kinds of steps; all nondeterministic sources have one colour.

const COLOURED = ["model", "tool", "state", "network", "process", "message"];

export function kindClass(kind) {
  return COLOURED.includes(kind) ? kind : "chance";
}

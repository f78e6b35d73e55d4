// Kinds of steps; those that are sources of chance share one colour.

const COLOURED = ["model", "tool", "state", "network", "process", "message"];

export function kindClass(kind) {
  return COLOURED.includes(kind) ? kind : "chance";
}

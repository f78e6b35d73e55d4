import { ask, makeAgent } from "./_weather.mjs";

for await (const [piece, about] of await makeAgent().stream(ask("How is the weather in Oslo and Lima?"), {
  streamMode: "messages",
})) {
  console.log(about.langgraph_node, JSON.stringify(piece.text));
}

import Anthropic from "@anthropic-ai/sdk";
const client = new Anthropic();
const ask = (topic) => client.messages
  .stream({ model: "claude-sonnet-4-5", max_tokens: 100, messages: [{ role: "user", content: `Say something about ${topic}` }] })
  .on("text", (text) => topic === "ants" && process.stdout.write(text))
  .finalText();
const said = await Promise.all(["ants", "bees", "cats"].map(ask));
console.log(await ask(said.join("; ")));

// An agent in Node: the model may look into a folder, and answers a question about it.
import { readdir } from "node:fs/promises";

const baseUrl = process.env.ANTHROPIC_BASE_URL ?? "https://api.anthropic.com";
const tools = [
  {
    name: "list_files",
    description: "The names of the files in a folder.",
    input_schema: { type: "object", properties: { folder: { type: "string" } } },
  },
];
const messages = [{ role: "user", content: process.argv[2] }];

while (true) {
  const answer = await fetch(`${baseUrl}/v1/messages`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": process.env.ANTHROPIC_API_KEY ?? "" },
    body: JSON.stringify({ model: "claude-sonnet-4-5", max_tokens: 500, tools, messages }),
  });
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.error.message);
  const calls = said.content.filter((part) => part.type === "tool_use");
  if (!calls.length) {
    console.log(said.content.map((part) => part.text).join(""));
    break;
  }
  const results = calls.map(async ({ id, input }) => {
    const names = (await readdir(input.folder)).sort();
    return { type: "tool_result", tool_use_id: id, content: names.join("\n") };
  });
  messages.push({ role: "assistant", content: said.content });
  messages.push({ role: "user", content: await Promise.all(results) });
}

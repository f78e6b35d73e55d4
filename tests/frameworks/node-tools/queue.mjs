import OpenAI from "openai";
import PQueue from "p-queue";
const client = new OpenAI(), queue = new PQueue({ concurrency: 2 }), said = [];
const ask = async (content) => (await client.chat.completions.create({ model: "gpt-4o-mini", messages: [{ role: "user", content }] })).choices[0].message.content;
await queue.addAll(["ants", "bees", "cats", "dogs", "eels"].map((topic) => async () => said.push(await ask(`Say something about ${topic}`))));
console.log(await ask(`Sum up ${said.join("; ")}`));

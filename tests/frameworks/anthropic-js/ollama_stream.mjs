import { Ollama } from "ollama";
const ollama = new Ollama({ host: process.env.OLLAMA_HOST });
const asked = (topic) => [{ role: "user", content: `Say something about ${topic}` }];
const said = await Promise.all(["ants", "bees"].map(async (topic) => (await ollama.chat({ model: "llama3.2", messages: asked(topic) })).message.content));
for await (const piece of await ollama.chat({ model: "llama3.2", messages: asked(said.join("; ")), stream: true })) process.stdout.write(piece.message.content);

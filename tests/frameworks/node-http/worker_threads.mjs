import { Worker, isMainThread, parentPort, workerData } from "node:worker_threads"; import OpenAI from "openai"; import { fileURLToPath } from "node:url";
const ask = async (q) => (await new OpenAI().chat.completions.create({ model: "gpt-4o-mini", messages: [{ role: "user", content: q }] })).choices[0].message.content;
if (isMainThread) {
  const said = await Promise.all(["ants", "bees", "cats"].map((t) => new Promise((ok, no) => { const w = new Worker(fileURLToPath(import.meta.url), { workerData: t }); w.on("message", ok); w.on("error", no); })));
  console.log(said, await ask("Sum up " + said.join("; ")));
} else parentPort.postMessage(await ask(`Say something about ${workerData}`));

import { request } from "undici";
const url = process.env.OPENAI_BASE_URL + "/chat/completions"; const said = [];
const ask = async (q, stream) => { const r = await request(url, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ model: "gpt-4o-mini", stream, messages: [{ role: "user", content: q }] }) }); let t = ""; for await (const c of r.body) t += c; return t; };
await Promise.all(["ants", "bees", "cats", "dogs"].map(async (t) => said.push(JSON.parse(await ask(`Say something about ${t}`, false)).choices[0].message.content)));
console.log((await ask("Sum up " + said.join("; "), true)).split("\n").length, said);

import got from "got";
const url = process.env.OPENAI_BASE_URL + "/chat/completions"; const said = [];
const ask = async (q) => { const r = await got.post(url, { json: { model: "gpt-4o-mini", messages: [{ role: "user", content: q }] } }).json(); said.push(r.choices[0].message.content); };
await Promise.all(["ants", "bees", "cats", "dogs"].map((t) => ask(`Say something about ${t}`)));
await ask("Sum up " + said.join("; ")); console.log(said);

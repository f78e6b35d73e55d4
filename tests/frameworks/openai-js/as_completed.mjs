import OpenAI from "openai";
const client = new OpenAI();
const said = [];
const ask = async (topic) => {
  const made = await client.chat.completions.create({ model: "gpt-4o-mini", messages: [{ role: "user", content: `Say something about ${topic}` }] });
  said.push(made.choices[0].message.content);
};
await Promise.all(["ants", "bees", "cats", "dogs", "eels", "fish"].map(ask));
console.log(said);
await ask("all of: " + said.join("; "));
console.log(said.at(-1));

import OpenAI from "openai";
const client = new OpenAI();
const runner = client.chat.completions.runTools({
  model: "gpt-4o-mini", stream: true,
  messages: [{ role: "user", content: "How is the weather in Paris, Oslo and Rome?" }],
  tools: [{ type: "function", function: { name: "get_weather", parse: JSON.parse, function: async ({ city }) => { await new Promise((r) => setTimeout(r, 30 - city.length)); return `${city.length} degrees in ${city}`; }, parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] } } }],
});
for await (const piece of runner) process.stdout.write(piece.choices[0]?.delta?.content ?? "");
console.log(await runner.finalContent());
const stream = client.responses.stream({ model: "gpt-4o-mini", input: "About ants" });
for await (const event of stream) console.log(event.type);

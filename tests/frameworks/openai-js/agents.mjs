import { Agent, run, tool, setTracingDisabled, setOpenAIAPI } from "@openai/agents";
import { z } from "zod";
setTracingDisabled(true);
const weather = tool({ name: "get_weather", description: "weather", parameters: z.object({ city: z.string() }), execute: async ({ city }) => `${city.length} degrees in ${city}` });
const agent = new Agent({ name: "W", instructions: `Be helpful. Today is ${new Date().toISOString()}. Run ${crypto.randomUUID()}`, model: "gpt-4o-mini", tools: [weather] });
const many = await Promise.all(["Paris", "Oslo"].map((c) => run(agent, `How is the weather in ${c} and Rome?`)));
console.log(many.map((m) => m.finalOutput));
const streamed = await run(agent, "How is the weather in Lima?", { stream: true });
for await (const event of streamed) console.log(event.type);

import { Agent, run, setOpenAIAPI, tool } from "@openai/agents";
import { z } from "zod";

setOpenAIAPI("chat_completions");
const weather = tool({
  name: "get_weather",
  description: "The weather in a city",
  parameters: z.object({ city: z.string() }),
  execute: async ({ city }) => `${city.length} degrees in ${city}`,
});
const agent = new Agent({ name: "Weatherman", instructions: "You are helpful.", model: "gpt-4o-mini", tools: [weather] });
const answers = await Promise.all(["Paris", "Oslo", "Lima"].map((city) => run(agent, `How is the weather in ${city} and Rome?`)));
for (const answer of answers) console.log(answer.finalOutput);

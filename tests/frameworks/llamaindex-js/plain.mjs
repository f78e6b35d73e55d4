import { openai } from "@llamaindex/openai";
import { agent } from "@llamaindex/workflow";
import { tool } from "llamaindex";
import { z } from "zod";

const weather = tool({
  name: "get_weather",
  description: "The weather in a city",
  parameters: z.object({ city: z.string() }),
  execute: ({ city }) => `${city.length} degrees in ${city}`,
});
const made = agent({ tools: [weather], llm: openai({ model: "gpt-4o-mini", apiKey: "unused", baseURL: process.env.OPENAI_BASE_URL }) });
const result = await made.run("How is the weather in Paris and Rome?");
console.log(JSON.stringify(result.data.result));

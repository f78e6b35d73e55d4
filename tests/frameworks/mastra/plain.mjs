import { createOpenAI } from "@ai-sdk/openai";
import { Agent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { z } from "zod";

const openai = createOpenAI({ baseURL: process.env.OPENAI_BASE_URL });
const weather = createTool({
  id: "get_weather",
  description: "The weather in a city",
  inputSchema: z.object({ city: z.string() }),
  outputSchema: z.object({ said: z.string() }),
  execute: async (input) => ({ said: `degrees in ${JSON.stringify(input.city ?? input.context?.city)}` }),
});
const agent = new Agent({ id: "w", name: "Weatherman", instructions: "You are helpful.", model: openai.chat("gpt-4o-mini"), tools: { get_weather: weather } });
const answer = await agent.generate("How is the weather in Paris and Rome?");
console.log(answer.text);
const stream = await agent.stream("How is the weather in Oslo?");
for await (const piece of stream.textStream) process.stdout.write(piece);
console.log();

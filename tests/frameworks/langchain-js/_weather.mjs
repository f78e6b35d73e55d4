import { ChatAnthropic } from "@langchain/anthropic";
import { ChatOpenAI } from "@langchain/openai";
import { createAgent, tool } from "langchain";
import { z } from "zod";

const weather = tool(({ city }) => `${city.length} degrees in ${city}`, {
  name: "get_weather",
  description: "The weather in a city",
  schema: z.object({ city: z.string() }),
});
const models = {
  openai: () => new ChatOpenAI({ model: "gpt-4o-mini", configuration: { baseURL: process.env.OPENAI_BASE_URL } }),
  anthropic: () => new ChatAnthropic({ model: "claude-sonnet-4-5", anthropicApiUrl: process.env.ANTHROPIC_BASE_URL }),
};
export const makeAgent = (model = "openai") => createAgent({ model: models[model](), tools: [weather] });
export const ask = (content) => ({ messages: [{ role: "user", content }] });

import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { stepCountIs, tool } from "ai";
import { z } from "zod";

export const openai = createOpenAI()("gpt-4o-mini");
export const anthropic = createAnthropic({ baseURL: `${process.env.ANTHROPIC_BASE_URL}/v1` })("claude-sonnet-4-5");
export const settings = {
  tools: {
    get_weather: tool({
      description: "The weather in a city",
      inputSchema: z.object({ city: z.string() }),
      execute: async ({ city }) => `${city.length} degrees in ${city}`,
    }),
  },
  stopWhen: stepCountIs(5),
};

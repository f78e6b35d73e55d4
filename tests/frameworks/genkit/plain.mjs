import { openAI } from "@genkit-ai/compat-oai/openai";
import { genkit, z } from "genkit";

const ai = genkit({ plugins: [openAI({ apiKey: "unused", baseURL: process.env.OPENAI_BASE_URL })] });
const weather = ai.defineTool(
  { name: "get_weather", description: "The weather in a city", inputSchema: z.object({ city: z.string() }), outputSchema: z.string() },
  async ({ city }) => `${city.length} degrees in ${city}`,
);
const { text } = await ai.generate({ model: openAI.model("gpt-4o-mini"), prompt: "How is the weather in Paris and Rome?", tools: [weather] });
console.log(text);

import { generateText } from "ai";
import { anthropic, openai, settings } from "./_weather.mjs";

for (const model of [openai, anthropic]) {
  const { text } = await generateText({ model, prompt: "How is the weather in Paris and Rome?", ...settings });
  console.log(text);
}

import { generateText } from "ai";
import { openai, settings } from "./_weather.mjs";

const asked = ["Paris", "Oslo", "Lima"].map((city) =>
  generateText({ model: openai, prompt: `How is the weather in ${city} and Rome?`, ...settings }),
);
for (const { text } of await Promise.all(asked)) console.log(text);

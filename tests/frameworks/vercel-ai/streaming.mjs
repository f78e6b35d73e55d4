import { streamText } from "ai";
import { openai, settings } from "./_weather.mjs";

const { textStream } = streamText({ model: openai, prompt: "How is the weather in Oslo and Lima?", ...settings });
for await (const piece of textStream) console.log(JSON.stringify(piece));

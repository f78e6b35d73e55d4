import { generateText, Output } from "ai";
import { z } from "zod";
import { openai } from "./_weather.mjs";

const schema = z.object({ name: z.string(), age: z.number() });
const { output } = await generateText({ model: openai, prompt: "Ada is 36", output: Output.object({ schema }) });
console.log(output);

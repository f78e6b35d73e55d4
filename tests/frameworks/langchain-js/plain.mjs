import { ask, makeAgent } from "./_weather.mjs";

for (const model of ["openai", "anthropic"]) {
  const { messages } = await makeAgent(model).invoke(ask("How is the weather in Paris and Rome?"));
  console.log(messages.map((message) => message.text));
}

import { ask, makeAgent } from "./_weather.mjs";

const asked = ["Paris", "Oslo", "Lima", "Cairo"].map((city) => ask(`How is the weather in ${city} and Rome?`));
for (const { messages } of await makeAgent().batch(asked)) console.log(messages.at(-1).text);

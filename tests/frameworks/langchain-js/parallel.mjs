import { ask, makeAgent } from "./_weather.mjs";

const asked = ["Paris", "Oslo", "Lima", "Cairo"].map((city) => ask(`How is the weather in ${city} and Rome?`));
const answers = await Promise.all(asked.map((question) => makeAgent().invoke(question)));
for (const { messages } of answers) console.log(messages.at(-1).text);

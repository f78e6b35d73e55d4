import Anthropic from "@anthropic-ai/sdk";
const client = new Anthropic();
const tools = [{ name: "get_weather", description: "The weather", input_schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] } }];
const messages = [{ role: "user", content: "How is the weather in Paris, Oslo and Rome?" }];
for (;;) {
  const answer = await client.messages.create({ model: "claude-sonnet-4-5", max_tokens: 1000, tools, messages });
  messages.push({ role: "assistant", content: answer.content });
  const calls = answer.content.filter((block) => block.type === "tool_use");
  if (!calls.length) { console.log(answer.content[0].text); break; }
  const content = await Promise.all(calls.map(async (call) => {
    await new Promise((resolve) => setTimeout(resolve, 30 - call.input.city.length));
    return { type: "tool_result", tool_use_id: call.id, content: `${call.input.city.length} degrees in ${call.input.city}` };
  }));
  messages.push({ role: "user", content });
}

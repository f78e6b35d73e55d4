import express from "express";
import OpenAI from "openai";
const client = new OpenAI(), app = express();
app.get("/:topic", async (request, response) => {
  const made = await client.chat.completions.create({ model: "gpt-4o-mini", messages: [{ role: "user", content: `Say something about ${request.params.topic}` }] });
  response.json({ said: made.choices[0].message.content });
});
const server = app.listen(0, "127.0.0.1", async () => {
  const { port } = server.address();
  const said = await Promise.all(["ants", "bees", "cats"].map(async (topic) => (await (await fetch(`http://127.0.0.1:${port}/${topic}`)).json()).said));
  console.log(said);
  server.close();
});

import OpenAI from "openai";
import { WebSocket, WebSocketServer } from "ws";
const client = new OpenAI();
const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
server.on("connection", (socket) => socket.on("message", async (topic) => {
  const stream = await client.chat.completions.create({ model: "gpt-4o-mini", stream: true, messages: [{ role: "user", content: `Say something about ${topic}` }] });
  for await (const piece of stream) socket.send(piece.choices[0]?.delta?.content ?? "");
  socket.close();
}));
await new Promise((resolve) => server.on("listening", resolve));
for (const topic of ["ants", "bees"]) {
  const socket = new WebSocket(`ws://127.0.0.1:${server.address().port}`);
  socket.on("open", () => socket.send(topic));
  let said = "";
  socket.on("message", (text) => { said += text; });
  await new Promise((resolve) => socket.on("close", resolve));
  console.log(said);
}
server.close();

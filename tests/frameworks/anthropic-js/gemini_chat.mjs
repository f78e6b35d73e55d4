import { GoogleGenAI } from "@google/genai";
const client = new GoogleGenAI({ apiKey: "unused", httpOptions: { baseUrl: process.env.GOOGLE_GEMINI_BASE_URL } });
const chat = client.chats.create({ model: "gemini-2.5-flash" });
console.log((await chat.sendMessage({ message: "Say something about ants" })).text);
for await (const piece of await chat.sendMessageStream({ message: `And bees? It is ${new Date().toDateString()}` })) process.stdout.write(piece.text ?? "");

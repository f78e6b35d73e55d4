import { ChatOpenAI } from "@langchain/openai";
import { Annotation, END, MemorySaver, Send, START, StateGraph } from "@langchain/langgraph";

const model = new ChatOpenAI({ model: "gpt-4o-mini", configuration: { baseURL: process.env.OPENAI_BASE_URL } });
const State = Annotation.Root({ topics: Annotation(), said: Annotation({ reducer: (a, b) => a.concat(b), default: () => [] }) });
const graph = new StateGraph(State)
  .addNode("ask", async ({ topic }) => ({ said: [(await model.invoke(`Tell me of ${topic}`)).text] }))
  .addNode("sum", async ({ said }) => ({ said: [(await model.invoke(`Sum up: ${said.join("; ")}`)).text] }))
  .addConditionalEdges(START, ({ topics }) => topics.map((topic) => new Send("ask", { topic })))
  .addEdge("ask", "sum")
  .addEdge("sum", END)
  .compile({ checkpointer: new MemorySaver() });
const config = { configurable: { thread_id: "1" }, streamMode: "updates" };
for await (const piece of await graph.stream({ topics: ["ants", "bees", "cats"] }, config)) console.log(JSON.stringify(piece));

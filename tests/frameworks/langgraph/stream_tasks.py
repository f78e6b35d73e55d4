from _weather import ask, make_agent
from langgraph.checkpoint.memory import InMemorySaver

agent = make_agent()
agent.checkpointer = InMemorySaver()
settings = {"configurable": {"thread_id": "one"}}
for item in agent.stream(ask("How is the weather in Oslo and Lima?"), settings, stream_mode="tasks"):
    print(sorted(item), item.get("step"), item.get("name"))

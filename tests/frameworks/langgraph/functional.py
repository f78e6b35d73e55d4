import uuid

from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.types import Command, interrupt

model = ChatOpenAI(model="gpt-4o-mini")


@task
def write(topic: str) -> str:
    return model.invoke(f"An essay about {topic}").content


@entrypoint(checkpointer=InMemorySaver())
def flow(topics: list[str]) -> dict:
    essays = [future.result() for future in [write(topic) for topic in topics]]
    ok = interrupt({"essays": essays, "action": "approve"})
    return {"last": model.invoke(f"Human said {ok} on {'; '.join(essays)}").content}


config = {"configurable": {"thread_id": str(uuid.uuid4())}}
for item in flow.stream(["cats", "dogs", "eels"], config):
    print(sorted(item))
for item in flow.stream(Command(resume="yes"), config):
    print(item)

"""Tasks of the functional API, and runnables that run in parallel, each as it comes."""

from langchain.chat_models import init_chat_model
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnableParallel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task

model = init_chat_model("openai:gpt-4o-mini")


@task
def write(topic):
    return model.invoke(f"Write about {topic}").text


@task
def judge(text):
    return model.invoke(f"Judge this: {text}").text


@entrypoint(checkpointer=InMemorySaver())
def flow(topics):
    written = [write(topic) for topic in topics]
    return [judge(text.result()).result() for text in written]


print(flow.invoke(["ants", "bees", "cats", "dogs"], {"configurable": {"thread_id": "1"}}))
both = RunnableParallel(
    praise=ChatPromptTemplate.from_template("Praise {topic}") | model,
    blame=ChatPromptTemplate.from_template("Blame {topic}") | model,
    topic=RunnableLambda(lambda given: given["topic"]),
)
topics = [{"topic": topic} for topic in ("eels", "fish", "gnus")]
print([place for place, _ in both.batch_as_completed(topics)])
for part in both.stream({"topic": "hens"}):
    print(list(part))

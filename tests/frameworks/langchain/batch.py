from langchain.chat_models import init_chat_model
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableParallel

model = init_chat_model("openai:gpt-4o-mini")
say = ChatPromptTemplate.from_template("Say something about {topic}") | model | StrOutputParser()
more = ChatPromptTemplate.from_template("Say more about {topic}") | model | StrOutputParser()
both = RunnableParallel(some=say, more=more)
for index, answer in both.batch_as_completed([{"topic": topic} for topic in ("ants", "bees", "cats")]):
    print(index, answer)

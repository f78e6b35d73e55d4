import os

os.environ.update(
    LANGSMITH_TRACING="true", LANGSMITH_API_KEY="lsv2_unused", LANGSMITH_ENDPOINT="http://127.0.0.1:9"
)
from langsmith import traceable
from langsmith.wrappers import wrap_openai
from openai import OpenAI

client = wrap_openai(OpenAI())


@traceable
def one(topic):
    asked = [{"role": "user", "content": f"Say something about {topic}"}]
    return client.chat.completions.create(model="gpt-4o-mini", messages=asked).choices[0].message.content


for topic in ["ants", "bees"]:
    print(one(topic))

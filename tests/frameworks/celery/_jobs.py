from celery import Celery
from openai import OpenAI

app = Celery("jobs", broker="memory://", backend="cache+memory://")


@app.task
def ask(topic):
    asked = [{"role": "user", "content": f"Say something about {topic}"}]
    return OpenAI().chat.completions.create(model="gpt-4o-mini", messages=asked).choices[0].message.content

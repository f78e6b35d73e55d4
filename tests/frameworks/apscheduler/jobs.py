from queue import Queue

from apscheduler.schedulers.background import BackgroundScheduler
from openai import OpenAI

answers = Queue()
TOPICS = ("ants", "bees", "cats", "dogs")


def ask(topic):
    asked = [{"role": "user", "content": f"Say something about {topic}"}]
    answer = OpenAI().chat.completions.create(model="gpt-4o-mini", messages=asked)
    answers.put(answer.choices[0].message.content)


scheduler = BackgroundScheduler()
scheduler.start()
for topic in TOPICS:
    scheduler.add_job(ask, args=[topic])
for _ in TOPICS:
    print(answers.get(timeout=60))
scheduler.shutdown()

from _jobs import app, ask
from celery import group

app.conf.task_always_eager = True
print(group(ask.s(topic) for topic in ("ants", "bees", "cats"))().get())

from pathlib import Path

from celery import Celery
from openai import OpenAI

PLACE = Path.cwd() / "broker"
PLACE.mkdir(exist_ok=True)
app = Celery("jobs", broker="filesystem://", backend=f"file://{PLACE}")
app.conf.broker_transport_options = {
    "data_folder_in": str(PLACE),
    "data_folder_out": str(PLACE),
    "control_folder": str(PLACE),
}


@app.task
def ask(topic):
    asked = [{"role": "user", "content": f"Say something about {topic}"}]
    return OpenAI().chat.completions.create(model="gpt-4o-mini", messages=asked).choices[0].message.content

from _ask import TOPICS, ask, ask_async
from fastapi import BackgroundTasks, FastAPI
from fastapi.testclient import TestClient

app = FastAPI()
said = []


def ask_more(topic):
    said.append(ask(f"Say more about {topic}"))


@app.get("/sync/{topic}")
def respond(topic: str, background: BackgroundTasks):
    background.add_task(ask_more, topic)
    return ask(f"Say something about {topic}")


@app.get("/async/{topic}")
async def respond_async(topic: str):
    return await ask_async(f"Say something about {topic}")


with TestClient(app) as client:
    for topic in TOPICS[:3]:
        print(client.get(f"/sync/{topic}").json(), client.get(f"/async/{topic}").json())
print(said)

import time
import uuid

from _ask import ask, ask_async
from fastapi import BackgroundTasks, FastAPI, Request
from fastapi.responses import StreamingResponse
from fastapi.testclient import TestClient

app = FastAPI()
seen = []


@app.middleware("http")
async def timing(request: Request, call_next):
    began = time.perf_counter()
    response = await call_next(request)
    response.headers["x-took"] = f"{time.perf_counter() - began:.6f}"
    response.headers["x-id"] = str(uuid.uuid4())
    return response


@app.get("/ask/{topic}")
def one(topic: str, later: BackgroundTasks):
    later.add_task(lambda: seen.append(ask(f"Remember {topic}")))
    return {"said": ask(f"Say something about {topic}")}


@app.get("/stream")
async def stream():
    async def pieces():
        for topic in ("dogs", "eels"):
            yield await ask_async(f"Say something about {topic}") + "\n"

    return StreamingResponse(pieces())


with TestClient(app) as client:
    for topic in ("ants", "bees"):
        answer = client.get(f"/ask/{topic}")
        print(answer.json(), answer.headers["x-took"], answer.headers["x-id"])
    print(client.get("/stream").text)
print(ask("Sum up " + "; ".join(seen)))

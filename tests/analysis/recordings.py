"""Real captures, made fast: by recording, or by multiplying the lines of one that was recorded."""

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import reenact
from reenact.boundary import Call, crossing
from reenact.canonical import encode

ANSWER = {
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}]
}
USAGE = {"inputTokens": 100, "outputTokens": 20, "cachedInputTokens": 40}


@reenact.tool
def search(query, limit=2):
    return {"b": [query] * limit, "a": None}


@reenact.tool
def order(item):
    search(item)
    raise KeyError(item)


@reenact.tool
def fetch(size):
    return "x" * size


def ask(*said, model="gpt-5", answer=ANSWER, usage=USAGE):
    """A model call with a chat of these messages."""
    facts = {"provider": "openai_chat", "model": model}
    messages = [
        {"role": "user" if place % 2 == 0 else "assistant", "content": text}
        for place, text in enumerate(said)
    ]
    body = {"model": model, "messages": messages}
    request = {"method": "POST", "url": "https://api.test/v1/chat/completions", "body": body}
    with crossing(Call("llm", "POST /v1/chat/completions", request, facts)) as step:
        step.answer = {"body": json.dumps(answer), "status": 200}
        step.facts = facts | {"stopReason": "stop", "usage": usage}


def side_by_side(*queries):
    """Searches that are all begun before one of them ends."""
    barrier = Barrier(len(queries))

    @reenact.tool
    def wait(query):
        barrier.wait(10)
        return query

    with ThreadPoolExecutor(len(queries)) as pool:
        list(pool.map(wait, queries))


def record(path, *queries, redact="none"):
    """A capture of searches."""
    with reenact.capture(path, redact=redact):
        for query in queries:
            search(query)
    return path


def multiply(path, calls):
    """Record one call and write it *calls* times, each with its own number, id and time."""
    record(path, "lamp")
    log, manifest_file = path / "events.jsonl", path / "manifest.json"
    first, asked, came, last = (json.loads(line) for line in log.read_text().splitlines())
    lines = [encode(first)]
    for number in range(calls):
        for place, event in enumerate((asked, came)):
            event["seq"] = 2 * number + place + 2
            event["ts"] = first["ts"] + 3 * number + place
            event["data"]["callId"] = f"c{number + 1}"
        asked["data"]["args"]["query"] = f"lamp {number}"
        lines += [encode(asked), encode(came)]
    lines.append(encode(last | {"seq": 2 * calls + 2, "ts": first["ts"] + 3 * calls}))
    text = b"\n".join(lines) + b"\n"
    log.write_bytes(text)
    manifest = json.loads(manifest_file.read_text())
    manifest["eventCount"] = len(lines)
    manifest["integrity"] = {
        "algorithm": "sha256",
        "eventsHash": "sha256:" + hashlib.sha256(text).hexdigest(),
    }
    manifest_file.write_bytes(encode(manifest))
    return path

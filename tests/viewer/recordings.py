"""Recorded runs to look at: an ordinary one, one with everything, one that is hostile, and a long one."""

import asyncio
import json
import random
from contextlib import chdir, suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from unittest.mock import patch

import msgspec

import reenact
from reenact.errors import Diverged
from reenact.formats.capture import read_manifest, write_manifest
from reenact.formats.replay_receipt import receipt_codec
from reenact.shadowing.report import report_json
from reenact.testing import Reply, ScriptedProvider, ToolCall, support_agent

HOSTILE = (
    "<script>window.pwned = 1</script>",
    '<img src=x onerror="window.pwned = 1">',
    "<svg xmlns='http://www.w3.org/2000/svg' onload='window.pwned = 1'><script>pwned = 1</script></svg>",
    "[a link](javascript:window.pwned=1)",
    "javascript:window.pwned=1",
    "</script></style></title><iframe srcdoc='<script>parent.pwned = 1</script>'></iframe>",
    "\x1b]8;;http://example.invalid/\x07click\x1b]8;;\x07 \x1b[2J\x1b[31mred",
    "invoice\u202egpj.exe \u2066hidden\u2069 zero\u200bwidth \u2028 line",
    "{{constructor.constructor('window.pwned=1')()}} ${window.pwned=1}",
    "http://example.invalid/pixel.png",
)


def unhurried():
    """The demo's script, at more of a model's pace."""
    turns = support_agent.script().unused
    return [replace(turn, delay_ms=delay_ms) for turn, delay_ms in zip(turns, (80, 140, 50), strict=True)]


def support_run(path, receipt=None):
    """The demo's agent; with *receipt* also a replay of it with one tool changed, which diverges."""
    with ScriptedProvider(unhurried(), models=(support_agent.MODEL,)) as provider:
        url = provider.base_url("anthropic")
        with reenact.capture(path) as run:
            run.final_output = support_agent.answer(support_agent.QUESTION, url)
    if receipt is not None:
        replayed = reenact.replay(path)
        with suppress(Diverged), replayed:
            support_agent.answer(support_agent.QUESTION, url, support_agent.CHANGED_TOOLS)
        receipt.write_bytes(receipt_codec.to_bytes(replayed.receipt) + b"\n")


def changed_run(path):
    """The same agent after somebody's edit."""
    with ScriptedProvider(unhurried(), models=(support_agent.MODEL,)) as provider:
        url = provider.base_url("anthropic")
        with reenact.capture(path) as run:
            run.final_output = support_agent.answer(support_agent.QUESTION, url, support_agent.CHANGED_TOOLS)


def forked_run(parent, path, change, at=8):
    """A fork of the demo's run at its second tool's result, in which the model says something else."""
    with ScriptedProvider([Reply(text="It arrives next month. Sorry!")]) as provider:
        url = provider.base_url("anthropic")
        with (
            suppress(TimeoutError),
            reenact.fork(parent, at=at, change=change, on_miss="live", output=path) as run,
        ):
            run.final_output = support_agent.answer(support_agent.QUESTION, url)


def hasty_model(request):
    """Told to be brief, it promises without looking at odd orders."""
    messages = request.body["messages"]
    order = messages[0]["content"].split()[2]
    if len(messages) > 1:
        return Reply(f"Order {order} is on its way.")
    if "brief" in request.body["system"] and int(order[2:]) % 2:
        return Reply("It will be there tomorrow!")
    return Reply(tool_calls=[ToolCall("find_order", {"order_id": order})])


def shadow_run(folder, numbers):
    """``runs`` with a run for each of *numbers*, ``candidates``, ``shadow.json`` and ``steps.json``."""
    change = {"system": "Be brief."}
    with ScriptedProvider(hasty_model) as provider, chdir(folder):

        def agent(path):
            question = f"My order A-{path.name} has not shipped."
            return support_agent.answer(question, provider.base_url("anthropic"))

        for number in numbers:
            path = Path("runs", str(number))
            with reenact.capture(path) as run:
                run.final_output = agent(path)
        report = reenact.shadow("runs", agent, change=change, on_miss="live", output="candidates")
        Path("shadow.json").write_text(json.dumps(report_json(report)))
        with patch.dict("os.environ", ANTHROPIC_API_KEY="any"):
            steps = reenact.shadow_steps("runs", change=change)
        Path("steps.json").write_text(json.dumps(report_json(steps)))


@reenact.tool
async def fetch(page):
    await asyncio.sleep(0.02 + 0.03 * (page % 3))
    if page == 4:
        raise ValueError(f"page {page} is not there")
    return {"page": page, "words": 120 + page}


@reenact.tool
async def research(topic):
    """Calls inside a call, side by side."""
    pages = await asyncio.gather(*(fetch(page) for page in range(1, 6)), return_exceptions=True)
    return {"topic": topic, "found": sum(isinstance(page, dict) for page in pages)}


def parallel_run(path):
    """Nested and parallel calls, one failure, memory, chance."""

    async def agent(run):
        run.memory_write("notes.md", "The reader prefers short answers.", group_id="reader-7")
        found = await asyncio.gather(research("tea"), research("coffee"))
        run.memory_read("notes.md", lambda: "The reader prefers short answers.", group_id="reader-7")
        run.state_mutation("plan_changed", step=2, reason="two topics are enough")
        return found

    with reenact.capture(path) as run:
        run.final_output = asyncio.run(agent(run))


@reenact.tool
def echo(text):
    return {"echo": text, text[:60]: [text]}


@reenact.tool
def fail(text):
    raise RuntimeError(text)


def hostile_run(path):
    """Everything in it tries to be more than text."""
    with reenact.capture(path) as run:
        for text in HOSTILE:
            echo(text)
            with suppress(RuntimeError):
                fail(text)
            run.memory_write(text, text, group_id=text)
            run.state_mutation(text, detail=text)
        run.final_output = "\n".join(HOSTILE)


def long_run(path, calls):
    """A capture of so many tool calls, written without running them."""
    with reenact.capture(path):
        echo("first")
    [start, *_, end] = (path / "events.jsonl").read_bytes().splitlines(keepends=True)
    head, tail = msgspec.json.decode(start), msgspec.json.decode(end)
    chance = random.Random(7)
    encode = msgspec.json.Encoder(order="sorted").encode
    seq, ts = 1, head["ts"]
    with (path / "events.jsonl").open("wb") as log:
        log.write(start)
        for number in range(calls):
            ts += chance.randrange(3)
            for kind, data in (
                ("tool_call", {"args": {"n": number}, "callId": f"c{number}", "lane": "0", "tool": "count"}),
                ("tool_result", {"callId": f"c{number}", "ok": True, "result": number * number}),
            ):
                seq += 1
                ts += kind == "tool_result"
                log.write(encode({**head, "seq": seq, "ts": ts, "type": kind, "data": data}) + b"\n")
        log.write(encode({**tail, "seq": seq + 1, "ts": ts}) + b"\n")
    _seal_anew(path, seq + 1)


def _seal_anew(path: Path, events: int) -> None:
    """State the count and the digest of the events as they are now."""
    manifest = read_manifest((path / "manifest.json").read_bytes(), file="manifest.json")
    digest = "sha256:" + sha256((path / "events.jsonl").read_bytes()).hexdigest()
    integrity = msgspec.structs.replace(manifest.integrity, eventsHash=digest)
    manifest = msgspec.structs.replace(manifest, eventCount=events, integrity=integrity)
    (path / "manifest.json").write_bytes(write_manifest(manifest))

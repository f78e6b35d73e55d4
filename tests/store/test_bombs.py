"""Small captures that would become very large when read: refused, in bounded time and memory."""

import json
import os
import tracemalloc

import pytest

from reenact.canonical import encode_clean
from reenact.cli import main
from reenact.errors import FormatError
from reenact.formats.capture import NO_MODEL, CaptureSeed, Redaction, seed_codec, write_manifest
from reenact.recorder.sink import Ending, finished_manifest
from reenact.store.reader import CaptureReader
from reenact.store.rundir import RunDir
from tests.hard import rounds

SEED = CaptureSeed(
    version=1,
    captureId="cap_x",
    runId="run_x",
    createdAt=1,
    mode="capture",
    model=NO_MODEL,
    eventLogPath="events.jsonl",
    redaction=Redaction(enabled=False, profile="none"),
)


def written(path, blobs, payloads):
    """A capture with these blobs, each of which may name those before, and a call for each payload."""
    run = RunDir.create(path, seed_codec.to_bytes(SEED) + b"\n")
    digests = []
    for make in blobs:
        digests.append(run.blobs.put(encode_clean(make(digests))))
    data = [("run_start", {})]
    for number, make in enumerate(payloads, 1):
        request = make(digests)
        call = {"callId": f"c{number}", "lane": "0", "source": "network", "key": "x", "request": request}
        data.append(("nondeterministic", call))
        answer = {"callId": f"c{number}", "source": "network", "key": "x", "value": None}
        data.append(("nondeterministic", answer))
    data.append(("run_end", {"status": "ok"}))
    for seq, (kind, fields) in enumerate(data, 1):
        event = {"captureId": "cap_x", "data": fields, "runId": "run_x", "seq": seq, "ts": 1}
        run.journal.append(encode_clean(event | {"type": kind, "version": 1}))
    run.journal.close()
    ending = Ending("ok", 2, NO_MODEL)
    manifest = finished_manifest(SEED, ending, run.journal.count, run.journal.sha256_hex)
    run.finish(write_manifest(manifest))
    return path


def pointing(times):
    return lambda digests: [{"$blob": digests[-1], "bytes": 1}] * times


BOMBS = {
    "blobs within blobs": (
        [lambda _: ["x" * 1000] * 60, *[pointing(1000)] * 6],
        [lambda digests: {"$blob": digests[-1], "bytes": 1}],
    ),
    "one blob very often": (
        [lambda _: ["x" * 1000] * 60],
        [lambda digests: [{"$blob": digests[-1], "bytes": 1}] * 5000],
    ),
    "references with items": (
        [],
        [
            lambda _: {"list": [0] * 40_000},
            lambda _: [{"$ref": {"call": "c1", "path": ["list"], "items": 40_000}, "then": []}] * 8000,
        ],
    ),
    "references to references": (
        [],
        [
            lambda _: {"list": [0] * 40_000},
            *[lambda _: {"list": {"$ref": {"call": "c1", "path": ["list"], "items": 40_000}, "then": [1]}}]
            * 2000,
            lambda _: [{"$ref": {"call": f"c{number}", "path": ["list"]}} for number in range(2, 2002)],
        ],
    ),
    "texts within texts": ([], [lambda _: quoted(12)]),
}


def quoted(depth):
    value = ["x"]
    for _ in range(depth):
        value = {"$json": json.dumps(value)}
    return value


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused(name, tmp_path):
    """With a reason, before it has taken much memory."""
    reader = CaptureReader(written(tmp_path / "run", *BOMBS[name]))
    request = next(event for event in reversed([*reader.events()]) if getattr(event.data, "request", None))
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match="it was not recorded like that"):
            reader.resolve(request.data.request)
        assert tracemalloc.get_traced_memory()[1] < 800_000_000
    finally:
        tracemalloc.stop()


VERBS = {
    "show": ["show", "{run}", "--json"],
    "convert": ["convert", "{run}", "--to", "replay-log", "-o", "{out}"],
    "publish": ["publish", "{run}", "-o", "{out}"],
    "diff": ["diff", "{run}", "{run}"],
    "stats": ["stats", "{run}"],
    "view": ["view", "{run}", "--full", "--html", "{out}"],
    "verify": ["verify", "{run}"],
    "tree": ["show", "{run}", "--tree"],
    "index": ["index", "{run}", "-o", "{out}"],
    "query": ["query", "select * from events", "{run}", "--json"],
    "pack": ["pack", "{run}", "-o", "{out}.pack"],
    "push": ["push", "{run}", "file://{out}"],
    "init": ["test", "--init", "{run}", "{out}"],
    **{to: ["export", "{run}", "--to", to, "-o", "{out}"] for to in ("atif", "har", "otlp", "parquet")},
    "sft": ["export", "{run}", "--to", "sft", "-o", "{out}"],
}
SLOW_BOMB = "references with items"


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("name", ["blobs within blobs", *rounds((), (SLOW_BOMB,))])
@pytest.mark.timeout(60)
def test_no_verb_goes_off(verb, name, tmp_path, capsys):
    """Each says what is wrong, or does without the payload."""
    written(tmp_path / "run", *BOMBS[name])
    words = [word.format(run=tmp_path / "run", out=tmp_path / "out") for word in VERBS[verb]]
    assert main(words) in (0, 1, 2)
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["show", "publish", "diff", "query"])
def test_no_verb_expands_references_with_items(verb, tmp_path, capsys):
    test_no_verb_goes_off(verb, SLOW_BOMB, tmp_path, capsys)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("file", ["events.jsonl", "manifest.json"])
@pytest.mark.timeout(60)
def test_a_planted_pipe_keeps_nobody_waiting(verb, file, tmp_path, capsys):
    """What is no regular file is not read: nobody may ever write into it."""
    written(tmp_path / "run", [], [lambda _: {"messages": []}])
    (tmp_path / "run" / file).unlink()
    os.mkfifo(tmp_path / "run" / file)
    words = [word.format(run=tmp_path / "run", out=tmp_path / "out") for word in VERBS[verb]]
    assert main(words) in (0, 1, 2, 3)
    assert "Traceback" not in capsys.readouterr().err


def test_a_long_chat_is_no_bomb(tmp_path):
    """A chain of a thousand references, each of which adds to the one before."""
    turns = [lambda _: {"list": ["m0"]}]
    for number in range(1, 1000):
        reference = {
            "$ref": {"call": f"c{number}", "path": ["list"], "items": number},
            "then": [f"m{number}"],
        }
        turns.append(lambda _, reference=reference: {"list": reference})
    reader = CaptureReader(written(tmp_path / "run", [], turns))
    last = [*reader.events()][-3]
    assert reader.resolve(last.data.request)["list"] == [f"m{number}" for number in range(1000)]

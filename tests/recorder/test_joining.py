"""Two processes record one run: their events become one capture."""

import json

import pytest

from reenact.boundary import Call, crossing
from reenact.injected.first_call import FirstCallSink
from reenact.recorder.joining import join_parts, part_of
from reenact.recorder.names import Names
from reenact.run.capturing import CaptureRun, Identity
from reenact.seams import stdlib
from reenact.store.reader import CaptureReader

IDENTITY = Identity("cap_x", "run_x", b"salt")


def recording(path, prefix):
    """A run into *path*, or beside it where another has begun."""
    sink = FirstCallSink(path, durability="process", beside=lambda: part_of(path, prefix))
    return CaptureRun(
        sink,
        redact="none",
        blob_threshold_bytes=100,
        stand_ins=stdlib.NOTHING,
        on_warning=None,
        identity=IDENTITY,
        find_names=lambda: Names(call_prefix=prefix),
    )


def ask(text, messages):
    """A model call whose answer comes in two pieces."""
    call = Call("llm", "", {"url": "http://x/v1", "body": {"messages": messages}}, {"model": "m"})
    with crossing(call, streaming=True) as step:
        step.answer = {"text": text}
        step.begin(lambda: None)
        step.piece(text)
        step.piece("end")


HISTORY = [{"role": "user", "content": f"question {number} " + "x" * 80} for number in range(5)]


@pytest.fixture
def path(tmp_path):
    """A capture of one call, and in a part of it one of two."""
    first, second = recording(tmp_path / "run", "a"), recording(tmp_path / "run", "b")
    with first:
        ask("one", HISTORY[:3])
    with second:
        ask("two", HISTORY[:3])
        ask("three", HISTORY)
    return tmp_path / "run"


def test_the_events_of_both_are_one_sequence(path):
    """One beginning, one end, every call with its outcome, and nothing beside."""
    join_parts(path)
    reader = CaptureReader(path)
    events = [*reader.events()]
    assert [event.seq for event in events] == [*range(1, 9)]
    tags = [event.__struct_config__.tag for event in events]
    assert (tags[0], tags[-1], tags.count("run_start"), tags.count("run_end")) == (
        "run_start",
        "run_end",
        1,
        1,
    )
    assert sorted(event.data.callId for event in events[1:-1]) == ["a1", "a1", "b1", "b1", "b2", "b2"]
    assert not (path / "parts").exists()
    assert sorted(file.name for file in path.iterdir()) == ["blobs", "events.jsonl", "manifest.json"]


def test_what_refers_to_another_event_still_does(path):
    """A stream's place, a history that was written before, and payloads in blobs."""
    join_parts(path)
    reader = CaptureReader(path)
    by_call = {}
    for event in [*reader.events()][1:-1]:
        by_call.setdefault(event.data.callId, []).append(event)
    for call, outcome in by_call.values():
        assert outcome.data.opened == call.seq
        assert outcome.data.pieces[1] == "end"
    assert reader.resolved(by_call["b2"][0].data.request)["body"]["messages"] == HISTORY


def test_joining_again_changes_nothing(path):
    """There is nothing left to join."""
    join_parts(path)
    before = (path / "manifest.json").read_bytes()
    join_parts(path)
    assert (path / "manifest.json").read_bytes() == before


def test_a_failure_of_one_is_a_failure_of_the_whole(tmp_path):
    """With its reason."""
    path = tmp_path / "run"
    with recording(path, "a"):
        ask("one", [])
    with pytest.raises(ValueError, match="no lamp"), recording(path, "b"):
        ask("two", [])
        raise ValueError("no lamp")
    join_parts(path)
    reader = CaptureReader(path)
    assert (reader.manifest.status, reader.manifest.error) == ("error", "ValueError: no lamp")
    assert json.loads(reader.line(len(reader)))["data"] == {"status": "error", "error": "ValueError: no lamp"}


def test_an_interrupted_part_is_recovered_first(tmp_path):
    """What it had is in the whole, which then has no end."""
    path = tmp_path / "run"
    with recording(path, "a"):
        ask("one", [])
    part = recording(path, "b").__enter__()
    ask("two", [])
    part.abandon()
    part._context._sink._sink._run.abandon()
    join_parts(path)
    reader = CaptureReader(path)
    assert [event.data.callId for event in [*reader.events()][1:]] == ["a1", "a1", "b1", "b1"]
    assert (reader.manifest.status, reader.manifest.error) == ("error", "interrupted")

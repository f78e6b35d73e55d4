"""Two processes record one run: their events become one capture."""

import copy
import hashlib
import itertools
import json
import os
import shutil
from functools import partial

import msgspec
import pytest

from reenact.boundary import Call, crossing
from reenact.canonical import encode_clean
from reenact.check.integrity.capture import check_capture
from reenact.cli import main
from reenact.formats.capture import read_manifest, write_manifest
from reenact.injected.first_call import FirstCallSink
from reenact.recorder.eventlog import ProcessNames
from reenact.recorder.joining import join_parts, part_of
from reenact.run.capturing import CaptureRun, Identity
from reenact.seams import stdlib
from reenact.store.reader import CaptureReader
from tests.hard import HARD, say
from tests.kills import killed_at

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
        find_names=lambda: ProcessNames(call_prefix=prefix),
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
    assert sorted(file.name for file in path.iterdir()) == [
        "blobs",
        "events.jsonl",
        "manifest.json",
        "transcript.md",
    ]


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
    assert reader.resolve(by_call["b2"][0].data.request)["body"]["messages"] == HISTORY


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
    end = json.loads(reader.line(len(reader)))["data"]
    end.pop("entered", None)  # which newer Pythons tell
    assert end == {"status": "error", "error": "ValueError: no lamp"}


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


# Killed at any moment


def leave(path, *names):
    """Record each of *names* into *path* or beside it, as processes that are killed after one call."""
    for name in names:
        run = recording(path, name).__enter__()
        ask(f"by {name}", HISTORY[:2])
        run.abandon()
        run._context._sink._sink._run.abandon()


def lines(path):
    reader = CaptureReader(path)
    return [json.loads(line) for line in reader.lines()]


def called(path):
    return sorted(event["data"]["callId"] for event in lines(path) if "callId" in event["data"])


def complete(path):
    """What ``reenact recover`` does."""
    assert main(["recover", str(path)]) == 0


@pytest.mark.parametrize("how", ["finished", "interrupted"])
def test_a_kill_at_any_moment_doubles_and_loses_nothing(how, tmp_path, path, capsys, monkeypatch):
    """The work is killed before each of its changes, done again, killed there, and done to its end."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)  # the machine stays up; only time is saved
    if how == "interrupted":
        path = tmp_path / "interrupted"
        leave(path, "a", "b", "c")
    whole = tmp_path / "whole"
    shutil.copytree(path, whole)
    complete(whole)
    for moment in itertools.count(1, 1 if HARD else 6):
        once = tmp_path / str(moment)
        shutil.copytree(path, once)
        if not killed_at(moment, partial(complete, once)):
            break
        again = tmp_path / f"{moment}-again"
        shutil.copytree(once, again)
        killed_at(1 + moment * 7 % 40, partial(complete, again))
        for left in (once, again):
            complete(left)
            assert (left / "events.jsonl").read_bytes() == (whole / "events.jsonl").read_bytes()
            assert sorted(os.listdir(left)) == sorted(os.listdir(whole))
            assert check_capture(left).is_good
            shutil.rmtree(left)
    say(f"{2 * (moment - 1)} kills while a capture that is {how} is completed")
    assert moment > 20
    capsys.readouterr()


def test_what_was_joined_and_left_by_the_old_way_is_not_joined_again(path):
    """Before, the parts were removed after the log had them, and nothing said so."""
    parts = path.parent / "parts"
    shutil.copytree(path / "parts", parts)
    join_parts(path)
    before = (path / "events.jsonl").read_bytes()
    shutil.copytree(parts, path / "parts")
    (path / "parts" / "b" / "manifest.json").unlink()  # half of it removed
    complete(path)
    assert (path / "events.jsonl").read_bytes() == before
    assert not (path / "parts").exists()


def doubled(path):
    """Make of *path* what the old way left when it was killed and done again."""
    join_parts(path)
    events = lines(path)
    start, end, between = events[0], events[-1], events[1:-1]
    start["data"]["processes"] = {"1": {"ended": True}}
    of_part = [event for event in between if event["data"]["callId"].startswith("b")]
    places = {}
    rows = [start]
    for event in between:
        rows.append(event)
        if event in of_part:
            rows.append(copy.deepcopy(event))
    rows.append(end)
    for number, event in enumerate(rows, 1):
        if "opened" in event["data"]:
            event["data"]["opened"] = places[event["data"]["callId"]]
        elif "callId" in event["data"]:
            places[event["data"]["callId"]] = number
        event["seq"] = number
    text = b"".join(encode_clean(row) + b"\n" for row in rows)
    (path / "events.jsonl").write_bytes(text)
    manifest = read_manifest((path / "manifest.json").read_bytes(), file="")
    integrity = msgspec.structs.replace(
        manifest.integrity, eventsHash=f"sha256:{hashlib.sha256(text).hexdigest()}"
    )
    manifest = msgspec.structs.replace(manifest, integrity=integrity, eventCount=len(rows))
    (path / "manifest.json").write_bytes(write_manifest(manifest))


def test_what_the_old_way_doubled_is_mended(path, capsys):
    """Each call once again, and each outcome refers to its call."""
    doubled(path)
    assert not check_capture(path).is_good
    complete(path)
    assert "4 events that stood there twice removed" in capsys.readouterr().out
    assert check_capture(path).findings == []
    assert called(path) == ["a1", "a1", "b1", "b1", "b2", "b2"]
    for event in lines(path):
        if "opened" in event["data"]:
            assert lines(path)[event["data"]["opened"] - 1]["data"]["callId"] == event["data"]["callId"]
    complete(path)
    assert "nothing to do" in capsys.readouterr().out


def test_a_part_without_its_manifest_is_recovered_like_a_run(tmp_path, capsys):
    """Its whole lines are in the capture, which is not called ok."""
    path = tmp_path / "run"
    with recording(path, "a"):
        ask("one", HISTORY[:2])
    leave(path, "b")
    part = part_of(path, "b")
    (part / "manifest.open.json").unlink()
    with (part / "events.jsonl").open("ab") as log:
        log.write(b'{"captureId":"cap')
    complete(path)
    assert called(path) == ["a1", "a1", "b1", "b1"]
    assert not (path / "parts").exists()
    capsys.readouterr()
    manifest = CaptureReader(path).manifest
    assert (manifest.status, manifest.error) == ("error", "interrupted")


def test_two_that_join_at_once_do_it_once(path):
    """The second waits, and finds nothing to do."""
    children = []
    for _ in range(4):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                join_parts(path)
                status = 0
            finally:
                os._exit(status)
        children.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 4
    assert called(path) == ["a1", "a1", "b1", "b1", "b2", "b2"]

"""The capture directory shows from outside where it is in its life."""

from __future__ import annotations

import errno
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from reenact.errors import FormatError, ReenactError, StoreError, UsageError
from reenact.store import claims
from reenact.store.durable import Durability
from reenact.store.rundir import Recording, RunDir, RunState, read_ids, reopen_for_recovery

from . import child

SEED = b'{"eventLogPath":"events.jsonl","version":1}'
FINAL = b'{"eventLogPath":"events.jsonl","status":"ok","version":1}'
MARKER = b'{"reason":"interrupted"}'

START = """
import os, sys, time
from pathlib import Path
from reenact.errors import StoreError
from reenact.store.rundir import RunDir
path = Path(sys.argv[1])
SEED = b'{"version":1}'
"""
RECORD_AND_HANG = (
    START
    + """
run = RunDir.create(path, SEED)
for number in range(3):
    run.journal.append(b'{"n":%d}' % number)
print("ready", flush=True)
time.sleep(60)
"""
)


def names_in(path: Path) -> list[str]:
    return sorted(os.listdir(path))


def interrupted(path: Path) -> Path:
    """A directory whose recorder was killed, with a torn last line and temporary files."""
    recorder = child.start(RECORD_AND_HANG, path)
    assert recorder.stdout is not None
    assert recorder.stdout.readline() == b"ready\n"
    recorder.kill()
    recorder.communicate()
    with (path / "events.jsonl").open("ab") as events:
        events.write(b'{"n":3')
    (path / ".tmp-1-1").write_bytes(b"half")
    (path / "blobs").mkdir()
    (path / "blobs" / ".tmp-1-2").write_bytes(b"half")
    return path


@pytest.fixture
def recording(tmp_path: Path) -> Iterator[Recording]:
    run = RunDir.create(tmp_path / "run", SEED)
    yield run
    run.abandon()


@pytest.mark.parametrize("durability", ["process", "disk"])
def test_a_run_goes_from_open_to_complete(tmp_path: Path, durability: Durability) -> None:
    """Names, states and manifests at each stage; parents are made."""
    path = tmp_path / "runs" / "today" / "triage"
    run = RunDir.create(path, SEED, durability)
    assert (RunDir.open(path).state, names_in(path)) == (
        RunState.OPEN,
        ["events.jsonl", "manifest.open.json"],
    )
    assert RunDir.open(path).read_manifest() == SEED
    run.journal.append(b"{}")
    digest = run.blobs.put(b"payload")
    run.finish(FINAL)
    assert names_in(path) == ["blobs", "events.jsonl", "manifest.json"]
    finished = RunDir.open(path)
    assert (finished.state, finished.read_manifest()) == (RunState.COMPLETE, FINAL)
    assert finished.blobs.get(digest) == b"payload"
    with finished.open_events() as events:
        assert events.read() == b"{}\n"


def test_an_interrupted_run_is_recovered(tmp_path: Path) -> None:
    """Torn line and temporary files go, whole lines stay, a marker tells it from a complete run."""
    path = interrupted(tmp_path / "run")
    assert RunDir.open(path).state is RunState.INTERRUPTED
    recovery = reopen_for_recovery(path)
    assert RunDir.open(path).state is RunState.OPEN
    assert recovery.read_manifest() == b'{"version":1}'
    assert (recovery.events.count, recovery.events.torn_bytes) == (3, 6)
    recovery.finish(FINAL, MARKER)
    assert names_in(path) == ["blobs", "events.jsonl", "manifest.json", "recovered.json"]
    assert names_in(path / "blobs") == []
    assert RunDir.open(path).state is RunState.RECOVERED
    assert (path / "recovered.json").read_bytes() == MARKER
    assert (path / "events.jsonl").read_bytes() == b'{"n":0}\n{"n":1}\n{"n":2}\n'


def test_an_abandoned_recovery_can_be_taken_up_again(tmp_path: Path) -> None:
    """The directory stays interrupted."""
    path = interrupted(tmp_path / "run")
    reopen_for_recovery(path).abandon()
    assert RunDir.open(path).state is RunState.INTERRUPTED
    reopen_for_recovery(path).finish(FINAL, MARKER)
    assert RunDir.open(path).state is RunState.RECOVERED


def test_a_recovery_killed_before_its_end_stays_interrupted(tmp_path: Path) -> None:
    """The marker alone does not make a run recovered."""
    path = interrupted(tmp_path / "run")
    (path / "recovered.json").write_bytes(MARKER)
    assert RunDir.open(path).state is RunState.INTERRUPTED


def test_a_run_killed_right_after_its_manifest_came_is_complete(recording: Recording) -> None:
    """A claim left beside manifest.json does not count."""
    claim = (recording.path / "manifest.open.json").read_bytes()
    recording.finish(FINAL)
    (recording.path / "manifest.open.json").write_bytes(claim)
    assert RunDir.open(recording.path).state is RunState.COMPLETE
    assert RunDir.open(recording.path).read_manifest() == FINAL
    with pytest.raises(StoreError, match="nothing to recover"):
        reopen_for_recovery(recording.path)


def test_a_run_still_being_recorded_is_not_recovered(tmp_path: Path) -> None:
    """The refusal names the process; asking did no harm."""
    with child.start(RECORD_AND_HANG, tmp_path / "run") as recorder:
        assert recorder.stdout is not None
        recorder.stdout.readline()
        assert RunDir.open(tmp_path / "run").state is RunState.OPEN
        with pytest.raises(StoreError, match=f"still being recorded by process {recorder.pid}; "):
            reopen_for_recovery(tmp_path / "run")
        assert RunDir.open(tmp_path / "run").state is RunState.OPEN
        recorder.kill()
    assert RunDir.open(tmp_path / "run").state is RunState.INTERRUPTED


def test_a_finished_run_is_not_recovered(recording: Recording) -> None:
    """There is nothing to do, and saying so beats doing nothing."""
    recording.finish(FINAL)
    with pytest.raises(StoreError, match="is complete; there is nothing to recover"):
        reopen_for_recovery(recording.path)


def test_an_abandoned_run_is_interrupted(recording: Recording) -> None:
    """It can neither be finished nor written any more."""
    recording.journal.append(b"{}")
    recording.abandon()
    assert RunDir.open(recording.path).state is RunState.INTERRUPTED
    with pytest.raises(StoreError, match="not recorded by this process"):
        recording.finish(FINAL)
    with pytest.raises(StoreError, match="is closed"):
        recording.journal.append(b"{}")


FORK_AND_FINISH = (
    START
    + """
run = RunDir.create(path, SEED)
if os.fork() == 0:
    try:
        run.finish(SEED)
    except StoreError as error:
        print(error, flush=True)
    run.abandon()
    os._exit(0)
os.wait()
print(RunDir.open(path).state.value)
run.finish(SEED)
print(RunDir.open(path).state.value)
"""
)


def test_a_forked_child_neither_finishes_nor_unlocks_the_run(tmp_path: Path) -> None:
    """The run is still open when the child is gone, and the parent finishes it."""
    refusal, *states = child.run(FORK_AND_FINISH, tmp_path / "run").splitlines()
    assert "not recorded by this process" in refusal
    assert states == ["open", "complete"]


FORK_AND_DIE = (
    START
    + """
run = RunDir.create(path, SEED)
if os.fork() == 0:
    print(os.getpid(), flush=True)
    time.sleep(60)
os.kill(os.getpid(), 9)
"""
)


def test_a_child_that_outlives_the_recorder_does_not_hold_the_run(tmp_path: Path) -> None:
    """A lock is shared with forked children unless they let go."""
    with child.start(FORK_AND_DIE, tmp_path / "run") as recorder:
        assert recorder.stdout is not None
        survivor = int(recorder.stdout.readline())
        try:
            recorder.wait()
            assert RunDir.open(tmp_path / "run").state is RunState.INTERRUPTED
        finally:
            os.kill(survivor, 9)


RECORD_QUICKLY = (
    START
    + """
print("ready", flush=True)
run = RunDir.create(path, SEED)
for number in range(20):
    run.journal.append(b'{"n":%d}' % number)
run.blobs.put(b"x" * 20_000)
run.finish(b'{"status":"ok"}')
"""
)


@pytest.mark.slow
def test_killed_at_any_moment_a_run_is_complete_or_recoverable(tmp_path: Path) -> None:
    """Twenty kills spread over the life of a run; before it is open nothing was recorded."""
    chance = random.Random(11)
    for round_number in range(20):
        path = tmp_path / str(round_number)
        recorder = child.start(RECORD_QUICKLY, path)
        assert recorder.stdout is not None
        recorder.stdout.readline()
        time.sleep(chance.random() * 0.003)
        recorder.kill()
        recorder.communicate()
        try:
            state = RunDir.open(path).state
        except StoreError:
            assert not (path / "events.jsonl").exists() or not (path / "events.jsonl").read_bytes()
            continue
        if state is RunState.INTERRUPTED:
            reopen_for_recovery(path).finish(FINAL, MARKER)
            assert set(names_in(path)) - {"blobs", "transcript.md"} == {
                "events.jsonl",
                "manifest.json",
                "recovered.json",
            }
        else:
            assert (path / "events.jsonl").read_bytes().count(b"\n") == 20


CREATE = (
    START
    + """
sys.stdin.readline()
try:
    RunDir.create(path, SEED)
    print("won", flush=True)
    time.sleep(60)
except StoreError as error:
    print(error, flush=True)
"""
)


@pytest.mark.slow
def test_of_many_recorders_one_gets_the_directory(tmp_path: Path) -> None:
    """Started at the same moment; the others are reported."""
    recorders = [child.start(CREATE, tmp_path / "run", stdin=-1) for _ in range(6)]
    for recorder in recorders:
        assert recorder.stdin is not None
        recorder.stdin.write(b"\n")
        recorder.stdin.flush()
    answers = [recorder.stdout.readline() for recorder in recorders if recorder.stdout is not None]
    state = RunDir.open(tmp_path / "run").state
    for recorder in recorders:
        recorder.kill()
        recorder.communicate()
    assert sum(answer == b"won\n" for answer in answers) == 1
    assert all(answer == b"won\n" or b"record" in answer for answer in answers)
    assert state is RunState.OPEN


def test_an_occupied_directory_is_refused_with_what_is_there(tmp_path: Path) -> None:
    """A capture is named by its state, other files by their names; nothing is changed."""
    occupied = tmp_path / "occupied"
    occupied.mkdir()
    for name in "abcd":
        (occupied / name).write_bytes(b"mine")
    with pytest.raises(StoreError, match=r"is not empty \(a, b, c, …\); remove it or choose another"):
        RunDir.create(occupied, SEED)
    assert names_in(occupied) == ["a", "b", "c", "d"]
    RunDir.create(tmp_path / "run", SEED).finish(FINAL)
    with pytest.raises(StoreError, match=r"holds a capture already \(complete\)"):
        RunDir.create(tmp_path / "run", SEED)


def test_an_empty_directory_is_used(tmp_path: Path) -> None:
    """As a temporary directory is one."""
    RunDir.create(tmp_path, SEED).finish(FINAL)
    assert RunDir.open(tmp_path).state is RunState.COMPLETE


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    """A file, below a file, and a file system that takes no directories."""
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path / "file", tmp_path / "file" / "run", Path("/proc/self/run")):
        with pytest.raises(StoreError) as caught:
            RunDir.create(path, SEED)
        assert str(caught.value).startswith(f"{path}: ")


def test_an_unknown_durability_is_refused(tmp_path: Path) -> None:
    """Taken for the weaker one it would promise what it does not keep."""
    with pytest.raises(UsageError, match="'dsik' is unknown"):
        RunDir.create(tmp_path / "run", SEED, "dsik")  # type: ignore[arg-type]
    assert names_in(tmp_path) == []


NOT_CAPTURES = {"nothing": None, "a file": "file", "an empty directory": "folder"}


@pytest.mark.parametrize("name", NOT_CAPTURES.values(), ids=NOT_CAPTURES.keys())
def test_what_is_not_a_capture_is_not_opened(tmp_path: Path, name: str | None) -> None:
    """Neither for reading nor for recovery; the message starts with the path."""
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    path = tmp_path / (name or "nowhere")
    for use in (RunDir.open, reopen_for_recovery):
        with pytest.raises(StoreError) as caught:
            use(path)
        assert str(caught.value).startswith(str(path))


def read_all(path: Path) -> None:
    run = RunDir.open(path)
    run.read_manifest()
    run.open_events().close()
    list(run.blobs)


@pytest.mark.parametrize("name", ["events.jsonl", "manifest.json", "blobs"])
def test_a_part_replaced_by_a_link_is_refused(recording: Recording, tmp_path: Path, name: str) -> None:
    """A capture from elsewhere cannot make us read the user's files."""
    recording.blobs.put(b"payload")
    recording.finish(FINAL)
    (recording.path / name).rename(tmp_path / "moved")
    os.symlink(tmp_path / "moved", recording.path / name)
    with pytest.raises(StoreError, match=f"leads through the link '{name}'"):
        read_all(recording.path)


def test_the_manifest_names_the_journal(recording: Recording) -> None:
    """A capture made elsewhere may call it otherwise."""
    recording.finish(b'{"eventLogPath":"log/run.jsonl"}')
    (recording.path / "log").mkdir()
    (recording.path / "events.jsonl").rename(recording.path / "log" / "run.jsonl")
    run = RunDir.open(recording.path)
    assert run.events_path == recording.path / "log" / "run.jsonl"
    with run.open_events() as events:
        assert events.read() == b""


BAD_MANIFESTS = {
    "an absolute path": (b'{"eventLogPath":"/etc/passwd"}', StoreError),
    "a parent": (b'{"eventLogPath":"../run/events.jsonl"}', StoreError),
    "a missing file": (b'{"eventLogPath":"gone.jsonl"}', StoreError),
    "no path": (b'{"eventLogPath":17}', FormatError),
    "no object": (b"[]", FormatError),
    "no JSON": (b"{", FormatError),
    "no UTF-8": (b'{"eventLogPath":"\xff"}', FormatError),
}


@pytest.mark.parametrize(("manifest", "error"), BAD_MANIFESTS.values(), ids=BAD_MANIFESTS.keys())
def test_a_manifest_that_names_no_journal_is_refused(
    recording: Recording, manifest: bytes, error: type[ReenactError]
) -> None:
    """A damaged capture is an error, never an empty recording."""
    recording.finish(manifest)
    with pytest.raises(error):
        RunDir.open(recording.path).open_events()


def test_what_could_not_be_begun_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory that was there stays."""

    def fail(fd: int, data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(claims, "write_all", fail)
    (tmp_path / "there").mkdir()
    for name in ("new", "there"):
        with pytest.raises(StoreError, match="No space left"):
            RunDir.create(tmp_path / name, SEED)
    assert [path.name for path in tmp_path.rglob("*")] == ["there"]


def test_a_damaged_claim_is_refused(tmp_path: Path) -> None:
    """With the file named."""
    path = interrupted(tmp_path / "run")
    (path / "manifest.open.json").write_bytes(b"{")
    with pytest.raises(FormatError, match=r"manifest\.open\.json: "):
        reopen_for_recovery(path)
    assert RunDir.open(path).state is RunState.INTERRUPTED


@pytest.mark.parametrize(
    ("manifest", "ids"),
    {
        "both": (b'{"captureId":"c1","runId":"r1","status":7}', ("c1", "r1")),
        "none": (b"{}", ("", "")),
        "one is no text": (b'{"captureId":1,"runId":"r1"}', ("", "r1")),
        "cut": (b'{"captureId":"c1",', ("", "")),
        "no UTF-8": (b'{"captureId":"\xff"}', ("", "")),
        "no object": (b"[]", ("", "")),
    }.values(),
)
def test_the_ids_of_a_damaged_manifest_are_read_as_far_as_they_are_there(
    manifest: bytes, ids: tuple[str, str]
) -> None:
    """Whoever compares them says that others are missing, instead of failing."""
    assert read_ids(manifest) == ids

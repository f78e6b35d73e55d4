"""The journal: what was acknowledged stays, what is torn goes."""

from __future__ import annotations

import hashlib
import io
import itertools
import os
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reenact import canonical
from reenact.errors import StoreError
from reenact.formats.lines import MAX_LINE_BYTES
from reenact.store import durable
from reenact.store.journal import Journal, cut_torn_tail, scan

from . import child

DURABILITIES = ("process", "disk")


def a_line(number: int, padding: int = 0) -> bytes:
    return canonical.encode({"n": number, "pad": "x" * padding})


def whole_lines(path: Path) -> list[bytes]:
    text = path.read_bytes()
    assert text.endswith(b"\n") or not text
    return text.split(b"\n")[:-1]


@pytest.mark.parametrize("durability", DURABILITIES)
def test_append_returns_the_offset_of_each_line(tmp_path: Path, durability: durable.Durability) -> None:
    """Reading from a returned offset to the next line end gives the line back."""
    journal = Journal.create(tmp_path / "events.jsonl", durability=durability)
    lines = [a_line(number, padding=number) for number in range(20)]
    offsets = [journal.append(line) for line in lines]
    journal.close()
    text = journal.path.read_bytes()
    assert [text[offset:].partition(b"\n")[0] for offset in offsets] == lines


def test_many_lines_are_written_at_once_or_not_at_all(tmp_path: Path) -> None:
    """One that is none keeps all of them out."""
    journal = Journal.create(tmp_path / "events.jsonl")
    lines = [a_line(number) for number in range(5)]
    journal.write_all([])
    journal.write_all(lines)
    for bad in (b"", b"two\nlines"):
        with pytest.raises(StoreError, match="are not one line"):
            journal.write_all([a_line(6), bad])
    assert (journal.count, whole_lines(journal.path)) == (5, lines)
    journal.close()
    with pytest.raises(StoreError, match="is closed"):
        journal.write_all(lines)
    assert (journal.count, journal.size_bytes) == (5, journal.path.stat().st_size)


def test_a_returned_append_is_visible_to_others_at_once(tmp_path: Path) -> None:
    """Nothing is buffered in the process."""
    journal = Journal.create(tmp_path / "events.jsonl")
    journal.append(a_line(1))
    assert whole_lines(journal.path) == [a_line(1)]
    journal.close()


def test_count_size_and_hash_are_those_of_the_file(tmp_path: Path) -> None:
    """They can be asked at any time, also after the close."""
    journal = Journal.create(tmp_path / "events.jsonl")
    assert journal.sha256_hex == hashlib.sha256().hexdigest()
    for number in range(10):
        journal.append(a_line(number))
        text = journal.path.read_bytes()
        assert (journal.count, journal.size_bytes) == (number + 1, len(text))
        assert journal.sha256_hex == hashlib.sha256(text).hexdigest()
    journal.append(a_line(10))
    journal.close()
    assert journal.sha256_hex == hashlib.sha256(journal.path.read_bytes()).hexdigest()


NOT_ONE_LINE = {
    "empty": b"",
    "two lines": b"{}\n{}",
    "line end": b"{}\n",
    "longer than a reader takes": b"x" * (MAX_LINE_BYTES + 1),
}


@pytest.mark.parametrize("line", NOT_ONE_LINE.values(), ids=NOT_ONE_LINE.keys())
def test_what_is_not_one_line_is_refused(tmp_path: Path, line: bytes) -> None:
    """The journal never writes what its reader would take for something else."""
    journal = Journal.create(tmp_path / "events.jsonl")
    with pytest.raises(StoreError, match="not one line"):
        journal.append(line)
    journal.close()
    assert journal.path.read_bytes() == b""


def test_an_existing_file_is_never_continued(tmp_path: Path) -> None:
    """Two recorders never share a journal."""
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"{}\n")
    with pytest.raises(StoreError, match="exists already"):
        Journal.create(path)
    assert path.read_bytes() == b"{}\n"


def test_an_append_after_the_close_is_refused(tmp_path: Path) -> None:
    """The counters stay those of the file."""
    journal = Journal.create(tmp_path / "events.jsonl")
    journal.append(a_line(1))
    journal.close()
    journal.close()
    with pytest.raises(StoreError, match="is closed"):
        journal.append(a_line(2))
    assert (journal.count, journal.size_bytes) == (1, len(a_line(1)) + 1)


@pytest.mark.parametrize("durability", DURABILITIES)
def test_threads_append_whole_lines(tmp_path: Path, durability: durable.Durability) -> None:
    """Eight threads at once: every line whole, every offset true, hash and count right."""
    journal = Journal.create(tmp_path / "events.jsonl", durability=durability)
    lines = [a_line(number, padding=number % 997) for number in range(800)]
    with ThreadPoolExecutor(8) as pool:
        offsets = list(pool.map(journal.append, lines))
    journal.close()
    text = journal.path.read_bytes()
    assert sorted(whole_lines(journal.path)) == sorted(lines)
    assert [text[offset:].partition(b"\n")[0] for offset in offsets] == lines
    assert (journal.count, journal.sha256_hex) == (800, hashlib.sha256(text).hexdigest())


def test_waiting_threads_share_one_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An append returns only after a sync that began behind its write, but not each needs its own."""
    syncs = itertools.count(1)
    synced_bytes = [0]
    path = tmp_path / "events.jsonl"

    def counted_sync(fd: int) -> None:
        covered = os.fstat(fd).st_size
        os.fdatasync(fd)
        next(syncs)
        synced_bytes[0] = max(synced_bytes[0], covered)

    def append_and_look(line: bytes) -> bool:
        return journal.append(line) + len(line) < synced_bytes[0]

    monkeypatch.setattr(durable, "_fdatasync", counted_sync)
    journal = Journal.create(path, durability="disk")
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(append_and_look, [a_line(number) for number in range(800)]))
    journal.close()
    assert next(syncs) - 1 < 800


def test_a_failed_sync_is_never_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system may have dropped the bytes, so a later success would prove nothing."""

    def failing_sync(fd: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(durable, "_fdatasync", failing_sync)
    journal = Journal.create(tmp_path / "events.jsonl", durability="disk")
    with pytest.raises(StoreError, match="Input/output error"):
        journal.append(a_line(1))
    monkeypatch.undo()
    with pytest.raises(StoreError, match="could not be put on the disk"):
        journal.append(a_line(2))


APPEND_AND_ACKNOWLEDGE = """
import sys
from pathlib import Path
from reenact.store.journal import Journal
journal = Journal.create(Path(sys.argv[1]))
line = b'{"n":%d,"pad":"' + b"x" * int(sys.argv[2]) + b'"}'
for number in range(10**9):
    journal.append(line % number)
    sys.stdout.buffer.raw.write(b"%d\\n" % number)
"""


@pytest.mark.slow
def test_every_acknowledged_line_outlives_kill_9(tmp_path: Path) -> None:
    """Killed at 24 random moments, a recorder loses nothing it had acknowledged."""
    chance = random.Random(7)
    for round_number in range(24):
        path = tmp_path / f"{round_number}.jsonl"
        recorder = child.start(APPEND_AND_ACKNOWLEDGE, path, chance.choice((1, 300, 100_000)))
        assert recorder.stdout is not None
        wanted = chance.randrange(1, 400)
        acknowledged = [recorder.stdout.readline() for _ in range(wanted)]
        recorder.kill()
        acknowledged += recorder.stdout.readlines()
        recorder.stdout.close()
        recorder.wait()
        cut_torn_tail(path)
        numbers = [int(line.partition(b",")[0].removeprefix(b'{"n":')) for line in whole_lines(path)]
        assert numbers == list(range(len(numbers)))
        assert len(numbers) >= sum(line.endswith(b"\n") for line in acknowledged) >= wanted


LIMIT_FILE_SIZE = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
"""

MOUNT_SMALL_DISK = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 1 << 18
if libc.unshare(CLONE_NEWNS) or libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) or libc.mount(
    b"tmpfs", str(path.parent).encode(), b"tmpfs", 0, b"size=12k"
):
    print("no mount allowed")
    raise SystemExit
"""

FILL_THE_DISK = """
import hashlib, sys
from pathlib import Path
from reenact.errors import StoreError
from reenact.store.journal import Journal
path = Path(sys.argv[1])
LIMIT
journal = Journal.create(path)
for number in range(100):
    try:
        journal.append(b'{"pad":"' + b"x" * 300 + b'"}')
    except StoreError as error:
        print(error)
        break
journal.append(b"{}")
journal.close()
text = path.read_bytes()
assert text.endswith(b"}\\n{}\\n"), text[-400:]
assert (journal.count, journal.size_bytes) == (text.count(b"\\n"), len(text))
assert journal.sha256_hex == hashlib.sha256(text).hexdigest()
"""

LIMITS = {
    "file size": (LIMIT_FILE_SIZE, "File too large; raise the file size limit"),
    "disk": (MOUNT_SMALL_DISK, "No space left on device; free some space"),
}


@pytest.mark.parametrize(("limit", "refusal"), LIMITS.values(), ids=LIMITS.keys())
def test_a_line_that_does_not_fit_leaves_no_trace(tmp_path: Path, limit: str, refusal: str) -> None:
    """At the limit the system writes half a line; it is taken back, and a shorter one finds room."""
    path = tmp_path / "events.jsonl"
    output = child.run(FILL_THE_DISK.replace("LIMIT", limit), path)
    if "no mount allowed" in output:
        pytest.skip("mounting a small disk needs privileges")
    assert output.startswith(f"{path}: cannot be written: {refusal}")


APPEND_FROM_SIGNAL_HANDLERS = """
import itertools, signal, sys
from pathlib import Path
from reenact.store.journal import Journal
journal = Journal.create(Path(sys.argv[1]), durability=sys.argv[2])
numbers = itertools.count()
offsets = {}
def append(*_):
    number = next(numbers)
    offsets[number] = journal.append(b'{"n":%d}' % number)
signal.signal(signal.SIGALRM, append)
while len(offsets) < int(sys.argv[3]):
    # One signal at a time: a sync takes longer than any interval worth testing.
    signal.setitimer(signal.ITIMER_REAL, 0.00001 + len(offsets) % 100 / 1e6)
    append()
signal.setitimer(signal.ITIMER_REAL, 0)
text = journal.path.read_bytes()
for number, offset in offsets.items():
    assert text[offset:].startswith(b'{"n":%d}\\n' % number), (number, offset)
journal.close()
assert journal.count == len(offsets) == text.count(b"\\n")
"""


@pytest.mark.slow
@pytest.mark.parametrize(("durability", "count"), [("process", 20_000), ("disk", 400)])
def test_a_signal_handler_may_append_during_an_append(tmp_path: Path, durability: str, count: int) -> None:
    """Neither a deadlock nor a mixed line, although the handler runs in the middle of the other append."""
    child.run(APPEND_FROM_SIGNAL_HANDLERS, tmp_path / "events.jsonl", durability, count)


INTERRUPT_APPENDS = """
import hashlib, signal, sys
from pathlib import Path
from reenact.store.journal import Journal
class Interrupted(BaseException): pass
acknowledged = []
def interrupt(*_):
    acknowledged.append(journal.append(b'{"n":"handler"}'))
    raise Interrupted
signal.signal(signal.SIGALRM, interrupt)
journal = Journal.create(Path(sys.argv[1]), durability=sys.argv[2])
while len(acknowledged) < 200:
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.00005 + len(acknowledged) / 1e7)
        while True:
            journal.append(b'{"n":"agent"}')
    except Interrupted:
        pass
journal.close()
text = journal.path.read_bytes()
assert set(text.split(b"\\n")) == {b'{"n":"handler"}', b'{"n":"agent"}', b""}
assert all(text[offset:].startswith(b'{"n":"handler"}') for offset in acknowledged)
assert (journal.count, journal.size_bytes) == (text.count(b"\\n"), len(text))
assert journal.sha256_hex == hashlib.sha256(text).hexdigest()
"""


@pytest.mark.parametrize("durability", DURABILITIES)
def test_an_interrupted_append_leaves_file_and_counters_agreeing(tmp_path: Path, durability: str) -> None:
    """An exception out of a signal handler, as Ctrl-C raises, may hit between the write and its count.

    What the handler itself had appended before stays.
    """
    child.run(INTERRUPT_APPENDS, tmp_path / "events.jsonl", durability)


FORK_AND_APPEND = """
import os, sys, threading
from pathlib import Path
from reenact.errors import StoreError
from reenact.store.journal import Journal
journal = Journal.create(Path(sys.argv[1]))
journal.append(b'{"n":1}')
held, forked = threading.Event(), threading.Event()
def hold():
    with journal._lock:
        held.set()
        forked.wait()
threading.Thread(target=hold).start()
held.wait()
if os.fork() == 0:
    try:
        journal.append(b'{"n":"child"}')
    except StoreError as error:
        print(error, journal.count, flush=True)
    os._exit(0)
forked.set()
os.wait()
journal.append(b'{"n":2}')
journal.close()
"""


def test_a_forked_child_cannot_write_into_its_parents_journal(tmp_path: Path) -> None:
    """The child gets an error even if a thread held the lock; the parent goes on."""
    path = tmp_path / "events.jsonl"
    output = child.run(FORK_AND_APPEND, path)
    assert output == f"{path}: belongs to the parent process; start a run of its own in the child 1\n"
    assert whole_lines(path) == [b'{"n":1}', b'{"n":2}']


journal_lines = st.lists(
    st.lists(st.integers(-(2**63), 2**63) | st.text(), max_size=3).map(
        lambda values: canonical.encode(values)
    ),
    max_size=8,
)


@settings(deadline=None)
@given(lines=journal_lines, data=st.data())
def test_any_truncation_leaves_exactly_the_whole_lines_before_it(
    lines: list[bytes], data: st.DataObject
) -> None:
    """Count, size, torn bytes and hash for a journal cut anywhere."""
    text = b"".join(line + b"\n" for line in lines)
    kept = text[: data.draw(st.integers(0, len(text)))]
    good = kept[: kept.rfind(b"\n") + 1]
    found = scan(io.BytesIO(kept))
    assert (found.count, found.size_bytes) == (good.count(b"\n"), len(good))
    assert found.torn_bytes == len(kept) - len(good)
    assert found.sha256_hex == hashlib.sha256(good).hexdigest()


TORN_TAILS = {
    "half a line": b'{"n":2',
    "a line without its end": b'{"n":2}',
    "zeros, as a power loss leaves": b"\0" * 5000,
    "zeros and a line end": b"\0" * 5000 + b"\n",
    "a last line that is not JSON": b'{"n":\n',
    "a last line that is not UTF-8": b'{"n":"\xff"}\n',
    "nesting without end": b"[" * 100_000 + b"\n",
    "an empty last line": b"\n",
    "a tail longer than one read": b'{"pad":"' + b"x" * 3_000_000,
}


@pytest.mark.parametrize("tail", TORN_TAILS.values(), ids=TORN_TAILS.keys())
def test_a_torn_tail_is_cut(tmp_path: Path, tail: bytes) -> None:
    """Once: the second cut finds nothing."""
    path = tmp_path / "events.jsonl"
    path.write_bytes(a_line(1) + b"\n" + tail)
    assert cut_torn_tail(path) == len(tail)
    assert path.read_bytes() == a_line(1) + b"\n"
    assert cut_torn_tail(path) == 0


def test_a_long_last_line_is_no_torn_tail(tmp_path: Path) -> None:
    """The search for line ends goes back over as many reads as it takes."""
    path = tmp_path / "events.jsonl"
    path.write_bytes(a_line(1) + b"\n" + a_line(2, padding=3_000_000) + b"\n")
    assert cut_torn_tail(path) == 0
    assert scan(path).count == 2


def test_a_linked_journal_is_neither_read_nor_cut(tmp_path: Path) -> None:
    """A link could make recovery cut any file of the user."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"no line end")
    (tmp_path / "events.jsonl").symlink_to(victim)
    with pytest.raises(StoreError, match="link"):
        cut_torn_tail(tmp_path / "events.jsonl")
    assert victim.read_bytes() == b"no line end"


CLOSE_EVERYTHING = """
import os, random, sys
import reenact
path, last = sys.argv[1], int(sys.argv[2])
with reenact.capture(path) as run:
    random.random()
    os.closerange(3, last)
    files = [open(f"{path}-{number}", "wb") for number in range(20)]
    for _ in range(5):
        random.random()
    if os.fork() == 0:
        os._exit(0)
    os.wait()
for file in files:
    file.write(b"mine")
    file.close()
print(run.manifest.status if run.manifest else "no manifest")
"""


@pytest.mark.parametrize(("last", "status"), [(256, "ok"), (4096, "no manifest")])
def test_a_program_that_closes_what_it_has_not_opened_keeps_its_files(
    tmp_path: Path, last: int, status: str
) -> None:
    """As daemons do: their new files get the numbers of the closed ones, and none of our lines."""
    program = child.start(CLOSE_EVERYTHING, tmp_path / "run", last)
    said, complaint = program.communicate()
    assert (said.decode().split("\n")[0], program.returncode) == (status, 0)
    files = sorted(tmp_path.glob("run-*"))
    assert [file.read_bytes() for file in files] == [b"mine"] * 20
    assert complaint is None or b"Traceback" not in complaint
    log = (tmp_path / "run" / "events.jsonl").read_bytes()
    assert (b'"run_end"' in log) == (status == "ok")

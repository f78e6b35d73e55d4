"""Storage that fails: before the run it is an error, during the run it is the recording's problem alone."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import reenact
from reenact.check.integrity.capture import check_capture
from reenact.errors import StoreError
from reenact.recorder.recovery import recover
from reenact.store.reader import CaptureReader
from reenact.store.rundir import RunDir, RunState
from tests.recorder.recording import events_in, recorded_by


@reenact.tool
def echo(value: Any) -> Any:
    return value


# Before the run


def refused(path: Path) -> str:
    """The refusal; the agent must not have started."""
    started = []
    with pytest.raises(StoreError) as caught, reenact.capture(path):
        started.append(True)
    assert not started
    return str(caught.value)


def test_an_occupied_directory_is_refused_before_the_agent_runs(tmp_path: Path):
    """What is there is named, and stays."""
    (tmp_path / "notes.txt").write_text("mine")
    assert "is not empty (notes.txt); remove it or choose another directory" in refused(tmp_path)
    assert os.listdir(tmp_path) == ["notes.txt"]


def test_a_capture_is_never_overwritten(tmp_path: Path):
    """Recording twice into one directory is refused, the first capture stays whole."""
    with reenact.capture(tmp_path / "run"):
        echo(1)
    assert "holds a capture already (complete)" in refused(tmp_path / "run")
    assert len(CaptureReader(tmp_path / "run")) == 4


def test_a_file_in_the_way_is_refused(tmp_path: Path):
    """Also as a parent."""
    (tmp_path / "file").write_text("")
    assert "is a file" in refused(tmp_path / "file")
    assert "cannot be written" in refused(tmp_path / "file" / "run")


_UNWRITABLE = """
import os, sys
import reenact
with reenact.capture(sys.argv[1] + "-first"):
    pass  # what is imported on the way may lie where only its owner may read
os.setuid(65534)
try:
    with reenact.capture(sys.argv[1]):
        print("agent ran")
except reenact.StoreError as error:
    print(error)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody with fewer rights")
def test_an_unwritable_directory_is_refused(tmp_path: Path):
    """The message names the place and what to do."""
    os.chmod(tmp_path, 0o755)
    done = subprocess.run(
        [sys.executable, "-c", _UNWRITABLE, str(tmp_path / "run")], capture_output=True, text=True, check=True
    )
    assert "Permission denied; choose a place you may write to" in done.stdout
    assert "agent ran" not in done.stdout


# During the run


class Failing:
    """A sink of which one method fails from its n-th use on."""

    def __init__(self, inner: Any, method: str, at: int, error: BaseException) -> None:
        self._inner, self._method, self._left, self._error = inner, method, at, error

    def __getattr__(self, name: str) -> Any:
        if name == self._method:
            self._left -= 1
            if self._left < 0:
                raise self._error
        return getattr(self._inner, name)


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


ERRORS = [OSError(28, "No space left on device"), StoreError("sink is gone"), RuntimeError("odd"), Mute()]
FAILURES = [
    pytest.param(method, at, error, id=f"{method} {at} {type(error).__name__}")
    for method, at in (("append", 0), ("append", 1), ("append", 4), ("put_blob", 0), ("put_blob", 2))
    for error in ERRORS
]


def agent() -> list[Any]:
    """A run that needs every part of the sink."""

    @reenact.tool
    def stream(count: int) -> Iterator[str]:
        yield from ("piece " * count,) * 3

    @reenact.tool
    def failing() -> None:
        raise ValueError("big " * 200)

    results: list[Any] = [echo(n) for n in range(3)]
    results += [echo("x" * 2000), list(stream(100))]
    with pytest.raises(ValueError, match="big"):
        failing()
    return results


@pytest.mark.parametrize(("method", "at", "error"), FAILURES)
def test_a_failing_sink_never_reaches_the_agent(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, method: str, at: int, error: Exception
):
    """The result is the same, and listener, log and manifest all say that the capture is not whole."""
    heard: list[str] = []
    with recorded_by(
        tmp_path / "run",
        wrap=lambda sink: Failing(sink, method, at, error),
        on_warning=heard.append,
        threshold_bytes=100,
    ) as context:
        results = agent()
    assert results == agent()
    said = "recording failed, the run goes on unrecorded"
    assert [message.startswith(said) for message in heard] == [True]
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert said in caplog.text
    manifest = CaptureReader(tmp_path / "run").manifest
    assert (manifest.status, manifest.warnings) == ("error", heard)
    assert isinstance(manifest.error, str)
    assert manifest.error.startswith("recording failed: ")
    assert len(events_in(tmp_path / "run")) == manifest.eventCount == context.seq


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_sink_that_cannot_finish_leaves_something_to_recover(tmp_path: Path, error: Exception):
    """No manifest, a warning, and all events for ``reenact recover``."""
    heard: list[str] = []
    with recorded_by(
        tmp_path / "run", wrap=lambda sink: Failing(sink, "finalize", 0, error), on_warning=heard.append
    ):
        echo(1)
    assert len(heard) == 1
    assert "manifest could not be written" in heard[0]
    assert not (tmp_path / "run" / "manifest.json").exists()
    assert [event.seq for event in events_in(tmp_path / "run")] == [1, 2, 3]


def test_a_large_final_output_may_fail_too(tmp_path: Path):
    """It is the last thing that is written, outside of any call."""

    class NoBlobs:
        def __init__(self, run: Any) -> None:
            self._put, run._context._payloads._sink.put_blob = None, self

        def __call__(self, data: bytes) -> str:
            raise OSError(28, "No space left on device")

    with reenact.capture(tmp_path / "run") as run:
        NoBlobs(run)
        run.final_output = "x" * 100_000
    assert run.manifest is not None
    assert run.manifest.status == "error"


def test_a_failing_listener_never_reaches_the_agent(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    """It is told, and what it does is its own."""

    def listener(message: str) -> None:
        raise RuntimeError("listener")

    sink_error = OSError(5, "Input/output error")
    with recorded_by(
        tmp_path / "run", wrap=lambda sink: Failing(sink, "append", 1, sink_error), on_warning=listener
    ):
        assert [echo(n) for n in range(3)] == [0, 1, 2]
    assert "the listener for warnings failed: listener" in caplog.text


def test_calls_of_which_nothing_was_kept_are_not_ok(tmp_path: Path):
    """An empty recording of a busy run must not look like success."""

    class Forgetful:
        def __init__(self, inner: Any) -> None:
            self._inner = inner

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

        def append(self, event: bytes) -> object:
            return None

    with recorded_by(tmp_path / "run", wrap=Forgetful) as context:
        echo(1)
    manifest = CaptureReader(tmp_path / "run").manifest
    assert (manifest.status, manifest.error) == (
        "error",
        "recording failed: calls were made, but the sink kept no event",
    )
    assert context.warnings


_FULL = """
import resource, signal, sys
import reenact

@reenact.tool
def work(number):
    return {"number": number, "padding": "x" * 300}

@reenact.tool
def large(number):
    return f"{number}" * 20_000

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with reenact.capture(sys.argv[1]) as run:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
    results = [(large if number == int(sys.argv[3]) else work)(number) for number in range(300)]
    assert len(results) == 300
print(run.manifest.status, run.manifest.eventCount, run.warnings)
"""


@pytest.mark.parametrize("large_at", [-1, 3], ids=["journal", "blob"])
def test_a_full_disk_leaves_all_that_was_written_before(tmp_path: Path, large_at: int):
    """No half line, no half blob; the capture is readable, and not ok."""
    path = tmp_path / "run"
    command = [sys.executable, "-c", _FULL, str(path), "20000", str(large_at)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("error")
    assert "cannot be written: File too large; raise the file size limit and try again" in done.stdout
    assert "recording failed, the run goes on unrecorded" in done.stderr
    reader = CaptureReader(path)
    assert reader.manifest.eventCount == len(events_in(path)) == (8 if large_at == 3 else len(reader))
    assert not list(path.rglob(".tmp-*"))
    for event in reader.events():
        reader.resolve(getattr(event.data, "result", None))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("this machine does not let us mount")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_disk_without_room_for_the_manifest(small_disk: Path):
    """The run ends as it would have; space made, the capture is recovered."""
    path = small_disk / "run"
    (small_disk / "ballast").write_bytes(b"x" * 16 * 1024)
    with reenact.capture(path) as run:
        for number in range(400):
            assert echo({"n": number, "x": "x" * 300})["n"] == number
    assert [message.split(",")[0] for message in run.warnings] == [
        "recording failed",
        "the manifest could not be written",
    ]
    assert (run.manifest, RunDir.open(path).state) == (None, RunState.INTERRUPTED)
    (small_disk / "ballast").unlink()
    assert recover(path).manifest.status == "error"
    assert len(events_in(path)) == len(CaptureReader(path)) > 20


def test_a_failed_recording_is_not_taken_up_again(tmp_path: Path):
    """A hole in the middle would be worse than an early end."""
    sink_error = OSError(5, "Input/output error")
    with recorded_by(tmp_path / "run", wrap=lambda sink: Failing(sink, "append", 3, sink_error)) as context:
        echo(1)
        echo(2)
        context._sink._left = 1000
        echo(3)
    assert [
        event.data.args["value"] for event in events_in(tmp_path / "run") if hasattr(event.data, "args")
    ] == [1, 2]
    assert context.seq == 3


# Short of memory

_HUNGRY = """
import sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
import httpx2, reenact
SIZE = 30_000_000

class Large(BaseHTTPRequestHandler):
    def log_message(self, *_): pass
    def do_GET(self):
        self.send_response(200)
        self.send_header("content-length", str(SIZE))
        self.end_headers()
        for _ in range(30):
            self.wfile.write(b"y" * 1_000_000)

@reenact.tool
def large(): return "x" * SIZE
@reenact.tool
def listed(): return [{"text": "x" * 1_000_000} for _ in range(30)]
@reenact.tool
def streamed():
    for _ in range(3):
        yield "x" * (SIZE // 3)
@reenact.tool
def small(number): return number

server = ThreadingHTTPServer(("127.0.0.1", 0), Large)
threading.Thread(target=server.serve_forever, daemon=True).start()
with reenact.capture(sys.argv[2]) as run:
    small(1)
    if sys.argv[1] == "fetched":
        url = f"http://127.0.0.1:{server.server_port}/"
        assert len(httpx2.get(url, trust_env=False, timeout=60).content) == SIZE
    elif sys.argv[1] == "streamed":
        assert sum(map(len, streamed())) == SIZE
    else:
        assert globals()[sys.argv[1]]()
    assert small(2) == 2
print(run.manifest.error)
"""


@pytest.mark.parametrize("what", ["large", "listed", "streamed", "fetched"])
@pytest.mark.parametrize("limit_mb", [330, 500])
def test_a_result_too_large_for_memory_ends_recording_not_the_agent(
    what: str, limit_mb: int, tmp_path: Path
) -> None:
    """The libraries that write JSON would end the process; they are not asked."""
    words = [sys.executable, "-c", _HUNGRY, what, str(tmp_path / "run")]
    limited = ["bash", "-c", f'ulimit -v {limit_mb}000; exec "$@"', "-", *words]
    done = subprocess.run(limited, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "recording failed: MemoryError\n"), done.stderr
    assert [finding.code for finding in check_capture(tmp_path / "run").findings] == ["recording_failed"]


def test_a_capture_whose_recording_failed_is_not_called_good(tmp_path: Path) -> None:
    """It is whole as a file, but not as a record of the run."""
    full = OSError(28, "No space left on device")
    with recorded_by(tmp_path / "run", wrap=lambda sink: Failing(sink, "append", 3, full)):
        for number in range(5):
            echo(number)
    report = check_capture(tmp_path / "run")
    assert not report.is_good
    finding = next(finding for finding in report.findings if finding.code == "recording_failed")
    assert finding.message == (
        "not all of the run is here: recording failed: [Errno 28] No space left on device"
    )

"""A user's own sink, and captures that are equal byte for byte."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import openai
import pytest

import reenact
from reenact.canonical import digest_of_bytes
from reenact.formats.capture import CaptureManifest, CaptureSeed, event_codec
from reenact.recorder.sink import Ending, finished_manifest
from reenact.store.durable import Durability
from reenact.testing import FIXED, Reply, ScriptedProvider
from tests.recorder.recording import seed_of


@reenact.tool
def greet(name: str) -> str:
    return f"Hello, {name}"


class InMemory:
    """A sink of somebody's own; it fails where it is told to."""

    def __init__(self, failing: str = "") -> None:
        self.events: list[bytes] = []
        self.blobs: dict[str, bytes] = {}
        self._failing = failing

    def _may_fail(self, where: str) -> None:
        if where == self._failing:
            raise ConnectionError(f"no {where} today")

    def start(self, seed: CaptureSeed) -> None:
        self._may_fail("start")
        self._seed = seed

    def append(self, event: bytes, /) -> object:
        if len(self.events) == 2:
            self._may_fail("append")
        self.events.append(event)
        return None

    def put_blob(self, data: bytes, /) -> str:
        self._may_fail("put_blob")
        digest = digest_of_bytes(data)
        self.blobs[digest] = data
        return digest

    @property
    def count(self) -> int:
        self._may_fail("count")
        return len(self.events)

    def finalize(self, ending: Ending) -> CaptureManifest:
        self._may_fail("finalize")
        log = b"".join(event + b"\n" for event in self.events)
        return finished_manifest(self._seed, ending, len(self.events), sha256(log).hexdigest())


def test_a_run_goes_where_a_users_own_sink_puts_it() -> None:
    """Events come as canonical lines without their secrets, large payloads as blobs."""
    sink = InMemory()
    with reenact.capture(sink=sink, redact=["open sesame"]) as run:
        greet("Ada: open sesame")
        greet("x" * 20_000)
    types = [type(event_codec.from_bytes(event)).__name__ for event in sink.events]
    assert types == ["RunStart", *["ToolCall", "ToolResult"] * 2, "RunEnd"]
    assert b"open sesame" not in b"".join(sink.events)
    assert len(sink.blobs) == 2
    assert run.manifest is not None
    assert (run.manifest.status, run.manifest.eventCount) == ("ok", 6)


@pytest.mark.parametrize("where", ["start", "append", "put_blob", "count", "finalize"])
def test_a_sink_that_fails_never_breaks_the_agent(where: str) -> None:
    """The run goes on, somebody is warned, and the manifest, where there is one, is not ok."""
    warned: list[str] = []
    with reenact.capture(sink=InMemory(where), on_warning=warned.append) as run:
        assert greet("Ada") == "Hello, Ada"
        assert len(greet("x" * 20_000)) == 20_007
    assert any(f"no {where} today" in warning for warning in warned)
    assert run.manifest is None or run.manifest.status == "error"


def test_a_sink_that_cannot_start_is_asked_for_nothing_else(tmp_path: Path) -> None:
    """One warning says why; a second one about what did not begin would hide it."""

    class Refused(reenact.FileCaptureSink):
        def start(self, seed: CaptureSeed) -> None:
            raise RuntimeError("no key")

    with reenact.capture(sink=Refused(tmp_path / "run")) as run:
        greet("Ada")
    assert run.warnings == ["recording failed, the run goes on unrecorded: no key"]
    assert run.manifest is None


@pytest.mark.parametrize("durability", ["process", "disk"])
def test_a_file_sink_can_be_extended(tmp_path: Path, durability: Durability) -> None:
    """What a subclass does with events and payloads is done, and the capture is whole."""
    seen: list[str] = []

    class Watched(reenact.FileCaptureSink):
        def append(self, event: bytes, /) -> object:
            seen.append(type(event_codec.from_bytes(event)).__name__)
            return super().append(event)

        def put_blob(self, data: bytes, /) -> str:
            seen.append(f"{len(data)} bytes")
            return super().put_blob(data)

    with reenact.capture(sink=Watched(tmp_path / "run", durability=durability)):
        greet("x" * 20_000)
    assert [each for each in seen if "bytes" not in each] == ["RunStart", "ToolCall", "ToolResult", "RunEnd"]
    assert len(seen) == 6
    assert reenact.verify(tmp_path / "run").findings == []


def test_a_file_sink_that_is_extended_keeps_many_events_one_by_one(tmp_path: Path) -> None:
    """The shorter way for many at once does not go round what a subclass does with each."""
    seen: list[bytes] = []

    class Watched(reenact.FileCaptureSink):
        def append(self, event: bytes, /) -> object:
            seen.append(event)
            return super().append(event)

    sink = Watched(tmp_path / "run")
    sink.start(seed_of())
    sink.append_all([b"{}", b'{"n":1}'])
    sink.discard()
    assert seen == [b"{}", b'{"n":1}']


def test_a_sink_that_drops_events_is_not_ok() -> None:
    """What it was given must be there at the end."""

    class Dropping(InMemory):
        def append(self, event: bytes, /) -> object:
            return super().append(event) if len(self.events) < 2 else None

    with reenact.capture(sink=Dropping()) as run:
        greet("Ada")
    assert run.manifest is not None
    assert (run.manifest.status, run.manifest.error) == (
        "error",
        "recording failed: the sink kept 2 of 4 events",
    )


def test_a_run_needs_somewhere_to_go() -> None:
    """A replay reads a directory; a capture needs one or a sink."""
    with pytest.raises(reenact.UsageError, match="needs a path, or a sink"):
        reenact.capture()
    with pytest.raises(reenact.UsageError, match="give its path as well as the sink"):
        reenact.capture(sink=InMemory(), mode="replay")


def files_in(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def test_two_captures_of_one_run_are_equal_byte_for_byte(tmp_path: Path) -> None:
    """With ids, times and salt given: events, blobs and manifest, with a secret hidden and a model asked."""
    said: Any = [{"role": "user", "content": "Hello, my key is open sesame"}]
    with (
        ScriptedProvider(Reply("Hello!")) as provider,
        openai.OpenAI(base_url=provider.base_url("openai"), api_key="k") as client,
    ):
        # An SDK starts a thread of its own when it is first used, and the provider a task for the connection,
        # which would end some time after it if each run had its own.
        for name in ("first", "a", "b"):
            with reenact.capture(tmp_path / name, identity=FIXED, redact=("default", ["open sesame"])) as run:
                client.chat.completions.create(model="m", messages=said)
                run.final_output = greet("open sesame" + "x" * 20_000)
            assert run.manifest is not None
            assert run.manifest.status == "ok"
    first = files_in(tmp_path / "a")
    assert first == files_in(tmp_path / "b")
    assert sum("blobs" in name for name in first) >= 2
    with reenact.capture(tmp_path / "c", redact=("default", ["open sesame"])):
        greet("open sesame" + "x" * 20_000)
    assert files_in(tmp_path / "c")["manifest.json"] != first["manifest.json"]

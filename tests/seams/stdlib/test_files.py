"""Files: what the agent writes is recorded, really written in replay, and must be the same."""

from __future__ import annotations

import builtins
import io
import json
import os
import pathlib
import shutil
import threading
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import reenact


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has a working folder of its own, outside the temporary one as far as we are concerned."""
    monkeypatch.chdir(tmp_path)


def writes(path: str = "run") -> list[dict[str, Any]]:
    events = [json.loads(line) for line in Path(path, "events.jsonl").read_text().splitlines()]
    kept = ("path", "mode", "bytes", "sha256")
    return [
        {key: event["data"][key] for key in kept} for event in events if event["type"] == "state_mutation"
    ]


def told(path: str, mode: str, content: bytes) -> dict[str, Any]:
    return {
        "path": path,
        "mode": mode,
        "bytes": len(content),
        "sha256": f"sha256:{sha256(content).hexdigest()}",
    }


def with_open(*args: Any, data: Any = "grün\n", **options: Any) -> None:
    with open("out", *args, **options) as file:
        file.write(data)


WRITES: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "text": (lambda: with_open("w", encoding="utf-8"), told("out", "w", "grün\n".encode())),
    "text, coded": (lambda: with_open("w", encoding="latin-1"), told("out", "w", b"gr\xfcn\n")),
    "text, newlines": (
        lambda: with_open("w", newline="\r\n", encoding="utf-8"),
        told("out", "w", "grün\r\n".encode()),
    ),
    "text, by line": (lambda: with_open("wt", 1, "utf-8"), told("out", "wt", "grün\n".encode())),
    "bytes": (lambda: with_open("wb", data=bytes(range(256))), told("out", "wb", bytes(range(256)))),
    "bytes, large": (lambda: with_open("wb", data=b"x" * 300_000), told("out", "wb", b"x" * 300_000)),
    "bytes, unbuffered": (lambda: with_open("wb", 0, data=b"raw"), told("out", "wb", b"raw")),
    "append": (lambda: with_open("a", data="more"), told("out", "a", b"more")),
    "exclusive": (lambda: with_open("x", data="first"), told("out", "x", b"first")),
    "update": (lambda: with_open("w+b", data=b"both"), told("out", "w+b", b"both")),
    "nothing": (lambda: with_open("w", data=""), told("out", "w", b"")),
    "io.open": (lambda: io.open("out", "w").close(), told("out", "w", b"")),  # noqa: UP020
    "builtins.open": (lambda: builtins.open("out", "w").close(), told("out", "w", b"")),
    "Path.open": (lambda: Path("out").open("w").close(), told("out", "w", b"")),
    "Path.write_text": (lambda: Path("out").write_text("hi\n"), told("out", "w", b"hi\n")),
    "Path.write_bytes": (lambda: pathlib.Path("out").write_bytes(b"\0"), told("out", "wb", b"\0")),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_write_is_told(name: str) -> None:
    """With path, mode, size and digest; replay writes the same file again."""
    write, expected = WRITES[name]
    with reenact.capture("run"):
        write()
    assert writes() == [expected]
    recorded = Path("out").read_bytes()
    Path("out").unlink()
    with reenact.replay("run"):
        write()
    assert Path("out").read_bytes() == recorded


def test_other_content_diverges() -> None:
    """With the path of the digest, at the latest when the run ends."""
    with reenact.capture("run"):
        with_open("w", data="one")
    with pytest.raises(reenact.Diverged) as caught, reenact.replay("run"):
        with_open("w", data="two")
    assert caught.value.divergence.json_path == "$.data.sha256"


def test_the_file_is_a_file() -> None:
    """It is what the built-in function gives, with the same attributes and layers."""
    with (
        open("real", "w", encoding="utf-8") as real,
        reenact.capture("run"),
        open("out", "w", encoding="utf-8") as ours,
    ):
        for name in ("mode", "encoding", "errors", "line_buffering", "newlines"):
            assert getattr(ours, name) == getattr(real, name)
        assert (type(ours), type(ours.buffer)) == (type(real), type(real.buffer))
        assert isinstance(ours.buffer.raw, io.FileIO)
        assert ours.name == "out"
        assert os.fstat(ours.fileno())


@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("missing", {}),
        ("missing/out", {"mode": "w"}),
        ("out", {"mode": "wb", "encoding": "utf-8"}),
        ("out", {"mode": "w", "buffering": 0}),
        ("out", {"mode": "wq"}),
        ("out", {"mode": "rw"}),
        ("out", {"mode": "w", "encoding": "no-such-code"}),
    ],
)
def test_a_wrong_use_fails_as_ever(path: str, options: dict[str, Any]) -> None:
    """With the same exception and the same words."""
    with pytest.raises((OSError, ValueError, LookupError)) as real, open(path, **options):
        pass
    with (
        reenact.capture("run"),
        pytest.raises((OSError, ValueError, LookupError)) as ours,
        open(path, **options),
    ):
        pass
    assert (type(ours.value), str(ours.value)) == (type(real.value), str(real.value))


def test_reading_and_devices_are_not_told() -> None:
    """Nor what a library writes."""
    Path("in").write_text("hi")
    with reenact.capture("run"):
        open("in").close()
        Path("in").read_text()
        with open(os.devnull, "w") as nowhere:
            nowhere.write("hi")
        shutil.copyfile("in", "copy")
    assert writes() == []


def test_places_are_told_alike_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative to the working folder, by name below the temporary one, else in full."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp" / "abc123").mkdir(parents=True)
    (tmp_path / "work" / "sub").mkdir(parents=True)
    (tmp_path / "else").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    with reenact.capture("run"):
        for path in ("sub/out", tmp_path / "tmp/abc123/out", tmp_path / "tmp/abc123", tmp_path / "else/out"):
            if Path(path).is_dir():
                shutil.rmtree(path)
            open(path, "w").close()
    paths = [write["path"] for write in writes()]
    assert paths == ["sub/out", "{tmp}/out", "{tmp}", str(tmp_path / "else" / "out")]


def test_a_module_loaded_during_the_run_is_told_of(module_of: Callable[[str], ModuleType]) -> None:
    """Also one that imports nothing; after the run it has no name more than it had."""
    with reenact.capture("run"):
        module = module_of("def write():\n    with open('out', 'w') as file:\n        file.write('hi')")
        module_of(f"from {module.__name__} import write").write()
    assert writes()[-1] == told("out", "w", b"hi")
    assert "open" not in vars(module)
    assert "open" not in globals()


def test_a_file_left_open_is_none_of_the_runs() -> None:
    """What is closed after the run is not told, and closing it is no error."""
    with reenact.capture("run"):
        file = open("out", "w")  # noqa: SIM115
    file.write("later")
    file.close()
    assert writes() == []


def test_a_write_into_a_pipe_does_not_wait_for_it_to_be_written_again(tmp_path: Path) -> None:
    """What was written is recorded, not what the file holds: a named pipe would never end."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    heard: list[str] = []

    def listen() -> None:
        heard.append(pipe.read_text())

    for run in (reenact.capture, reenact.replay):
        with run(tmp_path / "run"):
            listener = threading.Thread(target=listen, daemon=True)
            listener.start()
            pipe.write_text("hello")
            listener.join(5)
    assert heard == ["hello", "hello"]


def test_parallel_writers_of_one_file_are_each_told_as_they_wrote(tmp_path: Path) -> None:
    target = tmp_path / "shared"

    def work() -> None:
        def write(number: int) -> None:
            for _ in range(20):
                target.write_text(f"writer {number}\n" * (number + 1))

        threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    with reenact.capture(tmp_path / "run"):
        work()
    with reenact.replay(tmp_path / "run") as run:
        work()
    assert run.divergences == []


@pytest.mark.parametrize("mode", ["r", "w", "a", "r+", "wb", "ab+"])
@pytest.mark.parametrize("kind", [str, Path, os.fsencode])
def test_a_file_has_the_name_by_which_it_was_opened(kind: Callable[[str], Any], mode: str) -> None:
    """A path gives a text."""
    Path("named.txt").touch()
    with open(kind("named.txt"), mode) as plain:
        pass
    with reenact.capture("run"), open(kind("named.txt"), mode) as file:
        assert (repr(file.name), file.mode, type(file)) == (repr(plain.name), plain.mode, type(plain))

"""Importing a cassette beside parsing its YAML, and transcripts beside the speed they have to reach."""

from __future__ import annotations

import copy
import json
import sysconfig
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path
from random import Random
from secrets import token_hex
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import yaml

from bench.figure import Figure, TimesAsLong, best_in_turns
from reenact.importers.importing import import_runs

CALLS = 300
TURNS = 2000
RECORDED = (
    Path(__file__).parents[1]
    / "tests/importers/fixtures/pytest-recording/cassettes/test_agent/test_it_answers.yaml"
)
BYTES_PER_S = 50_000_000
TEXT = "The order has not shipped yet; the carrier was asked on Monday and said that it would look. " * 8


def figures() -> Iterator[Figure]:
    """A cassette of model calls, and transcripts of Claude Code: prose, and source code in two layouts."""
    with TemporaryDirectory() as folder:
        cassette = Path(folder, "cassette.yaml")
        cassette.write_text(yaml.dump(_cassette(), Dumper=yaml.CSafeDumper))
        text = cassette.read_bytes()
        ours_s, beside_s = best_in_turns(
            lambda: _import(cassette, Path(folder, "run")),
            lambda: yaml.load(text, yaml.CSafeLoader),
            clock=process_time,
        )
        what = f"import a cassette, {CALLS} calls, {len(text) // 1000} kB"
        yield Figure(what, ours_s, "PyYAML, C loader", beside_s, TimesAsLong(1.5))
        yield _transcript_figure("prose", repeat(TEXT * 4), Path(folder))
        yield _transcript_figure("source code", _pieces_of_code(), Path(folder))
        yield _transcript_figure("source code, each once", _pieces_of_code(), Path(folder), is_twice=False)


def _transcript_figure(kind: str, results: Iterator[str], folder: Path, *, is_twice: bool = True) -> Figure:
    transcript = folder / "transcript.jsonl"
    transcript.write_text("".join(json.dumps(entry) + "\n" for entry in _entries(results, is_twice=is_twice)))
    size = transcript.stat().st_size
    # The bar is for one core: what other programs take of it does not count.
    ours_s, _ = best_in_turns(lambda: _import(transcript, folder / "run"), lambda: None, clock=process_time)
    what = f"import a transcript of {kind}, {TURNS} turns, {size // 1000} kB"
    return Figure(what, ours_s, "50 MB/s", size / BYTES_PER_S, TimesAsLong(1))


def _import(source: Path, out: Path) -> None:
    """Into a folder of its own: to take the one before away is no part of an import."""
    import_runs(source, out / token_hex(8))


def _cassette() -> dict[str, Any]:
    """What pytest-recording wrote of one call, with other texts, so many times."""
    (found,) = yaml.load(RECORDED.read_bytes(), yaml.CSafeLoader)["interactions"]
    interactions = []
    for number in range(CALLS):
        asked = {"model": "m", "messages": [{"role": "user", "content": f"{number}: {TEXT}"}]}
        answer = json.loads(found["response"]["body"]["string"])
        answer["choices"][0]["message"]["content"] = TEXT
        request = found["request"] | {"body": json.dumps(asked)}
        response = found["response"] | {"body": {"string": json.dumps(answer)}}
        interactions.append(copy.deepcopy({"request": request, "response": response}))
    return {"version": 1, "interactions": interactions}


def _pieces_of_code() -> Iterator[str]:
    """Up to 150 lines of each file of Python's library, with the numbers that a tool puts before them."""
    library = Path(sysconfig.get_paths()["stdlib"])
    files = sorted(file for file in library.rglob("*.py") if "site-packages" not in file.parts)
    Random(0).shuffle(files)
    for file in files:
        lines = file.read_text(errors="replace").splitlines()[:150]
        yield "\n".join(f"{number:6}\u2192{line}" for number, line in enumerate(lines, 1))


def _entries(results: Iterator[str], *, is_twice: bool) -> Iterator[dict[str, Any]]:
    """Turns with one tool call each; Claude Code writes what most tools gave twice."""
    for number in range(TURNS):
        known: dict[str, Any] = {
            "uuid": f"{number}",
            "parentUuid": str(number - 1) if number else None,
            "sessionId": "s",
        }
        known |= {"isSidechain": False, "timestamp": f"2026-01-01T{number // 3600:02}:00:00Z", "cwd": "/work"}
        message: dict[str, Any] = {"role": "user", "content": "Go."}
        if number % 2:
            call = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": TEXT[:90]}}
            message = {"id": f"m{number}", "type": "message", "role": "assistant", "model": "m"}
            message |= {"content": [{"type": "text", "text": TEXT[:300]}, call], "stop_reason": "tool_use"}
        elif number:
            given = next(results)
            result = {"type": "tool_result", "tool_use_id": f"t{number - 1}", "content": given}
            message = {"role": "user", "content": [result]}
            if is_twice:
                known |= {"toolUseResult": {"stdout": given, "stderr": "", "interrupted": False}}
        yield known | {"type": "assistant" if number % 2 else "user", "message": message}

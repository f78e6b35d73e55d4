"""The law of importing: what an importer does not know is named or kept, never dropped in silence."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import reenact
from reenact.importers import inspect
from tests.importers.test_inspect import LOG, SAMPLES
from tests.importers.test_mutations import DOCUMENTS, FIXTURES
from tests.importers.test_spans import CONSOLE, JAEGER, LANGSMITH, OBSERVATIONS

LINES = {
    "claude-code": "claude-code/*.jsonl",
    "codex": "codex/*.jsonl",
    "gemini-cli": "gemini-cli/*.jsonl",
    "pi": "pi/*.jsonl",
}
CASSETTE = "pytest-recording/cassettes/test_agent/TestTwice.test_it_goes_on.yaml"
WHOLE = [
    ("opencode", "opencode.json"),
    ("swe-agent", "mini-swe-agent-plain.traj.json"),
    ("swe-agent", "mini-swe-agent-tools.traj.json"),
    ("otlp", "otlp-genai.json"),
    ("otlp", "otlp-openinference.json"),
    ("vcr", "cassetter.yaml"),
    ("vcr", CASSETTE),
    ("atif", "atif.json"),
    ("vcr", "cassette.json"),
    ("har", "x.har"),
    ("langsmith", "langsmith"),
    ("langfuse", "langfuse"),
    ("jaeger", "jaeger"),
    ("otel-console", "otel-console"),
]
SPANS = {
    "langsmith": LANGSMITH, "langfuse": OBSERVATIONS, "jaeger": JAEGER, "otel-console": CONSOLE[0],
}  # fmt: skip
Marks = dict[str, str]
"""By the name of a field that was put into the source: where."""


def marked(value: Any, marks: Marks, path: str = "") -> Any:
    """*value* with a field of its own in every object."""
    if isinstance(value, list):
        return [marked(child, marks, f"{path}[]") for child in value]
    if not isinstance(value, dict):
        return value
    mark = f"zz{len(marks):04}q"
    marks[mark] = path
    return {**{key: marked(child, marks, f"{path}.{key}") for key, child in value.items()}, mark: "new"}


def dropped(report: Any, out: Path, marks: Marks) -> set[str]:
    """Where the fields were that are neither named in a manifest nor in any capture."""
    assert report.runs
    named = {name for run in report.runs for name in run.unknown}
    left_out = {
        what.removesuffix(": left out").rpartition(".")[2]
        for run in report.runs
        for what in run.missing
        if what.endswith(": left out")
    }
    kept = "".join(text_of_captures(out))
    return {
        path
        for mark, path in marks.items()
        if not any(name.endswith(mark) for name in named)
        and mark not in kept
        and not left_out & set(re.findall(r"[^.\[\]]+", path))
    }


def text_of_captures(out: Path) -> Iterator[str]:
    for file in out.rglob("*"):
        if file.is_file() and (file.name == "events.jsonl" or "blobs" in file.parts):
            yield file.read_text()


@pytest.mark.parametrize("name", LINES)
def test_in_every_object_of_a_transcript(tmp_path, name):
    """Entries, messages, their parts, counts of tokens, and whatever is in these."""
    marks: Marks = {}
    [source] = FIXTURES.glob(LINES[name])
    lines = [json.dumps(marked(json.loads(line), marks)) for line in source.read_text().splitlines()]
    (tmp_path / source.name).write_text("\n".join(lines))
    report = reenact.import_runs(tmp_path / source.name, tmp_path / "runs", format=name)
    assert dropped(report, tmp_path / "runs", marks) == set()


@pytest.mark.parametrize(("importer", "name"), WHOLE)
def test_in_every_object_of_a_document(tmp_path, importer, name):
    """Whatever the document is written in."""
    marks: Marks = {}
    if name in SPANS:
        value: Any = SPANS[name]
    elif name in DOCUMENTS:
        value = json.loads(DOCUMENTS[name])
    else:
        value = yaml.safe_load((FIXTURES / name).read_text())
    value = marked(value, marks)
    is_yaml = name.endswith(".yaml")
    (tmp_path / "it").write_text(yaml.safe_dump(value) if is_yaml else json.dumps(value))
    report = reenact.import_runs(tmp_path / "it", tmp_path / "runs", format=importer)
    assert dropped(report, tmp_path / "runs", marks) == set()


def test_in_every_object_of_a_bundle(tmp_path):
    """In its manifest, in its events and in all payloads."""
    marks: Marks = {}
    [source] = (FIXTURES / "codex-trace").iterdir()
    bundle = tmp_path / source.name
    shutil.copytree(source, bundle)
    for file in bundle.rglob("*.json*"):
        values = [marked(json.loads(line), marks, file.name) for line in file.read_text().splitlines()]
        file.write_text("".join(json.dumps(value) + "\n" for value in values))
    report = reenact.import_runs(bundle, tmp_path / "runs")
    assert dropped(report, tmp_path / "runs", marks) == set()


def test_in_every_object_of_a_sample(tmp_path, monkeypatch):
    """Messages that a model is given again have an id, and are imported once."""
    marks: Marks = {}
    samples = [marked(sample, marks) for sample in SAMPLES]
    monkeypatch.setattr(inspect, "samples_of", lambda _: iter(samples))
    report = reenact.import_runs(LOG, tmp_path / "runs")
    assert dropped(report, tmp_path / "runs", marks) <= {".events[].input[].tool_calls[].arguments"}


def test_a_message_of_gemini_that_is_told_again_otherwise_is_kept(tmp_path):
    """With less in it than before, or when it was complete already."""
    head = {"sessionId": "s", "projectHash": "h", "startTime": "2026-01-01T00:00:00Z"}
    first = {"id": "1", "type": "user", "content": "Go.", "displayContent": "shown once"}
    lines = [head, first, {"id": "1", "type": "user", "content": "Go."}]
    lines += [
        {"id": "2", "type": "gemini", "content": "Gone."},
        {"id": "1", "type": "user", "content": "Stop."},
    ]
    (tmp_path / "it.jsonl").write_text("\n".join(map(json.dumps, lines)))
    report = reenact.import_runs(tmp_path / "it.jsonl", tmp_path / "runs")
    assert (report.runs[0].format, report.verdict) == ("gemini-cli", "whole")
    text = "".join(text_of_captures(tmp_path / "runs"))
    assert "shown once" in text
    assert "Stop." in text


def test_a_picture_in_a_rollout_of_codex_is_kept(tmp_path):
    """A message is a text only where all its parts are texts."""
    [source] = FIXTURES.glob("codex/*.jsonl")
    parts = [{"type": "input_text", "text": "Look."}, {"type": "input_image", "image_url": "data:image/x"}]
    item = {"type": "message", "role": "user", "content": parts}
    line = json.dumps({"timestamp": "2026-11-16T07:00:00Z", "type": "response_item", "payload": item})
    (tmp_path / source.name).write_text(source.read_text() + line + "\n")
    report = reenact.import_runs(tmp_path / source.name, tmp_path / "runs")
    assert report.verdict == "whole"
    assert "data:image/x" in "".join(text_of_captures(tmp_path / "runs"))


def test_of_very_many_the_same_ones_are_named_each_time(tmp_path):
    """Whatever order the sets of a process have: the capture is the same, byte for byte."""
    names = {f"odd{number}": number for number in range(1500)}
    entry = {"type": "user", "uuid": "1", "parentUuid": None, "sessionId": "s", "isSidechain": False}
    entry |= {"timestamp": "2026-01-01T00:00:00Z", "message": {"role": "user", "content": "go"}} | names
    source = tmp_path / "it.jsonl"
    source.write_text(json.dumps(entry) + "\n")
    made = []
    for seed in "12":
        words = [sys.executable, "-m", "reenact", "import", str(source), "-o", str(tmp_path / seed), "--json"]
        done = subprocess.run(
            words, env=os.environ | {"PYTHONHASHSEED": seed}, check=False, capture_output=True
        )
        made.append(
            (
                done.stdout.replace(str(tmp_path / seed).encode(), b""),
                (tmp_path / seed / "manifest.json").read_bytes(),
            )
        )
    assert made[0] == made[1]
    assert b'"entry.odd0"' in made[0][1]

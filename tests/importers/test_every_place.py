"""Every place of every source, with another kind of value in it, or with a secret."""

from __future__ import annotations

import copy
import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import reenact
from reenact.importers import inspect
from tests.hard import chance, rounds
from tests.importers.test_cassette_forms import FORMS as CASSETTES
from tests.importers.test_fuzz import KEY, look_at
from tests.importers.test_inspect import LOG, SAMPLES
from tests.importers.test_mutations import DOCUMENTS, FIXTURES
from tests.importers.test_span_dialects import DIALECTS, resources, span
from tests.importers.test_transcript_forms import CONTENTS, FIRST_ROLLOUT, mini
from tests.importers.test_unknown_fields import LINES, SPANS, WHOLE, text_of_captures

DIALECT_SPANS = {
    f"spans of {name}": {
        "resourceSpans": resources(*(span("x", each, at) for at, each in enumerate(told, 1)))
    }
    for name, told in DIALECTS.items()
}
FORMS: dict[str, tuple[str, Any]] = {
    **{name: ("otlp", value) for name, value in DIALECT_SPANS.items()},
    "saved chat": ("gemini-cli", CONTENTS),
    "first rollout": ("codex", FIRST_ROLLOUT),
    "mini-swe-agent 1": ("swe-agent", json.loads(mini(("assistant", "```bash\nls\n```"), ("user", "b")))),
    "early cassette": ("vcr", json.loads(CASSETTES["before-1.json"])),
    "cassette of Go": ("vcr", yaml.safe_load(CASSETTES["go.yaml"])),
    "cassette of httpx": ("vcr", yaml.safe_load(CASSETTES["httpx.yaml"])),
}  # fmt: skip
SOURCES = [*LINES.items(), *WHOLE, *((importer, name) for name, (importer, _) in FORMS.items())]
OTHERS: tuple[Any, ...] = (
    None, [], {}, 5, -1.5, "x", "", True, [None], [5], [["x"]], {"a": None}, float("inf"), 10**400, "9" * 400,
    "x\ud83d",
)  # fmt: skip
PYTHON = re.compile(
    r"NoneType|object has no|object is not|unhashable|subscript|unpack|Error\b|indices|argument must"
)
"""How Python speaks of what went wrong."""


def values_of(name: str) -> list[Any]:
    """The values of a source: one a line, or the one of a document."""
    if name in SPANS:
        return [copy.deepcopy(SPANS[name])]
    if name in FORMS:
        return [copy.deepcopy(FORMS[name][1])]
    if name in DOCUMENTS:
        return [json.loads(DOCUMENTS[name])]
    [path] = FIXTURES.glob(name) if "*" in name else [FIXTURES / name]
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    return [yaml.safe_load(path.read_text())]


def write(path: Path, name: str, values: list[Any]) -> None:
    if name.endswith(".yaml"):
        path.write_text(yaml.safe_dump(values[0]))
    else:
        path.write_text("\n".join(json.dumps(value, indent=None if "*" in name else 1) for value in values))


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every member and item below *value*."""
    for key, child in value.items() if isinstance(value, dict) else enumerate(value):
        yield value, key
        if isinstance(child, dict | list):
            yield from places(child)


def check_losses(report: Any) -> None:
    """In plain words; and the run can be looked at."""
    reasons = [loss.reason for run in report.runs for loss in run.losses]
    reasons += [each.reason for each in report.failed]
    assert [reason for reason in reasons if PYTHON.search(reason)] == []
    for run in report.runs[:1]:
        look_at(run.path)


def confuse(values: list[Any], count: int, name: str) -> Iterator[Any]:
    """So many times *values* with one place changed."""
    draw = chance(name)
    for _ in range(count):
        changed = copy.deepcopy(values)
        node, key = draw.choice(list(places(changed)))
        node[key] = copy.deepcopy(draw.choice(OTHERS))
        yield changed


@pytest.mark.parametrize(("importer", "name"), SOURCES)
def test_another_kind_of_value_at_any_place_is_told_in_plain_words(tmp_path, importer, name):
    """Nothing, a list for an object, a number for a text: what can be read is read."""
    for number, values in enumerate(confuse(values_of(name), rounds(4, 1500), name)):
        source = tmp_path / f"it{number}"
        write(source, name, values)
        check_losses(reenact.import_runs(source, tmp_path / "out" / str(number), format=importer))
        shutil.rmtree(tmp_path / "out", ignore_errors=True)


def test_another_kind_of_value_in_a_sample_is_told_in_plain_words(tmp_path, monkeypatch):
    """What Inspect's own reader gives."""
    for number, samples in enumerate(confuse(SAMPLES, rounds(8, 1500), "inspect")):
        given = [sample for sample in samples if isinstance(sample, dict)]
        monkeypatch.setattr(inspect, "samples_of", lambda _, given=given: iter(given))
        check_losses(reenact.import_runs(LOG, tmp_path / str(number)))


def test_another_kind_of_value_in_a_bundle_is_told_in_plain_words(tmp_path):
    """In its manifest, in its events and in its payloads."""
    [source] = (FIXTURES / "codex-trace").iterdir()
    files = [file.relative_to(source) for file in source.rglob("*.json*")]
    texts = {str(file): (source / file).read_text().splitlines() for file in files}
    values = [{file: [json.loads(line) for line in lines] for file, lines in sorted(texts.items())}]
    for number, (changed,) in enumerate(confuse(values, rounds(6, 1500), "bundle")):
        bundle = tmp_path / f"it{number}"
        for file, lines in changed.items() if isinstance(changed, dict) else ():
            (bundle / file).parent.mkdir(parents=True, exist_ok=True)
            listed = lines if isinstance(lines, list) else [lines]
            (bundle / file).write_text("".join(json.dumps(line) + "\n" for line in listed))
        if bundle.exists():
            check_losses(reenact.import_runs(bundle, tmp_path / f"out{number}", format="codex-trace"))


@pytest.mark.parametrize(
    ("name", "change", "reason", "line"),
    [
        ("claude-code/*.jsonl", lambda it: it[2]["message"].update(content=5), "found a number", 3),
        ("opencode.json", lambda it: it[0]["messages"][1].update(info=[]), "info: expected an object", None),
        (
            "atif.json",
            lambda it: it[0]["steps"].__setitem__(1, None),
            "step 2 of task 0 cannot be read",
            None,
        ),
        ("x.har", lambda it: it[0]["log"]["entries"][1].update(request="x"), "found a text", None),
        ("cassetter.yaml", lambda it: it[0]["interactions"][1].update(response=[]), "found a list", None),
        ("cassette.json", lambda it: it[0]["interactions"][1].update(request=5), "found a number", None),
        ("langsmith", lambda it: it[0][1].update(run_type=5), "it has no id or no run_type", None),
        ("langfuse", lambda it: it[0].__setitem__(0, 7), "observation: expected an object", None),
    ],
)
def test_a_loss_has_the_line_and_what_was_expected(
    tmp_path: Path, name: str, change: Callable[[Any], None], reason: str, line: int | None
) -> None:
    """Of an item of a document, the line on which the item begins."""
    values = values_of(name)
    change(values)
    write(tmp_path / "it", name, values)
    losses = [
        loss for run in reenact.import_runs(tmp_path / "it", tmp_path / "out").runs for loss in run.losses
    ]
    [found] = [loss for loss in losses if reason in loss.reason]
    text = (tmp_path / "it").read_text().splitlines()
    assert isinstance(found.line, int)
    assert 1 < found.line < len(text)
    assert line in (None, found.line)


TIMES = {
    "timestamp", "startTime", "endTime", "start_time", "end_time", "startedDateTime", "recorded_at",
    "created", "completed", "startTimeUnixNano", "endTimeUnixNano", "start", "end",
}  # fmt: skip
"""The names of times in all formats."""


@pytest.mark.parametrize(("importer", "name"), SOURCES)
def test_a_time_that_is_none_is_a_loss(tmp_path, importer, name):
    """With everything else there all the same."""
    values = values_of(name)
    (tmp_path / "before").mkdir()
    write(tmp_path / "before" / "it", name, values)
    (before,) = reenact.import_runs(tmp_path / "before" / "it", tmp_path / "one", format=importer).runs
    named = [(node, key) for node, key in places(values) if key in TIMES and not isinstance(node, list)]
    if not named:
        return
    for node, key in named:
        node[key] = "at noon"
    write(tmp_path / "it", name, values)
    (after,) = reenact.import_runs(tmp_path / "it", tmp_path / "two", format=importer).runs
    assert after.counts == before.counts
    assert [loss for loss in after.losses if "time: expected a date or a count of seconds" in loss.reason]


HALF = "GE\ud83dT"


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("cassette.json", lambda it: it["interactions"][1]["request"].update(method=HALF)),
        ("cassette.json", lambda it: it["interactions"][1]["request"].update(uri=f"https://x.test/{HALF}")),
        ("x.har", lambda it: it["log"]["entries"][1]["request"].update(method=HALF)),
        ("x.har", lambda it: it["log"]["entries"][1]["request"].update(url=f"https://x.test/{HALF}")),
    ],
)
def test_half_a_character_in_a_request_costs_that_request_alone(tmp_path, name, change):
    """It cannot be sent; what comes behind it is imported."""
    values = values_of(name)
    change(values[0])
    write(tmp_path / "it", name, values)
    (run,) = reenact.import_runs(tmp_path / "it", tmp_path / "out").runs
    [loss] = run.losses
    assert (run.counts.requests, "half a character" in loss.reason, loss.line is not None) == (2, True, True)


def put_keys(values: list[Any], count: int, name: str) -> Iterator[list[Any]]:
    """*values* with a key in one text each; at every text in the long form."""
    texts = [
        number
        for number, (node, key) in enumerate(places(values))
        if isinstance(node[key], str) and node[key]
    ]
    draw = chance(name)
    for number in draw.sample(texts, min(count, len(texts))):
        changed = copy.deepcopy(values)
        node, key = list(places(changed))[number]
        node[key] += f" {KEY}"
        yield changed


@pytest.mark.parametrize(("importer", "name"), SOURCES)
def test_a_secret_in_any_text_is_hidden_before_it_is_on_disk(tmp_path, importer, name):
    """Of ids too, of which some become names of folders."""
    values = values_of(name)
    for number, changed in enumerate(put_keys(values, rounds(4, 10_000), name)):
        source, out = tmp_path / f"it{number}", tmp_path / "out" / str(number)
        write(source, name, changed)
        report = reenact.import_runs(source, out, format=importer)
        told = json.dumps([[loss.reason for loss in run.losses] + [*run.unknown] for run in report.runs])
        assert KEY not in "".join(text_of_captures(out)) + told
        assert not any(KEY in file.read_text("latin-1") for file in out.rglob("*") if file.is_file())
        assert not any(KEY in str(file) for file in out.rglob("*"))

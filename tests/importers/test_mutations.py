"""What other tools wrote, changed as files get changed: what can be read is read, each loss has its line."""

from __future__ import annotations

import bz2
import gzip
import json
import os
import re
import shutil
from collections.abc import Callable
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import zstandard

import reenact
from reenact.importers import source
from tests.hard import HARD
from tests.importers.test_importing import entry, har

FIXTURES = Path(__file__).parent / "fixtures"
STEPS = [
    {"step_id": 1, "source": "user", "message": "How many files are here?"},
    {
        "step_id": 2,
        "source": "agent",
        "message": "I look.",
        "tool_calls": [{"tool_call_id": "t1", "function_name": "ls", "arguments": {}}],
        "observation": {"results": [{"source_call_id": "t1", "content": "one.txt, a file"}]},
    },
    {"step_id": 3, "source": "agent", "message": "There is one file."},
]
ATIF = {
    "schema_version": "ATIF-v1.4",
    "session_id": "s",
    "agent": {"name": "a", "version": "1"},
    "steps": STEPS,
}
INTERACTIONS = [
    {
        "request": {"method": "GET", "uri": f"https://x.test/{number}", "headers": {}, "body": None},
        "response": {"status": {"code": 200, "message": "OK"}, "headers": {}, "body": {"string": "a file"}},
    }
    for number in range(3)
]
DOCUMENTS: dict[str, str] = {
    "atif.json": json.dumps(ATIF, indent=1),
    "cassette.json": json.dumps({"version": 1, "interactions": INTERACTIONS}, indent=1),
    "x.har": har(*(entry(f"https://x.test/{'a' * number}", "a file") for number in range(1, 4))),
}
LINES = ["claude-code/*.jsonl", "codex/*.jsonl", "gemini-cli/*.jsonl", "pi/*.jsonl"]
WHOLE = ["opencode.json", "mini-swe-agent-tools.traj.json", "otlp-genai.json", "cassetter.yaml"]
SOURCES = [*LINES, *WHOLE, *DOCUMENTS]


def text_of(name: str) -> bytes:
    if name in DOCUMENTS:
        return DOCUMENTS[name].encode()
    [path] = FIXTURES.glob(name)
    return path.read_bytes()


def imported(tmp_path: Path, text: bytes, name: str = "it") -> Any:
    (tmp_path / name).write_bytes(text)
    report = reenact.import_runs(tmp_path / name, tmp_path / f"{name}-runs")
    for run in report.runs:
        assert reenact.verify(run.path).is_good
        assert reenact.diff(run.path, run.path).equal
        assert reenact.convert(run.path, "trace").data
    return report


def calls_in(report: Any) -> list[tuple[int, ...]]:
    counts = [run.counts for run in report.runs]
    return [(each.model_calls, each.tool_calls, each.tool_results, each.requests) for each in counts]


def losses_in(report: Any) -> list[tuple[str, int]]:
    return [(loss.reason, loss.line) for run in report.runs for loss in run.losses]


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize(
    "change",
    [
        lambda text: b"\xef\xbb\xbf" + text,
        lambda text: text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"),
        lambda text: text + b"\n\n  \n",
    ],
    ids=["byte order mark", "CRLF", "empty lines behind"],
)
def test_what_editors_and_checkouts_do_to_a_file_changes_nothing(tmp_path, name, change):
    """Whatever it is called: the format is found by content."""
    before = imported(tmp_path, text_of(name), "before")
    after = imported(tmp_path, change(text_of(name)), "after.txt")
    assert (calls_in(after), after.verdict) == (calls_in(before), "whole")
    os.symlink(tmp_path / "before", tmp_path / "link")
    linked = reenact.import_runs(tmp_path / "link", tmp_path / "linked")
    assert calls_in(linked) == calls_in(before)


@pytest.mark.parametrize("odd", [b"\xef", b"\0"])
@pytest.mark.parametrize("name", [name for name in SOURCES if name != "cassetter.yaml"])
def test_bytes_that_are_no_text_are_a_loss_with_its_line(tmp_path, name, odd):
    """They become replacement characters, and nobody takes that for the whole."""
    text = text_of(name).replace(b" file", b" f" + odd + b"le")
    assert text != text_of(name)
    report = imported(tmp_path, text)
    first = next(number for number, line in enumerate(text.split(b"\n"), 1) if odd in line)
    reason, line = losses_in(report)[0]
    assert ("not UTF-8" in reason, line, report.verdict) == (True, first, "partly")


@pytest.mark.parametrize("name", [*LINES, *DOCUMENTS, "opencode.json", "otlp-genai.json"])
@pytest.mark.parametrize("share", [0.6, 0.8, 0.99])
def test_of_a_file_that_was_cut_off_the_beginning_is_read(tmp_path, name, share):
    """No call more than the whole has, and the line of the cut."""
    text = text_of(name).rstrip()
    cut = text[: int(len(text) * share)]
    before, after = imported(tmp_path, text, "before"), imported(tmp_path, cut, "cut")
    assert (len(after.runs), after.verdict) == (1, "partly")
    assert all(part <= whole for part, whole in zip(calls_in(after)[0], calls_in(before)[0], strict=True))
    [line] = {line for reason, line in losses_in(after) if "not JSON" in reason}
    assert abs(line - (cut.count(b"\n") + 1)) <= 1


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("claude-code/*.jsonl", bz2.compress, "is compressed with bzip2; unpack it first"),
        ("x.har", lambda _: b"PK\x03\x04" + bytes(99), "is a zip archive; unpack it first"),
        ("x.har", lambda _: gzip.compress(b"hello"), "is of no format that can be imported"),
        ("x.har", lambda text: text.decode().encode("utf-16"), "is text in UTF-16; write it as UTF-8 first"),
        ("x.har", lambda _: b"", "is empty"),
        ("x.har", lambda _: b" \n\n", "is of no format that can be imported"),
        ("pi/*.jsonl", lambda text: text[:20], "is of no format that can be imported"),
    ],
)
def test_what_cannot_be_read_at_all_is_refused_with_the_reason(tmp_path, name, change, said):
    """In one line, with what to do."""
    report = imported(tmp_path, change(text_of(name)))
    assert (report.verdict, said in report.failed[0].reason) == ("nothing", True)


@pytest.mark.parametrize(
    "name", ["claude-code/*.jsonl", "x.har", "cassette.json", "otlp-genai.pb", "opencode.json"]
)
@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress])
def test_a_source_that_is_compressed_is_read(tmp_path, name, members, compress):
    """Also in several members; its name, size and digest are those of the compressed file."""
    text = text_of(name)
    cuts = [len(text) * number // members for number in range(members + 1)]
    packed = b"".join(compress(text[start:end]) for start, end in pairwise(cuts))
    plain, made = imported(tmp_path, text, "plain"), imported(tmp_path, packed, "packed")
    assert (made.verdict, calls_in(made), losses_in(made)) == ("whole", calls_in(plain), losses_in(plain))
    manifest = json.loads((Path(made.runs[0].path) / "manifest.json").read_text())
    assert manifest["imported"]["source"]["bytes"] == len(packed)
    assert manifest["imported"]["source"]["digest"] == f"sha256:{sha256(packed).hexdigest()}"


@pytest.mark.parametrize("name", ["claude-code/*.jsonl", "x.har", "cassette.json"])
@pytest.mark.parametrize(
    "damage",
    [
        lambda packed: packed[:-40],
        lambda packed: packed + b"more",
        lambda packed: packed[: len(packed) // 2] + b"\xff" * 60,
    ],
)
@pytest.mark.parametrize(("coding", "compress"), [("gzip", gzip.compress), ("zstd", zstandard.compress)])
def test_of_a_damaged_compressed_source_the_beginning_is_read(tmp_path, name, damage, coding, compress):
    made = imported(tmp_path, damage(compress(text_of(name) + b"\n")))
    reasons = [reason for reason, _ in losses_in(made)] + [each.reason for each in made.failed]
    assert any(coding in reason for reason in reasons)
    assert made.verdict != "whole"


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress])
def test_a_compressed_source_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch, compress):
    monkeypatch.setattr(source, "MAX_WHOLE_BYTES", 100_000)
    document = json.dumps({"info": {"id": "x"}, "messages": [], "more": "x" * 200_000}).encode()
    (tmp_path / "it").write_bytes(compress(document))
    made = reenact.import_runs(tmp_path / "it", tmp_path / "out", format="opencode")
    assert "such a file is read as a whole" in made.failed[0].reason


def with_field(value: Any) -> Any:
    if isinstance(value, dict):
        return {**{key: with_field(child) for key, child in value.items()}, "zz_new": 1}
    return [with_field(child) for child in value] if isinstance(value, list) else value


UNKNOWN = {
    "claude-code/*.jsonl": {"entry.zz_new", "message.zz_new", "block.zz_new", "usage.zz_new"},
    "codex/*.jsonl": {"line.zz_new", "item.zz_new"},
    "gemini-cli/*.jsonl": {"session.zz_new", "message.zz_new", "toolCall.zz_new", "tokens.zz_new"},
    "pi/*.jsonl": {"entry.zz_new", "message.zz_new", "block.zz_new", "usage.zz_new"},
    "opencode.json": {"zz_new", "message.zz_new", "info.zz_new", "part.zz_new", "state.zz_new"},
    "otlp-genai.json": {"span.zz_new"},
    "atif.json": {
        "trajectory.zz_new", "step.zz_new", "tool_call.zz_new", "observation.zz_new", "result.zz_new",
    },
    "cassette.json": {"zz_new", "interaction.zz_new", "request.zz_new", "response.zz_new"},
    "x.har": {"zz_new", "log.zz_new", "entry.zz_new", "request.zz_new", "response.zz_new", "content.zz_new"},
}  # fmt: skip


@pytest.mark.parametrize("name", UNKNOWN)
def test_a_field_of_tomorrow_is_counted_and_named(tmp_path, name):
    """In entries, messages and their parts alike; as often as it is there."""
    text = text_of(name).decode()
    values = [json.loads(line) for line in (text.splitlines() if name in LINES else [text])]
    report = imported(tmp_path, "\n".join(json.dumps(with_field(value)) for value in values).encode())
    unknown = report.runs[0].unknown
    assert UNKNOWN[name] <= unknown.keys()
    assert calls_in(report) == calls_in(imported(tmp_path, text.encode(), "before"))


def test_lines_that_are_told_twice_are_read_once(tmp_path):
    """And each of the others is named."""
    text = text_of("claude-code/*.jsonl")
    report = imported(tmp_path, text + text)
    count = text.count(b"\n")
    assert calls_in(report)[0][:3] == calls_in(imported(tmp_path, text, "once"))[0][:3]
    assert {reason.partition(";")[0] for reason, _ in losses_in(report)} == {
        "an entry of the same uuid was read before"
    }
    assert all(line > count for _, line in losses_in(report))


def test_a_cassette_with_two_lists_loses_none(tmp_path):
    """Of two members with one name a parser of YAML keeps one."""
    text = text_of("cassetter.yaml")
    once = imported(tmp_path, text, "once")
    [(models, _, _, requests)] = calls_in(imported(tmp_path, text + b"\n" + text, "twice"))
    assert [(models / 2, 0, 0, requests / 2)] == calls_in(once)


def test_history_that_is_told_again_is_told(tmp_path):
    """A rollout that repeats its items has each of them once, and says that it has cut them."""
    text = text_of("codex/*.jsonl")
    once, report = imported(tmp_path, text, "once"), imported(tmp_path, text + text)
    assert [each[1:3] for each in calls_in(report)] == [each[1:3] for each in calls_in(once)]
    assert any("repeated" in missing for missing in report.runs[0].missing)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_large_document_is_read_item_by_item(tmp_path, monkeypatch, name):
    """With the same calls as a small one, and the same losses."""
    text = text_of(name)
    for given in (text, text[: int(len(text) * 0.9)]):
        small = imported(tmp_path, given, "small")
        monkeypatch.setattr("reenact.importers.source.LARGE_BYTES", 0)
        large = imported(tmp_path, given, "large")
        monkeypatch.undo()
        assert calls_in(large) == calls_in(small)
        assert [line for _, line in losses_in(large)] == [line for _, line in losses_in(small)]
        for run in (*small.runs, *large.runs):
            shutil.rmtree(run.path)


def test_a_document_that_is_too_large_to_be_read_whole_is_refused(tmp_path, monkeypatch):
    """Before memory is gone, with what to do."""
    monkeypatch.setattr(source, "MAX_WHOLE_BYTES", 1000)
    report = imported(tmp_path, text_of("opencode.json"), "it.json")
    assert report.failed[0].reason.endswith("such a file is read as a whole, up to 1000; split it")


CHANGES: dict[str, Callable[[list[bytes], int], list[bytes]]] = {
    "a line is gone": lambda lines, at: lines[:at] + lines[at + 1 :],
    "a line is there twice": lambda lines, at: lines[: at + 1] + lines[at:],
    "a line is cut": lambda lines, at: [*lines[:at], lines[at][: len(lines[at]) // 2], *lines[at + 1 :]],
    "two lines have changed places": lambda lines, at: [
        *lines[:at], *lines[at : at + 2][::-1], *lines[at + 2 :],
    ],
    "a line of another tool": lambda lines, at: [*lines[:at], b'{"type":"user","role":"x"}', *lines[at:]],
    "a line is nested deep": lambda lines, at: [*lines[:at], b"[" * 5000 + b"]" * 5000, *lines[at:]],
    "a huge number": lambda lines, at: [
        *lines[:at], lines[at].replace(b"1", b"1" * 400, 1), *lines[at + 1 :],
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("change", CHANGES)
def test_a_transcript_with_one_line_changed_is_read(tmp_path, name, change):
    """At every line in the long form, at a few in the short one; calls are never invented."""
    lines = text_of(name).split(b"\n")[:-1]
    whole = calls_in(imported(tmp_path, text_of(name), "whole"))[0]
    for at in range(1, len(lines)) if HARD else (len(lines) // 2,):
        report = imported(tmp_path, b"\n".join(CHANGES[change](lines, at)), f"it{at}")
        for found in calls_in(report):
            assert found[1] <= whole[1]
            assert found[2] <= whole[2]


def test_half_characters_in_names_are_no_reason_to_read_nothing(tmp_path):
    """JSON may have the escape of half a character anywhere, and a file name any bytes."""
    half = "x\ud83d"
    message = {"id": half, "role": "assistant", "model": half, "stop_reason": half, half: 1, "content": []}
    call = {"type": "tool_use", "id": half, "name": half, "input": {half: half}}
    given = {"type": "tool_result", "tool_use_id": half, "content": half}
    entries = [
        {"uuid": "1", "type": "assistant", "parentUuid": half, "message": {**message, "content": [call]}},
        {"uuid": "2", "type": "user", "message": {"role": "user", "content": [given, given]}},
        {"uuid": "3", "type": half},
    ]
    name = os.fsdecode(b"caf\xe9.jsonl")
    text = "".join(json.dumps({"sessionId": "s", **each}) + "\n" for each in entries)
    report = imported(tmp_path, text.encode(), name)
    assert calls_in(report) == [(1, 1, 1, 0)]
    assert report.runs[0].unknown == {"message.x\\ud83d": 1, "type.x\\ud83d": 1}
    assert [line for _, line in losses_in(report)] == [1, 2]
    assert report.runs[0].source == "caf\\xe9.jsonl"


@pytest.mark.parametrize(
    ("entry", "count"),
    [
        (
            '{"type":"user","message":{"role":"user","content":"%s"},"uuid":"1","sessionId":"s"}\n'
            '{"type":"assistant","message":{"id":"m","role":"assistant","content":[]},"uuid":"2","sessionId":"s"}',
            1,
        ),
        (
            '{"id":"t","name":"n","input":"%s","timestamp":"2026-01-01T00:00:00Z","observations":'
            '[{"id":"g","traceId":"t","type":"GENERATION","output":"yes","model":"m"}]}',
            1,
        ),
        (
            '[{"inputs":{"messages":[{"role":"user","content":"%s"}]},"outputs":{},"run_type":"llm","id":"1"}]',
            1,
        ),
        ('{"messages":[{"role":"user","content":"%s"}],"info":{"mini_version":"2"}}', 0),
    ],
    ids=["claude-code", "langfuse", "langsmith", "mini-swe-agent"],
)
def test_a_format_is_found_behind_a_long_first_message(tmp_path, entry, count):
    """A picture in the first message of a transcript, or a long prompt before the name of its kind."""
    report = imported(tmp_path, (entry % ("x" * 3_000_000)).encode())
    assert (report.verdict, report.runs[0].counts.model_calls) == ("whole", count)


NAMES = {"claude-code": "claude-code/*.jsonl", "codex": "codex/*.jsonl", "pi": "pi/*.jsonl"}
NAMES["gemini-cli"] = "gemini-cli/*.jsonl"


@pytest.mark.parametrize("other", NAMES)
@pytest.mark.parametrize("name", NAMES)
def test_lines_of_another_tool_are_losses_with_their_lines(tmp_path, name, other):
    """None is dropped in silence, or taken for the repetition of another; the conversation stays the same."""
    if name == other:
        return
    text, lines = text_of(NAMES[name]).rstrip(), text_of(NAMES[other]).strip().split(b"\n")
    foreign = [line for line in lines if b'"type"' in line][-2:]
    (tmp_path / "whole").write_bytes(text)
    (tmp_path / "mixed").write_bytes(b"\n".join((text, *foreign)))
    whole = reenact.import_runs(tmp_path / "whole", tmp_path / "a", format=name)
    mixed = reenact.import_runs(tmp_path / "mixed", tmp_path / "b", format=name)
    assert calls_in(mixed) == calls_in(whole)
    count = text.count(b"\n") + 1
    assert {line for _, line in losses_in(mixed)} >= {count + 1, count + 2}
    assert mixed.runs[0].counts.notes > whole.runs[0].counts.notes


def test_counts_of_tokens_may_be_texts(tmp_path):
    text = text_of("claude-code/*.jsonl").decode()
    changed = re.sub(r'"(input_tokens|output_tokens)": (\d+)', r'"\1": "\2"', text)
    assert changed != text
    before, after = imported(tmp_path, text.encode(), "before"), imported(tmp_path, changed.encode(), "after")
    tokens = [reenact.stats(report.runs[0].path).stats.tokens for report in (before, after)]
    assert tokens[0] == tokens[1]


@pytest.mark.parametrize(
    ("name", "place", "named"),
    [
        ("codex/*.jsonl", "role", "item.role=narrator"),
        ("pi/*.jsonl", "role", "message.role=narrator"),
        ("opencode.json", "role", "info.role=narrator"),
        ("mini-swe-agent-tools.traj.json", "role", "message.role=narrator"),
        ("atif.json", "source", "step.source=narrator"),
    ],
)
def test_a_role_of_tomorrow_is_named(tmp_path, name, place, named):
    """What a user said is said by somebody else."""
    text = text_of(name).decode()
    changed = re.sub(rf'("{place}": ?)"user"', r'\1"narrator"', text)
    assert changed != text
    assert named in imported(tmp_path, changed.encode()).runs[0].unknown


def test_calls_that_were_not_run_are_there(tmp_path):
    """mini-swe-agent has no command for a call that it could not read."""
    document = json.loads(text_of("mini-swe-agent-tools.traj.json"))
    answer = next(each for each in document["messages"] if each.get("tool_calls"))
    odd = {"id": "odd", "type": "function", "function": {"name": "fly", "arguments": "{"}}
    answer["tool_calls"].append(odd)
    report = imported(tmp_path, json.dumps(document).encode())
    before = imported(tmp_path, text_of("mini-swe-agent-tools.traj.json"), "before")
    [(models, calls, results, _)] = calls_in(before)
    assert (calls_in(report), report.verdict) == ([(models, calls + 1, results, 0)], "whole")

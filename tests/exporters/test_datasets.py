"""Rows to train on: selected, split, without duplicates, and each of them traced back to its run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import anthropic
import openai
import pyarrow
import pytest
from pyarrow import parquet

import reenact
from reenact.exporters.datasets import Splits, near_signature
from reenact.testing import Reply, ScriptedProvider, ToolCall
from tests.cli.commands import run as run_command
from tests.importers.test_transcripts import SOURCES, source_of

KEY = "sk-proj-Qm3rT7vW9yB2dF5hJ8kN1pS4uX6zA0cE3gI5lO7qR9tV"
QUESTION = "How warm is it? Grüße"
TOOLS: list[Any] = [
    {"type": "function", "function": {"name": "look", "description": "", "parameters": {"type": "object"}}}
]


def chat(base: str, *, rounds: int = 1, question: str = QUESTION) -> str:
    """A chat with tools, as any agent's loop has it."""
    messages: list[Any] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": question}]
    with openai.OpenAI(base_url=f"{base}/v1", api_key=KEY) as client:
        for _ in range(rounds + 1):
            answer = client.chat.completions.create(model="m", messages=messages, tools=TOOLS)
            said = answer.choices[0].message
            messages.append(said.model_dump(exclude_none=True))
            calls = said.tool_calls or ()
            messages += [{"role": "tool", "tool_call_id": call.id, "content": "21"} for call in calls]
    return str(messages[-1]["content"])


@contextmanager
def recording(path: Path, *script: Reply, **options: Any) -> Iterator[tuple[openai.OpenAI, Any]]:
    """A client of OpenAI whose calls are recorded, and the run."""
    with (
        ScriptedProvider(script) as provider,
        reenact.capture(path, **options) as run,
        openai.OpenAI(base_url=f"{provider.url}/v1", api_key=KEY) as client,
    ):
        yield client, run


def record(path: Path, *answers: str, question: str = QUESTION, **facts: Any) -> Path:
    script = [Reply("I look.", [ToolCall("look", {"place": "here", "n": 1})]), *map(Reply, answers)]
    with ScriptedProvider(script) as provider, reenact.capture(path) as run:
        run.final_output = chat(provider.url, rounds=len(answers), question=question)
        if "delta" in facts:
            run.verification("pytest", 0, verification_delta=facts["delta"])
    return path


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a good run and a bad one."""
    home = tmp_path_factory.mktemp("two")
    record(home / "runs" / "a", "It is 21 degrees.", delta=2)
    record(home / "runs" / "b", "No idea.", delta=0)
    return home


def rows_in(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_a_chat_is_one_row_with_its_tools_and_where_it_comes_from(tmp_path):
    """However often its history was sent."""
    run = record(tmp_path / "run", "It is 21 degrees.", "Anything else?")
    report = reenact.export_runs(run, "sft", tmp_path / "data.jsonl")
    assert (report.failed, report.runs[0].losses, report.runs[0].rows) == ([], [], 1)
    (row,) = rows_in(tmp_path / "data.jsonl")
    call_id = row["messages"][2]["tool_calls"][0]["id"]
    assert row["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": QUESTION},
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [
                {
                    "id": call_id,
                    "type": "function",
                    "function": {"name": "look", "arguments": {"place": "here", "n": 1}},
                }
            ],
        },
        {"role": "tool", "content": "21", "tool_call_id": call_id},
        {"role": "assistant", "content": "It is 21 degrees."},
        {"role": "assistant", "content": "Anything else?"},
    ]
    assert row["tools"] == TOOLS
    manifest = json.loads((run / "manifest.json").read_text())
    assert row["provenance"] | {"first_event": 0, "last_event": 0} == {
        "capture_id": manifest["captureId"],
        "run": "run",
        "events_hash": manifest["integrity"]["eventsHash"],
        "first_event": 0,
        "last_event": 0,
        "seal": "",
        "redaction": manifest["redaction"]["profile"],
        "fidelity": "recorded",
        "schema": "reenact.dataset.v1",
        "reasoning": "drop",
        "export_redaction": "none",
    }
    assert KEY not in (tmp_path / "data.jsonl").read_text()
    assert reenact.verify(tmp_path / "data.jsonl").findings == []


def test_reasoning_is_kept_where_it_is_asked_for(tmp_path):
    """Also that of earlier answers, which the agent does not send back."""
    script = [Reply("Yes.", thinking="Let me see."), Reply("No.", thinking="Once more.")]
    messages: list[Any] = [{"role": "user", "content": "Is it?"}]
    with (
        ScriptedProvider(script) as provider,
        reenact.capture(tmp_path / "run"),
        anthropic.Anthropic(base_url=provider.url, api_key=KEY) as client,
    ):
        for _ in script:
            answer = client.messages.create(model="m", max_tokens=9, messages=messages)
            text = next(part.text for part in answer.content if part.type == "text")
            messages.append({"role": "assistant", "content": text})
            messages.append({"role": "user", "content": "Sure?"})
    for reasoning, said in (("keep", ["Let me see.", "Once more."]), ("drop", [None, None])):
        reenact.export_runs(tmp_path / "run", "sft", tmp_path / reasoning, reasoning=reasoning)
        (row,) = rows_in(tmp_path / reasoning)
        answers = [each for each in row["messages"] if each["role"] == "assistant"]
        assert [each.get("reasoning_content") for each in answers] == said
        assert reenact.verify(tmp_path / reasoning).findings == []


def test_a_history_that_is_rewritten_is_a_conversation_of_its_own(tmp_path):
    """What was said before it is not lost."""
    with recording(tmp_path / "run", Reply("one"), Reply("two"), Reply("three")) as (client, _):
        first: list[Any] = [{"role": "user", "content": "a"}]
        client.chat.completions.create(model="m", messages=first)
        second = [*first, {"role": "assistant", "content": "one"}, {"role": "user", "content": "b"}]
        client.chat.completions.create(model="m", messages=second)
        summary: list[Any] = [{"role": "user", "content": "So far: a, one, b, two. Go on."}]
        client.chat.completions.create(model="m", messages=summary)
    reenact.export_runs(tmp_path / "run", "sft", tmp_path / "data.jsonl")
    said = [[each["content"] for each in row["messages"]] for row in rows_in(tmp_path / "data.jsonl")]
    assert said == [["a", "one", "b", "two"], ["So far: a, one, b, two. Go on.", "three"]]


@pytest.mark.parametrize("name", SOURCES)
def test_imported_transcripts_become_rows(tmp_path, name):
    """As many tool calls and results as the run has; results follow the calls they belong to."""
    (run,) = reenact.import_runs(source_of(name), tmp_path / "run").runs
    report = reenact.export_runs(tmp_path / "run", "sft", tmp_path / "data.jsonl", dedupe="none")
    rows = rows_in(tmp_path / "data.jsonl")
    messages = [message for row in rows for message in row["messages"]]
    calls = [call["id"] for message in messages for call in message.get("tool_calls", ())]
    results = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    assert report.failed == []
    assert rows
    assert len(set(calls)) <= run.counts.tool_calls
    assert set(results) <= set(calls)
    for row in rows:
        roles = [message["role"] for message in row["messages"]]
        assert roles[-1] == "assistant"
        assert all(before in ("assistant", "tool") for before, role in pairwise(roles) if role == "tool")
    assert reenact.verify(tmp_path / "data.jsonl").findings == []


def test_what_rows_cannot_hold_is_told(tmp_path):
    """A conversation with an image would be another one without it."""
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    messages: list[Any] = [{"role": "user", "content": [{"type": "text", "text": "What?"}, image]}]
    with recording(tmp_path / "run", Reply("A cat.")) as (client, _):
        client.chat.completions.create(model="m", messages=messages)
    done = run_command("export", "run", "--to", "sft", "-o", "data.jsonl", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "data.jsonl  0 rows\n")
    assert "it holds an image, a sound or a document" in done.stderr


def test_only_runs_that_are_good_enough_are_taken(tmp_path):
    """By status, by a test, by what was verified; why the others were not is counted."""
    record(tmp_path / "runs" / "good", "It is 21 degrees.", delta=2)
    record(tmp_path / "runs" / "bad", "No idea.", delta=-1)
    record(tmp_path / "runs" / "silent", "It is 21 degrees, I think.")
    test = tmp_path / "test.yaml"
    test.write_text(
        "schema_version: '0.1'\nid: warm\nname: warm\nadapter: x\nmode: replay\n"
        "scenario: {trigger: user_message}\n"
        "adapter_input: {capture: nowhere}\n"
        "assertions:\n- {id: says, type: output_contains, params: {all_of: [degrees]}}\n"
    )
    data = tmp_path / "data.jsonl"
    report = reenact.export_runs(tmp_path / "runs", "sft", data, test=test, min_verification_delta=1)
    assert len(rows_in(data)) == 1
    assert report.left_out == {"failed the test": 1, "nothing was verified": 1}
    report = reenact.export_runs(tmp_path / "runs", "sft", data, status=["error"])
    assert (rows_in(data), report.left_out) == ([], {"status ok": 3})
    report = reenact.export_runs(tmp_path / "runs", "sft", data, min_utility=0.5)
    assert report.left_out == {"no step is rated": 3}


def test_rows_that_say_the_same_are_written_once(tmp_path):
    """Exactly: ids of calls may differ. Nearly: a word more in a long text."""
    long = "word " + " ".join(f"w{number}" for number in range(300))
    for name, answer in (("a", long), ("b", long), ("c", f"{long} more"), ("d", "other")):
        record(tmp_path / "runs" / name, answer)
    counts = {}
    for dedupe in ("none", "exact", "near"):
        report = reenact.export_runs(tmp_path / "runs", "sft", tmp_path / "data.jsonl", dedupe=dedupe)
        assert report.dataset is not None
        counts[dedupe] = len(rows_in(tmp_path / "data.jsonl")), report.dataset.duplicates
    assert counts == {"none": (4, 0), "exact": (3, 1), "near": (2, 2)}


def test_the_same_secret_in_two_runs_does_not_tell_their_rows_apart(tmp_path):
    """Each run hides it with a salt of its own; the marks of its placeholders count by their order alone."""
    secrets = ["sk-proj-" + letters * 10 for letters in ("Ab1", "Cd2")]
    asked = f"The keys are {secrets[0]} and {secrets[1]}; which one works? {'Look at both. ' * 20}"
    for name in ("a", "b"):
        record(tmp_path / "runs" / name, f"This one: {secrets[0]}", question=asked)
    record(tmp_path / "runs" / "c", f"This one: {secrets[1]}", question=asked)
    counts = {}
    for dedupe in ("none", "exact", "near"):
        reenact.export_runs(tmp_path / "runs", "sft", tmp_path / "data.jsonl", dedupe=dedupe)
        counts[dedupe] = len(rows_in(tmp_path / "data.jsonl"))
    assert counts == {"none": 3, "exact": 2, "near": 1}
    record(tmp_path / "runs" / "d", "No idea.", question=asked, delta=-1)
    record(tmp_path / "runs" / "e", f"This one: {secrets[0]}", question=asked, delta=1)
    reenact.export_runs(tmp_path / "runs", "preference", tmp_path / "pairs.jsonl")
    assert rows_in(tmp_path / "pairs.jsonl")
    assert reenact.verify(tmp_path / "pairs.jsonl").is_good


@pytest.mark.parametrize(
    ("changed", "least", "most"), [(0, 1, 1), (3, 0.9, 1), (60, 0.6, 0.85), (400, 0, 0.1)]
)
def test_near_signatures_estimate_what_texts_share(changed, least, most):
    """The share of equal numbers is about the Jaccard index of the runs of five words."""
    words = [f"w{number}" for number in range(400)]
    other = [f"x{number}" if number < changed else word for number, word in enumerate(words)]
    one, two = near_signature(words), near_signature(other)
    assert least <= sum(a == b for a, b in zip(one, two, strict=True)) / len(one) <= most


def test_splits_are_the_same_every_time_and_about_as_large_as_asked_for():
    """Whatever else is exported."""
    splits = Splits({"train": 0.8, "test": 0.2})
    found = [splits.split_of(f"capture-{number}") for number in range(2000)]
    assert found == [splits.split_of(f"capture-{number}") for number in range(2000)]
    assert 0.77 < found.count("train") / 2000 < 0.83


def test_each_split_is_a_file_and_forks_are_in_that_of_their_parent(tmp_path):
    """What begins alike must not be trained on and tested with."""
    run = record(tmp_path / "runs" / "a", "It is 21 degrees.")
    base = asked_address(run)
    for number in range(3):
        said = {"set": {"$.choices[0].message.content": f"Other {number}."}}
        with reenact.fork(run, at=model_calls(run)[1], change=said, output=tmp_path / "runs" / f"f{number}"):
            chat(base)
    report = reenact.export_runs(
        tmp_path / "runs", "sft", tmp_path / "data", split={"train": 0.5, "test": 0.5}, dedupe="none"
    )
    assert report.dataset is not None
    assert sorted(report.dataset.files.values()) == [0, 4]
    assert sorted(file.name for file in (tmp_path / "data").iterdir()) == [
        "README.md", "dataset.manifest.json", "test.jsonl", "train.jsonl",
    ]  # fmt: skip
    assert reenact.verify(tmp_path / "data").facts["rows"] == 4


def asked_address(run: Path) -> str:
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    asked = next(event for event in events if event["type"] == "llm_request")
    return str(asked["data"]["request"]["url"]).partition("/v1/")[0]


def model_calls(run: Path) -> list[int]:
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    return [event["seq"] for event in events if event["type"] == "llm_request"]


def test_pairs_are_two_continuations_of_one_beginning(tmp_path):
    """Of several samples, each worse one with the best; they part where the model chose."""
    record(tmp_path / "runs" / "best", "It is 21 degrees.", delta=2)
    record(tmp_path / "runs" / "worse", "No idea.", delta=0)
    record(tmp_path / "runs" / "worst", "Go away.", delta=-3)
    record(tmp_path / "runs" / "another", "Hi.", question="Who are you?", delta=-9)
    data = tmp_path / "data.jsonl"
    reenact.export_runs(tmp_path / "runs", "preference", data)
    rows = rows_in(data)
    assert [(row["chosen"][0]["content"], row["rejected"][0]["content"]) for row in rows] == [
        ("It is 21 degrees.", "No idea."),
        ("It is 21 degrees.", "Go away."),
    ]
    assert [message["role"] for message in rows[0]["prompt"]] == ["system", "user", "assistant", "tool"]
    verdicts = [rows[1]["verdicts"][name]["verification_delta"] for name in ("chosen", "rejected")]
    assert verdicts == [2, -3]
    assert reenact.verify(data).findings == []


def test_what_parts_at_a_tools_result_is_no_pair(tmp_path):
    """The model did not choose there; it only answered to something else."""
    for name, result, delta in (("a", "21", 1), ("b", "99", 0)):
        asks = Reply("", [ToolCall("look", {})])
        with recording(tmp_path / "runs" / name, asks, Reply(f"It is {result}.")) as (client, run):
            messages: list[Any] = [{"role": "user", "content": "?"}]
            said = client.chat.completions.create(model="m", messages=messages).choices[0].message
            assert said.tool_calls is not None
            messages.append(said.model_dump(exclude_none=True))
            messages.append({"role": "tool", "tool_call_id": said.tool_calls[0].id, "content": result})
            client.chat.completions.create(model="m", messages=messages)
            run.verification("pytest", 0, verification_delta=delta)
    reenact.export_runs(tmp_path / "runs", "preference", tmp_path / "data.jsonl")
    assert rows_in(tmp_path / "data.jsonl") == []


def test_every_call_is_a_row_of_parquet(tmp_path):
    """With what it was given and what came of it as JSON texts."""
    run = record(tmp_path / "run", "It is 21 degrees.")
    reenact.export_runs(run, "parquet", tmp_path / "calls.parquet")
    rows = parquet.read_table(tmp_path / "calls.parquet").to_pylist()
    models = [row for row in rows if row["kind"] == "model"]
    assert [json.loads(row["input"])["body"]["model"] for row in models] == ["m", "m"]
    assert all(row["ok"] and row["provenance"]["run"] == "run" for row in rows)
    report = reenact.verify(tmp_path / "calls.parquet")
    assert (report.findings, report.facts["rows"]) == ([], len(rows))


def test_more_can_be_hidden_and_the_row_says_so(tmp_path):
    """The profile is applied to what the run holds, with the run's own placeholders."""
    answer = Reply("Write to ada@example.com.")
    with recording(tmp_path / "run", answer, redact="none") as (client, _):
        question: list[Any] = [{"role": "user", "content": f"My key is {KEY}"}]
        client.chat.completions.create(model="m", messages=question)
    for to in ("sft", "parquet", "atif", "har", "otlp"):
        reenact.export_runs(tmp_path / "run", to, tmp_path / to, redact="strict")
        assert KEY.encode() not in (tmp_path / to).read_bytes()
    (row,) = rows_in(tmp_path / "sft")
    assert (row["provenance"]["redaction"], row["provenance"]["export_redaction"]) == ("none", "strict")
    assert reenact.verify(tmp_path / "sft").findings == []
    assert reenact.verify(tmp_path / "parquet").findings == []


def changed(data: Path, change: Any) -> None:
    rows = rows_in(data)
    change(rows[0])
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize(
    ("change", "code", "place"),
    [
        (lambda row: row["messages"][4].update(content="22"), "row_changed", "$.messages[4].content"),
        (lambda row: row["messages"].pop(), "row_changed", "$.messages"),
        (lambda row: row["tools"].clear(), "row_changed", "$.tools"),
        (lambda row: row.update(label="good"), "row_changed", "$.label"),
        (lambda row: row["provenance"].update(last_event=2), "row_not_in_run", None),
        (lambda row: row["provenance"].update(capture_id="x"), "run_changed", "$.provenance.capture_id"),
        (lambda row: row["provenance"].update(run="elsewhere"), "run_missing", None),
        (lambda row: row["provenance"].update(seal="sha256:0"), "seal_changed", None),
        (lambda row: row["provenance"].pop("reasoning"), "row_without_source", "$.provenance"),
        (lambda row: row["provenance"].update(reasoning="some"), "row_without_source", "$.provenance"),
        (lambda row: row.pop("provenance"), "row_without_source", "$.provenance"),
        (lambda row: row["provenance"].update(fidelity="judgeable"), "run_changed", "$.provenance.fidelity"),
        (lambda row: row["provenance"].update(checked_by="me"), "row_without_source", "$.provenance"),
    ],
)  # fmt: skip
def test_a_row_that_is_not_of_its_run_is_found(two_runs, change, code, place):
    """With the line, and the place that differs."""
    data = two_runs / "data.jsonl"
    reenact.export_runs([two_runs / "runs" / "b", two_runs / "runs" / "a"], "sft", data)
    rows = rows_in(data)
    change(rows[1])
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (finding,) = reenact.verify(data).findings
    assert (finding.code, finding.line, finding.json_path) == (code, 2, place)


@pytest.mark.parametrize(
    "change",
    [lambda row: row.pop("provenance"), lambda row: row["provenance"].update(schema="reenact.dataset.v9")],
)
def test_no_file_of_a_dataset_is_passed_over(two_runs, tmp_path, change):
    """One whose first row does not say where it comes from is looked at all the same."""
    data = tmp_path / "data"
    reenact.export_runs(two_runs / "runs", "sft", data, split={"train": 0.5, "test": 0.5})
    [file] = [each for each in data.glob("*.jsonl") if each.read_bytes()][:1]
    shutil.copy(file, data / "more.jsonl")
    (data / "dataset.manifest.json").unlink()
    changed(file, change)
    errors = [each for each in reenact.verify(data).findings if each.severity == "error"]
    assert {(each.code, each.file, each.line) for each in errors if each.code != "row_twice"} == {
        ("row_without_source", file.name, 1)
    }


@pytest.fixture(scope="module")
def three_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("three")
    for number in range(3):
        record(home / "runs" / f"run-{number}", f"It is {number} degrees.", delta=number)
    return home / "runs"


LINES: dict[str, tuple[Any, str]] = {
    "dropped": (lambda rows: rows[:1] + rows[2:], "rows_missing"),
    "cut off": (lambda rows: rows[:-1], "rows_missing"),
    "doubled": (lambda rows: [*rows, rows[0]], "row_twice"),
    "doubled in place of another": (lambda rows: [*rows[:-1], rows[0]], "row_twice"),
    "moved": (lambda rows: rows[::-1], "rows_moved"),
    "all gone": (lambda rows: [], "rows_missing"),
}


@pytest.mark.parametrize("to", ["sft", "parquet"])
@pytest.mark.parametrize("change", LINES)
def test_rows_that_are_gone_or_there_twice_or_moved_are_found(tmp_path, three_runs, to, change):
    """Though each row that is there is as its run has it."""
    data = tmp_path / ("data.parquet" if to == "parquet" else "data.jsonl")
    reenact.export_runs(three_runs, to, data)
    assert reenact.verify(data).findings == []
    change_rows, code = LINES[change]
    if to == "parquet":
        table = parquet.read_table(data)
        chosen = pyarrow.array(change_rows(list(range(table.num_rows))), pyarrow.int64())
        parquet.write_table(table.take(chosen), data)
    else:
        data.write_text("".join(change_rows(data.read_text().splitlines(keepends=True))))
    found = {finding.code for finding in reenact.verify(data).findings if finding.severity == "error"}
    assert code in found


def test_a_file_of_a_dataset_that_is_gone_is_found(tmp_path, three_runs):
    """And a row that went over to another file, though its run has it."""
    data = tmp_path / "data"
    reenact.export_runs(three_runs, "sft", data, split={"train": 0.5, "test": 0.5})
    full = [file for file in sorted(data.glob("*.jsonl")) if file.stat().st_size]
    assert reenact.verify(full[0]).findings == []
    with (data / "train.jsonl").open("ab") as train:
        train.write(full[0].read_bytes())
    found = {each.code for each in reenact.verify(data).findings if each.severity == "error"}
    assert found == {"row_twice", "rows_added"}
    (data / "train.jsonl").unlink()
    assert "rows_missing" in {each.code for each in reenact.verify(data).findings}


def test_a_dataset_without_its_manifest_is_told(tmp_path, three_runs):
    """Nobody can tell then whether rows are missing; a damaged one is an error."""
    data, manifest = tmp_path / "data.jsonl", tmp_path / "data.jsonl.manifest.json"
    reenact.export_runs(three_runs, "sft", data)
    done = run_command("verify", "data.jsonl.manifest.json", cwd=tmp_path)
    assert (done.returncode, "name the file or the folder of its rows" in done.stderr) == (2, True)
    manifest.write_text(manifest.read_text().replace("reenact.dataset-manifest.v1", "v2"))
    assert [(each.code, each.severity) for each in reenact.verify(data).findings] == [
        ("manifest_unreadable", "error")
    ]
    manifest.unlink()
    report = reenact.verify(data)
    assert [(each.code, each.severity) for each in report.findings] == [("no_manifest", "warning")]
    assert report.is_good


def test_rows_that_go_to_a_stream_leave_nothing_beside_it(tmp_path, three_runs):
    """A manifest stands beside a file alone."""
    done = run_command("export", str(three_runs), "--to", "sft", "-o", "/dev/stdout", cwd=tmp_path)
    assert done.returncode == 0
    assert list(tmp_path.iterdir()) == []
    assert not Path("/dev/stdout.manifest.json").exists()


def test_runs_that_changed_or_are_gone_are_found(tmp_path):
    """A run that moved is found below the folder that is named."""
    run = record(tmp_path / "runs" / "a", "It is 21 degrees.")
    data = tmp_path / "data.jsonl"
    reenact.export_runs(run, "sft", data)
    shutil.move(run, tmp_path / "moved")
    assert [finding.code for finding in reenact.verify(data).findings] == ["run_missing"]
    done = run_command("verify", "data.jsonl", cwd=tmp_path)
    assert (done.returncode, "data.jsonl:1: there is no run in runs/a" in done.stdout) == (1, True)
    assert reenact.verify(data, runs=tmp_path).findings == []
    events = tmp_path / "moved" / "events.jsonl"
    events.write_bytes(events.read_bytes().replace(b"21 degrees", b"22 degrees"))
    assert [finding.code for finding in reenact.verify(data, runs=tmp_path).findings] == ["run_changed"]


def test_a_changed_pair_is_found(two_runs):
    """In the prompt, in either continuation, and in what ranked them."""
    data = two_runs / "pairs.jsonl"
    for place, change in (
        ("$.prompt[1].content", lambda row: row["prompt"][1].update(content="x")),
        ("$.chosen[0].content", lambda row: row["chosen"][0].update(content="x")),
        ("$.rejected[0].content", lambda row: row["rejected"][0].update(content="x")),
        ("$.verdicts.rejected.status", lambda row: row["verdicts"]["rejected"].update(status="error")),
    ):
        reenact.export_runs(two_runs / "runs", "preference", data)
        changed(data, change)
        assert [each.json_path for each in reenact.verify(data).findings] == [place]


def test_a_seal_is_part_of_where_a_row_comes_from(tmp_path):
    """It is named by its digest."""
    run = record(tmp_path / "run", "It is 21 degrees.")
    reenact.keygen(tmp_path / "key")
    reenact.seal(run, key=tmp_path / "key")
    reenact.export_runs(run, "sft", tmp_path / "data.jsonl")
    (row,) = rows_in(tmp_path / "data.jsonl")
    assert row["provenance"]["seal"].startswith("sha256:")
    assert reenact.verify(tmp_path / "data.jsonl").facts["sealed"] == 1
    (tmp_path / "run.seal.json").unlink()
    assert [each.code for each in reenact.verify(tmp_path / "data.jsonl").findings] == ["seal_changed"]


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["--status", "fine"], 3, "'fine' is not one of 'ok', 'error'"),
        (["--to", "sft", "-o", "o", "--split", "train=0.9"], 3, "must be 1"),
        (["--to", "sft", "-o", "o", "--split", "train"], 3, "is not a split"),
        (["--to", "sft", "-o", "o", "--split", "../x=0.5,b=0.5"], 3, "name of a split"),
        (["--to", "atif", "-o", "o", "--split", "a=0.5,b=0.5"], 3, "not for atif"),
        (["--to", "sft", "-o", "o", "--test", "none.yaml"], 2, "none.yaml: No such file"),
        (["--to", "har", "-o", "http://127.0.0.1:9/x"], 3, "only otlp"),
        (["--to", "otlp", "-o", "http://127.0.0.1:9/x"], 2, "cannot be reached"),
    ],
)
def test_wrong_usage_is_told(two_runs, words, status, said):
    """In one line."""
    done = run_command("export", "runs/a", *words, cwd=two_runs)
    assert (done.returncode, "Traceback" in done.stderr) == (status, False)
    assert said in done.stderr

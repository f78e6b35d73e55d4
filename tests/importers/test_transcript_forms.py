"""Transcripts and exports in the forms that other versions of their producers write."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

import reenact
from reenact.importers.building import ImportedRun
from tests.importers.test_transcripts import counted


def import_text(tmp_path: Path, text: str, name: str = "it.json") -> ImportedRun:
    (tmp_path / name).write_text(text, encoding="utf-8")
    [run] = reenact.import_runs(tmp_path / name, tmp_path / "run").runs
    return run


def events_of(run: ImportedRun, kind: str) -> list[dict[str, Any]]:
    lines = Path(run.path, "events.jsonl").read_text().splitlines()
    return [event["data"] for event in map(json.loads, lines) if event["type"] == kind]


# mini-swe-agent 1


def mini(*messages: tuple[str, str]) -> str:
    info = {"exit_status": "Submitted", "submission": "d", "mini_version": "1.9.0"}
    told = [{"role": role, "content": content} for role, content in messages]
    return json.dumps({"info": info, "messages": told, "trajectory_format": "mini-swe-agent-1"})


@pytest.mark.parametrize("fence", ["```bash", "```mswea_bash_command", "```bash  "])
def test_a_command_in_the_text_is_a_call(tmp_path: Path, fence: str) -> None:
    """The first mini-swe-agent has no list of actions: the one block of an answer is run."""
    run = import_text(
        tmp_path,
        mini(
            ("system", "s"), ("user", "issue"),
            ("assistant", f"I look.\n\n{fence}\nls -l\n```"), ("user", "a"),
            ("assistant", f"Two:\n{fence}\nls\n```\n{fence}\npwd\n```"), ("user", "Only one, please."),
            ("assistant", f"{fence}\necho DONE\n```"), ("user", "d"),
        ),
    )  # fmt: skip
    assert (counted(run), run.losses) == ((3, 2, 2), [])
    assert [call["args"] for call in events_of(run, "tool_call")] == [
        {"command": "ls -l"},
        {"command": "echo DONE"},
    ]
    assert [given["result"] for given in events_of(run, "tool_result")] == ["a", "d"]
    asked = events_of(run, "llm_request")[2]["request"]["messages"]
    assert asked == [{"role": "user", "content": "Only one, please."}]


# Codex in TypeScript


def test_the_first_rollouts_of_codex_are_one_document(tmp_path: Path) -> None:
    """A session with its items."""
    items = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "How many?"}]},
        {
            "type": "function_call",
            "id": "f",
            "call_id": "c",
            "name": "shell",
            "arguments": '{"command": ["ls"]}',
        },
        {"type": "function_call_output", "call_id": "c", "output": "one"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "One."}]},
    ]
    session = {"timestamp": "2025-04-16T10:00:00.000Z", "id": "x", "instructions": ""}
    run = import_text(tmp_path, json.dumps({"session": session, "items": [*items, 3]}, indent=1))
    assert (run.format, counted(run)) == ("codex", (2, 1, 1))
    assert [(loss.line is not None, "item 5" in loss.reason) for loss in run.losses] == [(True, True)]
    assert events_of(run, "tool_call")[0]["args"] == {"command": ["ls"]}


# Gemini CLI's checkpoints

CONTENTS = [
    {"role": "user", "parts": [{"text": "This is the context."}]},
    {"role": "user", "parts": [{"text": "How many?"}]},
    {"role": "model", "parts": [
        {"text": "Hm.", "thought": True}, {"text": "I look."},
        {"functionCall": {"name": "ls", "args": {"path": "a"}}, "thoughtSignature": "s"},
        {"functionCall": {"id": "two", "name": "ls", "args": {"path": "b"}}},
    ]},
    {"role": "user", "parts": [
        {"functionResponse": {"name": "ls", "response": {"output": "one"}}},
        {"functionResponse": {"id": "two", "name": "ls", "response": {"error": "gone"}}},
    ]},
    {"role": "model", "parts": [{"text": "One."}]},
]  # fmt: skip


@pytest.mark.parametrize("is_wrapped", [False, True])
def test_saved_chats_of_gemini_cli_are_read(tmp_path: Path, is_wrapped: bool) -> None:
    """``/chat save`` writes the contents as they are sent: a list, or an object that holds it."""
    value = {"history": CONTENTS, "authType": "gemini-api-key"} if is_wrapped else CONTENTS
    run = import_text(tmp_path, json.dumps(value, indent=1), "checkpoint-tag.json")
    assert (run.format, counted(run), run.losses, run.unknown) == ("gemini-cli", (2, 2, 2), [], {})
    assert [call["args"]["path"] for call in events_of(run, "tool_call")] == ["a", "b"]
    assert [given["result"] for given in events_of(run, "tool_result")] == [
        {"output": "one"},
        {"error": "gone"},
    ]
    answers = [answer["response"] for answer in events_of(run, "llm_response")]
    assert (answers[0]["text"], answers[0]["reasoning"], answers[1]["text"]) == ("I look.", "Hm.", "One.")


# LangSmith and Langfuse


def test_texts_that_hold_json_are_opened(tmp_path: Path) -> None:
    """Bulk exports of LangSmith have inputs and outputs as texts."""
    model = {
        "id": "r2", "trace_id": "r1", "run_type": "llm", "name": "ChatOpenAI",
        "start_time": "2024-05-01T00:00:01", "end_time": "2024-05-01T00:00:02",
        "extra": json.dumps({"metadata": {"ls_model_name": "m", "ls_provider": "openai"}}),
        "inputs": json.dumps({"messages": [{"role": "user", "content": "How warm?"}]}),
        "outputs": json.dumps({"choices": [{"message": {"role": "assistant", "content": "Warm."}}]}),
        "prompt_tokens": 3, "completion_tokens": 2,
    }  # fmt: skip
    tool = {**model, "id": "r3", "run_type": "tool", "name": "look", "extra": "{}",
            "inputs": '{"input": {"a": 1}}', "outputs": '{"output": "21"}'}  # fmt: skip
    run = import_text(tmp_path, "".join(json.dumps(each) + "\n" for each in (model, tool)), "it.jsonl")
    assert (counted(run), run.losses) == ((1, 1, 1), [])
    [asked], [answer] = events_of(run, "llm_request"), events_of(run, "llm_response")
    assert (asked["model"], asked["request"]["messages"]) == ("m", [{"role": "user", "content": "How warm?"}])
    assert answer["response"]["text"] == "Warm."
    assert [each["args"] for each in events_of(run, "tool_call")] == [{"a": 1}]


def write_csv(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)


def test_a_table_of_langfuse_is_read(tmp_path: Path) -> None:
    """The interface exports CSV, with JSON in its cells."""
    asked = {
        "id": "o1", "traceId": "t", "type": "GENERATION", "name": "a\nchat", "model": "m",
        "startTime": "2026-01-01T00:00:00.000Z", "endTime": "2026-01-01T00:00:01.000Z",
        "input": json.dumps([{"role": "user", "content": "How\nwarm?"}]),
        "output": json.dumps({"role": "assistant", "content": "Warm."}),
        "usageDetails": '{"input": 3, "output": 2}', "inputTokens": "3", "traceName": "n",
    }  # fmt: skip
    used = {**asked, "id": "o2", "type": "TOOL", "name": "look", "input": '{"a": 1}', "output": "21"}
    write_csv(tmp_path / "it.csv", [asked, used, {**asked, "id": ""}])
    [run] = reenact.import_runs(tmp_path / "it.csv", tmp_path / "runs").runs
    assert (run.format, counted(run), run.unknown) == ("langfuse", (1, 1, 1), {})
    assert [loss.line for loss in run.losses] == [5]
    [answer] = events_of(run, "llm_response")
    assert (answer["response"]["text"], answer["usage"]) == ("Warm.", {"inputTokens": 3, "outputTokens": 2})
    assert [each["args"] for each in events_of(run, "tool_call")] == [{"a": 1}]

"""Transcripts of agents become runs with as many calls and results as there are in the source."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import atif
import openai
import pytest

import reenact
from tests.cli.commands import run as run_command

FIXTURES = Path(__file__).parent / "fixtures"
Counted = tuple[int, int, int]
"""Model calls, tool calls and results."""


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def count_claude(path: Path) -> Counted:
    lines = [line for line in lines_of(path) if line.get("type") in ("user", "assistant")]
    blocks = [
        block
        for line in lines
        if isinstance(line["message"]["content"], list)
        for block in line["message"]["content"]
    ]
    answers = {line["message"]["id"] for line in lines if line["type"] == "assistant"}
    kinds = [block["type"] for block in blocks]
    return len(answers), kinds.count("tool_use"), kinds.count("tool_result")


def count_codex(path: Path) -> Counted:
    lines = lines_of(path)
    items = [line["payload"]["type"] for line in lines if line["type"] == "response_item"]
    answers = sum(line["type"] == "token_usage_record" for line in lines)
    return answers, items.count("function_call"), items.count("function_call_output")


def count_pi(path: Path) -> Counted:
    messages = [line["message"] for line in lines_of(path) if line["type"] == "message"]
    answers = [message for message in messages if message["role"] == "assistant"]
    calls = [part for answer in answers for part in answer["content"] if part["type"] == "toolCall"]
    return len(answers), len(calls), sum(message["role"] == "toolResult" for message in messages)


def count_gemini(path: Path) -> Counted:
    answers = {line["id"]: line for line in lines_of(path) if line.get("type") == "gemini"}
    calls = [call for answer in answers.values() for call in answer.get("toolCalls", ())]
    return len(answers), len(calls), sum("result" in call for call in calls)


def count_opencode(path: Path) -> Counted:
    parts = [part for message in json.loads(path.read_text())["messages"] for part in message["parts"]]
    tools = [part["state"] for part in parts if part["type"] == "tool"]
    answers = sum(part["type"] == "step-start" for part in parts)
    return answers, len(tools), sum(state["status"] in ("completed", "error") for state in tools)


def count_mini(path: Path) -> Counted:
    messages = json.loads(path.read_text())["messages"]
    answers = [message for message in messages if message.get("role") == "assistant"]
    calls = sum(len(answer["extra"]["actions"]) for answer in answers)
    return len(answers), calls, sum("returncode" in message.get("extra", ()) for message in messages)


SOURCES: dict[str, tuple[str, Callable[[Path], Counted]]] = {
    "claude-code": ("claude-code/*.jsonl", count_claude),
    "codex": ("codex/*.jsonl", count_codex),
    "pi": ("pi/*.jsonl", count_pi),
    "gemini-cli": ("gemini-cli/*.jsonl", count_gemini),
    "opencode": ("opencode.json", count_opencode),
    "swe-agent": ("mini-swe-agent-tools.traj.json", count_mini),
    "swe-agent plain": ("mini-swe-agent-plain.traj.json", count_mini),
}


def source_of(name: str) -> Path:
    [path] = FIXTURES.glob(SOURCES[name][0])
    return path


def counted(run: Any) -> Counted:
    return run.counts.model_calls, run.counts.tool_calls, run.counts.tool_results


def trace_of(path: Path) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = json.loads(reenact.convert(path, "trace").data)["events"]
    return events


@pytest.mark.parametrize("name", SOURCES)
def test_every_call_and_result_of_a_transcript_is_there(tmp_path, name):
    """Counted independently; nothing is unknown in what today's agents write; the run verifies."""
    path = source_of(name)
    (run,) = reenact.import_runs(path, tmp_path / "run").runs
    assert counted(run) == SOURCES[name][1](path)
    assert (run.fidelity, run.losses, run.unknown) == ("tools", [], {})
    assert run.format == name.partition(" ")[0]
    assert reenact.verify(tmp_path / "run").is_good
    kinds = [event["type"] for event in trace_of(tmp_path / "run")]
    assert (kinds.count("llm_response"), kinds.count("tool_call"), kinds.count("tool_result")) == counted(run)


@pytest.mark.parametrize("name", SOURCES)
def test_what_was_asked_called_and_answered_can_be_judged(tmp_path, name):
    """Assertions see the tools with their arguments, the texts and how it ended."""
    reenact.import_runs(source_of(name), tmp_path / "run")
    events = trace_of(tmp_path / "run")
    calls = [event["data"] for event in events if event["type"] == "tool_call"]
    commands = [json.dumps(call["args"]) for call in calls]
    assert ['"ls"' in commands[0], '"cat none.txt"' in commands[1]] == [True, True]
    texts = [event["data"].get("text") for event in events if event["type"] == "llm_response"]
    assert texts[0] == "I look."
    answer = next(event for event in events if event["type"] == "final_output")["data"]["content"]
    assert answer.strip() in ("There is one file.", "one")
    assert "How many files are here?" in (tmp_path / "run" / "transcript.md").read_text()


def test_a_failed_tool_is_a_failed_tool(tmp_path):
    """Where the source says so."""
    reenact.import_runs(source_of("pi"), tmp_path / "run")
    failed = [
        event["data"]["success"] for event in trace_of(tmp_path / "run") if event["type"] == "tool_result"
    ]
    assert failed == [True, False]


@pytest.mark.parametrize("name", SOURCES)
def test_the_verbs_that_look_at_runs_take_them(tmp_path, name):
    """show, stats, diff and view never fail on an imported run."""
    reenact.import_runs(source_of(name), tmp_path / "run")
    for words in (["show", "run"], ["stats", "run"]):
        done = run_command(*words, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, ""), words
    assert reenact.diff(tmp_path / "run", tmp_path / "run").equal


def test_a_folder_of_mixed_sources_is_sorted_out(tmp_path):
    """Each by what it is, in one go."""
    report = reenact.import_runs(FIXTURES, tmp_path / "runs")
    formats = {run.format for run in report.runs} - {"inspect"}
    assert formats == {"vcr", "codex-trace", "otlp", *(name.partition(" ")[0] for name in SOURCES)}
    assert [failed.source for failed in report.failed] in ([], ["inspect.eval"])  # its package is an extra
    assert report.skipped == ["inspect-samples.txt", "pytest-recording/test_agent.py"]


# Claude Code


def claude(uuid: str, parent: str | None, kind: str, content: Any, **more: Any) -> dict[str, Any]:
    message = {"role": kind, "content": content}
    if kind == "assistant":
        message |= {"id": more.pop("message", f"msg-{uuid}"), "model": "m", "stop_reason": "end_turn"}
    return {
        "type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s", "isSidechain": False,
        "timestamp": f"2026-01-01T00:00:{int(uuid):02}Z", "message": message, **more,
    }  # fmt: skip


def use(own: str) -> list[dict[str, Any]]:
    return [{"type": "tool_use", "id": own, "name": "Bash", "input": {"command": own}}]


def given(own: str) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": own, "content": "x"}]


def imported(tmp_path: Path, *entries: Any, name: str = "it.jsonl") -> Any:
    (tmp_path / name).write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    (run,) = reenact.import_runs(tmp_path / name, tmp_path / "run").runs
    return run


def lanes_of(tmp_path: Path) -> list[tuple[str, str]]:
    events = [json.loads(line) for line in (tmp_path / "run" / "events.jsonl").read_text().splitlines()]
    asked = [event["data"] for event in events if event["type"] == "llm_request"]
    return [
        (data["lane"], messages[0]["content"] if (messages := data["request"]["messages"]) else None)
        for data in asked
    ]


def test_sidechains_and_branches_are_lanes(tmp_path):
    """What a subagent was asked, and what was said anew at an earlier place, do not mix with the rest."""
    imported(
        tmp_path,
        claude("1", None, "user", "main"),
        claude("2", "1", "assistant", [{"type": "text", "text": "a"}]),
        claude("3", None, "user", "side", isSidechain=True),
        claude("4", "3", "assistant", [{"type": "text", "text": "b"}], isSidechain=True),
        claude("5", "2", "user", "more"),
        claude("6", "5", "assistant", [{"type": "text", "text": "c"}]),
        claude("7", "2", "user", "instead"),
        claude("8", "7", "assistant", [{"type": "text", "text": "d"}]),
    )
    assert lanes_of(tmp_path) == [("0", "main"), ("0.0", "side"), ("0", "more"), ("0.1", "instead")]


def test_subagents_in_files_of_their_own_are_read_with_their_session(tmp_path):
    """They are lanes of one run, and no sources of their own."""
    (tmp_path / "s" / "it" / "subagents").mkdir(parents=True)
    main = [claude("1", None, "user", "main"), claude("2", "1", "assistant", [{"type": "text", "text": "a"}])]
    side = [claude("3", None, "user", "side", isSidechain=True)]
    side.append(claude("4", "3", "assistant", use("t"), isSidechain=True))
    for name, entries in (("it.jsonl", main), ("it/subagents/agent-1.jsonl", side)):
        (tmp_path / "s" / name).write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    report = reenact.import_runs(tmp_path / "s", tmp_path / "runs")
    (run,) = report.runs
    assert (counted(run), report.skipped) == ((2, 1, 0), [])
    (tmp_path / "runs" / "it").rename(tmp_path / "run")
    assert sorted(lanes_of(tmp_path)) == [("0", "main"), ("0.0", "side")]


def write_session(folder: Path, files: dict[str, list[dict[str, Any]]]) -> None:
    for name, entries in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("".join(json.dumps(entry) + "\n" for entry in entries))


def delegated() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A session, and its subagent, which works between the call and its result."""
    side = {"isSidechain": True, "agentId": "a1"}
    main = [
        claude("1", None, "user", "main"),
        claude("2", "1", "assistant", use("task")),
        claude("7", "2", "user", given("task")),
        claude("8", "7", "assistant", [{"type": "text", "text": "All done."}]),
    ]
    below = [
        claude("3", None, "user", "side", **side),
        claude("4", "3", "assistant", use("t"), **side),
        claude("5", "4", "user", given("t"), **side),
        claude("6", "5", "assistant", [{"type": "text", "text": "Found."}], **side),
    ]
    return main, below


@pytest.mark.parametrize("place", ["s/subagents/agent-a1.jsonl", "agent-a1.jsonl", None])
def test_a_subagent_works_between_the_call_and_its_result(tmp_path, place):
    """In its own file, in the earlier place of such files, or in the session itself: by the times."""
    main, side = delegated()
    files = {"s.jsonl": main, place: side} if place else {"s.jsonl": [*main[:2], *side, *main[2:]]}
    write_session(tmp_path / "src", files)
    report = reenact.import_runs(tmp_path / "src", tmp_path / "runs")
    (run,) = report.runs
    assert (counted(run), run.losses, report.skipped) == ((4, 2, 2), [], [])
    events = [
        json.loads(line) for line in (tmp_path / "runs" / "s" / "events.jsonl").read_text().splitlines()
    ]
    told = [(event["type"], event["data"].get("lane"), (event["ts"] - events[0]["ts"]) // 1000)
            for event in events if event["type"] in ("llm_request", "tool_call", "tool_result")]  # fmt: skip
    assert told == [
        ("llm_request", "0", 0), ("tool_call", "0", 1), ("llm_request", "0.0", 2), ("tool_call", "0.0", 3),
        ("tool_result", None, 4), ("llm_request", "0.0", 4), ("tool_result", None, 6),
        ("llm_request", "0", 6),
    ]  # fmt: skip
    assert json.loads((tmp_path / "runs/s/manifest.json").read_text())["imported"]["source"]["bytes"] == sum(
        file.stat().st_size for file in (tmp_path / "src").rglob("*.jsonl")
    )


def test_what_a_subagent_said_last_is_not_what_the_run_said(tmp_path):
    """Also if it ended after the session."""
    main, side = delegated()
    side[-1]["timestamp"] = "2026-01-01T00:00:20Z"
    write_session(tmp_path / "src", {"s.jsonl": main, "s/subagents/agent-a1.jsonl": side})
    reenact.import_runs(tmp_path / "src", tmp_path / "runs")
    answers = [event for event in trace_of(tmp_path / "runs" / "s") if event["type"] == "final_output"]
    assert [answer["data"]["content"] for answer in answers] == ["All done."]


def test_an_agent_of_another_session_is_a_run_of_its_own(tmp_path):
    """Files of agents beside a session belong to the session that they name."""
    main, side = delegated()
    for entry in side:
        entry["sessionId"] = "gone"
    write_session(tmp_path / "src", {"s.jsonl": main, "agent-a1.jsonl": side})
    report = reenact.import_runs(tmp_path / "src", tmp_path / "runs")
    assert sorted((run.source, run.counts.model_calls) for run in report.runs) == [
        ("agent-a1.jsonl", 2), ("s.jsonl", 2),
    ]  # fmt: skip


def test_a_loss_in_the_file_of_a_subagent_names_it(tmp_path):
    """The line alone would be one of the session."""
    main, side = delegated()
    write_session(tmp_path / "src", {"s.jsonl": main, "s/subagents/agent-a1.jsonl": side})
    with (tmp_path / "src/s/subagents/agent-a1.jsonl").open("a") as stream:
        stream.write('{"type": "user", "uu')
    (run,) = reenact.import_runs(tmp_path / "src", tmp_path / "runs").runs
    assert [("s/subagents/agent-a1.jsonl" in loss.reason, loss.line) for loss in run.losses] == [(True, 5)]


def test_what_claude_code_prints_as_json_is_a_transcript(tmp_path):
    """``claude -p --output-format stream-json``: no tree and no times, and subagents name their call."""

    def printed(kind: str, content: Any, below: str | None = None, **message: Any) -> dict[str, Any]:
        return {
            "type": kind, "session_id": "s", "parent_tool_use_id": below, "uuid": f"{kind}-{id(content)}",
            "message": {"role": kind, "content": content, **message},
        }  # fmt: skip

    answer = {"type": "message", "model": "m", "stop_reason": None, "usage": {"output_tokens": 1}}
    run = imported(
        tmp_path,
        {
            "type": "system",
            "subtype": "init",
            "session_id": "s",
            "model": "m",
            "tools": ["Task"],
            "uuid": "0",
        },
        printed("assistant", use("task"), id="m1", **answer),
        printed("user", [{"type": "text", "text": "side"}], "task"),
        printed("assistant", use("t"), "task", id="m2", **answer),
        printed("user", given("t"), "task"),
        printed("assistant", [{"type": "text", "text": "Found."}], "task", id="m3", **answer),
        printed("user", given("task")),
        printed("assistant", [{"type": "text", "text": "All done."}], id="m4", **answer),
        {"type": "result", "subtype": "success", "result": "All done.", "session_id": "s", "uuid": "9"},
    )
    assert (counted(run), run.losses, run.unknown, run.counts.notes) == ((4, 2, 2), [], {}, 2)
    assert ("0.0", "side") in [(lane, said) for lane, said in lanes_of(tmp_path) if said]


def test_results_that_come_between_the_parts_of_an_answer_belong_to_it(tmp_path):
    """Tools run while the answer still comes; the answer is one all the same."""
    run = imported(
        tmp_path,
        claude("1", None, "user", "go"),
        claude("2", "1", "assistant", use("a"), message="m1"),
        claude("3", "2", "user", given("a")),
        claude("4", "3", "assistant", use("b"), message="m1"),
        claude("5", "4", "user", given("b")),
        claude("6", "5", "assistant", [{"type": "text", "text": "done"}]),
    )
    assert (counted(run), run.losses) == ((2, 2, 2), [])


def test_a_result_that_is_told_in_another_lane_finds_its_call(tmp_path):
    """A subagent's stands in the main conversation, or behind a compaction, which begins the tree anew."""
    run = imported(
        tmp_path,
        claude("1", None, "user", "go"),
        claude("2", "1", "assistant", use("t1")),
        claude("3", None, "user", "side", isSidechain=True),
        claude("4", "3", "assistant", use("t2"), isSidechain=True),
        claude("5", "2", "user", given("t2")),
        claude("6", "4", "user", given("t1"), isSidechain=True),
    )
    assert (counted(run), run.losses) == ((2, 2, 2), [])


def test_what_is_missing_or_broken_is_told_with_its_line(tmp_path):
    """A parent that is not there, a result without its call, a second result, a line that is cut off."""
    path = tmp_path / "it.jsonl"
    entries = [
        claude("1", "gone", "user", "go"),
        claude("2", "1", "assistant", use("a")),
        claude("3", "2", "user", given("b")),
        claude("4", "3", "user", given("a")),
        claude("5", "4", "user", given("a")),
        {**claude("6", "5", "user", "hi"), "newField": 1},
        {"type": "hologram", "sessionId": "s"},
    ]
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries) + '{"type": "user", "mess')
    done = run_command("import", "it.jsonl", "-o", "run", cwd=tmp_path)
    assert done.returncode == 1
    for said in (
        "it.jsonl:1: its parent is missing: gone",
        "it.jsonl:3: the result of a call that is not there: b",
        "it.jsonl:5: a second result: a",
        "it.jsonl:8: the line is not JSON; the file may have been cut off here",
    ):
        assert said in done.stderr
    assert "entry.newField (1)" in done.stdout
    assert "type.hologram (1)" in done.stdout


def test_an_entry_that_is_there_twice_is_read_once(tmp_path):
    """A session that was resumed may repeat its beginning."""
    path = tmp_path / "it.jsonl"
    entries = [
        claude("1", None, "user", "go"),
        claude("2", "1", "assistant", use("a")),
        claude("3", "2", "user", given("a")),
    ]
    path.write_text("".join(json.dumps(entry) + "\n" for entry in [*entries, *entries]))
    [run] = reenact.import_runs(path, tmp_path / "run").runs
    assert (run.counts.model_calls, run.counts.tool_calls, run.counts.tool_results) == (1, 1, 1)
    assert [loss.line for loss in run.losses] == [4, 5, 6]


def test_an_entry_whose_uuid_is_no_text_is_read(tmp_path):
    path = tmp_path / "it.jsonl"
    entries = [claude("1", None, "user", "go"), claude("2", "1", "assistant", use("a")) | {"uuid": ["2"]}]
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    [run] = reenact.import_runs(path, tmp_path / "run").runs
    assert (run.counts.model_calls, run.counts.tool_calls) == (1, 1)


# Codex


def codex(kind: str, payload: Any, second: int) -> dict[str, Any]:
    return {"timestamp": f"2026-01-01T00:00:{second:02}Z", "type": kind, "payload": payload}


def test_history_that_a_fork_repeats_is_cut(tmp_path):
    """It belongs to the other session, whose own rollout has it."""

    def message(role: str, text: str) -> dict[str, Any]:
        return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}

    meta = {"id": "two", "forked_from_id": "one", "timestamp": "2026-01-01T00:00:30Z"}
    run = imported(
        tmp_path,
        codex("session_meta", meta, 30),
        codex("session_meta", {"id": "one", "timestamp": "2026-01-01T00:00:01Z"}, 1),
        codex("response_item", message("user", "old"), 2),
        codex("response_item", message("assistant", "older answer"), 3),
        codex("response_item", message("user", "new"), 40),
        codex("response_item", message("assistant", "answer"), 41),
    )
    assert counted(run) == (1, 0, 0)
    assert lanes_of(tmp_path) == [("0", "new")]
    assert any("forked" in each for each in run.missing)


def test_a_trace_bundle_of_codex_replays_under_the_sdk(tmp_path):
    """The requests whole, as Codex sent them; the answers say what they said, tool calls included."""
    (run,) = reenact.import_runs(FIXTURES / "codex-trace", tmp_path / "runs").runs
    assert (run.fidelity, run.losses, run.counts.model_calls) == ("replayable", [], 2)
    [payloads] = (FIXTURES / "codex-trace").glob("*/payloads")
    said = []
    with reenact.replay(run.path) as again, openai.OpenAI(api_key="any") as client:
        for number in (5, 15):
            body = json.loads((payloads / f"{number}.json").read_text())
            asked, rest = {key: body.pop(key) for key in ("model", "input", "stream")}, body
            with client.responses.create(**asked, extra_body=rest) as stream:
                done = [event for event in stream if event.type == "response.completed"]
            said.append([item.type for item in done[0].response.output])
    assert again.divergences == []
    assert said == [["message", "function_call", "function_call"], ["message"]]


# ATIF and SWE-agent


def test_atif_made_with_its_own_package_is_read(tmp_path):
    """Steps, tool calls, observations, subagents as lanes, copied context as such."""

    def step(number: int, source: str, message: str, **more: Any) -> dict[str, Any]:
        return {"step_id": number, "source": source, "message": message, **more}

    call = {"tool_call_id": "c1", "function_name": "look", "arguments": {"q": "x"}}
    inner = {
        "schema_version": "ATIF-v1.8", "trajectory_id": "t", "agent": {"name": "b", "version": "1"},
        "steps": [step(1, "user", "inner"), step(2, "agent", "in")],
    }  # fmt: skip
    document = {
        "schema_version": "ATIF-v1.8",
        "agent": {"name": "a", "version": "1", "model_name": "m"},
        "subagent_trajectories": [inner],
        "steps": [
            step(1, "system", "Be brief."),
            step(2, "agent", "from before", is_copied_context=True),
            step(3, "user", "Hi"),
            step(
                4, "agent", "I look", tool_calls=[call], reasoning_content="hm",
                observation={"results": [{"source_call_id": "c1", "content": "found"}]},
                metrics={"prompt_tokens": 7, "completion_tokens": 2},
            ),
            step(5, "agent", "Done"),
        ],
    }  # fmt: skip
    text = json.dumps(atif.Trajectory.model_validate(document).to_json_dict())
    (tmp_path / "it.json").write_text(text)
    (run,) = reenact.import_runs(tmp_path / "it.json", tmp_path / "run").runs
    assert (run.format, counted(run), run.losses, run.unknown) == ("atif", (3, 1, 1), [], {})
    assert [lane for lane, _ in lanes_of_all(tmp_path)] == ["0", "0", "0.0"]


def lanes_of_all(tmp_path: Path) -> list[tuple[str, Any]]:
    events = [json.loads(line) for line in (tmp_path / "run" / "events.jsonl").read_text().splitlines()]
    return sorted((event["data"]["lane"], event["seq"]) for event in events if event["type"] == "llm_request")


def test_a_trajectory_of_swe_agent_is_read(tmp_path):
    """Its steps are model calls with one command each; the submission is the output."""
    steps = [
        {
            "action": "ls",
            "observation": "one.txt",
            "response": "I look",
            "thought": "t",
            "state": {},
            "odd": 1,
        },
        {"action": "submit", "observation": "", "response": "Done", "thought": "t", "execution_time": 0.1},
    ]
    history = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Fix it"},
        {"role": "assistant"},
    ]
    info = {"exit_status": "submitted", "submission": "diff"}
    document = {"environment": "e", "trajectory": steps, "history": history, "info": info}
    (tmp_path / "it.traj").write_text(json.dumps(document))
    (run,) = reenact.import_runs(tmp_path / "it.traj", tmp_path / "run").runs
    assert (run.format, counted(run), run.unknown) == ("swe-agent", (2, 2, 2), {"step.odd": 1})
    end = next(event for event in trace_of(tmp_path / "run") if event["type"] == "final_output")
    assert end["data"]["content"] == "diff"

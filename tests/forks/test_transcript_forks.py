"""Forks of imported transcripts: calls are matched by what was said, and the fork says so."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

import reenact
from reenact.errors import Diverged, FormatError, UsageError
from reenact.importers.building import text_of
from reenact.store.reader import CaptureReader
from reenact.testing import Reply, ScriptedProvider
from tests.cli.commands import run as run_reenact
from tests.importers.test_mutations import ATIF
from tests.importers.test_transcripts import FIXTURES, SOURCES

ASKED = "How many files are here?"
LOOK = {"command": "ls"}
URL = "http://127.0.0.1:9"


@reenact.tool
def bash(command: str, timeout_s: int = 5) -> str:
    return subprocess.run([command], check=True, capture_output=True, text=True, timeout=timeout_s).stdout


def entry(number: int, kind: str, content: Any, **more: Any) -> dict[str, Any]:
    message = {"role": kind, "content": content} | more
    return {"type": kind, "uuid": f"u{number}", "parentUuid": f"u{number - 1}" if number else None,
            "timestamp": f"2026-11-01T10:00:{number:02}Z", "sessionId": "s", "message": message}  # fmt: skip


def answer(number: int, *blocks: dict[str, Any]) -> dict[str, Any]:
    stop = "tool_use" if blocks[-1]["type"] == "tool_use" else "end_turn"
    usage = {"input_tokens": 7, "output_tokens": 3}
    return entry(
        number, "assistant", [*blocks], id=f"m{number}", model="claude-x", stop_reason=stop, usage=usage
    )


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def call(call_id: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "bash", "input": arguments}


def result(call_id: str, said: str, *, is_error: bool = False) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": said, "is_error": is_error}


USUAL = [
    entry(0, "user", ASKED),
    answer(1, text("I look."), call("t1", **LOOK)),
    entry(2, "user", [result("t1", "one.txt\n")]),
    answer(3, text("There is one file.")),
]


@pytest.fixture
def transcript(tmp_path: Path) -> Callable[..., Path]:
    """Imports a transcript with these lines."""

    def write(lines: list[dict[str, Any]] = USUAL) -> Path:
        (tmp_path / "session.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        reenact.import_runs(tmp_path / "session.jsonl", tmp_path / "told")
        return tmp_path / "told"

    return write


def events(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in CaptureReader(path).lines()]


def seq_of(path: Path, kind: str, number: int = 0) -> int:
    return [event["seq"] for event in events(path) if event["type"] == kind][number]


def with_anthropic(asked: str = ASKED, *, url: str = URL, is_streamed: bool = False, **options: Any) -> str:
    """An agent with tools; the messages of the user are blocks of text."""
    tool = {"name": "bash", "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}}}
    messages: list[Any] = [{"role": "user", "content": options.pop("content", asked)}]
    options = {"model": "claude-x", "max_tokens": 50, "tools": [tool], "system": "Be brief."} | options
    with anthropic.Anthropic(base_url=url, api_key="unused", max_retries=0) as client:
        while True:
            if is_streamed:
                with client.messages.stream(messages=messages, **options) as stream:
                    said = stream.get_final_message()
            else:
                said = client.messages.create(messages=messages, **options)
            calls = [block for block in said.content if block.type == "tool_use"]
            if not calls:
                return "".join(block.text for block in said.content if block.type == "text")
            messages += [
                {"role": "assistant", "content": said.content},
                {"role": "user", "content": [result(block.id, bash(**block.input)) for block in calls]},
            ]


def with_chat(asked: str = ASKED, *, is_streamed: bool = False) -> str:
    function = {"name": "bash", "parameters": {"type": "object"}}
    messages: list[Any] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": asked}]
    options: Any = {"model": "m", "tools": [{"type": "function", "function": function}]}
    with openai.OpenAI(base_url=URL, api_key="unused", max_retries=0) as client:
        while True:
            if is_streamed:
                with client.chat.completions.stream(messages=messages, **options) as stream:
                    said = stream.get_final_completion().choices[0].message
            else:
                said = client.chat.completions.create(messages=messages, **options).choices[0].message
            if not said.tool_calls:
                return str(said.content)
            messages.append(said.model_dump(exclude_none=True, include={"role", "content", "tool_calls"}))
            for each in said.tool_calls:
                output = bash(**json.loads(each.function.arguments))
                messages.append({"role": "tool", "tool_call_id": each.id, "content": output})


def with_responses(asked: str = ASKED, *, is_streamed: bool = False) -> str:
    items: list[Any] = [{"role": "user", "content": asked}]
    options: Any = {
        "model": "m",
        "tools": [{"type": "function", "name": "bash", "parameters": {}, "strict": False}],
    }
    with openai.OpenAI(base_url=URL, api_key="unused", max_retries=0) as client:
        while True:
            if is_streamed:
                with client.responses.stream(input=items, **options) as stream:
                    said = stream.get_final_response()
            else:
                said = client.responses.create(input=items, **options)
            calls = [item for item in said.output if item.type == "function_call"]
            if not calls:
                return str(said.output_text)
            items += [
                item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in said.output
            ]
            items += [
                {"type": "function_call_output", "call_id": each.call_id,
                 "output": bash(**json.loads(each.arguments))}
                for each in calls
            ]  # fmt: skip


AGENTS = {"anthropic": with_anthropic, "chat": with_chat, "responses": with_responses}


@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("agent", AGENTS.values(), ids=AGENTS)
def test_a_transcript_answers_an_agent_in_its_own_format(agent, is_streamed, transcript, tmp_path):
    """The same agent in another wire format asks the same; no tool runs, and the fork replays strictly."""
    told = transcript()
    at = seq_of(told, "llm_request", 1)
    with reenact.fork(told, at=at, change={"set": {"$.text": "Two."}}, output=tmp_path / "fork") as run:
        run.final_output = agent(is_streamed=is_streamed)
    assert run.final_output == "Two."
    shares = run.shares
    assert (shares.prefix, shares.recording, shares.nearest, shares.live) == (2, 0, 0, 0)
    assert reenact.verify(tmp_path / "fork").is_good
    with reenact.replay(tmp_path / "fork") as again:
        again.final_output = agent(is_streamed=is_streamed)
    assert again.final_output == "Two."


def test_the_fork_says_what_was_not_compared(transcript, tmp_path):
    """Its manifest names the transcript, and what requests had beside what the transcript tells."""
    told = transcript()
    with reenact.fork(told, at=seq_of(told, "llm_request", 1), output=tmp_path / "fork") as run:
        with_anthropic()
    fork = CaptureReader(tmp_path / "fork").manifest.fork
    assert fork.approximate.notCompared == {
        "argument timeout_s of bash": 1,
        "instructions of the model": 2,
        "settings of the request": 2,
        "tools offered to the model": 2,
    }
    assert (fork.stored, fork.parent.events, fork.parent.path) == ("whole", 0, "../told")
    assert fork.parent.captureId == CaptureReader(told).manifest.captureId
    [note] = run.notes
    assert "not with requests as they were sent; not compared: argument timeout_s of bash (1)" in note


def test_another_result_of_a_tool_leads_to_a_new_question(transcript, tmp_path):
    """It goes live where that is chosen, and is recorded as it was sent."""
    told = transcript()
    with ScriptedProvider([Reply("Two files.")]) as provider:
        change = {"replace": "one.txt\ntwo.txt\n"}
        at = seq_of(told, "tool_call")
        with reenact.fork(told, at=at, change=change, on_miss="live", output=tmp_path / "fork") as run:
            run.final_output = with_anthropic(url=provider.base_url("anthropic"))
        [request] = provider.requests
    assert run.final_output == "Two files."
    assert (run.shares.prefix, run.shares.recording, run.shares.live) == (1, 0, 1)
    assert request.tool_results[0].text == "one.txt\ntwo.txt\n"


def test_a_new_question_is_a_miss(transcript, tmp_path):
    """Without another choice the fork stops; with the nearest answer it goes on, and the event says so."""
    told = transcript()
    options: dict[str, Any] = {"at": seq_of(told, "tool_call"), "change": {"replace": "none"}}
    with (
        pytest.raises(Diverged, match="choose --on-miss nearest or live to go on"),
        reenact.fork(told, output=tmp_path / "fork", **options),
    ):
        with_anthropic()
    assert not (tmp_path / "fork").exists()
    with reenact.fork(told, output=tmp_path / "fork", on_miss="nearest", **options) as run:
        run.final_output = with_anthropic()
    assert (run.final_output, run.shares.nearest) == ("There is one file.", 1)
    assert [
        event["data"]["answeredAs"] for event in events(tmp_path / "fork") if "answeredAs" in event["data"]
    ]


DIFFERENT = {
    "another question": ({"asked": "How many folders are here?"}, "the user said"),
    "something more": ({"content": [text(ASKED), text("And how large?")]}, "here the user also said"),
    "no tools": ({"tools": []}, "its answer calls bash, which is not offered here"),
}


@pytest.mark.parametrize(("options", "why"), DIFFERENT.values(), ids=DIFFERENT)
def test_a_difference_before_the_point_is_named(options, why, transcript, tmp_path):
    """It gets no answer: what the transcript tells must be what was asked."""
    told = transcript()
    with (
        pytest.raises(Diverged, match=f"before the point of the fork: .*event 2: {why}"),
        reenact.fork(told, at=seq_of(told, "llm_request", 1), output=tmp_path / "fork"),
    ):
        with_anthropic(**options)
    assert not list(tmp_path.glob("*fork*"))


def test_a_text_that_a_program_puts_beside_the_question_is_counted(transcript, tmp_path):
    """Coding agents add reminders in tags, which their transcripts do not tell."""
    told = transcript()
    reminder = text("<system-reminder>\nToday is Monday.\n</system-reminder>")
    with reenact.fork(told, at=seq_of(told, "llm_request", 1), output=tmp_path / "fork") as run:
        run.final_output = with_anthropic(content=[reminder, text(ASKED)])
    assert run.final_output == "There is one file."
    assert run.manifest.fork.approximate.notCompared["texts in tags beside what was said"] == 2


def side(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """*lines* as those of a subagent, with ids of their own."""
    found = []
    for line in lines:
        parent = line["parentUuid"]
        ids = {"uuid": f"side-{line['uuid']}", "parentUuid": parent and f"side-{parent}"}
        message = line["message"] | (
            {"id": f"side-{line['message']['id']}"} if "id" in line["message"] else {}
        )
        found.append(line | ids | {"isSidechain": True, "message": message})
    return json.loads(json.dumps(found).replace('"t1"', '"side-t1"'))  # type: ignore[no-any-return]


def test_each_answer_is_given_once(transcript, tmp_path):
    """Two equal questions get the two answers, in their order; a third is a miss."""
    lines = [entry(0, "user", ASKED), answer(1, text("One."))]
    told = transcript([*lines, *side([lines[0], answer(1, text("Two."))])])
    with reenact.fork(told, at=None, output=tmp_path / "fork") as run:
        run.final_output = [with_anthropic(), with_anthropic()]
    assert run.final_output == ["One.", "Two."]
    with (
        pytest.raises(Diverged, match="its answer is given already"),
        reenact.fork(told, at=None, output=tmp_path / "other"),
    ):
        for _ in range(3):
            with_anthropic()


def test_parallel_tools_get_their_own_results(transcript, tmp_path):
    """Also if the transcript tells them in the order in which they ended."""
    lines = [
        entry(0, "user", ASKED),
        answer(1, call("t1", command="a"), call("t2", command="b")),
        entry(2, "user", [result("t2", "B")]),
        entry(3, "user", [result("t1", "A")]),
        answer(4, text("Both.")),
    ]
    told = transcript(lines)
    with reenact.fork(told, at=seq_of(told, "llm_request", 1), output=tmp_path / "fork") as run:
        run.final_output = with_anthropic()
    results = [
        event["data"]["result"] for event in events(tmp_path / "fork") if event["type"] == "tool_result"
    ]
    assert (run.final_output, results) == ("Both.", ["A", "B"])


def test_a_failed_tool_fails_again(transcript, tmp_path):
    """With the message that the model got."""
    lines = [*USUAL[:2], entry(2, "user", [result("t1", "no such folder", is_error=True)]), USUAL[3]]
    told = transcript(lines)
    with (
        pytest.raises(Exception, match="no such folder"),
        reenact.fork(told, at=seq_of(told, "tool_call"), output=tmp_path / "fork"),
    ):
        with_anthropic()


def test_a_model_refuses_at_the_point(transcript, tmp_path):
    """With the status that the change names, in the error of the agent's own SDK."""
    told = transcript()
    at = seq_of(told, "llm_request", 1)
    with (
        pytest.raises(anthropic.RateLimitError),
        reenact.fork(told, at=at, change={"error": "429"}, output=tmp_path / "fork"),
    ):
        with_anthropic()
    assert CaptureReader(tmp_path / "fork").manifest.status == "error"


def test_a_result_that_is_json_has_paths(transcript, tmp_path):
    """A transcript holds it as text; the agent gets text again."""
    lines = [*USUAL[:2], entry(2, "user", [result("t1", '{"files": 1}')]), USUAL[3]]
    told = transcript(lines)
    change = {"set": {"$.files": 5}}
    options: dict[str, Any] = {"at": seq_of(told, "tool_call"), "change": change, "on_miss": "nearest"}
    with reenact.fork(told, output=tmp_path / "fork", **options):
        with_anthropic()
    [event] = [event for event in events(tmp_path / "fork") if event["type"] == "tool_result"]
    assert event["data"]["result"] == '{"files":5}'


def test_another_model_is_asked_from_the_point_on(transcript, tmp_path):
    """Its requests are recorded as they were sent, and the fork replays with the unchanged agent."""
    told = transcript()
    with ScriptedProvider([Reply("Another answer.")]) as provider:
        url = provider.base_url("anthropic")
        options: dict[str, Any] = {"change": {"model": "other"}, "on_miss": "live"}
        at = seq_of(told, "llm_request", 1)
        with reenact.fork(told, at=at, output=tmp_path / "fork", **options) as run:
            run.final_output = with_anthropic(url=url)
        assert [request.body["model"] for request in provider.requests] == ["other"]
    with reenact.replay(tmp_path / "fork") as again:
        again.final_output = with_anthropic(url=url)
    assert again.final_output == "Another answer."


def test_what_a_transcript_tells_nothing_of_is_a_miss(transcript, tmp_path):
    """A program of the agent does not run unseen; the message names the remedy."""
    told = transcript()
    with (
        pytest.raises(Diverged, match="tells nothing of programs that it starts; mark the function"),
        reenact.fork(told, at=seq_of(told, "llm_request", 1), output=tmp_path / "fork"),
    ):
        subprocess.run([sys.executable, "--version"], check=True)


@pytest.mark.parametrize(
    ("lines", "command", "why"),
    [
        (USUAL[:2], "ls", "event 4 tells such a call of the tool bash, but not its result"),
        (USUAL, "ls", "event 4 tells such a call of the tool bash, but its result is given already"),
        (USUAL, "pwd", "tool bash was called in a way that the transcript does not tell"),
    ],
    ids=["no result", "twice", "another call"],
)
def test_a_call_of_a_tool_without_an_answer_is_explained(lines, command, why, transcript, tmp_path):
    """A transcript may end before the result."""
    told = transcript(lines)
    with (
        pytest.raises(Diverged, match=why),
        reenact.fork(told, at=None, output=tmp_path / "fork"),
    ):
        for _ in range(2):
            bash(command=command)


def test_a_secret_is_matched_by_its_placeholder(transcript, tmp_path):
    """The transcript is redacted, and the request that is compared with it, too."""
    key = "sk-ant-api03-" + "Zx9" * 30
    told = transcript([entry(0, "user", f"Use the key {key}"), answer(1, text("Done."))])
    with reenact.fork(told, at=None, output=tmp_path / "fork") as run:
        run.final_output = with_anthropic(f"Use the key {key}")
    assert run.final_output == "Done."
    assert not [
        path for path in tmp_path.glob("fork/**/*") if path.is_file() and key.encode() in path.read_bytes()
    ]


def test_a_point_that_is_not_reached_is_said(transcript, tmp_path):
    """The agent ended before."""
    told = transcript()
    with (
        pytest.raises(Diverged, match=r"the call at event 6 \(a model call\), at the point .* was not made"),
        reenact.fork(told, at=seq_of(told, "llm_request", 1), output=tmp_path / "fork"),
    ):
        pass


def test_a_tool_that_the_agent_runs_itself_cannot_be_changed(transcript, tmp_path):
    """Said when the agent goes past it, with the call at which to fork instead."""
    told = transcript()
    at = seq_of(told, "tool_call")
    with (
        pytest.raises(UsageError, match=r"runs the tool bash itself; mark it .*, or fork at event 2"),
        reenact.fork(told, at=at, change={"replace": "x"}, output=tmp_path / "fork"),
        anthropic.Anthropic(base_url=URL, api_key="unused", max_retries=0) as client,
    ):
        tools: Any = [{"name": "bash", "input_schema": {"type": "object"}}]
        messages: list[Any] = [{"role": "user", "content": ASKED}]
        said = client.messages.create(model="claude-x", max_tokens=9, tools=tools, messages=messages)
        messages += [{"role": "assistant", "content": said.content}]
        messages += [{"role": "user", "content": [result(said.content[1].id, "one.txt")]}]
        client.messages.create(model="claude-x", max_tokens=9, tools=tools, messages=messages)


BAD_POINTS = {
    "no event": (99, {}, "event 99 is not a call of the transcript"),
    "no call": (1, {}, "event 1 is not a call of the transcript"),
    "no path": (2, {"set": {"$.nothing": 1}}, "there is no \\$.nothing"),
    "no answer": (2, {"replace": 5}, "the outcome of a model call in a transcript is"),
    "no exception": (2, {"error": "Nope"}, "is not a built-in exception"),
}


@pytest.mark.parametrize(("at", "change", "why"), BAD_POINTS.values(), ids=BAD_POINTS)
def test_an_impossible_fork_is_refused_before_anything_runs(at, change, why, transcript, tmp_path):
    """In one line."""
    with pytest.raises(UsageError, match=why) as refused:
        reenact.fork(transcript(), at=at, change=change, output=tmp_path / "fork")
    assert "\n" not in str(refused.value)


def test_a_run_that_is_only_judgeable_is_not_forked(tmp_path):
    """A trace does not tell what each call was given."""
    source = Path(__file__).parents[1] / "importers" / "fixtures" / "otlp-genai.json"
    [run] = reenact.import_runs(source, tmp_path / "trace").runs
    with pytest.raises(FormatError, match="is judgeable, not replayable") as refused:
        reenact.fork(run.path, at=2, output=tmp_path / "fork")
    assert "\n" not in str(refused.value)


SCRIPT = f"""
import httpx2

tools = [{{"name": "bash"}}]
messages = [{{"role": "user", "content": {ASKED!r}}}]
while True:
    body = {{"model": "claude-x", "max_tokens": 9, "messages": messages, "tools": tools}}
    said = httpx2.post("{URL}/v1/messages", json=body).json()
    calls = [block for block in said["content"] if block["type"] == "tool_use"]
    if not calls:
        break
    messages += [
        {{"role": "assistant", "content": said["content"]}},
        {{"role": "user", "content": [
            {{"type": "tool_result", "tool_use_id": call["id"], "content": "one.txt"}} for call in calls
        ]}},
    ]
print(said["content"][0]["text"])
"""


def test_a_command_is_forked_from_a_transcript(transcript, tmp_path):
    """Each of its processes gets its own answers; the report says how calls were matched."""
    told = transcript([*USUAL, *side([*USUAL[:3], answer(3, text("One, still."))])])
    (tmp_path / "agent.py").write_text(SCRIPT)
    agent = f"{sys.executable} agent.py"
    words = ["fork", told, "--at", 2, "-o", "fork", "--", "sh", "-c", f"{agent} && {agent}"]
    done = run_reenact(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "There is one file.\nOne, still.\n"
    assert "fork: forked from" in done.stderr
    assert "at event 2: 1 call from the prefix, 3 from the recording, 0 live" in done.stderr
    assert "note: calls were matched with what the transcript tells" in done.stderr
    shown = run_reenact("show", "--tree", "fork", cwd=tmp_path)
    assert shown.stdout.splitlines()[-1].startswith("  fork"), shown.stderr
    compared = run_reenact("diff", told, "fork", cwd=tmp_path)
    assert "at event 2: no change; its calls were matched with what this transcript tells" in compared.stdout


def acting(told: Path) -> str:
    """An agent that asks what the transcript tells, and calls whatever tools the answers ask for."""
    asked = [event["data"]["request"]["messages"] for event in events(told) if event["type"] == "llm_request"]
    names = {event["data"]["tool"] for event in events(told) if event["type"] == "tool_call"}
    tools: Any = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in names]
    messages: list[Any] = []
    said = ""
    with openai.OpenAI(base_url=URL, api_key="unused", max_retries=0) as client:
        for new in asked:
            messages += [
                {"role": each["role"], "content": text_of(each["content"])}
                for each in new
                if each["role"] in ("system", "user")
            ]
            answered = client.chat.completions.create(model="m", messages=messages, tools=tools)
            message = answered.choices[0].message
            messages.append(message.model_dump(exclude_none=True, include={"role", "content", "tool_calls"}))
            said = message.content or said
            for each in message.tool_calls or ():
                assert each.type == "function"
                messages.append(
                    {"role": "tool", "tool_call_id": each.id, "content": call_tool(each.function)}
                )
    return said


def call_tool(function: Any) -> str:
    """The result of a tool of any name, as text; also of one that failed."""
    given = json.loads(function.arguments)
    space: dict[str, Any] = {"reenact": reenact}
    exec(f"@reenact.tool(name={function.name!r})\ndef tool({', '.join(given)}): raise AssertionError", space)
    try:
        output = space["tool"](**given)
    except Diverged:
        raise
    except Exception as error:
        return str(error)
    return output if isinstance(output, str) else json.dumps(output)


SWE_AGENT = {
    "trajectory": [
        {"action": "ls", "observation": "one.txt", "response": "I look.", "thought": "", "state": {}},
        {"action": "submit", "observation": "ok", "response": "There is one file.", "thought": ""},
    ],
    "history": [{"role": "user", "content": ASKED}],
    "environment": "e",
    "info": {"exit_status": "submitted"},
}
TOLD = {
    **{name: pattern for name, (pattern, _) in SOURCES.items() if not name.startswith("swe-agent")},
    "atif": ATIF,
    "swe-agent": SWE_AGENT,
}


@pytest.mark.parametrize("source", TOLD.values(), ids=TOLD)
def test_a_transcript_of_every_format_is_forked(source, tmp_path):
    """Up to its last answer, which is another one; the fork replays."""
    told, fork = tmp_path / "told", tmp_path / "fork"
    if isinstance(source, dict):
        (tmp_path / "it").write_text(json.dumps(source))
        reenact.import_runs(tmp_path / "it", told)
    else:
        [path] = FIXTURES.glob(source)
        reenact.import_runs(path, told)
    at = [event["seq"] for event in events(told) if event["type"] == "llm_request"][-1]
    with reenact.fork(told, at=at, change={"set": {"$.text": "Two."}}, output=fork) as run:
        assert acting(told) == "Two."
    assert run.shares is not None
    assert (run.shares.nearest, run.shares.live) == (0, 0)
    with reenact.replay(fork):
        assert acting(told) == "Two."


def by_text() -> str:
    """An agent that runs the command in the text of an answer, and gives its output as a text of the user."""
    messages: list[Any] = [{"role": "user", "content": ASKED}]
    with openai.OpenAI(base_url="http://127.0.0.1:9/v1", api_key="unused") as client:
        while True:
            answer = client.chat.completions.create(model="m", messages=messages)
            said = answer.choices[0].message.content or ""
            if "```bash" not in said:
                return said
            messages += [{"role": "assistant", "content": said}, {"role": "user", "content": "one.txt"}]


LOOK = "I look.\n\n```bash\nls\n```"
SAID = [("user", ASKED), ("assistant", LOOK), ("user", "one.txt"), ("assistant", "There is one.")]
MESSAGES = [{"role": role, "content": said} for role, said in SAID]
TOLD_IN_TEXTS: dict[str, Any] = {
    "mini-swe-agent": {"info": {"mini_version": "1.9.0"}, "messages": MESSAGES},
    "SWE-agent": {
        "trajectory": [
            {"action": "ls", "observation": "one.txt", "response": LOOK, "thought": "I look.", "state": {}},
            {"action": "", "observation": "", "response": "There is one.", "thought": "There is one."},
        ],
        "history": [
            {**message, "action": action, "agent": "main"}
            for message, action in zip(MESSAGES, (None, "ls", None, ""), strict=True)
        ],
        "environment": "e",
        "info": {"exit_status": "exit"},
    },
}


@pytest.mark.parametrize("form", TOLD_IN_TEXTS)
def test_a_transcript_of_commands_in_texts_is_forked_by_its_own_agent(form, tmp_path):
    """Such a model was offered no tools, so its answers have no calls; what a command gave is a text."""
    told, fork = tmp_path / "told", tmp_path / "fork"
    (tmp_path / "it").write_text(json.dumps(TOLD_IN_TEXTS[form]))
    [run] = reenact.import_runs(tmp_path / "it", told).runs
    assert (run.counts.tool_calls, run.counts.tool_results) == (1, 1)
    at = [event["seq"] for event in events(told) if event["type"] == "llm_request"][-1]
    with reenact.fork(told, at=at, change={"set": {"$.text": "Two."}}, output=fork) as forked:
        assert by_text() == "Two."
    assert forked.shares is not None
    assert (forked.shares.nearest, forked.shares.live) == (0, 0)
    with reenact.replay(fork):
        assert by_text() == "Two."

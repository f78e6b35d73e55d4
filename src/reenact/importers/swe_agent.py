"""Trajectories of SWE-agent (``.traj``) and of mini-swe-agent."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple

from reenact.canonical import JsonValue
from reenact.errors import FormatError
from reenact.importers.building import (
    KnownFields,
    Line,
    RunBuilder,
    ToolRequest,
    text_of,
    usage_counts,
)
from reenact.importers.importing import Importer, Runs
from reenact.importers.source import ForeignSource, JsonObject, Losses, expect_object, read_value
from reenact.importers.turns import TranscriptTurns

_TRAJ: Final = KnownFields(
    "trajectory", "history", "info", "traj_id", environment=None, replay_config=None, extra_data=None,
    attempts=None,
)  # fmt: skip
_STEP: Final = KnownFields(
    "action", "observation", "response", "thought", "execution_time", "tool_call_ids", "done", "exit_status",
    "submission", state=None, extra_info=None, messages=None, query=None, thinking_blocks=None,
    tool_calls=None,
)  # fmt: skip
_ROLES: Final = ("system", "developer", "user", "tool")
_MINI: Final = frozenset({"info", "messages", "trajectory_format", "instance_id"})
_CALL: Final = KnownFields("id", "type", "index", function=KnownFields("name", "arguments"))
_MESSAGE: Final = KnownFields(
    "role", "content", "tool_call_id", "name", "timestamp", "type", "output", "call_id", "object",
    "reasoning_content", "id", "status", "model", "created_at", "refusal", extra=None, tool_calls=_CALL,
    function_call=None, provider_specific_fields=None, thinking_blocks=None, annotations=None, usage=None,
)  # fmt: skip
_COMMAND: Final = re.compile(r"```(?:bash|mswea_bash_command)\s*\n(.*?)\n```", re.DOTALL)
"""A command in the text of an answer, which version 1 of mini-swe-agent runs if it is the only one."""
_USAGE: Final = {
    "prompt_tokens": "inputTokens",
    "completion_tokens": "outputTokens",
    "input_tokens": "inputTokens",
    "output_tokens": "outputTokens",
}


def _recognises(source: ForeignSource) -> bool:
    if not source.head.lstrip().startswith(b"{"):
        return False
    is_mini = source.has("messages", "mini_version") or b'"mini-swe-agent' in source.head
    is_traj = source.has("trajectory") and (
        source.has("action", "observation") or source.has("history", "info")
    )
    return is_mini or is_traj


def _read(source: ForeignSource, runs: Runs) -> None:
    lost: Losses = []
    document = source.document(lost)
    if not isinstance(document, dict):
        raise FormatError("expected an object", file=source.name)
    is_mini = isinstance(document.get("messages"), list) and "trajectory" not in document
    entries = document.get("messages" if is_mini else "trajectory")
    if not isinstance(entries, list):
        raise FormatError("there is neither a trajectory nor a conversation in it", file=source.name)
    run = runs.open()
    for reason, line in lost:
        run.note_loss(reason, line)
    run.note_missing("requests as they were sent")
    run.check_fields("", document, _MINI if is_mini else _TRAJ)
    info = document.get("info")
    run.note("info", info)
    turns = TranscriptTurns(run)
    if is_mini:
        reading = _Mini(run, turns, _model_of(info))
        for number, message in enumerate(entries, 1):
            line_of = partial(source.line_of, ("messages",), number)
            run.attempt(line_of, reading.message, message, line_of, what=f"message {number}")
    else:
        run.note_missing("times")
        _add_first_messages(turns, document.get("history"))
        told = _History(document.get("history"))
        for number, step in enumerate(entries, 1):
            line_of = partial(source.line_of, ("trajectory",), number)
            run.attempt(line_of, _import_step, run, turns, step, number, told, what=f"step {number}")
    turns.finish()
    if isinstance(info, dict) and isinstance(info.get("submission"), str) and info["submission"]:
        run.final_output = info["submission"]


def _model_of(info: JsonValue) -> str | None:
    config = info.get("config") if isinstance(info, dict) else None
    model = config.get("model") if isinstance(config, dict) else None
    name = model.get("model_name") if isinstance(model, dict) else None
    return name if isinstance(name, str) else None


def _add_first_messages(turns: TranscriptTurns, history: JsonValue) -> None:
    """Add the messages before the first answer; later observations are part of their steps."""
    for message in history if isinstance(history, list) else ():
        if not isinstance(message, dict) or message.get("role") == "assistant":
            return
        turns.say(str(message.get("role") or "user"), message.get("content"))


class _Told(NamedTuple):
    """What the history has of a step: the calls of its answer, and what the model was given next."""

    calls: list[JsonValue]
    given: JsonValue


class _History:
    """The messages as the model had them: with calls, or with commands in texts."""

    def __init__(self, history: JsonValue) -> None:
        listed = [each for each in history if isinstance(each, dict)] if isinstance(history, list) else []
        self._answers = [
            (each, listed[place] if place < len(listed) else {})
            for place, each in enumerate(listed, 1)
            if each.get("role") == "assistant" and each.get("is_demo") is not True
        ]

    def find(self, step: JsonObject) -> _Told | None:
        """What is told of this *step*; the history may lack steps that were taken back."""
        for place, (answer, after) in enumerate(self._answers):
            if answer.get("action") == step.get("action") and answer.get("content") == step.get("response"):
                del self._answers[: place + 1]
                calls = answer.get("tool_calls")
                given = after.get("content") if after.get("role") == "user" else None
                return _Told(calls if isinstance(calls, list) else [], given)
        return None


def _import_step(
    run: RunBuilder, turns: TranscriptTurns, step: JsonObject, number: int, history: _History
) -> None:
    run.check_fields("step", step, _STEP)
    action, thought = step.get("action"), step.get("thought")
    response = step.get("response")
    own = f"step-{number}"
    told = history.find(step)
    called = None
    if told is not None and told.calls:
        called = expect_object("function", expect_object("tool_calls", told.calls[0]).get("function"))
    is_in_text = told is not None and called is None and told.given is not None
    if called is not None:
        tools = [ToolRequest(str(called.get("name")), _arguments(called), own)]
    else:
        tools = [ToolRequest("bash", {"command": action}, own, None, is_in_text)] if action else []
    text = response if isinstance(response, str) else text_of(response)
    turns.answer(own, text=text or str(thought or ""), tools=tools)
    if tools:
        turns.result(own, step.get("observation"))
        if is_in_text and told is not None:
            # The model is given the output of a command as a text.
            turns.say("user", text_of(told.given))
    elif step.get("observation"):
        turns.say("user", step["observation"])


class _Mini:
    """The messages of mini-swe-agent, with tool calls or with commands in the text."""

    def __init__(self, run: RunBuilder, turns: TranscriptTurns, model: str | None) -> None:
        self._run = run
        self._turns = turns
        self._model = model
        self._answers = 0
        self._waiting: list[str] = []

    def message(self, message: JsonObject, line: Line) -> None:
        run, turns = self._run, self._turns
        run.check_fields("message", message, _MESSAGE)
        extra = expect_object("extra", message.get("extra") or {})
        time_ms = run.time_ms(extra.get("timestamp") or message.get("timestamp"))
        role, content = message.get("role"), message.get("content")
        if role == "assistant" or message.get("object") == "response":
            self._answer(message, extra, time_ms, line)
            return
        own = message.get("tool_call_id") or message.get("call_id")
        if own is None and role == "user" and self._waiting:
            # Without ids, results are in the order of the commands, and the model is given them as texts.
            turns.result(self._waiting.pop(0), content, time_ms=time_ms, line=line)
            turns.say(str(role), content, time_ms)
        elif own is not None:
            if own in self._waiting:
                self._waiting.remove(own)
            given = content if content is not None else message.get("output")
            turns.result(str(own), given, time_ms=time_ms, line=line)
        elif role == "exit":
            turns.flush()
            run.note("exit", {"content": content, **extra}, time_ms=time_ms)
            self._waiting.clear()
        else:
            if role not in _ROLES:
                run.count_unknown("message", [f"role={role}"])
            turns.say(str(role), content, time_ms)

    def _answer(self, message: JsonObject, extra: JsonObject, time_ms: float | None, line: Line) -> None:
        self._answers += 1
        calls = self._run.objects("tool_calls", message.get("tool_calls"), line)
        named = {str(call.get("id")): expect_object("function", call.get("function")) for call in calls}
        tools = []
        for number, action in enumerate(self._run.objects("extra.actions", extra.get("actions"), line)):
            own = str(action.get("tool_call_id") or f"action-{self._answers}-{number}")
            called = named.pop(own, None) or {"name": "bash"}
            arguments = _arguments(called) or {"command": action.get("command")}
            is_in_text = "tool_call_id" not in action
            tools.append(ToolRequest(str(called.get("name")), arguments, own, line, is_in_text))
        if not tools and not named and "actions" not in extra:
            commands = _COMMAND.findall(text_of(message.get("content")))
            if len(commands) == 1:
                own = f"action-{self._answers}-0"
                tools.append(
                    ToolRequest("bash", {"command": commands[0].strip()}, own, line, is_in_text=True)
                )
        self._waiting = [str(tool.id) for tool in tools]
        # Calls that could not be made into commands were not run.
        for own, called in named.items():
            tools.append(ToolRequest(str(called.get("name")), _arguments(called), own, line))
        response = extra.get("response")
        usage = response.get("usage") if isinstance(response, dict) else message.get("usage")
        self._turns.answer(
            str(self._answers),
            text=text_of(message.get("content")) or _output_text(message.get("output")),
            reasoning=str(message.get("reasoning_content") or ""),
            tools=tools,
            model=message.get("model") or self._model,
            usage=usage_counts(usage, _USAGE),
            time_ms=time_ms,
        )


def _arguments(function: JsonObject) -> JsonValue:
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        with suppress(ValueError):
            return read_value(arguments.encode("utf-8", "surrogatepass"))
    return arguments


def _output_text(items: JsonValue) -> str:
    """The text of a Responses API answer."""
    return "\n".join(
        text_of(item.get("content"))
        for item in (items if isinstance(items, list) else ())
        if isinstance(item, dict) and item.get("type") == "message"
    )


IMPORTER: Final = Importer(
    name="swe-agent",
    title="trajectories of SWE-agent and mini-swe-agent",
    version=1,
    fidelity="tools",
    recognises=_recognises,
    read=_read,
)

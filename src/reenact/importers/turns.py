"""Builds turns from the entries of a transcript, for each lane.

A transcript may split an answer into pieces, with results of its tools between them. A turn is buffered until
the next one begins: a model call comes before the tool calls it asked for, and these before their results.
"""

from __future__ import annotations

import msgspec

from reenact.canonical import JsonValue
from reenact.importers.building import Line, ModelTurn, RunBuilder, ToolRequest
from reenact.importers.source import JsonObject


class _Result(msgspec.Struct, frozen=True):
    own_id: str
    result: JsonValue
    is_error: bool
    time_ms: float | None
    line: Line


class _Answer(msgspec.Struct):
    key: str
    provider: str
    model: str
    messages: list[JsonObject]
    asked_ms: float | None
    answered_ms: float | None
    texts: list[str]
    reasoning: list[str]
    tools: list[ToolRequest]
    results: list[_Result]
    usage: JsonObject | None = None
    stop_reason: str | None = None
    error: str | None = None

    def add(
        self,
        text: str,
        reasoning: str,
        tools: list[ToolRequest] | None,
        usage: JsonObject | None,
        error: str | None,
    ) -> None:
        """Add a further piece of the answer."""
        if text:
            self.texts.append(text)
        if reasoning:
            self.reasoning.append(reasoning)
        if tools:
            self.tools += tools
        if usage:
            self.usage = usage
        if error:
            self.error = error

    def asks_for(self, own_id: str) -> bool:
        """Whether the answer asked for the tool call of this id."""
        return any(tool.id == own_id for tool in self.tools)


class _LaneState(msgspec.Struct):
    """The messages of one lane that are not answered yet."""

    messages: list[JsonObject]
    time_ms: float | None = None
    flushed: str = ""
    """The key of the latest answer that was flushed."""


class TranscriptTurns:
    """The turns of one run."""

    def __init__(self, run: RunBuilder) -> None:
        self._run = run
        self._lanes: dict[str, _LaneState] = {}
        self._answers: dict[str, _Answer] = {}
        """The answers in progress, by lane: few, even if there are thousands of lanes."""
        self._asides: set[str] = set()
        self._unnamed = 0

    def begin_aside(self, lane: str) -> None:
        """A subagent begins in this lane: who called it has answered, and it does not speak for the run."""
        self._asides.add(lane)
        for other, answer in list(self._answers.items()):
            if len(answer.results) < len(answer.tools):
                self.flush(other)

    def say(self, role: str, content: JsonValue, time_ms: float | None = None, lane: str = "0") -> None:
        """Add a message that is not from the model; it completes the answer before it."""
        self.flush(lane)
        self._flush_other_lanes(lane)
        said = self._lane(lane)
        said.messages.append({"role": role, "content": content})
        said.time_ms = time_ms if time_ms is not None else said.time_ms

    def answer(
        self,
        key: str,
        *,
        text: str = "",
        reasoning: str = "",
        tools: list[ToolRequest] | None = None,
        provider: str = "unknown",
        model: JsonValue = None,
        usage: JsonObject | None = None,
        stop_reason: JsonValue = None,
        error: str | None = None,
        time_ms: float | None = None,
        lane: str = "0",
    ) -> None:
        """Add an answer of the model; entries with the same *key* are pieces of one answer."""
        said = self._lane(lane)
        self._flush_other_lanes(lane)
        answer = self._answers.get(lane)
        if answer is not None and answer.key != key:
            self.flush(lane)
            answer = None
        if answer is None and said.flushed == key:
            self._add_to_flushed(text, tools or [], time_ms, lane)
            return
        if answer is None:
            asked_ms = said.time_ms if said.time_ms is not None else time_ms
            answer = self._answers[lane] = _Answer(
                key, provider, "unknown", said.messages, asked_ms, time_ms, [], [], [], []
            )
            said.messages, said.time_ms = [], None
            self._run.hold_notes()
        if time_ms is not None:
            answer.answered_ms = time_ms
        if isinstance(model, str) and model:
            answer.model = model
        if isinstance(stop_reason, str):
            answer.stop_reason = stop_reason
        answer.add(text, reasoning, tools, usage, error)

    def _lane(self, lane: str) -> _LaneState:
        said = self._lanes.get(lane)
        if said is None:
            said = self._lanes[lane] = _LaneState([])
        return said

    def result(
        self,
        own_id: str,
        result: JsonValue,
        *,
        is_error: bool = False,
        time_ms: float | None = None,
        line: Line = None,
        lane: str = "0",
    ) -> None:
        """Add the result of a tool call."""
        output = _Result(own_id, result, is_error, time_ms, line)
        answer = self._find_answer(own_id, lane)
        if answer is not None:
            answer.results.append(output)
            return
        self._flush_other_lanes(lane)
        self._emit_result(output)
        said = self._lanes.get(lane)
        if said is not None and time_ms is not None:
            said.time_ms = time_ms

    def _find_answer(self, own_id: str, lane: str) -> _Answer | None:
        """The answer in progress that asked for the call, in any lane; otherwise the one of this lane."""
        own = self._answers.get(lane)
        if own is not None and (len(self._answers) == 1 or own.asks_for(own_id)):
            return own
        return next((each for each in self._answers.values() if each.asks_for(own_id)), own)

    def usage(self, usage: JsonObject | None, lane: str = "0") -> None:
        """Set the token counts of the latest answer, if they come later."""
        answer = self._answers.get(lane)
        if answer is not None and usage:
            answer.usage = usage

    def flush(self, lane: str = "0") -> None:
        """Write the answer in progress as a complete turn."""
        answer = self._answers.pop(lane, None)
        if answer is None:
            return
        said = self._lanes[lane]
        said.flushed = answer.key
        tools = [tool if tool.id is not None else self._with_id(tool) for tool in answer.tools]
        self._run.model_turn(
            ModelTurn(
                messages=answer.messages,
                text="\n".join(answer.texts),
                reasoning="\n".join(answer.reasoning),
                tools=tuple(tool for tool in tools if not tool.is_in_text),
                provider=answer.provider,
                model=answer.model,
                usage=answer.usage,
                stop_reason=answer.stop_reason,
                error=answer.error,
                asked_ms=answer.asked_ms,
                answered_ms=answer.answered_ms,
                lane=lane,
                is_aside=any(lane == aside or lane.startswith(f"{aside}.") for aside in self._asides),
            )
        )
        for tool in tools:
            if not self._run.tool_call(str(tool.id), tool.name, tool.arguments, lane=lane):
                self._run.note_loss(f"a tool call appears twice: {tool.id}", tool.line)
        for output in answer.results:
            self._emit_result(output)
            if output.time_ms is not None:
                said.time_ms = output.time_ms
        if not self._answers:
            self._run.release_notes()

    def _flush_other_lanes(self, lane: str) -> None:
        """Write the completed answers of other lanes, because they precede the new entry."""
        for other, answer in list(self._answers.items()):
            if other != lane and answer.stop_reason is not None:
                is_calling = "tool" in answer.stop_reason.lower()
                if len(answer.results) == len(answer.tools) and (answer.tools or not is_calling):
                    self.flush(other)

    def _add_to_flushed(self, text: str, tools: list[ToolRequest], time_ms: float | None, lane: str) -> None:
        """Add a piece that came after its answer was flushed."""
        if text:
            self._run.note("rest of an answer", {"text": text}, time_ms=time_ms, lane=lane)
        for tool in map(self._with_id, tools):
            if not self._run.tool_call(str(tool.id), tool.name, tool.arguments, time_ms=time_ms, lane=lane):
                self._run.note_loss(f"a tool call appears twice: {tool.id}", tool.line)

    def finish(self) -> None:
        """Flush all lanes at the end of the transcript; unanswered messages become a note."""
        for lane, said in self._lanes.items():
            self.flush(lane)
            if said.messages:
                self._run.note("unanswered", {"messages": [*said.messages]}, time_ms=said.time_ms, lane=lane)
                said.messages = []

    def _with_id(self, tool: ToolRequest) -> ToolRequest:
        if tool.id is not None:
            return tool
        self._unnamed += 1
        return msgspec.structs.replace(tool, id=f"call-{self._unnamed}")

    def _emit_result(self, output: _Result) -> None:
        self._run.tool_result(
            output.own_id, output.result, is_error=output.is_error, time_ms=output.time_ms, line=output.line
        )

"""Turns put together from the entries of a transcript, lane by lane.

Transcripts tell an answer in pieces, and results of its tools between them. A turn is held until the next one
begins, so that a model call comes before the calls that it asked for, and these before their results.
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
        """Add what a further piece says."""
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
        """Whether a tool call of that id is one of its own."""
        return any(tool.id == own_id for tool in self.tools)


class _Said(msgspec.Struct):
    """What was said in one lane and not answered yet."""

    messages: list[JsonObject]
    time_ms: float | None = None
    answer: _Answer | None = None
    flushed: str = ""
    """The key of the latest answer that was complete."""


class TranscriptTurns:
    """The turns of one run."""

    def __init__(self, run: RunBuilder) -> None:
        self._run = run
        self._lanes: dict[str, _Said] = {}
        self._unnamed = 0

    def say(self, role: str, content: JsonValue, time_ms: float | None = None, lane: str = "0") -> None:
        """Somebody else than the model said something; an answer before it is complete."""
        self.flush(lane)
        self._flush_others(lane)
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
        """The model answered; entries of one *key* are one answer, told in pieces."""
        said = self._lane(lane)
        self._flush_others(lane)
        if said.answer is not None and said.answer.key != key:
            self.flush(lane)
        answer = said.answer
        if answer is None and said.flushed == key:
            self._add_to_flushed(text, tools or [], time_ms, lane)
            return
        if answer is None:
            asked_ms = said.time_ms if said.time_ms is not None else time_ms
            answer = said.answer = _Answer(
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

    def _lane(self, lane: str) -> _Said:
        said = self._lanes.get(lane)
        if said is None:
            said = self._lanes[lane] = _Said([])
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
        """A tool gave something."""
        said = self._lanes.get(lane)
        told = _Result(own_id, result, is_error, time_ms, line)
        answer = self._find_answer(own_id, said)
        if answer is not None:
            answer.results.append(told)
            return
        self._emit_result(told)
        if said is not None and time_ms is not None:
            said.time_ms = time_ms

    def _find_answer(self, own_id: str, said: _Said | None) -> _Answer | None:
        """The answer under way that asked for the call, in whatever lane; else the one of the lane."""
        own = said.answer if said is not None else None
        if len(self._lanes) > 1 and not (own is not None and own.asks_for(own_id)):
            answers = (other.answer for other in self._lanes.values())
            return next((each for each in answers if each is not None and each.asks_for(own_id)), own)
        return own

    def usage(self, usage: JsonObject | None, lane: str = "0") -> None:
        """What the latest answer took, where that is told later."""
        said = self._lanes.get(lane)
        if said is not None and said.answer is not None and usage:
            said.answer.usage = usage

    def flush(self, lane: str = "0") -> None:
        """The answer under way is complete."""
        said = self._lanes.get(lane)
        if said is None or said.answer is None:
            return
        answer, said.answer = said.answer, None
        said.flushed = answer.key
        tools = [tool if tool.id is not None else self._with_id(tool) for tool in answer.tools]
        self._run.model_turn(
            ModelTurn(
                messages=answer.messages,
                text="\n".join(answer.texts),
                reasoning="\n".join(answer.reasoning),
                tools=tuple(tools),
                provider=answer.provider,
                model=answer.model,
                usage=answer.usage,
                stop_reason=answer.stop_reason,
                error=answer.error,
                asked_ms=answer.asked_ms,
                answered_ms=answer.answered_ms,
                lane=lane,
            )
        )
        for tool in tools:
            if not self._run.tool_call(str(tool.id), tool.name, tool.arguments, lane=lane):
                self._run.lose(f"a tool call appears twice: {tool.id}", tool.line)
        for told in answer.results:
            self._emit_result(told)
            if told.time_ms is not None:
                said.time_ms = told.time_ms
        if len(self._lanes) == 1 or all(other.answer is None for other in self._lanes.values()):
            self._run.release_notes()

    def _flush_others(self, lane: str) -> None:
        """What is over in other lanes comes before what is said now."""
        if len(self._lanes) == 1:
            return
        for other, said in self._lanes.items():
            answer = said.answer
            if other != lane and answer is not None and answer.stop_reason is not None:
                is_calling = "tool" in answer.stop_reason.lower()
                if len(answer.results) == len(answer.tools) and (answer.tools or not is_calling):
                    self.flush(other)

    def _add_to_flushed(self, text: str, tools: list[ToolRequest], time_ms: float | None, lane: str) -> None:
        """A part of an answer that came when the answer seemed to be complete."""
        if text:
            self._run.note("rest of an answer", {"text": text}, time_ms=time_ms, lane=lane)
        for tool in map(self._with_id, tools):
            if not self._run.tool_call(str(tool.id), tool.name, tool.arguments, time_ms=time_ms, lane=lane):
                self._run.lose(f"a tool call appears twice: {tool.id}", tool.line)

    def finish(self) -> None:
        """The transcript is at its end; what was said and never answered is a note."""
        for lane, said in self._lanes.items():
            self.flush(lane)
            if said.messages:
                self._run.note("unanswered", {"messages": [*said.messages]}, time_ms=said.time_ms, lane=lane)
                said.messages = []

    def _with_id(self, tool: ToolRequest) -> ToolRequest:
        if tool.id is not None:
            return tool
        self._unnamed += 1
        return ToolRequest(tool.name, tool.arguments, f"call-{self._unnamed}", tool.line)

    def _emit_result(self, told: _Result) -> None:
        self._run.tool_result(
            told.own_id, told.result, is_error=told.is_error, time_ms=told.time_ms, line=told.line
        )

"""Logs of Inspect (``.eval`` and JSON): one run per sample and epoch, read by Inspect's own reader.

The format has no specification other than the package ``inspect_ai``, which comes with ``reenact[inspect]``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from reenact.canonical import JsonValue
from reenact.errors import FormatError, UsageError
from reenact.importers.building import KnownFields, RunBuilder, ToolRequest, iso_ms, usage_counts
from reenact.importers.importing import Importer, Runs
from reenact.importers.source import ForeignSource, expect_object
from reenact.importers.turns import TranscriptTurns

_ZIP: Final = b"PK\x03\x04"
_CALL: Final = KnownFields("id", "function", "arguments", "type", "parse_error", view=None, internal=None)
_MESSAGE: Final = KnownFields(
    "id", "content", "source", "role", "tool_call_id", "function", "model", metadata=None, tool_calls=_CALL,
    error=KnownFields("type", "message"), internal=None,
)  # fmt: skip
_COUNTS: Final = KnownFields(
    "input_tokens", "output_tokens", "total_tokens", "input_tokens_cache_read", "input_tokens_cache_write",
    "reasoning_tokens", "total_cost",
)  # fmt: skip
_CHOICE: Final = KnownFields("stop_reason", message=_MESSAGE, logprobs=None, stop_details=None)
_OUTPUT: Final = KnownFields(
    "model", "completion", "time", "error", "input_context_tokens", choices=_CHOICE, usage=_COUNTS,
    metadata=None,
)  # fmt: skip
_SAMPLE: Final = KnownFields(
    "id", "epoch", "target", "scores", "metadata", "uuid", "model_usage", "total_time", "limit",
    "started_at", "completed_at", "working_time", "events", "error", "sandbox", "files", "setup", "choices",
    "input", "error_retries", "invalidation", "turn_count", "events_data", "timelines",
    messages=None, output=None, store=None, attachments=None, role_usage=None,
)  # fmt: skip
_MODEL: Final = KnownFields(
    "uuid", "span_id", "timestamp", "working_start", "pending", "event", "model", "role", "input",
    "input_refs", "retries", "error_message", "cache", "completed", "working_time", "traceback",
    "traceback_ansi", "style", tools=None, config=None, output=_OUTPUT, call=None, metadata=None,
    tool_choice=None, error=None,
)  # fmt: skip
_TOOL: Final = KnownFields(
    "uuid", "span_id", "timestamp", "working_start", "pending", "event", "type", "id", "function",
    "arguments", "result", "truncated", "completed", "working_time", "agent", "agent_span_id", "failed",
    "message_id", metadata=None, view=None, events=None, error=KnownFields("type", "message"), internal=None,
)  # fmt: skip
_USAGE: Final = {
    "input_tokens": "inputTokens",
    "output_tokens": "outputTokens",
    "input_tokens_cache_read": "cachedInputTokens",
    "input_tokens_cache_write": "cacheWriteTokens",
    "reasoning_tokens": "reasoningTokens",
}


def _recognises(source: ForeignSource) -> bool:
    if source.head.startswith(_ZIP):
        return b"_journal/start.json" in source.head or source.path.suffix == ".eval"
    return source.head.lstrip().startswith(b"{") and source.has("status", "eval", "run_id", "task_id")


def _read(source: ForeignSource, runs: Runs) -> None:
    with source.stream() as stream:
        stream.read(1)  # for its digest; another library reads the file
    count = 0
    try:
        for sample in samples_of(source):
            count += 1
            import_sample(runs, sample)
    except (UsageError, FormatError):
        raise
    except Exception as error:  # any error of the reader for a file that was cut off
        reason = str(error) or type(error).__name__
        if not count:
            raise FormatError(f"no log of Inspect: {reason}", file=source.name) from None
        runs.note_loss(f"the samples after it cannot be read: {reason}")
    if not count:
        raise FormatError("it holds no sample", file=source.name)


def samples_of(source: ForeignSource) -> Iterator[dict[str, JsonValue]]:
    """The samples as plain JSON, one at a time, with their attachments resolved."""
    try:
        from inspect_ai import log  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise UsageError(
            f"{source.name}: logs of Inspect are read by its own package; install it with: "
            "pip install 'reenact[inspect]'"
        ) from None
    path = str(source.path)
    if source.head.startswith(_ZIP):  # older ones do not list their samples where the reader of all looks
        rows = log.read_eval_log_sample_summaries(path)
        found = (
            log.read_eval_log_sample(path, row.id, row.epoch, resolve_attachments="full") for row in rows
        )
    else:
        found = log.read_eval_log_samples(path, all_samples_required=False, resolve_attachments="full")
    for sample in found:
        yield sample.model_dump(mode="json", exclude_none=True)


def import_sample(runs: Runs, sample: dict[str, JsonValue]) -> None:
    """Import one sample as one run."""
    name = f"{sample.get('id')}-{sample.get('epoch', 1)}"
    run = runs.open(name, started_ms=iso_ms(sample.get("started_at")))
    run.note_missing("requests as they were sent")
    run.check_fields("sample", sample, _SAMPLE)
    reading = _Reading(run)
    for number, event in enumerate(run.objects("events", sample.get("events")), 1):
        run.attempt(None, reading.event, event, number, what=f"event {number}")
    reading.turns.finish()
    known = ("id", "epoch", "target", "scores", "metadata", "uuid", "model_usage", "total_time", "limit")
    run.note("sample", {key: sample[key] for key in known if key in sample})
    error = sample.get("error")
    if isinstance(error, dict):
        run.error = str(error.get("message") or "error")


class _Reading:
    def __init__(self, run: RunBuilder) -> None:
        self._run = run
        self.turns = TranscriptTurns(run)
        self._lanes: dict[str, str] = {}
        """The lane of each agent, by its span."""
        self._parents: dict[str, str] = {}
        """The parent of each span."""
        self._children: dict[str, int] = {}
        self._messages: dict[str, list[str]] = {}
        """The messages of the latest model call, input and answer, by lane."""
        self._asked: dict[str, JsonValue] = {}
        """The arguments of tool calls that an answer asked for."""
        self._answered: set[str] = set()
        """The tool calls that have a result."""

    def event(self, event: dict[str, JsonValue], number: int) -> None:
        kind = event.get("event")
        if kind == "span_begin":
            self._begin_span(event)
        if kind == "model":
            self._model(event, number)
        elif kind == "tool":
            self._tool(event)
        else:
            self.turns.flush(self._lane_of(event))
            details = {key: value for key, value in event.items() if key not in ("event", "uuid")}
            time_ms = self._run.time_ms(event.get("timestamp"))
            self._run.note(str(kind), details, time_ms=time_ms, lane=self._lane_of(event))

    def _begin_span(self, event: dict[str, JsonValue]) -> None:
        span, parent = str(event.get("id")), str(event.get("parent_id"))
        self._parents[span] = parent
        if event.get("type") == "agent":
            around = self._lane_at(parent)
            number = self._children.get(around, 0)
            self._children[around] = number + 1
            # The main agent of a task continues the task's own conversation.
            self._lanes[span] = f"{around}.{number}" if self._messages else around

    def _lane_of(self, event: dict[str, JsonValue]) -> str:
        return self._lane_at(str(event.get("span_id")))

    def _lane_at(self, span: str) -> str:
        seen: set[str] = set()
        while span not in self._lanes and span in self._parents and span not in seen:
            seen.add(span)
            span = self._parents[span]
        return self._lanes.get(span, "0")

    def _model(self, event: dict[str, JsonValue], number: int) -> None:
        run, lane = self._run, self._lane_of(event)
        run.check_fields("model", event, _MODEL)
        time_ms = run.time_ms(event.get("timestamp"))
        given = run.objects("input", event.get("input"))
        for message in given:
            run.check_fields("message", message, _MESSAGE)
        self._say(given, time_ms, lane)
        raw_output = event.get("output")
        output: dict[str, JsonValue] = raw_output if isinstance(raw_output, dict) else {}
        choice, *_ = run.objects("output.choices", output.get("choices")) or [{}]
        message = expect_object("message", choice.get("message") or {})
        text, reasoning = _parts(message.get("content"))
        tools = [_tool_request(call) for call in run.objects("tool_calls", message.get("tool_calls"))]
        self._asked.update((str(tool.id), tool.arguments) for tool in tools)
        failed = event.get("error") or output.get("error")
        self.turns.answer(
            str(event.get("uuid") or number),
            text=text,
            reasoning=reasoning,
            tools=tools,
            provider=str(event.get("model") or "unknown").partition("/")[0],
            model=output.get("model") or event.get("model"),
            usage=usage_counts(output.get("usage"), _USAGE),
            stop_reason=choice.get("stop_reason"),
            error=None if not failed else str(failed),
            time_ms=run.time_ms(event.get("completed")) or time_ms,
            lane=lane,
        )
        self._messages[lane] = [_identity(each) for each in [*given, message]]

    def _say(self, given: list[dict[str, JsonValue]], time_ms: float | None, lane: str) -> None:
        """Add the messages that are new since the previous model call."""
        before = self._messages.get(lane, [])
        shared = 0
        for message, known in zip(given, before, strict=False):
            if _identity(message) != known:
                break
            shared += 1
        for message in given[shared:]:
            role, call_id = str(message.get("role") or "user"), message.get("tool_call_id")
            if role == "tool" and str(call_id) in self._asked:
                if str(call_id) not in self._answered:
                    self._result(str(call_id), message.get("content"), message.get("error"), time_ms, lane)
            else:
                self.turns.say(role, message.get("content"), time_ms, lane)

    def _tool(self, event: dict[str, JsonValue]) -> None:
        run, lane, own_id = self._run, self._lane_of(event), str(event.get("id"))
        run.check_fields("tool", event, _TOOL)
        started_ms, ended_ms = run.time_ms(event.get("timestamp")), run.time_ms(event.get("completed"))
        if own_id not in self._asked:  # a solver called it, not a model
            self.turns.flush(lane)
            self._asked[own_id] = event.get("arguments")
            run.tool_call(
                own_id, str(event.get("function")), event.get("arguments"), time_ms=started_ms, lane=lane
            )
        elif self._asked[own_id] != event.get("arguments"):
            changed = {"id": own_id, "arguments": event.get("arguments")}
            run.note("called with other arguments", changed, time_ms=started_ms, lane=lane)
        if event.get("pending") is not True:
            self._result(own_id, event.get("result"), event.get("error"), ended_ms, lane)

    def _result(self, own_id: str, result: JsonValue, error: Any, time_ms: float | None, lane: str) -> None:
        self._answered.add(own_id)
        is_error = isinstance(error, dict)
        content = error.get("message") if is_error else result
        self.turns.result(own_id, content, is_error=is_error, time_ms=time_ms, lane=lane)


def _identity(message: dict[str, Any]) -> str:
    own = message.get("id")
    return own if isinstance(own, str) else repr(message)


def _parts(content: object) -> tuple[str, str]:
    """The text and the reasoning of a content."""
    if isinstance(content, str):
        return content, ""
    texts, reasoning = [], []
    for part in content if isinstance(content, list) else ():
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "text":
            texts.append(str(part.get("text") or ""))
        elif kind == "reasoning":
            reasoning.append(str(part.get("reasoning") or ""))
    return "\n".join(texts), "\n".join(reasoning)


def _tool_request(call: dict[str, Any]) -> ToolRequest:
    return ToolRequest(str(call.get("function")), call.get("arguments"), str(call.get("id")))


IMPORTER: Final = Importer(
    name="inspect",
    title="logs of Inspect",
    version=1,
    fidelity="tools",
    recognises=_recognises,
    read=_read,
    holds_many=True,
)

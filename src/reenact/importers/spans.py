"""Imports the spans of a trace as a run: model calls, tool calls, and notes for all other spans.

Each tracing tool has its own names for the same things; its importer converts them to :class:`Span` values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any, Final, Literal

import msgspec

from reenact.canonical import JsonValue
from reenact.errors import FormatError
from reenact.importers.building import (
    LEFT_OUT,
    NO_TIME,
    KnownFields,
    Line,
    ModelTurn,
    RunBuilder,
    ToolRequest,
    iso_ms,
    line_of,
    text_of,
)
from reenact.importers.importing import Runs
from reenact.importers.known_ids import KnownIds
from reenact.importers.source import (
    MAX_WHOLE_BYTES,
    UNFIT,
    ForeignSource,
    Losses,
    Unfit,
    expect_object,
    read_value,
    reason_of,
    type_mismatch,
)

_FUNCTION: Final = KnownFields("name", "arguments", "parsed_arguments", "description")
_CALL: Final = KnownFields(
    "id", "type", "index", "name", "args", "arguments", "input", "parameters", "tool_call_id", "error",
    "toolCallId", "toolName", "toolCallType", function=_FUNCTION, providerMetadata=None, providerOptions=None,
)  # fmt: skip
_PART: Final = KnownFields(
    "type", "text", "content", "thinking", "reasoning", "id", "name", "args", "arguments", "input",
    "parameters", "response", "result", "tool_use_id", "tool_call_id", "is_error", "index", "signature",
    "toolCallId", "toolName", "output", "isError",
    annotations=None, cache_control=None, function=_FUNCTION, image_url=None, source=None,
    providerMetadata=None, providerOptions=None,
)  # fmt: skip
_OWN_FIELDS: Final = KnownFields(
    "role", "type", "text", "name", "id", "tool_call_id", "finish_reason", "refusal", "status", "example",
    "lc", "index", "audio", "reasoning_content", content=_PART, parts=_PART, tool_calls=_CALL,
    invalid_tool_calls=None, additional_kwargs=None, response_metadata=None, usage_metadata=None,
    artifact=None, function_call=None, annotations=None,
)  # fmt: skip
_WRAPPED: Final = KnownFields(*_OWN_FIELDS, **_OWN_FIELDS.inner, kwargs=_OWN_FIELDS, data=_OWN_FIELDS)
MESSAGE: Final = KnownFields(
    *_WRAPPED, **_WRAPPED.inner, message=_WRAPPED, generation_info=None, logprobs=None,
    content_filter_results=None,
)  # fmt: skip
"""The fields of messages in the forms of all tracing tools."""
_MESSAGES: Final = ("messages", "contents", "input", "prompt", "prompts")
"""The members that hold the messages of a request."""
SpanKind = Literal["model", "tool", "other"]


class Span(msgspec.Struct, kw_only=True):
    """One span, with the fields that are understood."""

    trace_id: str
    span_id: str
    """Empty if the source has none."""
    name: str
    kind: SpanKind = "other"
    started_ms: float | None = None
    ended_ms: float | None = None
    error: str | None = None
    provider: str = "unknown"
    model: str = "unknown"
    messages: list[dict[str, JsonValue]] = []
    text: str = ""
    reasoning: str = ""
    tools: list[ToolRequest] = []
    usage: dict[str, Any] | None = None
    stop_reason: str | None = None
    arguments: Any = None
    result: JsonValue = None
    details: JsonValue = None
    """For a span of kind "other": its attributes."""
    unknown: list[str] = []
    left_out: list[str] = []
    faults: list[str] = []
    """What could not be read of it."""
    line: Line = None
    """The line in the source."""

    def set_times(
        self, started: JsonValue, ended: JsonValue, read: Callable[[JsonValue], float | None] = iso_ms
    ) -> None:
        """Take both times; one that *read* cannot read is a fault."""
        self.started_ms, self.ended_ms = read(started), read(ended)
        for time, found in ((started, self.started_ms), (ended, self.ended_ms)):
            if found is None and time not in NO_TIME:
                self.faults = [
                    *self.faults,
                    str(type_mismatch("a time", "a date or a count of seconds", time)),
                ]

    def first_choice(self, place: str, choices: Sequence[JsonValue]) -> JsonValue:
        """The answer that the run went on with; other choices are left out."""
        if len(choices) > 1:
            self.left_out = [*self.left_out, f"{place}, all but the first"]
        return choices[0]

    def check_fields(self, place: str, value: object, known: AbstractSet[str]) -> None:
        """Note the fields of an object, or of each object in a list, that are not *known*."""
        for each in value if isinstance(value, list) else (value,):
            if isinstance(each, list):
                self.check_fields(place, each, known)
            if not isinstance(each, dict):
                continue
            self.unknown = [*self.unknown, *(f"{place}.{name}" for name in sorted(each.keys() - known))]
            inner_objects = known.inner_objects(place, each) if isinstance(known, KnownFields) else ()
            for inner_place, inner, inner_known in inner_objects:
                if inner_known is None:
                    self.left_out = [*self.left_out, inner_place]
                else:
                    self.check_fields(inner_place, inner, inner_known)


def import_spans(
    runs: Runs,
    spans: Iterable[Span],
    lost: Iterable[tuple[str, int | None]] = (),
    about: Sequence[tuple[str, JsonValue]] = (),
) -> None:
    """Write one run per trace, each with notes of *about*, which describes all of them."""
    traces = Traces(runs, about)
    traces.add(spans, lost)
    traces.finish()


class Traces:
    """The traces of a source, which may be added in parts: those that no part goes on with are written."""

    def __init__(self, runs: Runs, about: Sequence[tuple[str, JsonValue]]) -> None:
        self._runs = runs
        self._about = about
        self._spans: dict[str, list[Span]] = {}
        """The spans of each trace that is not written yet."""
        self._seen = KnownIds()
        self._written = KnownIds()
        self._losses: Losses = []
        self._count = 0

    def add(self, spans: Iterable[Span], lost: Iterable[tuple[str, int | None]] = ()) -> None:
        """Add the next part of the source, and write the traces that have no span in it."""
        self._losses += lost
        latest: set[str] = set()
        for span in spans:
            self._count += 1
            span.span_id = span.span_id or f"span {self._count}"
            trace, own = span.trace_id, f"{span.trace_id} {span.span_id}"
            if own in self._seen or trace in self._written:
                reason = "is there twice" if own in self._seen else "comes long after the others of its trace"
                self._losses.append((f"{span.name} {reason}: {span.span_id}", line_of(span.line)))
                continue
            self._seen[own] = ""
            latest.add(trace)
            self._spans.setdefault(trace, []).append(span)
        for trace in [each for each in self._spans if each not in latest]:
            self._write(trace)

    def finish(self) -> None:
        """Write the other traces."""
        for trace in list(self._spans):
            self._write(trace)
        for reason, line in self._losses:
            self._runs.note_loss(reason, line)

    def _write(self, trace: str) -> None:
        """Write a run, ordered by end times; tool calls are ordered by start times."""
        spans = self._spans.pop(trace)
        self._written[trace] = ""
        began = min((span.started_ms for span in spans if span.started_ms is not None), default=None)
        run = self._runs.open(trace, started_ms=began)
        run.note_missing("requests as they were sent", "events between the spans")
        for kind, details in self._about:
            run.note(kind, details)
        _RunWriter(run).write(spans)
        for reason, line in self._losses:
            run.note_loss(reason, line)
        self._losses = []


def read_spans(
    records: Iterable[tuple[JsonValue, Line]],
    read: Callable[[dict[str, JsonValue]], Span],
    what: str,
    lost: Losses,
) -> Iterator[Span]:
    """Make spans from the *records* by *read*; a record that cannot be read goes to *lost*."""
    for number, (value, line) in enumerate(records, 1):
        try:
            span = read(expect_object(what, value))
        except UNFIT as error:
            lost.append((f"{what} {number} cannot be read: {reason_of(error)}", line_of(line)))
            continue
        span.line = line
        lost += [(f"{what} {number}: {fault}", line_of(line)) for fault in span.faults]
        yield span


class Listing(msgspec.Struct):
    """The values that a source lists, each with its line."""

    values: list[tuple[JsonValue, Line]] = []
    about: list[tuple[str, JsonValue]] = []
    """Other members of pages: the kind of a note, and the note."""

    def add_page(self, page: dict[str, JsonValue], name: str, line_of: Callable[[int], Line]) -> None:
        """Add the items of the list *name* in *page*."""
        listed = page[name]
        if not isinstance(listed, list):
            raise type_mismatch(name, "a list", listed)
        self.values += [(value, line_of(number)) for number, value in enumerate(listed, 1)]
        if rest := {key: value for key, value in page.items() if key != name}:
            self.about.append(("page", rest))


def read_listing(source: ForeignSource, names: Sequence[str], lost: Losses) -> Listing:
    """The values of a source: one per line, or the items of the list in a document.

    In an object, the list is the first member of *names*; without one, the object is the only value.
    """
    listing = Listing()
    if isinstance(source.first_line, dict):
        for line, value in source.objects(lambda *loss: lost.append(loss)):
            if source.position > MAX_WHOLE_BYTES:
                lost.append((f"is beyond {MAX_WHOLE_BYTES} bytes, which are held in memory; split it", line))
                break
            name = next((name for name in names if isinstance(value.get(name), list)), None)
            if name is None:
                listing.values.append((value, line))
            else:
                listing.add_page(value, name, lambda _, line=line: line)  # type: ignore[misc]
        return listing
    document = source.document(lost)
    try:
        if isinstance(document, list):
            listing.values += [
                (value, partial(source.line_of, (), number)) for number, value in enumerate(document, 1)
            ]
        elif isinstance(document, dict):
            name = next((name for name in names if name in document), None)
            if name is None:
                listing.values.append((document, partial(source.line_of, (), 1)))
            else:
                listing.add_page(document, name, lambda number: partial(source.line_of, (name,), number))
        else:
            raise type_mismatch("the document", "a list", document)
    except Unfit as error:
        raise FormatError(str(error), file=source.name) from error
    return listing


class _RunWriter:
    def __init__(self, run: RunBuilder) -> None:
        self._run = run
        self._previous_messages: list[Any] = []
        """The messages of the previous model call."""

    def write(self, spans: list[Span]) -> None:
        steps: list[tuple[float, int, Span, bool]] = []
        for number, span in enumerate(spans):
            began = span.started_ms if span.started_ms is not None else 0.0
            ended = span.ended_ms if span.ended_ms is not None else began
            if span.kind == "tool":
                steps.append((began, 2 * number, span, True))
            at = began if span.kind == "other" else ended
            steps.append((at, 2 * number + 1, span, False))
        for _, _, span, is_beginning in sorted(steps, key=lambda step: step[:2]):
            self._write(span, is_beginning=is_beginning)

    def _write(self, span: Span, *, is_beginning: bool) -> None:
        run = self._run
        if is_beginning:
            run.tool_call(span.span_id, span.name, span.arguments, time_ms=span.started_ms)
            return
        run.count_unknown("", span.unknown)
        run.note_missing(*(place + LEFT_OUT for place in span.left_out))
        if span.kind == "tool":
            result = span.result if span.error is None else span.error
            run.tool_result(span.span_id, result, is_error=span.error is not None, time_ms=span.ended_ms)
        elif span.kind == "model":
            self._write_model_call(span)
        else:
            note = {"name": span.name, "details": span.details}
            run.note(
                "span", note if span.error is None else note | {"error": span.error}, time_ms=span.started_ms
            )

    def _write_model_call(self, span: Span) -> None:
        shared = 0
        for one, other in zip(span.messages, self._previous_messages, strict=False):
            if one != other:
                break
            shared += 1
        self._previous_messages = span.messages
        self._run.model_turn(
            ModelTurn(
                messages=span.messages[shared:],
                text=span.text,
                reasoning=span.reasoning,
                tools=tuple(span.tools),
                provider=span.provider,
                model=span.model,
                usage=span.usage,
                stop_reason=span.stop_reason,
                error=span.error,
                asked_ms=span.started_ms,
                answered_ms=span.ended_ms,
            )
        )


def value_of(value: JsonValue) -> Any:
    """The JSON value in a text; other values and texts are returned unchanged."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return read_value(value.encode("utf-8", "surrogatepass"))
        except ValueError:
            return value
    return value


def tool_request(call: JsonValue) -> ToolRequest | None:
    """A tool call in any of the forms that messages use."""
    if not isinstance(call, dict):
        return None
    function = call.get("function")
    inner: dict[str, JsonValue] = function if isinstance(function, dict) else call
    name = inner.get("name", inner.get("toolName"))
    if not isinstance(name, str):
        return None
    arguments = next(
        (inner[key] for key in ("arguments", "args", "input", "parameters") if key in inner), None
    )
    own = next((call[key] for key in ("id", "tool_call_id", "toolCallId") if key in call), None)
    return ToolRequest(name, value_of(arguments), own if isinstance(own, str) else None)


def plain_message(raw: Any) -> dict[str, Any] | None:
    """Convert a message of any tracing tool to ours: ``role``, ``content`` and tool calls."""
    if isinstance(raw, str):
        return {"role": "user", "content": raw}
    if not isinstance(raw, dict):
        return None
    if isinstance(raw.get("kwargs"), dict) and isinstance(raw.get("id"), list):  # LangChain's own form
        kind = str(raw["id"][-1] if raw["id"] else "")
        raw = {"type": kind.removesuffix("Chunk").removesuffix("Message").lower(), **raw["kwargs"]}
    inner = raw.get("message")
    if isinstance(inner, dict):
        raw = inner
    elif isinstance(raw.get("data"), dict):
        raw = {"type": raw.get("type"), **raw["data"]}
    role = str(raw.get("role") or raw.get("type") or "user")
    role = {"human": "user", "ai": "assistant", "model": "assistant", "function": "tool"}.get(role, role)
    content = raw.get("content", raw.get("parts", raw.get("text")))
    message: dict[str, JsonValue] = {"role": role, "content": content}
    calls = _calls_of(raw)
    if isinstance(content, list):
        _take_parts(message, content, calls)
    found = [request for request in map(tool_request, calls) if request is not None]
    if found:
        message["tool_calls"] = [request.to_json() for request in found]
    if isinstance(raw.get("reasoning_content"), str) and raw["reasoning_content"]:
        message.setdefault("reasoning", raw["reasoning_content"])
    if isinstance(raw.get("tool_call_id"), str):
        message["tool_call_id"] = raw["tool_call_id"]
    return message


def _calls_of(raw: dict[str, Any]) -> list[Any]:
    more = raw.get("additional_kwargs")
    for place in (raw, more if isinstance(more, dict) else {}):
        if isinstance(calls := place.get("tool_calls"), list) and calls:
            return [*calls]
    return []


_RESULTS: Final = ("tool_call_response", "tool_result", "tool-result")


def _split_results(raw: JsonValue) -> list[JsonValue]:
    """A message with several results of tools as one message for each, and one for the rest."""
    for name in ("content", "parts"):
        parts = raw.get(name) if isinstance(raw, dict) else None
        if isinstance(raw, dict) and isinstance(parts, list) and len(parts) > 1:
            results: list[JsonValue] = [part for part in parts if _is_result(part)]
            others: list[JsonValue] = [part for part in parts if not _is_result(part)]
            if results:
                groups = [*([part] for part in results), *([others] if others else [])]
                return [{**raw, name: group} for group in groups]
    return [raw]


def _is_result(part: JsonValue) -> bool:
    return isinstance(part, dict) and part.get("type") in _RESULTS


def _take_parts(message: dict[str, JsonValue], parts: list[Any], calls: list[JsonValue]) -> None:
    """Sort the parts of a content into text, reasoning, tool calls and the result of a tool."""
    texts, reasoning = [], []
    for part in parts:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind in ("tool_call", "tool_use", "function_call", "tool-call"):
            calls.append(part)
        elif kind in _RESULTS:
            own = next((part[key] for key in ("id", "tool_use_id", "toolCallId") if part.get(key)), None)
            result = next(
                (part[key] for key in ("response", "result", "content", "output") if key in part), None
            )
            message |= {"role": "tool", "content": result, "tool_call_id": str(own)}
            return
        elif kind in ("reasoning", "thinking"):
            reasoning.append(str(part.get("content") or part.get("thinking") or part.get("text") or ""))
        elif isinstance(part, dict) and isinstance(part.get("content"), str):
            texts.append(part["content"])
        else:
            texts.append(text_of(part))
    message["content"] = "\n".join(filter(None, texts))
    if any(reasoning):
        message["reasoning"] = "\n".join(filter(None, reasoning))


def take_answer(span: Span, raw: JsonValue) -> None:
    """Set the answer of *span* from a message in any form."""
    message = plain_message(raw)
    if message is None:
        return
    text = text_of(message["content"])
    span.text = f"{span.text}\n{text}" if span.text and text else span.text or text
    span.reasoning = span.reasoning or str(message.get("reasoning") or "")
    calls = [tool_request(call) for call in message.get("tool_calls") or []]
    span.tools = [*span.tools, *(call for call in calls if call is not None)]


def messages_of(raw: JsonValue) -> list[dict[str, JsonValue]]:
    """The messages in a list, or in lists inside of it."""
    raw = value_of(raw)
    if isinstance(raw, dict):
        raw = next((raw[name] for name in _MESSAGES if name in raw), raw)
    listed = raw if isinstance(raw, list) else [raw]
    flat = [message for each in listed for message in (each if isinstance(each, list) else [each])]
    found = (plain_message(each) for message in flat for each in _split_results(message))
    return [message for message in found if message is not None]


def first_of(fields: Mapping[str, JsonValue], *names: str) -> JsonValue:
    """The first of these members that exists and is not empty."""
    return next((fields[name] for name in names if fields.get(name) not in (None, "", [], {})), None)

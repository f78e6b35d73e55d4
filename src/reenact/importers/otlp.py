"""OpenTelemetry: spans of the GenAI conventions and of OpenInference, as OTLP JSON or protobuf.

Attributes of Vercel's AI SDK and of Logfire are translated to the GenAI conventions first. JSON is one
document, or one per line as file exporters write it; protobuf is one request, or many with length prefixes.
The protobuf wire format is decoded here, so that no package is needed.
"""

from __future__ import annotations

import re
import struct
from base64 import b64decode
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import zip_longest
from typing import Any, Final, TypeAlias

from reenact.canonical import JsonValue
from reenact.errors import FormatError
from reenact.importers.importing import Importer, Runs
from reenact.importers.source import (
    LARGE_BYTES,
    UNFIT,
    ForeignSource,
    Losses,
    Unfit,
    expect_list,
    expect_object,
    reason_of,
    type_mismatch,
)
from reenact.importers.spans import (
    MESSAGE,
    Span,
    SpanKind,
    Traces,
    first_of,
    import_spans,
    messages_of,
    plain_message,
    read_spans,
    take_answer,
    tool_request,
    value_of,
)

_MODEL_OPERATIONS: Final = ("chat", "text_completion", "generate_content", "completion")
_USAGE: Final = {
    "inputTokens": (
        "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt",
        "ai.usage.inputTokens", "ai.usage.promptTokens",
    ),
    "outputTokens": (
        "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion",
        "ai.usage.outputTokens", "ai.usage.completionTokens",
    ),
    "cachedInputTokens": (
        "gen_ai.usage.cache_read.input_tokens", "llm.token_count.prompt_details.cache_read",
        "ai.usage.cachedInputTokens",
    ),
    "cacheWriteTokens": (
        "gen_ai.usage.cache_creation.input_tokens", "llm.token_count.prompt_details.cache_write",
    ),
    "reasoningTokens": (
        "llm.token_count.completion_details.reasoning", "gen_ai.usage.reasoning.output_tokens",
        "ai.usage.reasoningTokens",
    ),
}  # fmt: skip
_INDEXED: Final = re.compile(
    r"(?P<side>gen_ai\.prompt|gen_ai\.completion|llm\.input_messages|llm\.output_messages)\.(?P<at>\d+)\."
    r"(?:message\.)?(?P<rest>.+)"
)
_CONTENT: Final = re.compile(r"contents\.(?P<at>\d+)\.message_content\.(?P<rest>type|text)")
_TOOLS: Final = re.compile(r"llm\.(?:tools\.\d+\.tool|request\.functions\.\d+)\..+")
"""The definitions of tools, which are left out in all conventions."""
_CALL: Final = re.compile(r"tool_calls\.(?P<at>\d+)\.(?:tool_call\.)?(?:function\.)?(?P<rest>.+)")
_MEMBERS: Final = frozenset({"role", "content", "name", "tool_call_id", "finish_reason"})
_CALL_MEMBERS: Final = frozenset({"id", "type", "name", "arguments"})
_KNOWN: Final = frozenset({
    "gen_ai.operation.name", "gen_ai.system", "gen_ai.provider.name", "gen_ai.request.model",
    "gen_ai.response.model", "gen_ai.response.id", "gen_ai.response.finish_reasons", "gen_ai.input.messages",
    "gen_ai.output.messages", "gen_ai.system_instructions", "gen_ai.tool.name", "gen_ai.tool.call.id",
    "gen_ai.tool.call.arguments", "gen_ai.tool.call.result", "gen_ai.tool.type", "gen_ai.tool.description",
    "gen_ai.tool.definitions", "gen_ai.conversation.id", "gen_ai.agent.name", "gen_ai.agent.id",
    "gen_ai.output.type", "gen_ai.request.max_tokens", "gen_ai.request.temperature", "gen_ai.request.top_p",
    "gen_ai.request.stop_sequences", "gen_ai.request.seed", "gen_ai.request.choice.count",
    "gen_ai.request.frequency_penalty", "gen_ai.request.presence_penalty", "server.address", "server.port",
    "error.type", "openinference.span.kind", "llm.model_name", "llm.provider", "llm.system",
    "llm.invocation_parameters", "llm.finish_reason", "llm.request.type", "llm.usage.total_tokens",
    "llm.token_count.total", "llm.is_streaming", "llm.tools", "tool.name", "tool.parameters",
    "tool.description", "tool.id", "tool_call.id", "input.value", "input.mime_type", "output.value",
    "output.mime_type", "session.id", "user.id", "metadata", "tag.tags", "traceloop.span.kind",
    "traceloop.entity.name", "traceloop.entity.input", "traceloop.entity.output", "traceloop.entity.path",
    "traceloop.entity.version", "traceloop.workflow.name", "ai.operationId", "operation.name",
    "resource.name",
    "ai.model.id", "ai.model.provider", "ai.prompt.tools", "ai.prompt.toolChoice", "ai.response.model",
    "ai.response.id", "ai.response.timestamp", "ai.response.finishReason", "ai.finishReason",
    "ai.usage.totalTokens", "ai.toolCall.name", "ai.toolCall.id", "ai.toolCall.args", "ai.toolCall.result",
    "ai.toolCall.input", "ai.toolCall.output", "ai.response.msToFirstChunk", "ai.response.msToFinish",
    "ai.response.avgOutputTokensPerSecond", "ai.settings.maxRetries", "ai.telemetry.functionId",
    "tool_arguments", "tool_response", "logfire.msg", "logfire.msg_template", "logfire.json_schema",
    "logfire.span_type", "logfire.level_num", "logfire.tags", "model_request_parameters", "async",
    *(name for names in _USAGE.values() for name in names),
})  # fmt: skip


# The attributes for the name, input and output of a tool: GenAI, OpenInference, Traceloop, AI SDK, Logfire.
_TOOL_NAMES: Final = ("gen_ai.tool.name", "tool.name", "traceloop.entity.name", "ai.toolCall.name")
_TOOL_INPUTS: Final = (
    "gen_ai.tool.call.arguments", "tool.parameters", "input.value", "traceloop.entity.input",
    "ai.toolCall.args", "ai.toolCall.input", "tool_arguments",
)  # fmt: skip
_TOOL_OUTPUTS: Final = (
    "gen_ai.tool.call.result", "output.value", "traceloop.entity.output", "ai.toolCall.result",
    "ai.toolCall.output", "tool_response",
)  # fmt: skip
_NUMBER: Final = re.compile(r"\.\d+\.")
_ATTRIBUTE: Final = frozenset({"key", "value"})
_EVENT: Final = frozenset({"timeunixnano", "name", "attributes", "droppedattributescount"})
_FIELDS: Final = {
    "request": frozenset({"resourcespans", "batches", "trace", "resourcelogs"}),
    "resourceSpans": frozenset({
        "resource", "scopespans", "instrumentationlibraryspans", "schemaurl", "deprecatedscopespans",
    }),
    "resource": frozenset({"attributes", "droppedattributescount", "entityrefs"}),
    "scopeSpans": frozenset({"scope", "instrumentationlibrary", "spans", "schemaurl"}),
    "scope": frozenset({"name", "version", "attributes", "droppedattributescount"}),
    "span": frozenset({
        "traceid", "spanid", "parentspanid", "tracestate", "flags", "name", "kind", "starttimeunixnano",
        "endtimeunixnano", "attributes", "droppedattributescount", "events", "droppedeventscount", "links",
        "droppedlinkscount", "status",
    }),
    "event": _EVENT,
    "link": frozenset({"traceid", "spanid", "tracestate", "attributes", "droppedattributescount", "flags"}),
    "status": frozenset({"code", "message", "deprecatedcode"}),
}  # fmt: skip
"""In lower case without underscores, because writers differ in both."""
_VALUES: Final = frozenset({
    "stringvalue", "boolvalue", "intvalue", "doublevalue", "arrayvalue", "kvlistvalue", "bytesvalue",
})  # fmt: skip


def _recognises(source: ForeignSource) -> bool:
    head = source.head.lstrip()
    if head.startswith((b"{", b"[")):
        is_of_tempo = source.has("batches") and (source.has("scopeSpans") or source.has("scope_spans"))
        return source.has("resourceSpans") or source.has("resource_spans") or is_of_tempo
    return b"trace" not in head[:1] and _looks_like_protobuf(source.head)


def _looks_like_protobuf(head: bytes) -> bool:
    """Whether it starts with a ``ResourceSpans`` message and has attributes of model spans."""
    is_framed = len(head) > 5 and head[4:5] == b"\n"
    return (head[:1] == b"\n" or is_framed) and any(
        mark in head for mark in (b"gen_ai.", b"openinference.span.kind", b"llm.model_name")
    )


def _read(source: ForeignSource, runs: Runs) -> None:
    lost: Losses = []
    lines: list[int] = []
    if not source.head.lstrip().startswith((b"{", b"[")):
        requests: list[JsonValue] = []
        try:
            for request in _protobuf_requests(source.read(), lost):
                requests.append(request)  # noqa: PERF402 — keep the requests before a broken one
        except _UNREADABLE as error:
            lost.append((f"the rest is not OTLP: {_why(error)}", None))
        if lost and not any(scope["spans"] for scope in _scopes_of(requests)):
            raise FormatError(lost[0][0].removeprefix("the rest is "), file=source.name)
    elif isinstance(source.first_line, dict) and source.is_large:
        _read_parts(source, runs)
        return
    elif isinstance(source.first_line, dict):
        numbered = list(source.objects(lambda *loss: lost.append(loss)))
        requests, lines = [value for _, value in numbered], [line for line, _ in numbered]
    else:
        requests = _whole_document(source, lost)
    about: list[tuple[str, JsonValue]] = []
    spans = _spans_in([*zip_longest(requests, lines)], lost, about)
    import_spans(runs, spans, lost, about)


def _read_parts(source: ForeignSource, runs: Runs) -> None:
    """Import a large file of lines in constant memory; a trace ends before a part without a span of it."""
    source.compute_digest()
    lost: Losses = []
    part: _Requests = []
    about: list[tuple[str, JsonValue]] = []
    traces = Traces(runs, about)
    end = LARGE_BYTES
    for line, request in source.objects(lambda *loss: lost.append(loss)):
        part.append((request, line))
        if source.position >= end:
            traces.add(_spans_in(part, lost, about), lost)
            part, end = [], source.position + LARGE_BYTES
            lost.clear()
    traces.add(_spans_in(part, lost, about), lost)
    traces.finish()


def _spans_in(requests: _Requests, lost: Losses, about: list[tuple[str, JsonValue]]) -> list[Span]:
    events, odd = _events_in_logs(requests, lost)
    spans = [span for each in requests for span in _spans_of(*each, lost, about, odd, events)]
    if spans:
        spans[-1].unknown = [*spans[-1].unknown, *odd]
    return spans


_Requests: TypeAlias = list[tuple[JsonValue, int | None]]
"""Each with its line."""
_Events: TypeAlias = dict[tuple[str, str], list[JsonValue]]
"""By the ids of a trace and of a span."""


def _events_in_logs(requests: _Requests, lost: Losses) -> tuple[_Events, list[str]]:
    """The messages that instrumentations write into log records, as events of the spans that they name.

    Also returns the names of other records, which are left out.
    """
    events: _Events = {}
    others: list[str] = []
    for request, line in requests:
        for resource in _objects(request, lost, line, "resourceLogs", "resource_logs"):
            for scope in _objects(resource, lost, line, "scopeLogs", "scope_logs"):
                for record in _objects(scope, lost, line, "logRecords", "log_records"):
                    try:
                        _take_record(record, events, others)
                    except Unfit as error:
                        lost.append((f"a log record cannot be read: {error}", line))
    return events, others


def _take_record(record: dict[str, JsonValue], events: _Events, others: list[str]) -> None:
    details, body = _attributes(record.get("attributes")), _any_value(record.get("body"))
    name = str(first_of(record, "eventName", "event_name") or details.get("event.name"))
    trace = _hex_id(first_of(record, "traceId", "trace_id"), _TRACE_ID_BYTES)
    span = _hex_id(first_of(record, "spanId", "span_id"), _SPAN_ID_BYTES)
    if not span or not name.startswith("gen_ai."):
        others.append("logRecord")
        return
    said: JsonValue = body if isinstance(body, dict) else details
    events.setdefault((trace, span), []).append({"name": name, "attributes": said})


def _scopes_of(requests: list[Any]) -> Iterator[dict[str, JsonValue]]:
    for request in requests:
        for resource in request["resourceSpans"]:
            yield from resource["scopeSpans"]


def _whole_document(source: ForeignSource, lost: Losses) -> list[JsonValue]:
    document = source.document(lost)
    if not isinstance(document, list):
        return [expect_object("it", document)]
    if any(isinstance(each, dict) and first_of(each, "resourceSpans", "resource_spans") for each in document):
        return document
    return [{"resourceSpans": document}]


def _spans_of(
    request: JsonValue,
    line: int | None,
    lost: Losses,
    about: list[tuple[str, JsonValue]],
    odd: list[str],
    events: _Events,
) -> Iterator[Span]:
    """Its spans, with their *events* in logs.

    Resources and scopes are added to *about* once, and unknown fields to the next span; those after the last
    one stay in *odd*.
    """
    odd += _odd_fields("request", request)
    if isinstance(request, dict) and isinstance(inner := request.get("trace"), dict):
        request = inner
    for resource in _objects(request, lost, line, "resourceSpans", "resource_spans", "batches"):
        odd += _odd_fields("resourceSpans", resource)
        _note_about("resource", resource.get("resource"), odd, about, lost, line)
        for scope in _objects(
            resource, lost, line, "scopeSpans", "scope_spans", "instrumentationLibrarySpans"
        ):
            odd += _odd_fields("scopeSpans", scope)
            _note_about("scope", first_of(scope, "scope", "instrumentationLibrary"), odd, about, lost, line)
            listed = [(span, line) for span in _list(scope, "spans")]
            for found in read_spans(listed, partial(span_of, events=events), "span", lost):
                found.unknown = [*odd, *found.unknown]
                odd.clear()
                yield found


def _note_about(
    kind: str, value: Any, odd: list[str], about: list[tuple[str, JsonValue]], lost: Losses, line: int | None
) -> None:
    if value is None:
        return
    try:
        details = {**expect_object(kind, value), "attributes": _attributes(value.get("attributes"))}
    except Unfit as error:
        lost.append((f"the {kind} cannot be read: {error}", line))
        return
    odd += [*_odd_fields(kind, value), *_odd_values(value.get("attributes"))]
    if (kind, details) not in about:
        about.append((kind, details))


def _odd_fields(place: str, value: JsonValue) -> list[str]:
    names = value if isinstance(value, dict) else ()
    return [f"{place}.{name}" for name in names if _plain_name(name) not in _FIELDS[place]]


def _odd_values(attributes: JsonValue) -> list[str]:
    """Members of attributes other than their keys and values."""
    odd: list[str] = []
    for each in attributes if isinstance(attributes, list) else ():
        if isinstance(each, dict):
            odd += [f"attribute.{name}" for name in each if name not in _ATTRIBUTE]
            odd += _odd_in_value(each.get("value"))
    return odd


def _odd_in_value(value_object: JsonValue) -> list[str]:
    odd: list[str] = []
    for name, value in value_object.items() if isinstance(value_object, dict) else ():
        kind = _plain_name(name)
        if kind not in _VALUES:
            odd.append(f"value.{name}")
        elif kind in ("arrayvalue", "kvlistvalue") and isinstance(value, dict):
            odd += [f"{name}.{each}" for each in value if each != "values"]
            values = _list(value, "values")
            odd += _odd_values(values) if kind == "kvlistvalue" else []
            odd += [each for item in values for each in _odd_in_value(item)] if kind == "arrayvalue" else []
    return odd


def _plain_name(name: JsonValue) -> str:
    return str(name).replace("_", "").lower()


def _list(value: JsonValue, *names: str) -> list[JsonValue]:
    found = first_of(value, *names) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


def _objects(value: JsonValue, lost: Losses, line: int | None, *names: str) -> Iterator[dict[str, JsonValue]]:
    """The objects in a list; other items, and a value that is not a list, go to *lost*."""
    found = first_of(value, *names) if isinstance(value, dict) else None
    if found is not None and not isinstance(found, list):
        lost.append((str(type_mismatch(names[0], "a list", found)), line))
    for each in found if isinstance(found, list) else ():
        if isinstance(each, dict):
            yield each
        else:
            lost.append((str(type_mismatch(f"an item of {names[0]}", "an object", each)), line))


def span_of(raw: dict[str, JsonValue], events: _Events | None = None) -> Span:
    """The span that a JSON object of OTLP tells of, with its *events* elsewhere.

    Its attributes may be a plain object.
    """
    attributes = _attributes(raw.get("attributes"))
    trace_id = _hex_id(first_of(raw, "traceId", "trace_id"), _TRACE_ID_BYTES) or "trace"
    span_id = _hex_id(first_of(raw, "spanId", "span_id"), _SPAN_ID_BYTES)
    odd = [*_odd_fields("span", raw), *_odd_values(raw.get("attributes"))]
    odd += _odd_fields("status", raw.get("status"))
    for link in map(partial(expect_object, "link"), _list(raw, "links")):
        odd += [*_odd_fields("link", link), *_odd_values(link.get("attributes"))]
    for event in map(partial(expect_object, "event"), _list(raw, "events")):
        odd += [*_odd_fields("event", event), *_odd_values(event.get("attributes"))]
        odd += _take_event(attributes, event)
    for told in (events or {}).get((trace_id, span_id), ()):
        odd += _take_event(attributes, told)
    _translate(attributes)
    kind = _kind_of(attributes, str(raw.get("name")))
    status = expect_object("status", raw.get("status") or {})
    is_error = status.get("code") in (2, "2", "STATUS_CODE_ERROR")
    span = Span(
        trace_id=trace_id,
        span_id=span_id,
        name=str(raw.get("name")),
        kind=kind,
        error=str(status.get("message") or attributes.get("error.type") or "error") if is_error else None,
    )
    span.set_times(
        first_of(raw, "startTimeUnixNano", "start_time_unix_nano"),
        first_of(raw, "endTimeUnixNano", "end_time_unix_nano"),
        _ms,
    )
    if kind == "model":
        _fill_model(span, attributes)
    elif kind == "tool":
        span.name = str(first_of(attributes, *_TOOL_NAMES) or span.name)
        span.arguments = value_of(first_of(attributes, *_TOOL_INPUTS))
        span.result = value_of(first_of(attributes, *_TOOL_OUTPUTS))
    else:
        span.details = attributes
        span.unknown = odd
        return span
    strange = (name for name in attributes if name not in _KNOWN and not _is_member(name))
    span.unknown = [*span.unknown, *odd, *(f"attribute.{re.sub(_NUMBER, '.N.', name)}" for name in strange)]
    return span


_TRACE_ID_BYTES: Final = 16
_SPAN_ID_BYTES: Final = 8


def _hex_id(value: JsonValue, size_bytes: int) -> str:
    """An id in hexadecimal digits; generic writers of protobuf as JSON use base64."""
    text = str(value or "")
    if len(text) == (size_bytes + 2) // 3 * 4 and text.endswith("="):
        with suppress(ValueError):
            return b64decode(
                text, altchars=b"-_" if "-" in text or "_" in text else None, validate=True
            ).hex()
    return text


def _translate(attributes: dict[str, Any]) -> None:
    """Say in the GenAI conventions what Vercel's AI SDK and Logfire say in their own."""
    asked, answer = value_of(attributes.pop("ai.prompt.messages", None)), _answer_of_ai_sdk(attributes)
    events = value_of(attributes.get("events"))
    if isinstance(events, list) and all(isinstance(each, dict) for each in events):
        del attributes["events"]
        for event in events:
            details = {name: value for name, value in event.items() if name != "event.name"}
            _take_event(attributes, {"name": event.get("event.name"), "attributes": details})
    if isinstance(request := value_of(attributes.get("request_data")), dict) and "messages" in request:
        del attributes["request_data"]
        asked = request["messages"]
    if isinstance(response := value_of(attributes.get("response_data")), dict):
        if isinstance(response.get("message"), dict):
            del attributes["response_data"]
            answer = response["message"]
        elif isinstance(text := response.get("combined_chunk_content"), str):
            del attributes["response_data"]
            answer = {"role": "assistant", "content": text}
    if asked is not None:
        attributes.setdefault("gen_ai.input.messages", asked)
    if answer is not None:
        attributes.setdefault("gen_ai.output.messages", [answer])


def _answer_of_ai_sdk(attributes: dict[str, Any]) -> dict[str, JsonValue] | None:
    if not _is_model_of_ai_sdk(attributes):
        return None
    found = {
        name: first_of(attributes, f"ai.response.{name}", f"ai.result.{name}")
        for name in ("text", "object", "toolCalls", "reasoning")
    }
    for name in found:
        attributes.pop(f"ai.response.{name}", None)
        attributes.pop(f"ai.result.{name}", None)
    calls = value_of(found["toolCalls"])
    return {
        "role": "assistant",
        "content": found["text"] or found["object"],
        "tool_calls": calls if isinstance(calls, list) else [],
        "reasoning_content": found["reasoning"],
    }


def _is_model_of_ai_sdk(attributes: dict[str, Any]) -> bool:
    return str(attributes.get("ai.operationId")).endswith((".doGenerate", ".doStream"))


def _is_member(name: str) -> bool:
    """Whether *name* is a known member of a message that has one attribute per member."""
    found = _INDEXED.fullmatch(name)
    if found is None:
        return _TOOLS.fullmatch(name) is not None
    call = _CALL.fullmatch(found["rest"])
    is_content = _CONTENT.fullmatch(found["rest"]) is not None
    return call["rest"] in _CALL_MEMBERS if call else found["rest"] in _MEMBERS or is_content


def _kind_of(attributes: dict[str, JsonValue], name: str) -> SpanKind:
    operation = attributes.get("gen_ai.operation.name")
    inference = str(attributes.get("openinference.span.kind") or "").upper()
    if (
        operation in _MODEL_OPERATIONS
        or inference == "LLM"
        or attributes.get("llm.request.type")
        or _is_model_of_ai_sdk(attributes)
    ):
        return "model"
    if (
        operation == "execute_tool"
        or inference == "TOOL"
        or attributes.get("traceloop.span.kind") == "tool"
        or attributes.get("ai.operationId") == "ai.toolCall"
        or (operation is None and "gen_ai.tool.name" in attributes)
    ):
        return "tool"
    is_named = operation is None and not inference and "gen_ai.request.model" in attributes
    return "model" if is_named and name != "" else "other"


def _fill_model(span: Span, attributes: dict[str, Any]) -> None:
    span.provider = str(
        first_of(
            attributes,
            "gen_ai.provider.name",
            "gen_ai.system",
            "llm.provider",
            "llm.system",
            "ai.model.provider",
        )
        or "unknown"
    )
    names = (
        "gen_ai.response.model",
        "gen_ai.request.model",
        "llm.model_name",
        "ai.response.model",
        "ai.model.id",
    )
    span.model = str(first_of(attributes, *names) or "unknown")
    usage = {ours: first_of(attributes, *names) for ours, names in _USAGE.items()}
    counts = {
        name: int(count)
        for name, count in usage.items()
        if isinstance(count, int | float | str) and str(count).isdigit()
    }
    span.usage = counts or None
    reasons = value_of(
        first_of(
            attributes, "gen_ai.response.finish_reasons", "llm.finish_reason", "ai.response.finishReason"
        )
    )
    span.stop_reason = (
        str(reasons[0]) if isinstance(reasons, list) and reasons else str(reasons) if reasons else None
    )
    asked, said = _indexed_messages(attributes)
    input_messages = value_of(attributes.get("gen_ai.input.messages"))
    span.check_fields("gen_ai.input.messages", input_messages, MESSAGE)
    span.check_fields("gen_ai.output.messages", value_of(attributes.get("gen_ai.output.messages")), MESSAGE)
    span.messages = messages_of(input_messages) if input_messages is not None else asked
    system = value_of(attributes.get("gen_ai.system_instructions"))
    if system:
        spoken = plain_message({"role": "system", "content": system})
        span.messages = ([spoken] if spoken else []) + span.messages
    answers = value_of(attributes.get("gen_ai.output.messages"))
    answers = answers if isinstance(answers, list) else said
    if answers:
        take_answer(span, span.first_choice("gen_ai.output.messages", answers))
    if not span.messages and attributes.get("input.value"):
        span.messages = messages_of(attributes["input.value"])
    if not answers and isinstance(attributes.get("output.value"), str):
        span.text = attributes["output.value"]


def _indexed_messages(
    attributes: dict[str, JsonValue],
) -> tuple[list[dict[str, JsonValue]], list[dict[str, JsonValue]]]:
    """Messages that have one attribute per member: ``llm.input_messages.0.message.content``."""
    sides: dict[bool, dict[int, dict[str, Any]]] = {True: {}, False: {}}
    for name, value in attributes.items():
        found = _INDEXED.fullmatch(name)
        if found is None:
            continue
        is_asked = found["side"] in ("gen_ai.prompt", "llm.input_messages")
        message = sides[is_asked].setdefault(int(found["at"]), {})
        call, part = _CALL.fullmatch(found["rest"]), _CONTENT.fullmatch(found["rest"])
        if part is not None:
            message.setdefault("contents", {}).setdefault(int(part["at"]), {})[part["rest"]] = value
        elif call is None:
            message[found["rest"]] = value
        else:
            message.setdefault("calls", {}).setdefault(int(call["at"]), {})[call["rest"]] = value
    return _in_order(sides[True]), _in_order(sides[False])


def _in_order(messages: dict[int, dict[str, Any]]) -> list[dict[str, JsonValue]]:
    found = []
    for _, fields in sorted(messages.items()):
        calls = [call for _, call in sorted(fields.pop("calls", {}).items())]
        parts = [part for _, part in sorted(fields.pop("contents", {}).items())]
        if parts:
            fields.setdefault("content", parts)
        message = plain_message({"role": fields.get("role", "assistant"), **fields})
        if message is not None:
            requests = [request for request in map(tool_request, calls) if request is not None]
            found.append(
                message | ({"tool_calls": [each.to_json() for each in requests]} if requests else {})
            )
    return found


def _take_event(attributes: dict[str, Any], event: JsonValue) -> list[str]:
    """Add the content that some versions of instrumentations report in span events instead of attributes.

    Returns the names of what is left out: the attributes of other events.
    """
    details = _attributes(event.get("attributes") if isinstance(event, dict) else None)
    name = str(event.get("name")) if isinstance(event, dict) else ""
    if name == "gen_ai.client.inference.operation.details":
        attributes.update(details)
    elif name == "gen_ai.content.prompt" and "gen_ai.prompt" in details:
        attributes.setdefault("gen_ai.input.messages", details["gen_ai.prompt"])
    elif name == "gen_ai.content.completion" and "gen_ai.completion" in details:
        attributes.setdefault("gen_ai.output.messages", details["gen_ai.completion"])
    elif name in (
        "gen_ai.system.message",
        "gen_ai.user.message",
        "gen_ai.assistant.message",
        "gen_ai.tool.message",
    ):
        role = name.split(".")[1]
        spoken = {"role": role, **{key: value_of(value) for key, value in details.items()}}
        _add_message(attributes, "gen_ai.input.messages", spoken)
    elif name == "gen_ai.choice":
        message = value_of(details.get("message")) or details
        said = message if isinstance(message, dict) else {"content": message}
        _add_message(attributes, "gen_ai.output.messages", {"role": "assistant", **said})
    else:
        return [f"event {name}.{key}" for key in details]
    return []


def _add_message(attributes: dict[str, Any], name: str, message: dict[str, JsonValue]) -> None:
    listed = attributes.setdefault(name, [])
    if isinstance(listed, list):  # else the attribute has them all
        listed.append(message)


def _attributes(raw: JsonValue) -> dict[str, JsonValue]:
    if isinstance(raw, dict):
        return dict(raw)
    found: dict[str, JsonValue] = {}
    for each in expect_list("attributes", raw):
        attribute = expect_object("an attribute", each)
        key = attribute.get("key")
        if not isinstance(key, str):
            raise type_mismatch("the key of an attribute", "a text", key)
        found[key] = _any_value(attribute.get("value"))
    return found


def _any_value(raw: JsonValue) -> Any:
    """A value of OTLP: an object whose single member names its type."""
    named = {_plain_name(name): value for name, value in raw.items()} if isinstance(raw, dict) else {}
    kind = next((name for name in named if name in _VALUES), "")
    value: Any = named.get(kind)
    if kind == "intvalue":
        try:
            return int(value)
        except (TypeError, ValueError):
            raise type_mismatch("intValue", "a whole number", value) from None
    if kind == "arrayvalue":
        return [_any_value(each) for each in _list(value, "values")]
    if kind == "kvlistvalue":
        return _attributes(expect_object("kvlistValue", value).get("values"))
    return value


def _ms(nanoseconds: Any) -> float | None:
    try:
        return int(nanoseconds) / 1_000_000
    except (TypeError, ValueError, OverflowError):
        return None


# The protobuf wire format, for the messages that are needed here


_UNREADABLE: Final = (*UNFIT, struct.error)


def _why(error: Exception) -> str:
    return str(error) if isinstance(error, _CutOff) else reason_of(error)


class _CutOff(ValueError):
    """The data ends inside a field, or continues with an invalid one."""

    def __init__(self, number: int, rest: bytes, reason: str = "the data was cut off") -> None:
        super().__init__(reason)
        self.number = number
        self.rest = rest


def _protobuf_requests(data: bytes, lost: Losses) -> Iterator[dict[str, JsonValue]]:
    """One request, or many, each after its length in four bytes."""
    if data[:1] != b"\n" or _is_framed(data):
        place = 0
        while place < len(data):
            [size] = struct.unpack_from(">I", data, place)
            found = data[place + 4 : place + 4 + size]
            yield _request(found, lost)
            if len(found) < size and not lost:
                raise _CutOff(0, b"")
            place += 4 + size
        return
    yield _request(data, lost)


def _is_framed(data: bytes) -> bool:
    return len(data) > 8 and struct.unpack_from(">I", data)[0] <= len(data) - 4 and data[4:5] == b"\n"


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        number, kind = key >> 3, key & 7
        value: Any
        if kind == 0:
            value, place = _varint(data, place)
        elif kind == 1:
            value, place = data[place : place + 8], place + 8
        elif kind == 2:
            size, place = _varint(data, place)
            value, place = data[place : place + size], place + size
        elif kind == 5:
            value, place = data[place : place + 4], place + 4
        else:
            raise _CutOff(0, b"", f"a field of kind {kind}")
        if place > len(data):
            raise _CutOff(number, value if kind == 2 else b"")
        yield number, value


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if place >= len(data) or shift > 63:
            raise _CutOff(0, b"")
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place


def _request(data: bytes, lost: Losses) -> dict[str, Any]:
    fields = list(_fields_before_cut(data, lost))
    found = [_resource_spans(value, lost) for number, value in fields if number == 1]
    return {"resourceSpans": found, **_unknown(fields, 1)}


def _resource_spans(data: bytes, lost: Losses) -> dict[str, object]:
    fields = list(_fields_before_cut(data, lost))
    resource = next((_resource(value) for number, value in fields if number == 1), None)
    found = [_scope_spans(value, lost) for number, value in fields if number == 2]
    return {"resource": resource, "scopeSpans": found, **_unknown(fields, 3)}


def _scope_spans(data: bytes, lost: Losses) -> dict[str, object]:
    fields = list(_fields_before_cut(data, lost, 2))
    scope = next((_scope(value) for number, value in fields if number == 1), None)
    found = _protobuf_spans([value for number, value in fields if number == 2], lost)
    return {"scope": scope, "spans": found, **_unknown(fields, 3)}


def _protobuf_spans(values: list[bytes], lost: Losses) -> list[dict[str, JsonValue]]:
    """The spans that can be read; the others go to *lost*."""
    spans = []
    for number, value in enumerate(values, 1):
        try:
            spans.append(_protobuf_span(value))
        except _UNREADABLE as error:
            lost.append((f"span {number} of its scope is not OTLP: {_why(error)}", None))
    return spans


def _unknown(fields: list[tuple[int, object]], last_known: int) -> dict[str, None]:
    """Fields with numbers above those of the known versions of the format."""
    return {f"field {number}": None for number, _ in fields if number > last_known}


def _resource(data: bytes) -> dict[str, JsonValue]:
    fields = list(_fields(data))
    return {"attributes": [_key_value(value) for at, value in fields if at == 1], **_unknown(fields, 3)}


def _scope(data: bytes) -> dict[str, JsonValue]:
    fields = list(_fields(data))
    names = {number: value.decode("utf-8", "replace") for number, value in fields if number in (1, 2)}
    scope = {"name": names.get(1, ""), "attributes": [_key_value(value) for at, value in fields if at == 3]}
    return {**scope, **({"version": names[2]} if 2 in names else {}), **_unknown(fields, 4)}


def _fields_before_cut(data: bytes, lost: Losses, whole: int = 0) -> Iterator[tuple[int, Any]]:
    """The fields; if the data was cut off, also the incomplete last one, unless it must be *whole*."""
    try:
        yield from _fields(data)
    except _CutOff as cut:
        if not lost:
            lost.append((f"the rest is not OTLP: {cut}", None))
        if cut.number not in (0, whole) and cut.rest:
            yield cut.number, cut.rest


def _protobuf_span(data: bytes) -> dict[str, JsonValue]:
    fields = list(_fields(data))
    span: dict[str, Any] = {"attributes": [], "events": [], **_unknown(fields, 16)}
    for number, value in fields:
        if number in (1, 2):
            span["traceId" if number == 1 else "spanId"] = value.hex()
        elif number == 5:
            span["name"] = value.decode("utf-8", "replace")
        elif number in (7, 8):
            [time] = struct.unpack("<Q", value)
            span["startTimeUnixNano" if number == 7 else "endTimeUnixNano"] = time
        elif number == 9:
            span["attributes"].append(_key_value(value))
        elif number == 11:
            span["events"].append(_span_event(value))
        elif number == 15:
            status = dict(_fields(value))
            span["status"] = {
                "code": status.get(3, 0),
                "message": status.get(2, b"").decode("utf-8", "replace"),
            }
    return span


def _span_event(data: bytes) -> dict[str, Any]:
    fields = list(_fields(data))
    name = next((value.decode("utf-8", "replace") for number, value in fields if number == 2), "")
    found = [_key_value(value) for number, value in fields if number == 3]
    return {"name": name, "attributes": found, **_unknown(fields, 4)}


def _key_value(data: bytes) -> dict[str, JsonValue]:
    fields = dict(_fields(data))
    return {
        "key": fields.get(1, b"").decode("utf-8", "replace"),
        "value": _protobuf_value(fields.get(2, b"")),
    }


def _protobuf_value(data: bytes) -> dict[str, JsonValue]:
    for number, value in _fields(data):
        if number == 1:
            return {"stringValue": value.decode("utf-8", "replace")}
        if number == 2:
            return {"boolValue": bool(value)}
        if number == 3:
            return {"intValue": value - (1 << 64) if value >> 63 else value}
        if number == 4:
            return {"doubleValue": struct.unpack("<d", value)[0]}
        if number == 5:
            return {
                "arrayValue": {"values": [_protobuf_value(each) for at, each in _fields(value) if at == 1]}
            }
        if number == 6:
            return {"kvlistValue": {"values": [_key_value(each) for at, each in _fields(value) if at == 1]}}
        if number == 7:
            return {"bytesValue": value.hex()}
    return {}


IMPORTER: Final = Importer(
    name="otlp",
    title="OpenTelemetry traces (GenAI, OpenInference)",
    version=1,
    fidelity="judgeable",
    recognises=_recognises,
    read=_read,
    holds_many=True,
)

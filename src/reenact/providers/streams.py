"""Converting a streamed answer to one message, and a message to a stream of its wire format.

A written stream is short: each text and each tool input is one piece.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from reenact.canonical import JsonValue
from reenact.providers import anthropic, gemini, ollama, openai_chat, openai_responses
from reenact.providers.meaning import Provider
from reenact.providers.reading import object_of, objects_of, read_frames, text_of

_FOLDS: Final = {
    "anthropic": anthropic.fold,
    "gemini": gemini.fold,
    "ollama": ollama.fold,
    "openai_chat": openai_chat.fold,
    "openai_responses": openai_responses.fold,
}
_AWS_EVENTS: Final = b"\x00"


def read_stream(provider: Provider, body: bytes) -> dict[str, JsonValue] | None:
    """The message of a stream; ``None`` for anything else, or a stream that cannot be written again."""
    if provider not in _FOLDS or body[:1] == _AWS_EVENTS:
        return None
    frames = read_frames(body)
    return _FOLDS[provider](frames.objects) or None if frames.streamed else None


def write_stream(provider: Provider, message: dict[str, JsonValue], like: bytes) -> bytes:
    """*message* as a stream with the framing of *like*."""
    match provider:
        case "anthropic":
            return b"".join(_named_event(event) for event in _anthropic_events(message))
        case "openai_responses":
            return b"".join(_named_event(event) for event in _number(_response_events(message)))
        case "openai_chat":
            chunks = (b"data: %b\n\n" % _encode(chunk) for chunk in _chat_chunks(message))
            return b"".join(chunks) + b"data: [DONE]\n\n"
        case "ollama":
            return b"".join(_encode(line) + b"\n" for line in _ollama_lines(message))
    return b"[%b]" % _encode(message) if like.lstrip()[:1] == b"[" else b"data: %b\n\n" % _encode(message)


def _named_event(event: dict[str, Any]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (event["type"].encode(), _encode(event))


_encode: Final = msgspec.json.Encoder().encode

# Anthropic

_BLOCK_TEXTS: Final = {"text": "text", "thinking": "thinking"}


def _anthropic_events(message: dict[str, JsonValue]) -> Iterator[dict[str, JsonValue]]:
    end = {name: message.get(name) for name in ("stop_reason", "stop_sequence")}
    opening = message | {"content": [], "stop_reason": None, "stop_sequence": None}
    yield {"type": "message_start", "message": opening}
    for index, block in enumerate(objects_of(message, "content")):
        start, deltas = _open_block(block)
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": end, "usage": message.get("usage") or {}}
    yield {"type": "message_stop"}


def _open_block(block: dict[str, Any]) -> tuple[dict[str, JsonValue], list[dict[str, JsonValue]]]:
    """The opening of a content block in a stream, and its deltas."""
    start, deltas = dict(block), list[dict[str, Any]]()
    kind = _BLOCK_TEXTS.get(text_of(block, "type") or "")
    if kind is not None:
        cited = start.pop("citations", None) or ()
        deltas += [{"type": "citations_delta", "citation": each} for each in cited]
        deltas.append({"type": f"{kind}_delta", kind: start.get(kind, "")})
        start[kind] = ""
    if "input" in start:
        given = start["input"]
        text = given if isinstance(given, str) else _encode(given).decode()
        deltas.append({"type": "input_json_delta", "partial_json": text})
        start["input"] = {}
    if kind == "thinking" and "signature" in start:
        deltas.append({"type": "signature_delta", "signature": start["signature"]})
        start["signature"] = ""
    return start, deltas


# Ollama

_LINE_TEXTS: Final = ("response", "thinking")


def _ollama_lines(body: dict[str, JsonValue]) -> Iterator[dict[str, JsonValue]]:
    named = ("message", *_LINE_TEXTS)
    head = {name: body[name] for name in ("model", "created_at") if name in body}
    yield head | {name: body[name] for name in named if name in body} | {"done": False}
    # The last line has no more to say, but clients ask for the member.
    empty: dict[str, JsonValue] = {"message": {"role": "assistant", "content": ""}, "response": ""}
    rest = {name: value for name, value in body.items() if name not in named}
    yield {name: empty[name] for name in empty if name in body} | rest


# OpenAI


def _chat_chunks(body: dict[str, JsonValue]) -> Iterator[dict[str, JsonValue]]:
    left_out = ("choices", "usage")
    head = {name: value for name, value in body.items() if name not in left_out}
    head["object"] = "chat.completion.chunk"
    for place, choice in enumerate(objects_of(body, "choices")):
        index = choice.get("index", place)
        delta = {**object_of(choice, "message")}
        if isinstance(delta.get("tool_calls"), list):
            delta["tool_calls"] = [
                {"index": number, **call} for number, call in enumerate(objects_of(delta, "tool_calls"))
            ]
        kept = {name: value for name, value in choice.items() if name not in ("message", "finish_reason")}
        yield head | {"choices": [kept | {"index": index, "delta": delta, "finish_reason": None}]}
        end = {"index": index, "delta": {}, "finish_reason": choice.get("finish_reason")}
        yield head | {"choices": [end]}
    if body.get("usage") is not None:
        yield head | {"choices": [], "usage": body["usage"]}


_ENDS: Final = {"incomplete": "response.incomplete", "failed": "response.failed"}
_PART_TEXTS: Final = {
    "output_text": ("response.output_text", "text"),
    "refusal": ("response.refusal", "refusal"),
}
_ITEM_TEXTS: Final = {
    "function_call": ("response.function_call_arguments", "arguments"),
    "custom_tool_call": ("response.custom_tool_call_input", "input"),
}


def _response_events(body: dict[str, JsonValue]) -> Iterator[dict[str, JsonValue]]:
    opening = body | {"output": [], "status": "in_progress", "usage": None}
    yield {"type": "response.created", "response": opening}
    yield {"type": "response.in_progress", "response": opening}
    for index, item in enumerate(objects_of(body, "output")):
        yield from _item_events(item, {"output_index": index, "item_id": text_of(item, "id") or ""}, index)
    yield {"type": _ENDS.get(text_of(body, "status") or "", "response.completed"), "response": body}


def _item_events(
    item: dict[str, JsonValue], place: dict[str, JsonValue], index: int
) -> Iterator[dict[str, JsonValue]]:
    grown, member = _ITEM_TEXTS.get(text_of(item, "type") or "", ("", ""))
    is_message = item.get("type") == "message"
    empty: dict[str, JsonValue] = {"content": []} if is_message else {member: ""} if member else {}
    started = item | empty | ({"status": "in_progress"} if "status" in item else {})
    yield {"type": "response.output_item.added", "output_index": index, "item": started}
    if is_message:
        for number, part in enumerate(objects_of(item, "content")):
            yield from _part_events(part, place | {"content_index": number})
    elif member:
        yield {"type": f"{grown}.delta", "delta": item.get(member, "")} | place
        yield {"type": f"{grown}.done", member: item.get(member, "")} | place
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _part_events(part: dict[str, JsonValue], place: dict[str, JsonValue]) -> Iterator[dict[str, Any]]:
    grown, member = _PART_TEXTS.get(text_of(part, "type") or "", ("", ""))
    yield {"type": "response.content_part.added", "part": part | ({member: ""} if member else {})} | place
    if member:
        logprobs: dict[str, JsonValue] = {"logprobs": []} if member == "text" else {}
        yield {"type": f"{grown}.delta", "delta": part.get(member, "")} | logprobs | place
        yield {"type": f"{grown}.done", member: part.get(member, "")} | logprobs | place
    yield {"type": "response.content_part.done", "part": part} | place


def _number(events: Iterable[dict[str, JsonValue]]) -> Iterator[dict[str, JsonValue]]:
    return (event | {"sequence_number": number} for number, event in enumerate(events))

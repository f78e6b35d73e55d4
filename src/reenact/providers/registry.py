"""All wire formats: recognizing the format of a call, and reading it."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, Protocol, cast
from urllib.parse import urlsplit

import msgspec

from reenact.canonical import JsonValue, digest_of_bytes, encode
from reenact.errors import FormatError
from reenact.providers import anthropic, gemini, ollama, openai_chat, openai_responses
from reenact.providers.meaning import (
    Conversation,
    ModelError,
    ModelReply,
    ModelRequest,
    ModelResponse,
    Part,
    Provider,
    Thinking,
    ToolCallPart,
)
from reenact.providers.neutral import read_neutral_request
from reenact.providers.reading import first_present, read_frames, text_of

_WINDOW_BITS: Final = {"gzip": 31, "x-gzip": 31, "deflate": 15}


def decode_body(headers: Mapping[str, str], body: bytes) -> bytes:
    """Decompress *body* as its headers say; returns it unchanged if that fails.

    Many clients pass decoded bytes with the original headers. A body that was cut yields what can be
    decompressed. Only gzip and deflate are supported.
    """
    for name, value in headers.items():
        if name.lower() == "content-encoding":
            for coding in reversed(value.lower().split(",")):
                body = _inflate(coding.strip(), body)
    return body


def _inflate(coding: str, body: bytes) -> bytes:
    if coding not in _WINDOW_BITS:
        return body
    try:
        return zlib.decompressobj(_WINDOW_BITS[coding]).decompress(body)
    except zlib.error:
        return body


_MAX_MESSAGE_CHARS: Final = 2000


def read_http_error(status: int, body: bytes) -> ModelError:
    """The error of a response with an error status, from a provider, proxy or web server."""
    frames = read_frames(body)
    for value in frames.objects:
        error = find_error(status, [value]) or _flat_error(status, value)
        if error:
            return error
    return ModelError(
        type="http_error", message=body.decode("utf-8", "replace")[:_MAX_MESSAGE_CHARS], status=status
    )


def find_error(status: int, objects: list[dict[str, JsonValue]]) -> ModelError | None:
    """The first error that a body or one of its stream events reports."""
    for value in objects:
        error = value.get("error")
        if error and isinstance(error, str):
            return ModelError(type="error", message=error, status=status)
        if error and isinstance(error, dict):
            return _read_error(status, error)
        if value.get("type") == "error":
            return _read_error(status, value)
    return None


def _read_error(status: int, error: dict[str, JsonValue]) -> ModelError:
    # Gemini's `code` repeats the HTTP status, its `status` is the name.
    names = (text_of(error, key) for key in ("type", "status", "code"))
    kind = next((name for name in names if name and name != "error"), "error")
    return ModelError(
        type=kind, message=_message_text(first_present(error, "message", "detail")), status=status
    )


def _flat_error(status: int, value: dict[str, JsonValue]) -> ModelError | None:
    """vLLM and web frameworks put the message at the top."""
    if first_present(value, "message", "detail", "Message") is None:
        return None
    return _read_error(status, {"message": value.get("Message"), **value})


def _message_text(value: JsonValue) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


_TRANSPORT_ONLY: Final = ("stream", "stream_options")
"""Members that only affect the transport; they are not part of the hash of a request."""


class WireFormat(Protocol):
    """One wire format; the modules of this package implement it."""

    @property
    def NAME(self) -> Provider: ...  # noqa: N802 - a constant of the module

    def recogniser(self, url_path: str) -> Callable[[dict[str, JsonValue]], object] | None:
        """A function that recognizes model calls to *url_path* by their body; ``None`` if there are none."""

    def model_in(self, url_path: str) -> str | None: ...

    def streams(self, url_path: str, body: dict[str, JsonValue]) -> bool: ...

    def read_conversation(self, body: dict[str, JsonValue]) -> Conversation: ...

    def read_body(self, body: dict[str, JsonValue]) -> ModelReply: ...

    def fold(self, objects: list[dict[str, JsonValue]]) -> dict[str, JsonValue]: ...


_WIRES: Final[tuple[WireFormat, ...]] = (anthropic, openai_chat, openai_responses, gemini, ollama)
_BY_NAME: Final[Mapping[Provider, WireFormat]] = {wire.NAME: wire for wire in _WIRES}


def recognise(method: str, url_path: str, body: JsonValue) -> Provider | None:
    """The wire format of a request with the decoded JSON *body*; ``None`` when it is no model call."""
    if isinstance(body, dict) and method.upper() == "POST":
        for name, asks_model in _recognisers(url_path):
            if asks_model(body):
                return name
    return None


@lru_cache(maxsize=256)
def _recognisers(url_path: str) -> list[tuple[Provider, Callable[[dict[str, JsonValue]], object]]]:
    """The possible formats of requests to this path, nearly always one or none."""
    found = ((wire.NAME, wire.recogniser(url_path)) for wire in _WIRES)
    return [(name, recogniser) for name, recogniser in found if recogniser is not None]


def request_fields(provider: Provider, url_path: str, body: dict[str, JsonValue]) -> dict[str, Any]:
    """For ``llm_request``, without reading the conversation; ``toolSchemaHash`` only when there are tools.

    Raises :class:`FormatError` for a body that canonical JSON cannot represent.
    """
    wire = _BY_NAME[provider]
    sent = body.get("model")
    model = sent if isinstance(sent, str) else wire.model_in(url_path)
    asked = {**body}
    for name in _TRANSPORT_ONLY:
        asked.pop(name, None)
    if model is not None:
        asked["model"] = model
    fields = {
        "provider": provider,
        "model": model,
        "inputHash": digest_of_bytes(encode(asked)),
        "stream": wire.streams(url_path, body),
    }
    tools = body.get("tools") or body.get("functions")
    if tools:
        fields["toolSchemaHash"] = digest_of_bytes(encode(tools))
    return fields


def read_conversation(request: object) -> Conversation | None:
    """Read a recorded request, without digests; ``None`` if its format is unknown."""
    if not isinstance(request, dict) or not isinstance(request.get("url"), str):
        return read_neutral_request(request)
    body: Any = request.get("body")
    provider = recognise("POST", urlsplit(request["url"]).path, body)
    return None if provider is None else _BY_NAME[provider].read_conversation(body)


def read_request(url_path: str, body: JsonValue) -> ModelRequest | None:
    """Read a request; ``None`` if it is no model call, or not representable in canonical JSON."""
    provider = recognise("POST", url_path, body)
    if provider is None or not isinstance(body, dict):
        return None
    try:
        fields = request_fields(provider, url_path, body)
    except FormatError:
        return None
    return ModelRequest(
        provider=provider,
        model=fields["model"],
        stream=fields["stream"],
        input_hash=fields["inputHash"],
        tool_schema_hash=fields.get("toolSchemaHash"),
        **msgspec.structs.asdict(_BY_NAME[provider].read_conversation(body)),
    )


def read_response(
    provider: Provider, status: int, headers: Mapping[str, str], body: bytes | Iterable[bytes]
) -> ModelResponse:
    """Read a response; *body* is its bytes, or its chunks, cut anywhere.

    Never raises for wrong data: an unreadable body is an incomplete response.
    """
    data = body if isinstance(body, bytes) else b"".join(body)
    if headers:
        data = decode_body(headers, data)
    if status >= 400:
        error = read_http_error(status, data)
        return ModelResponse(provider=provider, status=status, complete=False, error=error)
    wire, frames = _BY_NAME[provider], read_frames(data)
    message = wire.fold(frames.objects) if frames.streamed else frames.objects[0]
    reply = wire.read_body(message)
    error_inside = find_error(status, [*frames.objects, message])
    return ModelResponse(
        provider=provider,
        status=status,
        complete=reply.stop_reason is not None and error_inside is None,
        error=error_inside,
        body=message,
        parts=reply.parts,
        id=reply.id,
        model=reply.model,
        stop_reason=reply.stop_reason,
        usage=reply.usage,
    )


def read_reply(provider: Provider, body: bytes) -> ModelReply:
    """Read a response that is no error, without its body; takes half the time."""
    wire, frames = _BY_NAME[provider], read_frames(body)
    return wire.read_body(wire.fold(frames.objects) if frames.streamed else frames.objects[0])


def read_text_parts(provider: object, response: object, pieces: object) -> tuple[Part, ...] | None:
    """The parts of a recorded answer, complete or in *pieces*; ``None`` if neither is text."""
    if isinstance(pieces, list):
        text: object = "".join([piece for piece in pieces if isinstance(piece, str)])
    else:
        text = response.get("body") if isinstance(response, dict) else None
    if not isinstance(provider, str) or provider not in _BY_NAME or not isinstance(text, str) or not text:
        return None
    return read_reply(cast(Provider, provider), text.encode("utf-8", "surrogateescape")).parts


def response_fields(response: ModelResponse) -> dict[str, JsonValue]:
    """For ``llm_response``; ``responseId``, the lists of ids and ``error`` are left out when empty."""
    fields: dict[str, Any] = {
        "provider": response.provider,
        "model": response.model,
        "stopReason": response.stop_reason,
        "usage": msgspec.to_builtins(response.usage),
        "complete": response.complete,
    }
    reasoning_ids, call_ids = [], []
    for part in response.parts:
        if isinstance(part, ToolCallPart) and part.id:
            call_ids.append(part.id)
        # A digest of the signature or encrypted text identifies the reasoning like an id.
        if isinstance(part, Thinking) and part.id:
            reasoning_ids.append(part.id)
        elif mark := getattr(part, "signature", None) or getattr(part, "sealed", None):
            reasoning_ids.append(digest_of_bytes(mark.encode()))
    if response.id:
        fields["responseId"] = response.id
    if reasoning_ids:
        fields["reasoningIds"] = reasoning_ids
    if call_ids:
        fields["toolCallIds"] = call_ids
    if response.error:
        fields["error"] = response.error.to_json()
    return fields

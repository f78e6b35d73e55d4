"""All wire formats together: which one a call speaks, and what it says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

import msgspec

from reenact import canonical
from reenact.errors import FormatError
from reenact.providers import anthropic, gemini, ollama, openai_chat, openai_responses
from reenact.providers.encoding import decoded
from reenact.providers.failure import find_error, read_http_error
from reenact.providers.frames import read_frames
from reenact.providers.meaning import Conversation, ModelRequest, ModelResponse, Provider, Reply

_TRANSPORT_ONLY: Final = ("stream", "stream_options")
"""How the answer travels, not what is asked: the same question has the same hash either way."""


class Wire(Protocol):
    """One wire format; the modules of this room are its instances."""

    @property
    def NAME(self) -> Provider: ...  # noqa: N802 - a constant of the module

    def recognises(self, url_path: str, body: dict[str, Any]) -> bool: ...

    def model_in(self, url_path: str) -> str | None: ...

    def streams(self, url_path: str, body: dict[str, Any]) -> bool: ...

    def read_conversation(self, body: dict[str, Any]) -> Conversation: ...

    def read_body(self, body: dict[str, Any]) -> Reply: ...

    def fold(self, objects: list[dict[str, Any]]) -> dict[str, Any]: ...


_WIRES: Final[tuple[Wire, ...]] = (anthropic, openai_chat, openai_responses, gemini, ollama)
_BY_NAME: Final[Mapping[Provider, Wire]] = {wire.NAME: wire for wire in _WIRES}


def recognise(method: str, url_path: str, body: Any) -> Provider | None:
    """The wire format of a request with the decoded JSON *body*; ``None`` when it is no model call."""
    wire = _wire_of(url_path, body) if method.upper() == "POST" else None
    return wire.NAME if wire else None


def _wire_of(url_path: str, body: Any) -> Wire | None:
    if not isinstance(body, dict):
        return None
    return next((wire for wire in _WIRES if wire.recognises(url_path, body)), None)


def request_fields(provider: Provider, url_path: str, body: dict[str, Any]) -> dict[str, Any]:
    """For ``llm_request``, without reading the conversation; ``toolSchemaHash`` only when there are tools.

    Raises :class:`FormatError` for a body that holds what canonical JSON cannot.
    """
    wire = _BY_NAME[provider]
    sent = body.get("model")
    model = sent if isinstance(sent, str) else wire.model_in(url_path)
    fields = {
        "provider": provider,
        "model": model,
        "inputHash": canonical.digest(_input_of(body, model)),
        "stream": wire.streams(url_path, body),
    }
    tools = body.get("tools") or body.get("functions")
    if tools:
        fields["toolSchemaHash"] = canonical.digest(tools)
    return fields


def _input_of(body: dict[str, Any], model: str | None) -> dict[str, Any]:
    asked = {**body}
    for name in _TRANSPORT_ONLY:
        asked.pop(name, None)
    if model is not None:
        asked["model"] = model
    return asked


def read_request(url_path: str, body: Any) -> ModelRequest | None:
    """What a request asks; ``None`` when it is no model call, or holds what canonical JSON cannot."""
    wire = _wire_of(url_path, body)
    if wire is None:
        return None
    try:
        fields = request_fields(wire.NAME, url_path, body)
    except FormatError:
        return None
    return ModelRequest(
        provider=wire.NAME,
        model=fields["model"],
        stream=fields["stream"],
        input_hash=fields["inputHash"],
        tool_schema_hash=fields.get("toolSchemaHash"),
        **msgspec.structs.asdict(wire.read_conversation(body)),
    )


def read_response(
    provider: Provider, status: int, headers: Mapping[str, str], body: bytes | Iterable[bytes]
) -> ModelResponse:
    """What a response says; *body* is its bytes, or the chunks in which they came, cut anywhere.

    Never raises for what the other side sent: an unreadable body is an incomplete response.
    """
    data = decoded(headers, body if isinstance(body, bytes) else b"".join(body))
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
        **msgspec.structs.asdict(reply),
    )

"""Steps that several wire formats read alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from reenact.canonical import digest_of_bytes
from reenact.providers.frames import loads
from reenact.providers.meaning import Media, Message, Other, Text, ToolCall, Usage


def path_segments(url_path: str) -> list[str]:
    """The path without its query, split at slashes, empty segments left out."""
    return [segment for segment in url_path.partition("?")[0].split("/") if segment]


def last_segment(url_path: str) -> str:
    """The last segment, empty when there is none."""
    return "".join(path_segments(url_path)[-1:])


def tool_call(
    name: str | None, arguments: Any, *, call_id: str | None, signature: str | None = None
) -> ToolCall:
    """A call whose *arguments* are JSON text, as most wires send them, or a value already."""
    value = loads(arguments) if isinstance(arguments, str) else arguments
    is_text = isinstance(arguments, str) and value is None and arguments.strip() != "null"
    return ToolCall(
        id=call_id,
        name=name or "",
        arguments=value,
        arguments_text=arguments if is_text else None,
        signature=signature,
    )


def media(
    media_type: str | None = None,
    *,
    url: str | None = None,
    data: str | None = None,
    file_id: str | None = None,
) -> Media:
    """A reference that never holds the data itself, not even when it came as a ``data:`` URL."""
    if url is not None and url.startswith("data:"):
        media_type = media_type or url[5:].partition(",")[0].partition(";")[0] or None
        url, data = None, url
    digest = digest_of_bytes(data.encode("utf-8", "surrogatepass")) if data is not None else None
    return Media(media_type=media_type, url=url, file_id=file_id, digest=digest)


def other(value: dict[str, Any]) -> Other:
    kind = value.get("type")
    return Other(type=kind if isinstance(kind, str) else "unknown", value=value)


def split_system(messages: Iterable[Message]) -> tuple[str | None, tuple[Message, ...]]:
    """The text of the leading system messages, and the messages after them."""
    rest = list(messages)
    texts: list[str] = []
    while rest and rest[0].role in ("system", "developer"):
        texts += [part.text for part in rest.pop(0).parts if isinstance(part, Text)]
    return join_system(texts), tuple(rest)


def join_system(texts: Iterable[str | None]) -> str | None:
    return "\n\n".join(text for text in texts if text) or None


def read_params(
    body: dict[str, Any], *, without: frozenset[str], renamed: Mapping[str, str]
) -> dict[str, Any]:
    return {renamed.get(key, key): value for key, value in body.items() if key not in without}


def read_usage(sent: dict[str, Any], places: Mapping[str, str]) -> Usage | None:
    """Token counts by the *places* where this wire has them (``field`` or ``object.field``)."""
    if not sent:
        return None
    counts = {}
    for name, place in places.items():
        outer, _, inner = place.partition(".")
        count = sent.get(outer)
        if inner:
            count = count.get(inner) if type(count) is dict else None
        if type(count) is int:
            counts[name] = count
    return Usage(**counts, sent=sent)

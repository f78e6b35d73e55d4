"""Short texts for recorded values, durations and sizes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from typing import Any, Final

import msgspec

from reenact.canonical import JsonValue

_LIMIT: Final = 300


def brief(value: object, limit: int = _LIMIT) -> str:
    """*value* of an event in at most *limit* characters; references are named, not resolved."""
    text = ""
    for piece in _pieces(value, limit):
        text += piece
        if len(text) > limit:
            return text[: limit - 1] + "…"
    return text


def unquote(value: Any) -> object:
    """*value*, decoded if it was stored as JSON text to keep the order of its members.

    Unchanged if that text is not JSON, which no recorder writes.
    """
    is_text = isinstance(value, dict) and isinstance(value.get("$json"), str)
    try:
        return msgspec.json.decode(value["$json"]) if is_text else value
    except (msgspec.DecodeError, RecursionError):
        return value


def brief_arguments(arguments: object) -> str:
    """The arguments of a call, written like a call in Python."""
    if not isinstance(arguments, dict) or any(name.startswith("$") for name in arguments):
        return brief(arguments)
    return ", ".join(f"{name}={brief(value)}" for name, value in arguments.items())


def brief_failure(failure: JsonValue) -> str:
    """A recorded exception like the last line of a traceback."""
    if not isinstance(failure, dict) or "type" not in failure:
        return brief(failure)
    name = str(failure["type"]).rpartition(":")[2]
    message = str(failure.get("message", ""))
    return f"{name}: {message[:_LIMIT]}" if message else name


def _pieces(value: object, limit: int) -> Iterator[str]:
    if isinstance(value, dict):
        yield from _describe_tagged(value, limit) or _object(value, limit)
    elif isinstance(value, list):
        yield from _enclose("[", ((None, item) for item in value), "]", limit)
    elif isinstance(value, str):
        yield json.dumps(value[:limit], ensure_ascii=False)
    else:
        yield json.dumps(value)


def _object(value: dict[str, JsonValue], limit: int) -> Iterator[str]:
    members = ((json.dumps(key, ensure_ascii=False), item) for key, item in value.items())
    return _enclose("{", members, "}", limit)


def _enclose(
    opening: str, members: Iterator[tuple[str | None, JsonValue]], closing: str, limit: int
) -> Iterator[str]:
    yield opening
    for position, (key, item) in enumerate(members):
        yield ", " if position else ""
        yield f"{key}: " if key is not None else ""
        yield from _pieces(item, limit)
    yield closing


def _describe_tagged(value: dict[str, Any], limit: int) -> Iterator[str] | None:
    """The meaning of the ``$`` members of *value*; ``None`` without any."""
    if "$blob" in value:
        size_bytes = value.get("bytes", 0)
        return iter([f"‹{size(size_bytes)}›" if isinstance(size_bytes, int) else "‹?›"])
    if isinstance(value.get("$ref"), dict):
        return chain([f"‹as in {value['$ref'].get('call')}›"], _pieces(value.get("then", []), limit))
    if "$json" in value:
        decoded = unquote(value)
        return _pieces(decoded, limit) if decoded is not value else None
    if "$py" not in value:
        return None
    if "value" not in value or value["$py"] in ("bytes", "bytearray"):
        return iter([f"‹{value.get('type', value['$py'])}›"])
    return _pieces(value["value"], limit)


def size(size_bytes: int) -> str:
    """``16.4 kB``."""
    if size_bytes < 1000:
        return f"{size_bytes} B"
    return f"{size_bytes / 1000:.1f} kB" if size_bytes < 1_000_000 else f"{size_bytes / 1_000_000:.1f} MB"


def duration(duration_ms: float) -> str:
    """``12 ms``, ``1.23 s``, ``2 min 3 s``."""
    if duration_ms < 1000:
        return f"{duration_ms:.0f} ms"
    if duration_ms < 60_000:
        return f"{duration_ms / 1000:.2f} s"
    minutes, seconds = divmod(round(duration_ms / 1000), 60)
    return f"{minutes} min {seconds} s"


def drop_noise(number: float) -> int | float:
    """*number* without noise: 59 for 59.0, and 0.8 for the 32-bit float 0.800000011920929."""
    if number == int(number):
        return int(number)
    return float(f"{number:.7g}") if abs(number) < 1 else number


def plural(count: int, word: str) -> str:
    """``1 event``, ``2 events``."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"

"""Errors of model calls: HTTP error bodies, and errors inside a response that began well."""

from __future__ import annotations

from typing import Any, Final

from reenact.providers.frames import read_frames
from reenact.providers.meaning import ModelError
from reenact.providers.shape import either

_MAX_MESSAGE_CHARS: Final = 2000


def read_http_error(status: int, body: bytes) -> ModelError:
    """The error of a response with an error status, whoever wrote its body: provider, proxy or web server."""
    frames = read_frames(body)
    for value in frames.objects:
        error = find_error(status, [value]) or _flat_error(status, value)
        if error:
            return error
    return ModelError(
        type="http_error", message=body.decode("utf-8", "replace")[:_MAX_MESSAGE_CHARS], status=status
    )


def find_error(status: int, objects: list[dict[str, Any]]) -> ModelError | None:
    """The first error that a body or one of its stream events reports."""
    for value in objects:
        error = value.get("error")
        if error and isinstance(error, str):
            return ModelError(type="error", message=error, status=status)
        if error and isinstance(error, dict):
            return _read(status, error)
        if value.get("type") == "error":
            return _read(status, value)
    return None


def _read(status: int, error: dict[str, Any]) -> ModelError:
    # Gemini's `code` repeats the HTTP status, its `status` is the name.
    kind = next((error[key] for key in ("type", "status", "code") if _is_name(error.get(key))), "error")
    return ModelError(type=kind, message=_words(either(error, "message", "detail")), status=status)


def _flat_error(status: int, value: dict[str, Any]) -> ModelError | None:
    """vLLM and web frameworks put the message at the top."""
    if either(value, "message", "detail", "Message") is None:
        return None
    return _read(status, {"message": value.get("Message"), **value})


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value) and value != "error"


def _words(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)

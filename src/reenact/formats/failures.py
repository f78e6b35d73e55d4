"""Exceptions as recorded values: what a call raised, so that replay can raise the same.

Reading one imports nothing: the class is looked up among the loaded modules. Where it is not there, a
:class:`RecordedError` with the recorded name stands in for it. Arguments and attributes that are exceptions
themselves are recorded like them; what cannot be recorded, such as a connection pool, is left out.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from reenact.canonical import encode_clean
from reenact.errors import FormatError
from reenact.formats.values import from_json, loaded_class, to_text

_MESSAGE_LIMIT: Final = 100_000
_DEPTH: Final = 4
"""How many exceptions inside exceptions are kept."""
_OPAQUE: Final = b'"$py":"opaque"'
_FAILURE: Final = "$failure"
_SLOTS: Final = ("filename", "filename2")
"""What an ``OSError`` keeps neither among its arguments nor in its dictionary."""


class RecordedError(Exception):
    """Raised in replay for a recorded exception whose class is not at hand; *type_name* names it."""

    def __init__(self, type_name: str, message: str) -> None:
        self.type_name = type_name
        super().__init__(message)


def failure_text(error: BaseException) -> bytes:
    """The canonical JSON text of *error*: its class, its message, its arguments and attributes."""
    return encode_clean(_failure(error, _DEPTH))


def _failure(error: BaseException, depth: int) -> dict[str, Any]:
    arguments = [_part(value, depth) for value in error.args]
    kept = vars(error) | {name: value for name in _SLOTS if (value := getattr(error, name, None)) is not None}
    attributes = {
        name: part
        for name, value in kept.items()
        if not name.startswith("__") and not callable(value) and (part := _part(value, depth)) is not None
    }
    failure: dict[str, Any] = {
        "type": f"{type(error).__module__}:{type(error).__qualname__}",
        "message": _message(error),
    }
    if None not in arguments:
        failure["args"] = arguments
    if attributes:
        failure["attributes"] = attributes
    return failure


def _part(value: Any, depth: int) -> Any:
    """An argument or attribute as JSON; ``None`` where it cannot be recorded."""
    if isinstance(value, BaseException):
        return {_FAILURE: _failure(value, depth - 1)} if depth else None
    text = to_text(value)
    return None if _OPAQUE in text else msgspec.Raw(text)


def _message(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:
        text = "(its message could not be read)"
    return text[:_MESSAGE_LIMIT].encode("utf-8", "replace").decode()


def rebuild(failure: dict[str, Any]) -> BaseException:
    """The exception that a recorded failure stands for."""
    name, message = failure["type"], failure["message"]
    kind = loaded_class(name)
    if kind is None or not issubclass(kind, BaseException):
        return RecordedError(name, message)
    try:
        arguments = [_rebuilt_part(part) for part in failure.get("args", [message])]
        attributes = {key: _rebuilt_part(part) for key, part in failure.get("attributes", {}).items()}
        # Not through __init__, which may ask for more than `args` holds, or do something.
        error = kind.__new__(kind, *arguments)
    except (FormatError, TypeError):
        return RecordedError(name, message)
    error.args = tuple(arguments)
    for attribute, value in attributes.items():
        try:
            setattr(error, attribute, value)
        except AttributeError:
            continue  # a computed attribute; it follows from the others
    return error


def _rebuilt_part(part: Any) -> Any:
    if isinstance(part, dict) and _FAILURE in part:
        return rebuild(part[_FAILURE])
    return from_json(part)

"""Exceptions as recorded values: what a tool raised, so that replay can raise the same.

Reading one imports nothing: the class is looked up among the loaded modules. Where it is not there, or
cannot be built from its arguments, a :class:`RecordedError` with the recorded name stands in for it.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from reenact.canonical import encode_clean
from reenact.errors import FormatError
from reenact.formats.values import from_json, loaded_class, to_text

_MESSAGE_LIMIT: Final = 100_000


class RecordedError(Exception):
    """Raised in replay for a recorded exception whose class is not at hand; *type_name* names it."""

    def __init__(self, type_name: str, message: str) -> None:
        self.type_name = type_name
        super().__init__(message)


def failure_text(error: BaseException) -> bytes:
    """The canonical JSON text of *error*: its class, its message, its arguments and plain attributes."""
    attributes = {
        name: value for name, value in vars(error).items() if not name.startswith("_") and not callable(value)
    }
    failure: dict[str, Any] = {
        "type": f"{type(error).__module__}:{type(error).__qualname__}",
        "message": message_of(error),
        "args": msgspec.Raw(to_text(list(error.args))),
    }
    if attributes:
        failure["attributes"] = msgspec.Raw(to_text(attributes))
    return encode_clean(failure)


def message_of(error: BaseException) -> str:
    """What *error* says, whatever it takes to ask: never fails, and is Unicode text of bounded length."""
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
        arguments = from_json(failure["args"])
        attributes = from_json(failure.get("attributes", {}))
    except FormatError:
        return RecordedError(name, message)
    # Not through __init__, which may ask for more than `args` holds, or do something.
    error = kind.__new__(kind, *arguments)
    error.args = tuple(arguments)
    for attribute, value in attributes.items():
        try:
            setattr(error, attribute, value)
        except AttributeError:
            continue  # a computed attribute; it follows from the others
    return error

"""Exceptions as recorded outcomes: what a call raised, so that replay can raise the same.

Reading one imports nothing: the class is looked up among the loaded modules. Where it is not there, a
:class:`RecordedError` with the recorded name stands in for it. What cannot be recorded, such as a
connection that is an attribute of the exception, is left out.
"""

from __future__ import annotations

from typing import Any

from reenact.canonical import encode, encode_clean
from reenact.errors import FormatError
from reenact.formats.exceptions import RecordedError, message_of
from reenact.formats.objects import type_name
from reenact.formats.tags import tag_error, untag_error, without_order

__all__ = ["RecordedError", "failure_text", "message_of", "rebuild"]


def failure_text(error: BaseException) -> bytes:
    """The canonical JSON text of *error*: its class, message, arguments, attributes and cause."""
    try:
        return encode(without_order(tag_error(error)))
    except (FormatError, RecursionError):  # too deep, or its own cause
        return encode_clean({"type": type_name(type(error)), "message": message_of(error), "args": []})


def rebuild(failure: dict[str, Any]) -> BaseException:
    """The exception that a recorded failure stands for."""
    try:
        return untag_error(failure)
    except (FormatError, LookupError, TypeError, ValueError):
        return RecordedError(str(failure.get("type")), str(failure.get("message")))

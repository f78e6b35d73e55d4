"""Exceptions taken apart and put together again, without their constructors.

What a built-in exception keeps beside ``args``, such as the file name of an ``OSError``, is found by the
descriptors of its built-in base; the rest is in its ``__dict__``.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import GetSetDescriptorType, MemberDescriptorType
from typing import Any, Final

import msgspec

from reenact.formats.objects import loaded_class, type_name

_MESSAGE_LIMIT: Final = 100_000
_NOTES: Final = "__notes__"


class RecordedError(Exception):
    """Raised in replay for a recorded exception whose class is not at hand; *type_name* names it."""

    def __init__(self, type_name: str, message: str) -> None:
        self.type_name = type_name
        super().__init__(message)


class Parts(msgspec.Struct, frozen=True):
    """What makes an exception what it is."""

    type_name: str
    message: str
    arguments: tuple[Any, ...]
    attributes: dict[str, Any]
    cause: BaseException | None


def parts(error: BaseException) -> Parts:
    """*error* taken apart."""
    return Parts(
        type_name=type_name(type(error)),
        message=message_of(error),
        arguments=error.args,
        attributes=dict(_attributes(error)),
        cause=error.__cause__,
    )


def rebuilt(found: Parts) -> BaseException:
    """The exception of these parts; a :class:`RecordedError` where its class is not at hand."""
    kind = loaded_class(found.type_name)
    if kind is None or not issubclass(kind, BaseException):
        return RecordedError(found.type_name, found.message)
    try:
        # The built-in way: the class's own may ask for more than `args` holds, or do something.
        error: BaseException = _builtin_bases(kind)[0].__new__(kind, *found.arguments)
    except (TypeError, ValueError):
        return RecordedError(found.type_name, found.message)
    if not isinstance(error, BaseExceptionGroup):
        error.args = found.arguments
    for name, value in found.attributes.items():
        try:
            setattr(error, name, value)
        except (AttributeError, TypeError):
            continue  # a computed attribute; it follows from the others
    error.__cause__ = found.cause
    return error


def message_of(error: BaseException) -> str:
    """What *error* says, whatever it takes to ask: never fails, and is Unicode text of bounded length."""
    try:
        text = str(error)
    except Exception:
        text = "(its message could not be read)"
    return text[:_MESSAGE_LIMIT].encode("utf-8", "replace").decode()


def _attributes(error: BaseException) -> Iterator[tuple[str, Any]]:
    for base in _builtin_bases(type(error)):
        for name, descriptor in vars(base).items():
            if isinstance(descriptor, MemberDescriptorType | GetSetDescriptorType):
                value = getattr(error, name, None)
                if not _is_common(name) and value is not None:
                    yield name, value
    for name, value in vars(error).items():
        if (not name.startswith("__") or name == _NOTES) and not callable(value):
            yield name, value


def _builtin_bases(kind: type) -> list[type]:
    return [base for base in kind.__mro__ if base.__module__ == "builtins" and base is not object]


def _is_common(name: str) -> bool:
    """Whether every exception has it, as a part of its own."""
    return name in vars(BaseException)

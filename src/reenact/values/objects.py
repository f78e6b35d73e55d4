"""Splitting objects and exceptions into named fields, and rebuilding them without their constructors.

Supported are dataclasses, named tuples, msgspec structs, pydantic models and attrs classes, and enum members
by name. State of a built-in exception outside ``args``, such as the file name of an ``OSError``, is read by
the descriptors of its built-in base; the rest is in its ``__dict__``. Classes are looked up in the loaded
modules; nothing is imported.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from enum import Enum, Flag
from types import GetSetDescriptorType, MemberDescriptorType
from typing import Any, Final, TypeVar

import msgspec

from reenact.errors import FormatError

E = TypeVar("E", bound=Enum)

_MODEL_STATE: Final = {"fields_set": "__pydantic_fields_set__", "private": "__pydantic_private__"}
"""The state of a pydantic model besides its fields, by recorded name."""


def type_name(kind: type) -> str:
    """``module:Qualified.name``."""
    return f"{kind.__module__}:{kind.__qualname__}"


def loaded_class(name: str) -> type | None:
    """The class with this :func:`type_name`, if its module is loaded."""
    module_name, _, path = name.partition(":")
    found: object = sys.modules.get(module_name)
    for part in path.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, type) else None


def fields_of(value: object) -> dict[str, object] | None:
    """The fields of a supported data object; ``None`` for any other object."""
    kind = type(value)
    if _is_model(kind):
        return _model_fields(value)
    names = _field_names(value)
    return None if names is None else {name: getattr(value, name) for name in names if hasattr(value, name)}


def rebuild_object(name: str, fields: dict[str, object]) -> object:
    """Rebuild an object of class *name* from its fields."""
    kind = loaded_class(name)
    if kind is None:
        raise FormatError(f"the recorded value is a {name}, whose module is not loaded; import it first")
    if _is_model(kind):
        return _rebuilt_model(kind, fields)
    if issubclass(kind, msgspec.Struct):
        return kind(**fields)
    if issubclass(kind, tuple) and hasattr(kind, "_make"):
        return kind._make(fields[name] for name in kind._fields)  # type: ignore[attr-defined]  # a named tuple
    if dataclasses.is_dataclass(kind) or hasattr(kind, "__attrs_attrs__"):
        found = object.__new__(kind)
        for key, child in fields.items():
            object.__setattr__(found, key, child)
        return found
    raise FormatError(f"the recorded value is a {name}, which is not a data class")


def member_of(value: Enum) -> tuple[object, bool]:
    """The name of an enum member; a combination of flags has a number instead."""
    if value.name in type(value).__members__:
        return value.name, True
    return value.value, False


def named_member(name: str, member: str) -> Enum:
    """The member of the enum class *name* with this name."""
    kind = _enum(name, Enum)
    if member not in kind.__members__:
        raise FormatError(f"the recorded value is {name}.{member}, which the loaded class does not have")
    return kind[member]


def flag_of(name: str, number: int) -> Flag:
    """The combination *number* of the flags of class *name*."""
    return _enum(name, Flag)(number)


def _enum(name: str, base: type[E]) -> type[E]:
    kind = loaded_class(name)
    if kind is None or not issubclass(kind, base):
        raise FormatError(f"the recorded value is a member of {name}, which is not loaded; import it first")
    return kind


def _field_names(value: Any) -> tuple[str, ...] | None:
    kind = type(value)
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(value))
    if isinstance(value, msgspec.Struct):
        return value.__struct_fields__
    if hasattr(kind, "__attrs_attrs__"):
        return tuple(attribute.name for attribute in kind.__attrs_attrs__)
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return tuple(kind._fields)
    return None


def _is_model(kind: type) -> bool:
    return hasattr(kind, "model_fields") and hasattr(kind, "__pydantic_fields_set__")


def _model_fields(value: Any) -> dict[str, object]:
    members = {**vars(value), **(value.__pydantic_extra__ or {})}
    state = {name: getattr(value, attribute) for name, attribute in _MODEL_STATE.items()}
    return {"members": members, **state}


def _rebuilt_model(kind: Any, fields: dict[str, Any]) -> object:
    """Rebuild a model like pickle does: the constructor would run its validators."""
    members = fields["members"]
    extra = {name: value for name, value in members.items() if name not in kind.model_fields}
    model = kind.__new__(kind)
    model.__setstate__(
        {
            "__dict__": {name: value for name, value in members.items() if name not in extra},
            "__pydantic_extra__": extra if kind.model_config.get("extra") == "allow" else None,
            **{attribute: fields[name] for name, attribute in _MODEL_STATE.items()},
        }
    )
    return model


_MESSAGE_LIMIT: Final = 100_000
_NOTES: Final = "__notes__"


class RecordedError(Exception):
    """Raised in a replay for a recorded exception whose class is not loaded; *type_name* names it."""

    def __init__(self, type_name: str, message: str) -> None:
        self.type_name = type_name
        super().__init__(message)


class ExceptionParts(msgspec.Struct, frozen=True):
    """The recorded parts of an exception."""

    type_name: str
    message: str
    arguments: tuple[Any, ...]
    attributes: dict[str, Any]
    cause: BaseException | None


def exception_parts(error: BaseException) -> ExceptionParts:
    """Split *error* into its parts."""
    return ExceptionParts(
        type_name=type_name(type(error)),
        message=message_of(error),
        arguments=error.args,
        attributes=dict(_attributes(error)),
        cause=error.__cause__,
    )


def rebuild_exception(found: ExceptionParts) -> BaseException:
    """Rebuild an exception from its parts; a :class:`RecordedError` if its class is not loaded."""
    kind = loaded_class(found.type_name)
    if kind is None or not issubclass(kind, BaseException):
        return RecordedError(found.type_name, found.message)
    try:
        # The built-in `__new__`: the class's own may need more than `args`, or have side effects.
        error: BaseException = _builtin_bases(kind)[0].__new__(kind, *found.arguments)
    except (TypeError, ValueError):
        return RecordedError(found.type_name, found.message)
    if not isinstance(error, BaseExceptionGroup):
        error.args = found.arguments
    for name, value in found.attributes.items():
        try:
            setattr(error, name, value)
        except (AttributeError, TypeError):
            continue  # a computed attribute, which follows from the others
    error.__cause__ = found.cause
    return error


def message_of(error: BaseException) -> str:
    """The message of *error* as Unicode text of limited length; never fails."""
    try:
        text = str(error)
    except Exception:
        text = "(its message could not be read)"
    return text[:_MESSAGE_LIMIT].encode("utf-8", "replace").decode()


def _attributes(error: BaseException) -> Iterator[tuple[str, object]]:
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
    """Whether every exception has this attribute; it is recorded separately."""
    return name in vars(BaseException)

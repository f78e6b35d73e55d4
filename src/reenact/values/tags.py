"""Tagging values that JSON does not have (``{"$py": "tuple", "value": [...]}``), and removing the tags.

Reading a tagged value imports no module and runs no constructor of unknown code: classes are looked up in the
loaded modules, and only objects of supported kinds are rebuilt. A value that cannot be recorded becomes
``opaque``, with only its type.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Any, Final, NoReturn
from uuid import UUID

from reenact.canonical import JsonValue, encode_clean, is_unicode
from reenact.errors import FormatError
from reenact.values import objects

TAG: Final = "$py"
_UNORDERED: Final = ("dict", "set", "frozenset")
_BASES: Final[tuple[Callable[[Any], object], ...]] = (str, int, float, dict, list, tuple)
_OPAQUE: Final = b'"$py":"opaque"'


def tag(value: object) -> object:
    """Convert *value* to JSON; a dict with keys other than strings keeps its order."""
    kind = type(value)
    if value is None or kind is bool:
        return value
    writer = _WRITERS.get(kind)
    try:
        return writer(value) if writer is not None else _tag_object(value)
    except RecursionError:
        raise
    except Exception:  # reading an object may run its own code
        return placeholder_for(value)


def untag(value: object) -> Any:
    """Rebuild the value of tagged JSON."""
    try:
        return _untag(value)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise FormatError(f"a recorded value is malformed: {error}") from error


def placeholder_for(value: object) -> dict[str, object]:
    """The placeholder for a *value* that cannot be recorded."""
    return _tag_as("opaque", type=objects.type_name(type(value)))


def without_order(tagged: object) -> Any:
    """*tagged* with the items of unordered collections sorted by their texts."""
    if isinstance(tagged, list):
        return [without_order(child) for child in tagged]
    if not isinstance(tagged, dict):
        return tagged
    members = {key: without_order(child) for key, child in tagged.items()}
    if members.get(TAG) in _UNORDERED:
        members["value"].sort(key=encode_clean)
    return members


def tag_error(error: BaseException) -> dict[str, JsonValue]:
    """The members of a recorded exception; arguments and attributes that cannot be recorded are left out."""
    parts = objects.exception_parts(error)
    members: dict[str, Any] = {"type": parts.type_name, "message": parts.message}
    arguments = [tag(value) for value in parts.arguments]
    if _is_whole(arguments):
        members["args"] = arguments
    attributes = {name: tag(value) for name, value in parts.attributes.items()}
    whole = {name: tagged for name, tagged in attributes.items() if _is_whole(tagged)}
    if whole:
        members["attributes"] = whole
    if parts.cause is not None:
        members["cause"] = tag_error(parts.cause)
    return members


def untag_error(members: dict[str, Any]) -> BaseException:
    """Rebuild the exception of the recorded *members*."""
    cause = members.get("cause")
    return objects.rebuild_exception(
        objects.ExceptionParts(
            type_name=members["type"],
            message=members["message"],
            arguments=tuple(_untag(members.get("args", [members["message"]]))),
            attributes=_untag(members.get("attributes", {})),
            cause=untag_error(cause) if cause is not None else None,
        )
    )


def _is_whole(tagged: object) -> bool:
    return _OPAQUE not in encode_clean(tagged)


def _tag_as(kind: str, **members: object) -> dict[str, object]:
    return {TAG: kind, **members}


def _tag_str(value: str) -> object:
    return (
        value if is_unicode(value) else _tag_as("str", value=value.encode("utf-16-le", "surrogatepass").hex())
    )


def _tag_int(value: int) -> object:
    return value if -(2**63) <= value < 2**64 else _tag_as("int", value=hex(value))


def _tag_float(value: float) -> object:
    return value if math.isfinite(value) else _tag_as("float", value=repr(value))


def _tag_dict(value: dict[Any, object]) -> object:
    if all(type(key) is str and is_unicode(key) for key in value):
        return {_escape(key): tag(child) for key, child in value.items()}
    return _tag_as("dict", value=[_tag_entry(key, child) for key, child in value.items()])


def _tag_entry(key: Any, child: object) -> object:
    """Keep strings as member names, because redaction uses names."""
    is_name = type(key) is str and is_unicode(key)
    return {_escape(key): tag(child)} if is_name else [tag(key), tag(child)]


def _escape(name: str) -> str:
    """Escape a name that looks like one of our tags."""
    return f"${name}" if name.startswith("$") else name


def _unescape(name: str) -> str:
    """Remove the second ``$`` that :func:`_escape` added."""
    return name[1:] if name.startswith("$$") else name


def _tag_list(value: list[object]) -> object:
    return [tag(child) for child in value]


def _tag_items(value: Iterable[object]) -> object:
    return _tag_as(type(value).__name__, value=[tag(child) for child in value])


def _tag_set(value: Iterable[object]) -> object:
    # Sets have no order, so their items are sorted by text.
    return _tag_as(type(value).__name__, value=sorted((tag(child) for child in value), key=encode_clean))


def _tag_bytes(value: bytes | bytearray) -> object:
    return _tag_as(type(value).__name__, value=base64.b64encode(value).decode())


def _tag_text(value: object) -> object:
    return _tag_as(type(value).__name__, value=str(value))


def _tag_iso(value: date | time) -> object:
    fold = {"fold": 1} if getattr(value, "fold", 0) else {}
    return _tag_as(type(value).__name__, value=value.isoformat(), **fold)


def _tag_timedelta(value: timedelta) -> object:
    return _tag_as("timedelta", value=[value.days, value.seconds, value.microseconds])


def _tag_complex(value: complex) -> object:
    return _tag_as("complex", value=[tag(value.real), tag(value.imag)])


_WRITERS: Final[dict[type, Callable[[Any], object]]] = {
    str: _tag_str,
    int: _tag_int,
    float: _tag_float,
    dict: _tag_dict,
    list: _tag_list,
    tuple: _tag_items,
    set: _tag_set,
    frozenset: _tag_set,
    bytes: _tag_bytes,
    bytearray: _tag_bytes,
    complex: _tag_complex,
    datetime: _tag_iso,
    date: _tag_iso,
    time: _tag_iso,
    timedelta: _tag_timedelta,
    Decimal: _tag_text,
    UUID: _tag_text,
    PurePosixPath: _tag_text,
    PureWindowsPath: _tag_text,
}


def _tag_object(value: object) -> object:
    """Enum members by name, data objects by their fields, exceptions by their parts, the rest opaque."""
    if isinstance(value, PurePath):
        return _tag_as("path", value=str(value))
    if isinstance(value, Enum):
        member, named = objects.member_of(value)
        return _tag_as("enum" if named else "flag", type=objects.type_name(type(value)), value=member)
    if isinstance(value, BaseException):
        return _tag_as("error", **tag_error(value))
    fields = objects.fields_of(value)
    if fields is not None:
        state = {name: tag(child) for name, child in fields.items()}
        return _tag_as("object", type=objects.type_name(type(value)), value=state)
    for base in _BASES:
        if isinstance(value, base):  # type: ignore[arg-type]  # they are classes, used as constructors too
            return tag(base(value))
    return placeholder_for(value)


def _untag(value: object) -> Any:
    if isinstance(value, list):
        return [_untag(child) for child in value]
    if not isinstance(value, dict):
        return value
    kind = value.get(TAG)
    if kind is None:
        return {_unescape(key): _untag(child) for key, child in value.items()}
    reader = _READERS.get(kind)
    if reader is None:
        raise FormatError(f"a recorded value of kind {kind!r} cannot be rebuilt by this version")
    return reader(value)


def _untag_dict(value: dict[str, Any]) -> dict[object, object]:
    found: dict[object, object] = {}
    for entry in value["value"]:
        if isinstance(entry, dict):
            found |= _untag(entry)
        else:
            key, child = entry
            found[_untag(key)] = _untag(child)
    return found


def _untag_opaque(value: dict[str, object]) -> NoReturn:
    raise FormatError(
        f"the recorded value is a {value['type']}, which cannot be recorded; "
        "let the tool return plain data, or let it pass through"
    )


_READERS: Final[dict[str, Callable[[dict[str, Any]], object]]] = {
    "str": lambda value: bytes.fromhex(value["value"]).decode("utf-16-le", "surrogatepass"),
    "int": lambda value: int(value["value"], 16),
    "float": lambda value: float(value["value"]),
    "dict": _untag_dict,
    "tuple": lambda value: tuple(_untag(child) for child in value["value"]),
    "set": lambda value: {_untag(child) for child in value["value"]},
    "frozenset": lambda value: frozenset(_untag(child) for child in value["value"]),
    "bytes": lambda value: base64.b64decode(value["value"], validate=True),
    "bytearray": lambda value: bytearray(base64.b64decode(value["value"], validate=True)),
    "complex": lambda value: complex(*(_untag(part) for part in value["value"])),
    "datetime": lambda value: datetime.fromisoformat(value["value"]).replace(fold=value.get("fold", 0)),
    "date": lambda value: date.fromisoformat(value["value"]),
    "time": lambda value: time.fromisoformat(value["value"]).replace(fold=value.get("fold", 0)),
    "timedelta": lambda value: timedelta(*value["value"]),
    "Decimal": lambda value: Decimal(value["value"]),
    "UUID": lambda value: UUID(value["value"]),
    "path": lambda value: Path(value["value"]),
    "PurePosixPath": lambda value: PurePosixPath(value["value"]),
    "PureWindowsPath": lambda value: PureWindowsPath(value["value"]),
    "enum": lambda value: objects.named_member(value["type"], value["value"]),
    "flag": lambda value: objects.flag_of(value["type"], value["value"]),
    "object": lambda value: objects.rebuild_object(value["type"], _untag(value["value"])),
    "error": untag_error,
    "opaque": _untag_opaque,
}


def strip_tags(value: object) -> Any:
    """*value* without type tags: a tuple is a list, a date its text, an unrecordable object null."""
    if isinstance(value, list):
        return [strip_tags(child) for child in value]
    if not isinstance(value, dict):
        return value
    kind = value.get(TAG)
    if kind is None:
        return {_unescape(key): strip_tags(child) for key, child in value.items()}
    if kind == "dict":
        return {name: child for entry in value["value"] for name, child in _entry(entry).items()}
    if kind == "error":
        return {"type": value["type"], "message": value["message"]}
    return strip_tags(value.get("value"))


def _entry(entry: Any) -> dict[str, JsonValue]:
    if isinstance(entry, dict):
        found: dict[str, JsonValue] = strip_tags(entry)
        return found
    key, child = entry
    return {str(strip_tags(key)): strip_tags(child)}

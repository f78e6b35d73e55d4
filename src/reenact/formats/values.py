"""Python values as JSON and back: what a tool was given and what it returned.

Plain JSON values stand for themselves and cost one encode and one decode. Anything else is tagged:
``{"$py": "tuple", "value": [...]}``. Reading a tagged value never imports a module and never runs a
constructor of unknown code: classes are looked up among the modules already loaded, and only data
classes of the known kinds are rebuilt. What cannot be recorded is kept as ``opaque``, with its type only.
"""

from __future__ import annotations

import base64
import dataclasses
import math
import sys
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path, PurePath
from typing import Any, Final
from uuid import UUID

import msgspec

from reenact import canonical
from reenact.errors import FormatError

TAG: Final = "$py"
JSON_TEXT: Final = "$json"
"""The only member of an object that stands for the JSON value with this very text."""
_RESERVED: Final = b'"$'
_encode: Final = canonical.encode_clean
_encode_ordered: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode
_BASES: Final[tuple[Callable[[Any], Any], ...]] = (str, int, float, dict, list, tuple)


def to_text(value: Any) -> bytes:
    """*value* as canonical JSON text; never fails, whatever the value."""
    try:
        text = _encode(value)
        # Equal after a round trip: nothing was turned into something else on the way.
        if _RESERVED not in text and _decode(text) == value:
            return text
    except (TypeError, ValueError, OverflowError, RecursionError):
        pass
    return _encode(_tagged_whole(value))


def to_ordered_text(value: Any) -> bytes:
    """*value* as JSON text with the members of its objects in their own order.

    A program may depend on that order, for one by putting an answer into its next prompt.
    """
    try:
        text = _encode_ordered(value)
        if _RESERVED not in text and _decode(text) == value:
            return text
    except (TypeError, ValueError, OverflowError, RecursionError):
        pass
    return _encode_ordered(_tagged_whole(value))


def is_plain(text: bytes) -> bool:
    """Whether all values in a JSON text stand for themselves: none is tagged, quoted or kept elsewhere."""
    return _RESERVED not in text


def embedded(ordered_text: bytes) -> bytes:
    """An ordered text as it stands in canonical JSON: itself if canonical, else as a quoted text."""
    if _encode(_decode(ordered_text)) == ordered_text:
        return ordered_text
    return _encode({JSON_TEXT: ordered_text.decode()})


def _tagged_whole(value: Any) -> Any:
    try:
        tagged = _tag(value)
        canonical.encode(tagged)
    except (FormatError, RecursionError):  # too deep, or it contains itself
        return _opaque(value)
    return tagged


def from_text(text: bytes) -> Any:
    """The value that :func:`to_text` was given; :class:`FormatError` where it cannot be rebuilt."""
    value = _decode(text)
    return _untag(value) if _RESERVED in text else value


def from_json(value: Any) -> Any:
    """The value that a decoded tagged JSON value stands for."""
    return _untag(value)


def _tagged(kind: str, **fields: Any) -> dict[str, Any]:
    return {TAG: kind, **fields}


def _tag(value: Any) -> Any:
    kind = type(value)
    if value is None or kind is bool:
        return value
    writer = _WRITERS.get(kind)
    if writer is not None:
        return writer(value)
    return _tag_object(value)


def _tag_str(value: str) -> Any:
    try:
        value.encode()
    except UnicodeEncodeError:
        return _tagged("str", value=value.encode("utf-16-le", "surrogatepass").hex())
    return value


def _tag_int(value: int) -> Any:
    return value if -(2**63) <= value < 2**64 else _tagged("int", value=hex(value))


def _tag_float(value: float) -> Any:
    return value if math.isfinite(value) else _tagged("float", value=repr(value))


def _tag_dict(value: dict[Any, Any]) -> Any:
    plain = all(type(key) is str and not key.startswith("$") and key.isprintable() for key in value)
    if plain:
        return {key: _tag(child) for key, child in value.items()}
    pairs = [[_tag(key), _tag(child)] for key, child in value.items()]
    return _tagged("dict", value=pairs)


def _tag_list(value: list[Any]) -> Any:
    return [_tag(child) for child in value]


def _tag_items(value: Any) -> Any:
    return _tagged(type(value).__name__, value=[_tag(child) for child in value])


def _tag_set(value: Any) -> Any:
    # Sets have no order; the texts of their items do.
    items = sorted((_tag(child) for child in value), key=_encode)
    return _tagged(type(value).__name__, value=items)


def _tag_bytes(value: Any) -> Any:
    return _tagged(type(value).__name__, value=base64.b64encode(value).decode())


def _tag_text(value: Any) -> Any:
    return _tagged(type(value).__name__, value=str(value))


def _tag_iso(value: Any) -> Any:
    return _tagged(type(value).__name__, value=value.isoformat())


def _tag_timedelta(value: timedelta) -> Any:
    return _tagged("timedelta", value=[value.days, value.seconds, value.microseconds])


def _tag_complex(value: complex) -> Any:
    return _tagged("complex", value=[_tag(value.real), _tag(value.imag)])


_WRITERS: Final[dict[type, Callable[[Any], Any]]] = {
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
}


def _tag_object(value: Any) -> Any:
    """Data objects by their fields, enum members by name, the rest opaque."""
    if isinstance(value, PurePath):
        return _tagged("path", value=str(value))
    if isinstance(value, Enum):
        return _tagged("enum", type=_type_name(type(value)), value=value.name)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        fields = {name: _tag(getattr(value, name)) for name in value._fields}
        return _tagged("object", type=_type_name(type(value)), value=fields)
    names = _field_names(value)
    if names is not None:
        fields = {name: _tag(getattr(value, name, None)) for name in names}
        return _tagged("object", type=_type_name(type(value)), value=fields)
    for base in _BASES:
        if isinstance(value, base):  # type: ignore[arg-type]  # they are classes, used as constructors too
            return _tag(base(value))
    return _opaque(value)


def _opaque(value: Any) -> Any:
    return _tagged("opaque", type=_type_name(type(value)))


def _field_names(value: Any) -> tuple[str, ...] | None:
    """The fields of a dataclass, msgspec struct, pydantic model or attrs object; ``None`` for others."""
    kind = type(value)
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(value))
    if isinstance(value, msgspec.Struct):
        return value.__struct_fields__
    if hasattr(kind, "model_fields") and hasattr(kind, "model_construct"):
        return (*kind.model_fields, *(getattr(value, "model_extra", None) or ()))
    if hasattr(kind, "__attrs_attrs__"):
        return tuple(attribute.name for attribute in kind.__attrs_attrs__)
    return None


def _type_name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def loaded_class(name: str) -> type | None:
    """The class ``module:Qualified.name`` if its module is loaded already; nothing is imported."""
    module_name, _, path = name.partition(":")
    found: Any = sys.modules.get(module_name)
    for part in path.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, type) else None


def _untag(value: Any) -> Any:
    if isinstance(value, list):
        return [_untag(child) for child in value]
    if not isinstance(value, dict):
        return value
    kind = value.get(TAG)
    if kind is None:
        return {key: _untag(child) for key, child in value.items()}
    reader = _READERS.get(kind)
    if reader is None:
        raise FormatError(f"a recorded value of kind {kind!r} cannot be rebuilt by this version")
    return reader(value)


def _untag_object(value: dict[str, Any]) -> Any:
    name = value["type"]
    kind = loaded_class(name)
    if kind is None:
        raise FormatError(f"the recorded value is a {name}, whose module is not loaded; import it first")
    fields = {key: _untag(child) for key, child in value["value"].items()}
    if hasattr(kind, "model_construct"):
        return kind.model_construct(**fields)
    if issubclass(kind, msgspec.Struct):
        return kind(**fields)
    if issubclass(kind, tuple) and hasattr(kind, "_make"):
        return kind._make(fields[name] for name in kind._fields)  # type: ignore[attr-defined]  # a named tuple
    if dataclasses.is_dataclass(kind) or hasattr(kind, "__attrs_attrs__"):
        rebuilt = object.__new__(kind)
        for key, child in fields.items():
            object.__setattr__(rebuilt, key, child)
        return rebuilt
    raise FormatError(f"the recorded value is a {name}, which is no data class")


def _untag_enum(value: dict[str, Any]) -> Any:
    kind = loaded_class(value["type"])
    if kind is None or not issubclass(kind, Enum) or value["value"] not in kind.__members__:
        raise FormatError(f"the recorded value is a member of {value['type']}, which is not loaded")
    return kind[value["value"]]


def _untag_opaque(value: dict[str, Any]) -> Any:
    raise FormatError(
        f"the recorded value is a {value['type']}, which cannot be recorded; "
        "let the tool return plain data, or let it pass through"
    )


_READERS: Final[dict[str, Callable[[dict[str, Any]], Any]]] = {
    "str": lambda value: bytes.fromhex(value["value"]).decode("utf-16-le", "surrogatepass"),
    "int": lambda value: int(value["value"], 16),
    "float": lambda value: float(value["value"]),
    "dict": lambda value: {_untag(key): _untag(child) for key, child in value["value"]},
    "tuple": lambda value: tuple(_untag(child) for child in value["value"]),
    "set": lambda value: {_untag(child) for child in value["value"]},
    "frozenset": lambda value: frozenset(_untag(child) for child in value["value"]),
    "bytes": lambda value: base64.b64decode(value["value"]),
    "bytearray": lambda value: bytearray(base64.b64decode(value["value"])),
    "complex": lambda value: complex(*(_untag(part) for part in value["value"])),
    "datetime": lambda value: datetime.fromisoformat(value["value"]),
    "date": lambda value: date.fromisoformat(value["value"]),
    "time": lambda value: time.fromisoformat(value["value"]),
    "timedelta": lambda value: timedelta(*value["value"]),
    "Decimal": lambda value: Decimal(value["value"]),
    "UUID": lambda value: UUID(value["value"]),
    "path": lambda value: Path(value["value"]),
    "enum": _untag_enum,
    "object": _untag_object,
    "opaque": _untag_opaque,
}

"""The base of all wire formats: typed records that keep unknown fields, and their codec.

A record is first read by one typed decode. Only if it has unknown or wrong fields, it is walked, to keep the
unknown ones and to name the place of the wrong ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, cached_property
from typing import Annotated, Any, Final, Generic, TypeVar

import msgspec
import msgspec.inspect as inspect

from reenact import canonical
from reenact.canonical import JsonValue, read_json
from reenact.errors import FormatError, UnknownVersion

_EXTRA: Final = "\u2061extra"  # begins with an invisible character, so that no file has this key
_EXTRA_RAW: Final = _EXTRA[0].encode()
_EXTRA_BYTE: Final = _EXTRA_RAW[1]
"""Searching for one byte is ten times as fast as for three, and most texts do not have it."""
_encode: Final = canonical.encode_clean
_encode_lines: Final = canonical.encode_clean_lines

Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]

Absent = msgspec.UnsetType
ABSENT: Final = msgspec.UNSET
"""The value of an optional field that is not in the file; unlike ``None``, which is a written null."""


class Record(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, gc=False
):
    """A value of a wire format; *extra* holds the fields this version does not know.

    A field is either required or defaults to ``ABSENT``; any other default would be dropped on writing.
    JSON has no cycles, so records are not tracked by the garbage collector, which saves time with millions.
    """

    extra: dict[str, Any] = msgspec.field(default_factory=dict, name=_EXTRA)


R = TypeVar("R")
V = TypeVar("V")
Upgrade = Callable[[dict[str, Any]], dict[str, Any]]


def or_none(value: V | Absent) -> V | None:
    """*value*, or ``None`` if it is absent."""
    return None if isinstance(value, Absent) else value


class Codec(Generic[R]):
    """Reads and writes the records of one format; *kind* is a record type or a tagged union of some."""

    def __init__(self, kind: Any, *, unknown: Callable[[dict[str, JsonValue]], R] | None = None) -> None:
        self.kind = kind
        self._unknown = unknown
        self._decode = msgspec.json.Decoder(kind).decode
        self._decode_lines = msgspec.json.Decoder(kind).decode_lines

    def from_bytes(self, text: bytes) -> R:
        """One record from its JSON text; :class:`FormatError` with the JSON path."""
        record = self.read_canonical(text)
        # The slow path finds the reason, or the unknown field.
        return self.from_json(read_json(text)) if record is None else record

    def read_canonical(self, text: bytes) -> R | None:
        """One record, if *text* is its canonical text; else ``None``."""
        try:
            record: R = self._decode(text)
            # Equal texts prove that nothing was repeated, dropped or written in another notation.
            is_exact = _encode(record) == text
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return None
        names_extra = _EXTRA_BYTE in text and _EXTRA_RAW in text
        return record if is_exact and not names_extra else None

    def from_block(self, text: bytes) -> list[R] | None:
        """The records of many lines, if every line is the canonical text of one; else ``None``."""
        try:
            records: list[R] = self._decode_lines(text)
            is_exact = _encode_lines(records) == text
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return None
        names_extra = _EXTRA_BYTE in text and _EXTRA_RAW in text
        return records if is_exact and not names_extra else None

    def from_json(self, value: Any) -> R:
        """One record from a decoded JSON value, which is not changed."""
        if self._unknown is not None and isinstance(value, dict):
            tag_field, tags = self._tags
            tag = value.get(tag_field)
            if isinstance(tag, str) and tag not in tags:
                return self._unknown(value)
        try:
            known: R = msgspec.convert(value, self.kind)
            if _EXTRA_RAW not in _encode(value):
                return known
        except (msgspec.ValidationError, TypeError, ValueError, OverflowError, RecursionError):
            pass  # the slow path below finds the reason, or the unknown field
        try:
            record: R = msgspec.convert(_fold_extras(_info(self.kind), value), self.kind)
        except msgspec.ValidationError as error:
            raise format_error(error) from None
        return record

    @cached_property
    def _tags(self) -> tuple[str | None, frozenset[object]]:
        """The member that distinguishes the records of a union, and its possible values."""
        structs = _structs(_info(self.kind))
        return structs[0].tag_field, frozenset(struct.tag for struct in structs)

    def to_json(self, record: R) -> dict[str, Any]:
        """The record as plain JSON values, including unknown fields."""
        value: dict[str, JsonValue] = _plain(record)
        return value

    def to_bytes(self, record: R) -> bytes:
        """The record's canonical text, without a line end."""
        return canonical.encode(self.to_json(record))


def upgrade(
    value: dict[str, Any], *, field: str, current: int, steps: Mapping[int, Upgrade], what: str
) -> dict[str, JsonValue]:
    """*value* upgraded step by step to the *current* major version; a newer version raises."""
    version = value.get(field)
    if not isinstance(version, int) or isinstance(version, bool):
        reason = f"{field} is missing" if field not in value else f"{field} must be an integer"
        raise FormatError(reason, json_path=f"$.{field}")
    if version > current:
        raise UnknownVersion(
            f"{what} version {version} is newer than {current}, the newest this reenact reads; "
            "install a newer reenact",
            json_path=f"$.{field}",
        )
    while version < current:
        if version not in steps:
            raise UnknownVersion(f"{what} version {version} was never published", json_path=f"$.{field}")
        value = steps[version](value)
        version = value[field]
    return value


@cache
def _info(kind: object) -> inspect.Type:
    return inspect.type_info(kind)


def _structs(info: inspect.Type) -> tuple[inspect.StructType, ...]:
    if isinstance(info, inspect.StructType):
        return (info,)
    if isinstance(info, inspect.UnionType):
        return tuple(member for member in info.types if isinstance(member, inspect.StructType))
    return ()


def _pick(info: inspect.Type, value: dict[str, JsonValue]) -> inspect.StructType | None:
    """The record type of *value*, by its tag."""
    structs = _structs(info)
    for struct in structs:
        if struct.tag_field is None or value.get(struct.tag_field) == struct.tag:
            return struct
    return None


def _fold_extras(info: inspect.Type, value: JsonValue) -> JsonValue:
    """*value* with the unknown fields of every record in it moved into its ``extra``."""
    if isinstance(value, dict):
        struct = _pick(info, value)
        if struct is not None:
            return _fold_struct(struct, value)
        for mapping in _members(info, inspect.DictType):
            return {key: _fold_extras(mapping.value_type, child) for key, child in value.items()}
    if isinstance(value, list):
        for array in _members(info, inspect.ListType):
            return [_fold_extras(array.item_type, child) for child in value]
    return value


_T = TypeVar("_T", bound=inspect.Type)


def _members(info: inspect.Type, kind: type[_T]) -> list[_T]:
    options = info.types if isinstance(info, inspect.UnionType) else (info,)
    return [option for option in options if isinstance(option, kind)]


def _fold_struct(struct: inspect.StructType, value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    known = {field.encode_name: field.type for field in struct.fields if field.encode_name != _EXTRA}
    folded: dict[str, JsonValue] = {}
    extra: dict[str, JsonValue] = {}
    for key, child in value.items():
        if key in known:
            folded[key] = _fold_extras(known[key], child)
        elif key == struct.tag_field:
            folded[key] = child
        else:
            extra[key] = child
    if extra:
        folded[_EXTRA] = extra
    return folded


def _plain(value: object) -> Any:
    """A record as JSON values, including unknown fields; JSON values inside it are not changed."""
    if isinstance(value, Record):
        config = value.__struct_config__
        plain: dict[str, JsonValue] = {} if config.tag_field is None else {config.tag_field: config.tag}
        for field, name in zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True):
            child = getattr(value, field)
            if name != _EXTRA and child is not ABSENT:
                plain[name] = _plain(child)
        return plain | value.extra
    if isinstance(value, list | tuple):
        return [_plain(child) for child in value]
    if isinstance(value, dict):
        return {key: _plain(child) for key, child in value.items()}
    return value


def unknown_members(value: object, path: str = "$") -> Iterator[str]:
    """The JSON paths of the unknown fields of a record and of the records in it."""
    if isinstance(value, Record):
        yield from (canonical.child_path(path, name) for name in value.extra)
        for field, name in zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True):
            if name != _EXTRA:
                yield from unknown_members(getattr(value, field), canonical.child_path(path, name))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from unknown_members(child, canonical.child_path(path, index))


_PLACED = re.compile(r"(?P<reason>.*?)(?: - at `(?P<path>\$.*)`)?\Z", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(?P<name>.*)`")


def format_error(error: msgspec.ValidationError) -> FormatError:
    """The error with the JSON path as an attribute, which msgspec has at the end of its message."""
    placed = _PLACED.match(str(error))
    assert placed is not None
    reason, path = placed["reason"], (placed["path"] or "$").replace(f".{_EXTRA}", "")
    if missing := _MISSING.fullmatch(reason):
        return FormatError("required, but missing", json_path=canonical.child_path(path, missing["name"]))
    return FormatError(reason[:1].lower() + reason[1:], json_path=path)

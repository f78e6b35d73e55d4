"""Records at a glance: their known fields, checked, many lines at once; unknown fields are passed over.

For readers that look at a log and do not write it again. Keeping unknown fields, as
:class:`~reenact.formats.record.Codec` does, takes ten times as long.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any, Final, get_args

import msgspec
import orjson

from reenact.formats.record import ABSENT, Record

_decode_lines: Final = msgspec.json.Decoder().decode_lines
_encode_lines: Final = msgspec.json.Encoder(order="sorted").encode_lines


class Glance:
    """Reads the records of a tagged union *kind*, as values with the same names and fields."""

    def __init__(self, kind: Any) -> None:
        twins = [_twin(member) for member in get_args(kind)]
        self._records = list[reduce(or_, twins)]  # type: ignore[misc]  # a type that is made here

    def from_block(self, text: bytes) -> list[Any] | None:
        """The records of whole lines; ``None`` unless each line is the canonical text of a good one."""
        try:
            values = _decode_lines(text)
            # Equal text proves that nothing was repeated, dropped or spelled otherwise.
            if _encode_lines(values) != text:
                return None
            orjson.dumps(values)  # refuses integers beyond 64 bits and nesting beyond the limit
            records: list[Any] = msgspec.convert(values, self._records)
            return records
        except (msgspec.MsgspecError, UnicodeDecodeError, orjson.JSONEncodeError, RecursionError):
            return None


def _twin(record: type[Record]) -> Any:
    """A type with the fields and the name of *record* that takes unknown fields and forgets them."""
    config = record.__struct_config__
    return msgspec.defstruct(
        record.__name__,
        [_field(field) for field in msgspec.structs.fields(record) if field.name != "extra"],
        tag_field=config.tag_field,
        tag=config.tag,
        kw_only=True,
        frozen=True,
    )


def _field(field: msgspec.structs.FieldInfo) -> tuple[str, Any] | tuple[str, Any, Any]:
    kind = field.type
    if isinstance(kind, type) and issubclass(kind, Record):
        kind = _twin(kind)
    return (field.name, kind) if field.required else (field.name, kind, ABSENT)

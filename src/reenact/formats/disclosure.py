"""A disclosure: that an event is one of a sealed run, and what some of its fields say.

Also the proof that a published line carries: the same list of fields, with the values in the line itself.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from reenact.errors import FormatError
from reenact.formats.json_text import read_json
from reenact.formats.record import ABSENT, Absent, Codec, Count, Record, upgrade

VERSION: Final = 1


class Disclosure(Record, frozen=True):
    """What leads from one event to the root that was signed."""

    disclosure: Literal[1]
    """The version of this format."""
    tree: Literal["events", "log"]
    position: Count
    """1-based: the event's ``seq``, or the line of the sealed log."""
    path: list[str]
    """Hashes from the leaf upwards."""
    leaf: str | Absent = ABSENT
    """Where no field is disclosed."""
    fields: list[str | tuple[str, str, Any]] | Absent = ABSENT
    """All fields by name: a commitment, or name, salt and value of what is disclosed."""


class LineProof(Record, frozen=True):
    """The member ``seal`` of a published line."""

    at: Count
    """1-based: which line of the sealed log this is."""
    fields: list[str | tuple[str, str]] | Absent = ABSENT
    """All fields by name: a commitment, or name and salt of what the line shows."""
    leaf: str | Absent = ABSENT
    """Of a line that is withheld."""


disclosure_codec: Final[Codec[Disclosure]] = Codec(Disclosure)
line_proof_codec: Final[Codec[LineProof]] = Codec(LineProof)


def read_disclosure(text: bytes, *, file: str) -> Disclosure:
    """A disclosure that says either its leaf or its fields."""
    try:
        value = read_json(text)
        if not isinstance(value, dict):
            raise FormatError("expected an object", json_path="$")
        current = upgrade(value, field="disclosure", current=VERSION, steps={}, what="disclosure")
        disclosure = disclosure_codec.from_json(current)
        if (disclosure.leaf is ABSENT) == (disclosure.fields is ABSENT):
            raise FormatError("either leaf or fields is required", json_path="$")
    except FormatError as error:
        raise error.at(file=file) from None
    return disclosure


def write_disclosure(disclosure: Disclosure) -> bytes:
    """The text of a disclosure, canonical, with a line end."""
    return disclosure_codec.to_bytes(disclosure) + b"\n"

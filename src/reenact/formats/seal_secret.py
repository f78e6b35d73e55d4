"""The secret of a seal: the seed of its salts, and the log that was sealed in all its published forms.

It stays with whoever sealed. The forms are kept because a later version may word them otherwise, and then
nothing that was sealed could be published any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO, Final, Literal

from reenact.errors import FormatError
from reenact.formats.json_text import read_json
from reenact.formats.lines import Line, read_lines
from reenact.formats.record import ABSENT, Absent, Codec, Record, upgrade
from reenact.formats.seal import hex_bytes

VERSION: Final = 1
SEED_BYTES: Final = 32


class SecretHead(Record, frozen=True):
    """The first line."""

    version: Literal[1]
    seed: str
    """Lowercase hex, 256 bits; whoever knows it can open every commitment."""

    @property
    def seed_bytes(self) -> bytes:
        return hex_bytes(self.seed, SEED_BYTES, "$.seed")


class SealedLine(Record, frozen=True):
    """One line of the log that was sealed, as it was and as each policy publishes it."""

    original: dict[str, Any]
    open: dict[str, Any] | Absent = ABSENT
    """Absent, as those below, where the event may not be published."""
    private: dict[str, Any] | Absent = ABSENT
    paranoid: dict[str, Any] | Absent = ABSENT


_head_codec: Final[Codec[SecretHead]] = Codec(SecretHead)
_line_codec: Final[Codec[SealedLine]] = Codec(SealedLine)


def head_to_bytes(seed: bytes) -> bytes:
    """The first line of a secret, with its end."""
    return _head_codec.to_bytes(SecretHead(version=VERSION, seed=seed.hex())) + b"\n"


def line_to_bytes(line: SealedLine) -> bytes:
    """One of the others."""
    return _line_codec.to_bytes(line) + b"\n"


def read_seed(stream: BinaryIO, *, file: str) -> bytes:
    """The seed alone; the stream stands anywhere behind it afterwards."""
    for line in read_lines(stream, file=file):
        try:
            value = read_json(line.text)
            if not isinstance(value, dict):
                raise FormatError("expected an object", json_path="$")
            current = upgrade(value, field="version", current=VERSION, steps={}, what="seal secret")
            return _head_codec.from_json(current).seed_bytes
        except FormatError as error:
            raise error.at(file=file, line=line.number) from None
    raise FormatError("is empty; the secret of a seal begins with its seed", file=file)


def read_sealed_lines(stream: BinaryIO, *, file: str) -> Iterator[SealedLine]:
    """The sealed log, line by line, in constant memory."""
    lines = read_lines(stream, file=file)
    next(lines, None)
    return (_read(line, file) for line in lines)


def _read(line: Line, file: str) -> SealedLine:
    try:
        return _line_codec.from_bytes(line.text)
    except FormatError as error:
        raise error.at(file=file, line=line.number) from None

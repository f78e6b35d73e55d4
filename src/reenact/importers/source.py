"""A foreign file or folder to import: read in pieces, with its digest computed on the way.

A file that is compressed with gzip or zstd is unpacked while it is read, and never on disk.

JSON is decoded as exactly as Python can represent it. Lines that are not JSON are reported as losses.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from hashlib import sha256
from io import BufferedReader, BytesIO, RawIOBase
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias

import msgspec

from reenact.canonical import JsonValue
from reenact.errors import FormatError
from reenact.formats.capture import ImportedSource
from reenact.formats.lines import MAX_LINE_BYTES, TextBlock, read_text_blocks
from reenact.importers.json_stream import (
    BrokenJson,
    JsonMember,
    JsonPath,
    close_cut_text,
    has_controls,
    read_members,
    to_text,
)
from reenact.progress import Progress

HEAD_BYTES: Final = 64 * 1024
LONG_HEAD_BYTES: Final = 16 * 1024 * 1024
"""How much of a file is read to recognise its format; the second if the first was not enough, because the
first message may be long or hold an image."""
_BLOCK_BYTES: Final = 64 * 1024
_BOM: Final = b"\xef\xbb\xbf"
_GZIP: Final = b"\x1f\x8b"
_CODINGS: Final = {_GZIP: "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
"""Compressions of whole files, by the first bytes."""
_PACKED_BYTES: Final = 512
"""How much is unpacked at a time: at most 16 MB come of it. So much before a damage is lost."""
_WINDOW_BYTES: Final = 128 * 1024 * 1024
"""What the usual program for zstd takes, too."""
_UNPACKED_TIMES: Final = 16
"""A compressed file is expected to be so many times as large when it is unpacked."""
MAX_WHOLE_BYTES: Final = 256 * 1024 * 1024
"""Larger files are not read as a whole: decoded, they take several times as much memory."""
LARGE_BYTES: Final = 32 * 1024 * 1024
"""A larger document is read item by item, in the order of the file, in constant memory."""

JsonObject: TypeAlias = dict[str, JsonValue]

_decode: Final = msgspec.json.Decoder().decode
_decode_lines: Final = msgspec.json.Decoder(dict[str, Any]).decode_lines


def read_value(text: bytes, on_odd: Callable[[], None] = lambda: None) -> JsonValue:
    """A JSON value as exactly as Python can represent it; raises ``ValueError`` if *text* is not JSON.

    *on_odd* is called if the text has something that JSON does not allow.
    """
    value: JsonValue
    try:
        value = _decode(text)
        return value
    except (msgspec.DecodeError, ValueError, RecursionError):
        on_odd()
    try:
        # Lone surrogates and NaN are not JSON, but some tools write them.
        value = json.loads(to_text(text))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return value


def _decode_block(block: TextBlock) -> list[JsonObject] | None:
    """Decode the objects of whole lines in one call; ``None`` if a line needs the slower reader."""
    try:
        values = _decode_lines(block.text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return values if len(values) == block.line_count else None


HALF_CHARACTER: Final = "half a character in a body became the character U+FFFD"


def encode_text(text: str) -> tuple[bytes, bool]:
    """The bytes of a text, and whether it is whole; half a character becomes the character U+FFFD."""
    try:
        return text.encode("utf-8", "surrogateescape"), True
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode(), False


Losses = list[tuple[str, int | None]]
"""The parts of a source that could not be read, with their lines, collected before a run is open."""


class Unfit(ValueError):
    """A source does not match its format; the message says how, in plain words."""


UNFIT: Final = (LookupError, TypeError, ValueError, AttributeError, RecursionError, OverflowError)
"""The exceptions that reading raises if a source does not match its format."""

_KINDS: Final = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "an object",
}


def type_mismatch(place: str, expected: str, found: object) -> Unfit:
    """The error for a value at *place* that is not of the *expected* kind."""
    kind = "nothing" if found is None else _KINDS.get(type(found), "something else")
    return Unfit(f"{place}: expected {expected}, found {kind}")


def expect_object(place: str, value: object) -> JsonObject:
    """Return *value* if it is an object, or raise :class:`Unfit`."""
    if not isinstance(value, dict):
        raise type_mismatch(place, "an object", value)
    return value


def expect_list(place: str, value: object) -> list[JsonValue]:
    """Return *value* if it is a list; an empty list for ``None``."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise type_mismatch(place, "a list", value)
    return value


def reason_of(error: Exception) -> str:
    """Why something could not be read, without Python's own terms."""
    return str(error) if isinstance(error, Unfit) else "its content does not match its format"


_ODD_BYTES: Final = "some bytes are not UTF-8, or control characters; each became the character U+FFFD"
_CONTROL: Final = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")


def _first_invalid_line(text: bytes) -> int | None:
    """The first line with invalid UTF-8 or control characters."""
    places = []
    try:
        text.decode()
    except UnicodeDecodeError as error:
        places.append(error.start)
    if has_controls(text) and (control := _CONTROL.search(text)):
        places.append(control.start())
    return text.count(b"\n", 0, min(places)) + 1 if places else None


class ForeignSource:
    """A file or folder to import; it computes its digest while it is read."""

    def __init__(
        self, path: Path, name: str, progress: Progress = lambda _: None, *, head_bytes: int = HEAD_BYTES
    ) -> None:
        self.path = path
        self.head_bytes = head_bytes
        self.name = name
        """Its name in manifests and messages: relative to the given path, never absolute."""
        stat = path.stat()
        self.started_ms = int(stat.st_mtime * 1000)
        self.is_folder = path.is_dir()
        self.damage: str | None = None
        """Why a compressed file could not be unpacked to its end."""
        self._progress = progress
        self.is_read = False
        """Whether all of it was read, so that its digest is known."""
        self.is_json = False
        """Whether everything read so far is strict JSON."""
        self.position = 0
        """The number of bytes read so far."""
        self._item_lines: dict[JsonPath, list[int]] = {}
        self._files: dict[str, tuple[int, str]] = {}
        """Size and digest of each file that was read, by its path below the folder; "" for a single file."""

    @cached_property
    def head(self) -> bytes:
        """The first *head_bytes* of the file; empty for a folder."""
        if self.is_folder:
            return b""
        with self.path.open("rb") as stream:
            return self._unpack(stream, stream).read(self.head_bytes).removeprefix(_BOM)

    @property
    def is_large(self) -> bool:
        """Whether the file is so large that it is read item by item."""
        size_bytes = self.path.stat().st_size
        with self.path.open("rb") as stream:
            return size_bytes * (_UNPACKED_TIMES if _coding_of(stream) else 1) > LARGE_BYTES

    @cached_property
    def first_line(self) -> JsonValue:
        """The JSON value of the first line that is not empty; ``None`` if it is not JSON."""
        line = self.head.lstrip().partition(b"\n")[0]
        if not line.startswith((b"{", b"[")) or (len(line) >= self.head_bytes and not line.endswith(b"}")):
            return None
        try:
            return read_value(line)
        except ValueError:
            return None

    def first_lines(self, most: int = 20) -> list[JsonObject]:
        """The objects in the first lines that are complete."""
        found = []
        for line in self.head.split(b"\n")[:most]:
            try:
                value = read_value(line) if line.strip().startswith(b"{") else None
            except ValueError:
                continue
            if isinstance(value, dict):
                found.append(value)
        return found

    def has(self, *names: str) -> bool:
        """Whether the first bytes contain all these names of JSON members."""
        return all(b'"%b"' % name.encode() in self.head for name in names)

    def _place(self, below: str) -> Path:
        """The file itself, or a file in the folder, or a file next to it."""
        return (self.path if self.is_folder else self.path.parent) / below if below else self.path

    def find_beside(self, pattern: str) -> list[str]:
        """The files that match *pattern* in the folder, or next to the file; use these names to read them."""
        folder = self._place(".")
        return sorted(str(path.relative_to(folder)) for path in folder.glob(pattern) if path.is_file())

    def read(self, below: str = "") -> bytes:
        """The content of the file, or of a file in the folder; files above a size limit are refused."""
        pieces: list[bytes] = []
        size_bytes = self._place(below).stat().st_size
        if size_bytes <= MAX_WHOLE_BYTES:
            at_once, size_bytes = max(size_bytes + 1, 1 << 20), 0
            with self.stream(below) as stream:
                while size_bytes <= MAX_WHOLE_BYTES and (piece := stream.read(at_once)):
                    pieces.append(piece)
                    size_bytes += len(piece)
        if size_bytes > MAX_WHOLE_BYTES:
            raise FormatError(
                f"has {size_bytes} bytes; such a file is read as a whole, up to {MAX_WHOLE_BYTES}; split it",
                file=below or self.name,
            )
        return b"".join(pieces)

    def _blocks(self, below: str) -> Iterator[TextBlock]:
        with self.stream(below) as stream:
            yield from read_text_blocks(stream, block_bytes=_BLOCK_BYTES)

    @contextmanager
    def stream(self, below: str = "") -> Iterator[BinaryIO]:
        """Open the file to read it piece by piece, in constant memory."""
        with self._place(below).open("rb") as stream:
            counting = _Hashing(stream, self._note_read)
            try:
                yield self._unpack(stream, counting)
            finally:
                self._note_digest(below, counting)

    def compute_digest(self, below: str = "") -> None:
        """Read a file for its digest alone, so that runs can be completed while it is read again."""
        with self._place(below).open("rb") as stream:
            self._note_digest(below, _Hashing(stream, lambda _: None))

    def _note_digest(self, below: str, counting: _Hashing) -> None:
        counting.drain()
        self._files[below] = counting.size, counting.hash.hexdigest()
        self.is_read = self.is_read or not below

    def _unpack(self, stream: BinaryIO, counting: BinaryIO | _Hashing) -> BinaryIO:
        """The content of *counting*, which reads *stream*."""
        if coding := _coding_of(stream):
            counting = BufferedReader(_Unpacked(counting, coding, partial(self._note_unpacked, coding)))
        return counting  # type: ignore[return-value]  # has the methods that are needed

    def objects(
        self, note_loss: Callable[[str, int | None], None], below: str = ""
    ) -> Iterator[tuple[int, JsonObject]]:
        """The objects of a file with one JSON object per line, with their line numbers, in constant memory.

        Other lines go to *note_loss*. It tolerates a byte order mark at the start, CR before LF, and lines of
        white space only.
        """
        self.is_json = True
        for block in self._blocks(below):
            values = _decode_block(block)
            if values is not None:
                yield from enumerate(values, block.number)
                continue
            for number, text in enumerate(block.text.split(b"\n"), block.number):
                value = self._object(number, text.removeprefix(_BOM) if number == 1 else text, note_loss)
                if value is not None:
                    yield number, value

    def _object(
        self, number: int, text: bytes, note_loss: Callable[[str, int | None], None]
    ) -> JsonObject | None:
        if not text or text.isspace():
            return None
        if len(text) > MAX_LINE_BYTES:
            note_loss(f"the line is longer than {MAX_LINE_BYTES} bytes", number)
            return None
        try:
            value = read_value(text, self._note_odd)
        except json.JSONDecodeError:
            note_loss("the line is not JSON; the file may have been cut off here", number)
            return None
        except ValueError as error:
            note_loss(f"the line is not JSON: {error}", number)
            return None
        if not self.is_json and _first_invalid_line(text) is not None:
            note_loss(_ODD_BYTES, number)
        if not isinstance(value, dict):
            note_loss("the line is not a JSON object", number)
            return None
        return value

    def _note_odd(self) -> None:
        self.is_json = False

    def _note_read(self, size_bytes: int) -> None:
        self.position += size_bytes
        self._progress(size_bytes)

    def _note_unpacked(self, coding: bytes, size_bytes: int | None) -> None:
        if size_bytes is None:
            name = _CODINGS[coding]
            self.damage = f"its {name} data is damaged or was cut off; what comes after that is missing"
        else:
            self.position += size_bytes

    def files_read(self) -> list[Path]:
        """The other files that belong to this source."""
        return [self._place(below) for below in self._files if below]

    def document(self, lost: Losses) -> JsonValue:
        """The one JSON value of the file; raises :class:`FormatError` with the line if it is not JSON.

        Of a document that was cut off, the complete items of its lists are read; the rest goes to *lost*.
        """
        text = self.read().removeprefix(_BOM)

        def note_odd() -> None:
            self.is_json = False
            if (odd := _first_invalid_line(text)) is not None:
                lost.append((_ODD_BYTES, odd))

        self.is_json = True
        try:
            return read_value(text, note_odd)
        except json.JSONDecodeError as error:
            found = None
            if error.msg == "Extra data":
                found = error.doc[: error.pos]
            elif error.pos:
                found = close_cut_text(error.doc[: error.pos])
            if found is None:
                raise FormatError(f"no JSON: {error.msg}", file=self.name, line=error.lineno) from None
            lost.append((f"the rest is not JSON: {error.msg}", error.lineno))
        except ValueError as error:
            raise FormatError(f"no JSON: {error}", file=self.name) from None
        try:
            value: JsonValue = json.loads(found)
        except (ValueError, RecursionError):
            reason, line = lost[-1]
            raise FormatError(reason, file=self.name, line=line) from None
        return value

    def members(self, lists: Collection[JsonPath], lost: Losses) -> Iterator[JsonMember]:
        """The members of a JSON document in constant memory, its *lists* item by item.

        If the text stops being JSON, the position goes to *lost*.
        """
        with self.stream() as stream:
            try:
                yield from read_members(stream, lists, lambda line: lost.append((_ODD_BYTES, line)))
            except BrokenJson as error:
                lost.append((f"the rest is not JSON: {error}", error.line))

    def line_of(self, place: JsonPath, number: int) -> int | None:
        """The line on which item *number*, counted from 1, of the list at *place* begins.

        This reads the document again, so it is called only if something was lost.
        """
        if place not in self._item_lines:
            found = self._item_lines[place] = []
            with self.path.open("rb") as stream, suppress(BrokenJson):
                members = read_members(self._unpack(stream, stream), [place])
                found.extend(member.line for member in members if member.is_item)
        lines = self._item_lines[place]
        return lines[number - 1] if 0 < number <= len(lines) else None

    @cached_property
    def seed(self) -> bytes:
        """The seed for the ids of the captures, so that importing the same source gives the same ids.

        It covers the name and all content, so it cannot be computed from the digest in a manifest: the key
        that hides secrets is derived from it too, and only someone who has the source can derive that key.
        """
        hashed = sha256(f"{self.name}\0{self.started_ms}\0".encode("utf-8", "surrogatepass"))
        files = sorted(self.path.rglob("*")) if self.is_folder else [self.path]
        for file in files:
            if file.is_file():
                hashed.update(f"{file.relative_to(self.path)}\0".encode("utf-8", "surrogatepass"))
                with file.open("rb") as stream:
                    while chunk := stream.read(1 << 20):
                        hashed.update(chunk)
        return hashed.digest()

    def identity(self) -> ImportedSource:
        """Name, size and digest of the files that were read."""
        if not self.is_folder and "" not in self._files:
            self.read()
        size = sum(size for size, _ in self._files.values())
        if not self.is_folder and len(self._files) == 1:
            return ImportedSource(name=self.name, bytes=size, digest=f"sha256:{self._files[''][1]}")
        rows = "".join(f"{digest}  {name}\n" for name, (_, digest) in sorted(self._files.items()))
        return ImportedSource(
            name=self.name, bytes=size, digest=f"sha256:{sha256(rows.encode()).hexdigest()}"
        )


def _coding_of(stream: BinaryIO) -> bytes | None:
    """The mark of the compression at the start of the file, if there is one."""
    start = stream.read(max(map(len, _CODINGS)))
    stream.seek(0)
    return next((mark for mark in _CODINGS if start.startswith(mark)), None)


def _new_decoder(coding: bytes) -> Any:
    if coding == _GZIP:
        return zlib.decompressobj(31)
    from zstandard import ZstdDecompressor

    return ZstdDecompressor(max_window_size=_WINDOW_BYTES).decompressobj()


class _Unpacked(RawIOBase):
    """The content of a compressed file, in one or several parts; damage ends it.

    *note* gets the size of each piece, and ``None`` for damage.
    """

    def __init__(
        self, packed: BinaryIO | _Hashing, coding: bytes, note: Callable[[int | None], None]
    ) -> None:
        self._packed: BinaryIO | _Hashing = packed
        self._coding = coding
        self._note = note
        self._decoder = _new_decoder(coding)
        self._rest = b""
        self._text = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._text:
            self._text = memoryview(self._unpack_more())
        size_bytes = min(len(self._text), len(buffer))
        buffer[:size_bytes] = self._text[:size_bytes]
        self._text = self._text[size_bytes:]
        return size_bytes

    def _unpack_more(self) -> bytes:
        """The next piece of the content; empty at its end, and at damage."""
        while packed := self._rest or self._packed.read(_PACKED_BYTES):
            if self._decoder.eof:
                self._decoder = _new_decoder(self._coding)
            try:
                text: bytes = self._decoder.decompress(packed)
            except Exception:  # zlib and zstandard have errors of their own
                self._packed, self._rest = BytesIO(), b""
                break
            self._rest = self._decoder.unused_data
            if text:
                self._note(len(text))
                return text
        if not self._decoder.eof:
            self._note(None)
        return b""


class _Hashing:
    """A file that computes its digest while it is read."""

    def __init__(self, stream: BinaryIO, progress: Progress) -> None:
        self._stream = stream
        self._progress = progress
        self._unreported = 0
        self.hash = sha256()
        self.size = 0

    def readline(self, most: int) -> bytes:
        return self._count(self._stream.readline(most))

    def read(self, most: int) -> bytes:
        return self._count(self._stream.read(most))

    def drain(self) -> None:
        while self._count(self._stream.read(1 << 20)):
            pass
        self._progress(self._unreported)

    def _count(self, text: bytes) -> bytes:
        self.hash.update(text)
        self.size += len(text)
        self._unreported += len(text)
        if self._unreported >= _BLOCK_BYTES:
            self._progress(self._unreported)
            self._unreported = 0
        return text

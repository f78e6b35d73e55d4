"""A JSON document read as a stream: one member at a time, and long lists one item at a time.

The decoder of the standard library reads values from a window that moves over the file and is as large as the
largest single value. That is all that is needed, so no further package is required.
"""

from __future__ import annotations

import json
import re
from codecs import getincrementaldecoder
from collections.abc import Callable, Collection, Iterator
from typing import BinaryIO, Final, NamedTuple

from reenact.canonical import JsonValue

JsonPath = tuple[str, ...]

MAX_VALUE_CHARACTERS: Final = 64 * 1024 * 1024
"""A single value that is longer is refused."""
_CHUNK_BYTES: Final = 256 * 1024
_MAX_TOKEN: Final = 16
"""If this many characters follow the position of an error, reading more text would not fix it."""
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_ODD: Final = re.compile("[\udc80-\udcff\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f]")
"""Surrogates that represent bytes of invalid UTF-8, and control characters, which JSON does not allow."""
_WITHOUT_CONTROLS: Final = bytes({*range(256)} - {*range(32)} | {9, 10, 13})
_TOKEN: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|["\[\]{},]', re.DOTALL)
_CLOSING: Final = {"[": "]", "{": "}"}
_decode: Final = json.JSONDecoder().raw_decode


class JsonMember(NamedTuple):
    """A member, or an item of a list that is read by items, with the line on which it begins."""

    path: JsonPath
    line: int
    value: JsonValue
    """Empty for a list that is read by items (it comes before them) and for an object with such a list."""
    is_item: bool = False


class BrokenJson(ValueError):
    """The text is not JSON from *line* on, or has a value that is too long."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.line = line


def read_members(
    stream: BinaryIO, lists: Collection[JsonPath], on_odd: Callable[[int], None] = lambda _: None
) -> Iterator[JsonMember]:
    """The members of the document in order; the values at the paths of *lists* item by item.

    Raises :class:`BrokenJson` after the part that could be read. Extensions that Python accepts are read,
    too; *on_odd* gets the lines with invalid UTF-8 or control characters, which become U+FFFD.
    """
    window = _Window(stream, on_odd)
    yield from _read_value(window, (), lists)
    if window.peek():
        raise BrokenJson("there is text after the end of the document", window.line)


def _read_value(window: _Window, path: JsonPath, lists: Collection[JsonPath]) -> Iterator[JsonMember]:
    first, line = window.peek(), window.line
    if first == "[" and path in lists:
        yield JsonMember(path, line, [])
        for _ in window.parts("]"):
            line = window.line
            yield JsonMember(path, line, window.take_value(), is_item=True)
    elif first == "{" and any(each[: len(path)] == path and len(each) > len(path) for each in lists):
        yield JsonMember(path, line, {})
        for _ in window.parts("}"):
            name = window.take_value()
            if not isinstance(name, str):
                raise BrokenJson("a member has no name", window.line)
            window.take(":")
            yield from _read_value(window, (*path, name), lists)
    else:
        yield JsonMember(path, line, window.take_value())


def close_cut_text(text: str) -> str | None:
    """A document that was cut off, closed after the last complete item of any list; ``None`` without one."""
    open_marks: list[str] = []
    whole = ""
    end = 0
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark == '"':  # an unterminated string
            break
        if mark in _CLOSING:
            open_marks.append(mark)
        elif mark in ("]", "}"):
            if not open_marks or _CLOSING[open_marks.pop()] != mark:
                break
            if open_marks and open_marks[-1] == "[":
                end, whole = token.end(), "".join(open_marks)
        elif mark == "," and open_marks and open_marks[-1] == "[":
            end, whole = token.start(), "".join(open_marks)
    return text[:end] + "".join(_CLOSING[mark] for mark in reversed(whole)) if end else None


def has_controls(text: bytes) -> bool:
    """Whether *text* has control characters that JSON does not allow; one pass in C."""
    return bool(text.translate(None, _WITHOUT_CONTROLS))


def to_text(text: bytes) -> str:
    """Decode *text*; bytes of invalid UTF-8 and control characters become U+FFFD."""
    return _ODD.sub("\ufffd", text.decode("utf-8", "replace"))


class _Window:
    """The part of the text that is in memory."""

    def __init__(self, stream: BinaryIO, on_odd: Callable[[int], None]) -> None:
        self._stream = stream
        self._on_odd = on_odd
        self._decoder = getincrementaldecoder("utf-8-sig")("surrogateescape")
        self._text = ""
        self._at = 0
        self._is_end = False
        self._counted = 0
        """The position up to which line ends are counted in *line*."""
        self._line = 1

    @property
    def line(self) -> int:
        """The line of the next character."""
        self._line += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        return self._line

    def peek(self) -> str:
        """The next character that is not white space; empty at the end."""
        while True:
            self._at = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]  # always matches
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._read_more():
                return ""

    def take(self, mark: str) -> None:
        """Skip *mark*, or raise if something else follows."""
        if (found := self.peek()) != mark:
            raise BrokenJson(f"expected {mark!r}" if found else "the end is missing", self.line)
        self._at += 1

    def parts(self, end: str) -> Iterator[None]:
        """Yield once before each item of a list or member of an object; the caller reads it."""
        self._at += 1
        if self.peek() == end:
            self._at += 1
            return
        while True:
            yield
            if self.peek() == end:
                self._at += 1
                return
            self.take(",")
            self.peek()

    def take_value(self) -> JsonValue:
        """The value at this position; a number at the end of the window may continue, like ``1e+5``."""
        if not self.peek():
            raise BrokenJson("the end is missing", self.line)
        while True:
            try:
                value, end = _decode(self._text, self._at)
                if end + 2 < len(self._text) or not self._read_more():
                    self._at = end
                    return value  # type: ignore[no-any-return]  # a JSON value
            except RecursionError:
                raise BrokenJson("it is nested too deeply", self.line) from None
            except json.JSONDecodeError as error:
                is_cut = error.pos + _MAX_TOKEN > len(self._text) or error.msg.startswith("Unterminated")
                if not is_cut or not self._read_more():
                    self._at = min(error.pos, len(self._text))
                    raise BrokenJson(error.msg, self.line) from None

    def _read_more(self) -> bool:
        """Read about as much again as is in memory; false at the end of the file."""
        left = len(self._text) - self._at
        if left > MAX_VALUE_CHARACTERS:
            raise BrokenJson(f"a value is longer than {MAX_VALUE_CHARACTERS} characters", self.line)
        chunk = b"" if self._is_end else self._stream.read(max(_CHUNK_BYTES, left))
        more = "" if self._is_end else self._decoder.decode(chunk, final=not chunk)
        self._is_end = not chunk
        if not more:
            return bool(chunk)
        line = self.line
        may_be_odd = not more.isascii() or has_controls(chunk)
        if may_be_odd and (odd := _ODD.search(more)):
            ends = self._text.count("\n", self._at) + more.count("\n", 0, odd.start())
            self._on_odd(line + ends)
            more = _ODD.sub("\ufffd", more)
        self._text = self._text[self._at :] + more
        self._at = self._counted = 0
        return True

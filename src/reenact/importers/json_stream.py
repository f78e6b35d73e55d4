"""A JSON document read as a stream: its members one at a time, and of long lists the items.

The standard library's decoder reads values out of a window that moves over the file and is as large as the
largest single value; a package that does no more than that, in its own way, is not needed for it.
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
"""Behind the place of an error so much is enough to know that more text would not mend it."""
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_ODD: Final = re.compile("[\udc80-\udcff\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f]")
"""What stands for a byte that is no UTF-8, and control characters, which JSON does not have."""
_WITHOUT_CONTROLS: Final = bytes({*range(256)} - {*range(32)} | {9, 10, 13})
_TOKEN: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|["\[\]{},]', re.DOTALL)
_CLOSING: Final = {"[": "]", "{": "}"}
_decode: Final = json.JSONDecoder().raw_decode


class JsonMember(NamedTuple):
    """A member, or an item of a list that is read by items, with the line on which it begins."""

    path: JsonPath
    line: int
    value: JsonValue
    """Empty for such a list itself, which comes before its items, and for an object with such a list."""
    is_item: bool = False


class BrokenJson(ValueError):
    """From *line* on the text is no JSON, or holds a value that is too long."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.line = line


def read_members(
    stream: BinaryIO, lists: Collection[JsonPath], on_odd: Callable[[int], None] = lambda _: None
) -> Iterator[JsonMember]:
    """The members of the document in their order; values at the paths of *lists* item by item.

    Raises :class:`BrokenJson` behind what could be read. What JSON does not have is read as Python reads it;
    *on_odd* gets the lines with bytes that are no UTF-8 or control characters: each becomes U+FFFD.
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
    """A document that was cut off, up to its last whole item of any list; ``None`` where there is none."""
    open_marks: list[str] = []
    whole = ""
    end = 0
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark == '"':  # a text that does not end
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
    """Whether control characters stand in *text* that JSON does not have, at the speed of memory."""
    return bool(text.translate(None, _WITHOUT_CONTROLS))


def to_text(text: bytes) -> str:
    """*text* with the character U+FFFD for each byte that is no UTF-8, and for each control character."""
    return _ODD.sub("\ufffd", text.decode("utf-8", "replace"))


class _Window:
    """The part of the text that is being read."""

    def __init__(self, stream: BinaryIO, on_odd: Callable[[int], None]) -> None:
        self._stream = stream
        self._on_odd = on_odd
        self._decoder = getincrementaldecoder("utf-8-sig")("surrogateescape")
        self._text = ""
        self._at = 0
        self._is_end = False
        self._counted = 0
        """Up to where the ends of lines are in *line*."""
        self._line = 1

    @property
    def line(self) -> int:
        """Where the next character stands."""
        self._line += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        return self._line

    def peek(self) -> str:
        """The next character that is no white space; empty at the end."""
        while True:
            self._at = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]  # matches always
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._read_on():
                return ""

    def take(self, mark: str) -> None:
        """Go on behind *mark*."""
        if (found := self.peek()) != mark:
            raise BrokenJson(f"expected {mark!r}" if found else "the end is missing", self.line)
        self._at += 1

    def parts(self, end: str) -> Iterator[None]:
        """Once before each item of a list, or member of an object; the caller takes it."""
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
        """The value that stands here; a number near the end of the window may go on, as ``1e+5`` does."""
        if not self.peek():
            raise BrokenJson("the end is missing", self.line)
        while True:
            try:
                value, end = _decode(self._text, self._at)
                if end + 2 < len(self._text) or not self._read_on():
                    self._at = end
                    return value  # type: ignore[no-any-return]  # what JSON holds
            except RecursionError:
                raise BrokenJson("it is nested too deeply", self.line) from None
            except json.JSONDecodeError as error:
                is_cut = error.pos + _MAX_TOKEN > len(self._text) or error.msg.startswith("Unterminated")
                if not is_cut or not self._read_on():
                    self._at = min(error.pos, len(self._text))
                    raise BrokenJson(error.msg, self.line) from None

    def _read_on(self) -> bool:
        """Read about as much again as is there; false at the end, where nothing has changed."""
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

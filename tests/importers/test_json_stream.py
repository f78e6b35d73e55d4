"""A document read as a stream says what the same document says that is read whole."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reenact.importers import json_stream
from reenact.importers.json_stream import BrokenJson, read_members

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
ENTRIES = ("log", "entries")


class Pieces(io.BytesIO):
    """A file that gives a few bytes at a time, whatever is asked for."""

    def __init__(self, text: bytes, size: int) -> None:
        super().__init__(text)
        self._size = size

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(self._size)


def rebuilt(text: bytes, size: int = 1 << 20) -> Any:
    document: Any = None
    for path, _, value, is_item in read_members(Pieces(text, size), [ENTRIES]):
        if not path:
            document = value
            continue
        place = document
        for name in path[:-1]:
            place = place[name]
        if is_item:
            place[path[-1]].append(value)
        else:
            place[path[-1]] = value
    return document


@settings(max_examples=60)
@given(
    st.dictionaries(st.text(max_size=4), VALUES, max_size=3),
    st.dictionaries(st.text(max_size=4), VALUES, max_size=3),
    st.lists(VALUES, max_size=5),
    st.integers(1, 40),
    st.sampled_from([None, 1]),
)
def test_members_and_items_are_those_of_the_document(before, inner, items, size, indent):
    """However the file is cut into pieces, in the middle of characters and numbers too."""
    document = {**before, "log": {**inner, "entries": items, "after": 12345678901234567890}}
    text = json.dumps(document, indent=indent, ensure_ascii=False).encode("utf-8", "surrogatepass")
    if b"\xed" not in text:  # half characters are no UTF-8
        assert rebuilt(text, size) == document


@settings(max_examples=60)
@given(st.lists(st.integers() | st.text(st.characters(codec="ascii")), max_size=6), st.data())
def test_a_document_that_is_cut_off_gives_what_stands_before(items, data):
    """Every item that is whole, and the line where the text ends."""
    text = json.dumps({"log": {"entries": items}}, indent=1).encode()
    cut = data.draw(st.integers(0, len(text) - 1))
    found = []
    with pytest.raises(BrokenJson) as broken:
        members = read_members(io.BytesIO(text[:cut]), [ENTRIES])
        found.extend(member.value for member in members if member.is_item)
    whole = found[:-1] if found and found != items[: len(found)] else found  # a number may be cut
    assert whole == items[: len(whole)]
    assert broken.value.line <= text[:cut].count(b"\n") + 1


def test_each_item_has_its_line():
    """Byte order mark and CRLF are no part of it."""
    text = b'\xef\xbb\xbf{"log": {\r\n"entries": [\r\n1,\r\n\r\n{"a":\r\n2}, 3]}}\r\n'
    members = list(read_members(io.BytesIO(text), [ENTRIES]))
    assert [(each.line, each.value) for each in members if each.is_item] == [(3, 1), (5, {"a": 2}), (6, 3)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "the end is missing"),
        (b'{"log": {"entries": [1', "the end is missing"),
        (b'{"log": {"entries": [1 2]}}', "expected ','"),
        (b'{"log" 1}', "expected ':'"),
        (b"{1: 2}", "a member has no name"),
        (b'{"log": 1} x', "there is text after the end of the document"),
        (b'{"log": {"entries": [' + b"[" * 100_000, "it is nested too deeply"),
        (b'{"log": {"entries": [tru, 1, 2, 3, 4, 5, 6, 7, 8, 9]}}', "Expecting value"),
    ],
)
def test_what_is_no_json_is_told(text, reason):
    """In a few words, whatever is wrong."""
    with pytest.raises(BrokenJson, match=reason):
        list(read_members(io.BytesIO(text), [ENTRIES]))


def test_a_value_that_is_too_long_is_refused_before_memory_is_gone(monkeypatch):
    """One that never ends is never held."""
    monkeypatch.setattr(json_stream, "MAX_VALUE_CHARACTERS", 1 << 20)

    class Endless(io.BytesIO):
        given_bytes = 0

        def read(self, size: int | None = -1, /) -> bytes:
            count = size or 0
            self.given_bytes += count
            return b'{"log": {"entries": ["' if self.given_bytes == count else b"x" * count

    stream = Endless()
    with pytest.raises(BrokenJson, match="longer than 1048576 characters"):
        list(read_members(stream, [ENTRIES]))
    assert stream.given_bytes < 8 << 20

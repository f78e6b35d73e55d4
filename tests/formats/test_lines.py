"""Lines of a stream, with their numbers and places."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.errors import FormatError
from reenact.formats.lines import Line, read_blocks, read_lines

from .replay_log_strategies import patient


def lines_of(data: bytes, **options) -> list[Line]:
    return list(read_lines(io.BytesIO(data), file="f", **options))


def test_lines_have_numbers_and_offsets():
    """Numbers count every line an editor shows, offsets the bytes of the file."""
    assert lines_of(b"a\n\nbc\r\n \td") == [Line(1, 0, b"a"), Line(3, 3, b"bc"), Line(4, 7, b" \td")]


def test_one_carriage_return_belongs_to_the_line_end():
    """A second one, or one without a line feed, is part of the line."""
    assert [line.text for line in lines_of(b"a\r\r\nb\rc\nd\r")] == [b"a\r", b"b\rc", b"d\r"]


def test_byte_order_mark_counts_as_offset_only():
    """The mark is not part of the first line; elsewhere it is."""
    assert lines_of(b"\xef\xbb\xbfa\n\xef\xbb\xbfb") == [Line(1, 3, b"a"), Line(2, 5, b"\xef\xbb\xbfb")]


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_the_limit_counts_the_text_alone(end):
    """A line of exactly the limit is read whatever ends it; one byte more is refused."""
    assert lines_of(b"12345" + end, max_line_bytes=5) == [Line(1, 0, b"12345")]
    with pytest.raises(FormatError, match="f:1: the line is longer than 5 bytes"):
        lines_of(b"123456" + end, max_line_bytes=5)


def test_lenient_reading_goes_on_behind_a_long_line():
    """Long lines are reported one by one and skipped without being held."""
    errors = []
    data = b"a\n" + b"x" * 3_000_000 + b"\nb\n" + b"123456\nc"
    lines = lines_of(data, max_line_bytes=5, on_error=errors.append)
    assert [line.text for line in lines] == [b"a", b"b", b"c"]
    assert [error.line for error in errors] == [2, 4]
    assert all(data[line.offset :].startswith(line.text) for line in lines)


@patient
@given(st.lists(st.binary(max_size=20).filter(lambda text: b"\n" not in text), max_size=20))
def test_lines_are_what_stands_between_line_feeds(texts):
    """Every text that is not blank comes back in order, without the one CR before its LF."""
    data = b"!\n" + b"\n".join(texts)
    expected = [text for text in (text.removesuffix(b"\r") for text in texts[:-1]) if text.strip()]
    expected += [text for text in texts[-1:] if text.strip()]
    assert [line.text for line in lines_of(data)][1:] == expected


@patient
@given(st.lists(st.integers(0, 60_000), max_size=8))
def test_blocks_hold_the_same_lines(sizes):
    """A block has about 64 KiB, and all blocks together are the lines."""
    data = b"\n".join(b"x" * size for size in sizes)
    blocks = list(read_blocks(io.BytesIO(data), file="f"))
    assert [line for block in blocks for line in block] == lines_of(data)
    assert all(sum(len(line.text) for line in block) < 130_000 for block in blocks)


def test_an_error_is_reported_between_its_neighbours():
    """What stands before a long line is delivered before its error."""
    happened = []
    for block in read_blocks(
        io.BytesIO(b"a\n123456\nb\n123456"), file="f", max_line_bytes=5, on_error=happened.append
    ):
        happened += block
    assert [each.line if isinstance(each, FormatError) else each.number for each in happened] == [1, 2, 3, 4]

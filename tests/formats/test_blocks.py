"""Reading many lines at a time finds exactly what reading one by one finds."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reenact.errors import FormatError
from reenact.formats.capture import CaptureEvent, event_codec
from reenact.formats.lines import Line, read_lines, read_records

GOOD = (
    b'{"captureId":"c","data":{"args":{"q":"\xc3\xa9"},"callId":"c1","tool":"t"},'
    b'"runId":"r","seq":1,"ts":1,"type":"tool_call","version":1}'
)
ODD = [
    GOOD.replace(b'"seq":1', b'"seq": 1'),
    GOOD.replace(b'"seq":1', b'"new":{"a":1},"seq":1'),
    GOOD.replace(b'"args"', b'"args":1,"args"'),
    GOOD.replace(b'{"q":', '{"\u2061extra":'.encode()),
    GOOD.replace(b"\xc3\xa9", b"\xff"),
    b"{",
    b"],[",
    b"",
    b"   ",
    b"[" * 300,
    GOOD + b"," + GOOD,
    b"x" * 500,
]
Found = tuple[list[tuple[Line, CaptureEvent]], list[str]]


def in_blocks(data: bytes) -> Found:
    errors: list[str] = []
    stream = BytesIO(data)
    records = read_records(
        stream, event_codec, file="f", max_line_bytes=400, on_error=lambda error: errors.append(str(error))
    )
    return list(records), errors


def one_by_one(data: bytes) -> Found:
    errors: list[str] = []
    found: list[tuple[Line, Any]] = []
    lines = read_lines(
        BytesIO(data), file="f", max_line_bytes=400, on_error=lambda error: errors.append(str(error))
    )
    for line in lines:
        try:
            found.append((line, event_codec.from_bytes(line.text)))
        except FormatError as error:
            errors.append(str(error.at(file="f", line=line.number)))
    return found, errors


_lines = st.lists(st.sampled_from([GOOD, GOOD, GOOD, *ODD]), max_size=12)
_ends = st.sampled_from([b"\n", b"\n", b"\n", b"\r\n"])


@settings(deadline=None)
@given(lines=_lines, ends=st.lists(_ends, min_size=12, max_size=12), closed=st.booleans(), bom=st.booleans())
def test_blocks_and_lines_agree(lines: list[bytes], ends: list[bytes], closed: bool, bom: bool) -> None:
    """The same records, places and errors, whatever stands in the file."""
    data = b"".join(line + end for line, end in zip(lines, ends, strict=False))
    data = (b"\xef\xbb\xbf" if bom else b"") + (data if closed else data.rstrip(b"\r\n"))
    found, errors = in_blocks(data)
    expected, expected_errors = one_by_one(data)
    assert found == expected
    assert sorted(errors) == sorted(expected_errors)


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=2000))
def test_any_bytes_are_read_or_reported(data: bytes) -> None:
    """Nothing but a reported error comes of arbitrary bytes."""
    assert in_blocks(data)[0] == one_by_one(data)[0]


@pytest.mark.parametrize("data", [b"\n", b"\n\n", GOOD + b"," + GOOD + b"\n", GOOD, b"]\n["])
def test_a_block_that_only_looks_in_order_is_read_exactly(data: bytes) -> None:
    """Two records on a line, or a line without any, are not one record each."""
    assert in_blocks(data) == one_by_one(data)


def test_a_large_file_is_cut_into_blocks_at_line_ends() -> None:
    """Numbers and offsets run through, also over a line that is too long for any block."""
    data = (GOOD + b"\n") * 500 + b"y" * 100_000 + b"\n" + (GOOD + b"\n") * 3
    found, errors = in_blocks(data)
    assert [line.number for line, _ in found] == [*range(1, 501), 502, 503, 504]
    assert all(data[line.offset : line.offset + len(line.text)] == line.text for line, _ in found)
    assert errors == ["f:501: the line is longer than 400 bytes"]


def test_without_a_reporter_the_first_error_is_raised() -> None:
    """What stands before it has been handed out by then."""
    records = read_records(BytesIO(GOOD + b"\n{\n"), event_codec, file="f")
    assert next(records)[0].number == 1
    with pytest.raises(FormatError, match="f:2"):
        next(records)

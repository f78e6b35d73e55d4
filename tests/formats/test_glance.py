"""A glance at a record sees what reading it exactly sees, and takes nothing that exact reading refuses."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact import canonical
from reenact.check.integrity.capture import BlockReader
from reenact.errors import FormatError
from reenact.formats.capture import CaptureEvent, event_codec
from tests.formats import ROOT, UNREADABLE, json_values, law

PAGE = (ROOT / "docs" / "formats" / "capture.md").read_text(encoding="utf-8")
LINES = re.search(r"```jsonl\n(.*?)```", PAGE, re.DOTALL)[1].encode().splitlines()  # type: ignore[index]
glance = BlockReader(CaptureEvent)


def test_known_fields_are_seen() -> None:
    """Of every event of the format's page, with and without fields that nobody knows."""
    odd = [canonical.encode(event_codec.to_json(event_codec.from_bytes(line)) | {"x": 1}) for line in LINES]
    for texts in (LINES, odd):
        seen = glance.from_block(b"".join(text + b"\n" for text in texts))
        assert seen is not None
        for text, record in zip(texts, seen, strict=True):
            exact = event_codec.from_bytes(text)
            assert type(record).__name__ == type(exact).__name__
            assert (record.seq, record.ts, record.runId) == (exact.seq, exact.ts, exact.runId)
            for field in record.data.__struct_fields__:
                assert getattr(record.data, field) == getattr(exact.data, field)


@law
@given(st.sampled_from(LINES), st.text(max_size=6), json_values, st.booleans())
def test_what_is_seen_could_be_read(line: bytes, key: str, value: Any, inside: bool) -> None:
    """Whatever is put into an event, at the top or in its data."""
    event = event_codec.to_json(event_codec.from_bytes(line))
    (event["data"] if inside else event)[key] = value
    try:
        text = canonical.encode(event)
    except FormatError:
        return
    seen = glance.from_block(text + b"\n")
    try:
        event_codec.from_bytes(text)
    except FormatError:
        assert seen is None
    else:
        assert seen is not None


ODD = {
    **UNREADABLE,
    "a repeated key": LINES[0][:-1] + b',"version":1}',
    "white space": LINES[0].replace(b":", b": ", 1),
    "no end of line": LINES[0],
    "two on one line": LINES[0] + LINES[0],
    "a blank line": LINES[0] + b"\n",
    "a huge integer": LINES[1].replace(b'"tea"', b"18446744073709551616"),
    "deep": LINES[1].replace(b'"tea"', b"[" * 254 + b"]" * 254),
}


@pytest.mark.parametrize("name", ODD)
def test_what_is_odd_is_left_to_exact_reading(name: str) -> None:
    """A glance never says what is wrong."""
    end = b"" if name == "no end of line" else b"\n"
    assert glance.from_block(ODD[name] + end) is None

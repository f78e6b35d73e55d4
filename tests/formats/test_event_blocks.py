"""Many events are read at once as each by itself; whatever is odd is left to reading one by one."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact import canonical
from reenact.errors import FormatError
from reenact.formats.capture import event_codec
from tests.formats import ROOT, UNREADABLE, json_values, law

PAGE = (ROOT / "docs" / "formats" / "capture.md").read_text(encoding="utf-8")
LINES = re.search(r"```jsonl\n(.*?)```", PAGE, re.DOTALL)[1].encode().splitlines()  # type: ignore[index]


def test_many_events_are_read_at_once() -> None:
    """Every event of the format's page, the same as line by line."""
    events = event_codec.from_block(b"".join(line + b"\n" for line in LINES))
    assert events == [event_codec.from_bytes(line) for line in LINES]


@law
@given(st.sampled_from(LINES), st.text(max_size=6), json_values, st.booleans())
def test_what_is_read_at_once_can_be_read_alone(line: bytes, key: str, value: Any, inside: bool) -> None:
    """Whatever is put into an event, at the top or in its data."""
    event = event_codec.to_json(event_codec.from_bytes(line))
    (event["data"] if inside else event)[key] = value
    try:
        text = canonical.encode(event)
    except FormatError:
        return
    events = event_codec.from_block(text + b"\n")
    if events is not None:
        assert events == [event_codec.from_bytes(text)]


ODD = {
    **UNREADABLE,
    "a repeated key": LINES[0][:-1] + b',"version":1}',
    "white space": LINES[0].replace(b":", b": ", 1),
    "no end of line": LINES[0],
    "two on one line": LINES[0] + LINES[0],
    "a blank line": LINES[0] + b"\n",
    "an unknown field": LINES[0][:-1] + b',"x":1}',
}


@pytest.mark.parametrize("name", ODD)
def test_what_is_odd_is_left_to_exact_reading(name: str) -> None:
    """Which says what is wrong."""
    end = b"" if name == "no end of line" else b"\n"
    assert event_codec.from_block(ODD[name] + end) is None

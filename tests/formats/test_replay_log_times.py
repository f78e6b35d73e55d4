"""Times are RFC 3339 texts of the calendar."""

import pytest
from hypothesis import given

from reenact.errors import FormatError
from reenact.formats.rfc3339 import are_times, verify_time

from .replay_log_strategies import patient, times

GOOD = [
    "2026-02-15T00:00:00Z",
    "2026-02-15T00:00:00.000Z",
    "2026-02-15T23:59:59.123456Z",
    "2026-02-15T23:59:59.123456789+00:00",
    "2026-02-15T12:00:00-09:30",
    "2024-02-29T00:00:00Z",
    "2000-02-29T00:00:00Z",
    "2016-12-31T23:59:60Z",
    "2026-02-15T00:00:00.1Z",
    "2026-02-15T00:00:00.123456789012+05:30",
]
BAD = {
    "empty": "",
    "no zone": "2026-02-15T00:00:00",
    "no time": "2026-02-15",
    "space": "2026-02-15 00:00:00Z",
    "lower case": "2026-02-15t00:00:00z",
    "comma": "2026-02-15T00:00:00,123Z",
    "month 13": "2026-13-01T00:00:00Z",
    "April 31": "2026-04-31T00:00:00Z",
    "no leap year": "2026-02-29T00:00:00Z",
    "1900 was none": "1900-02-29T00:00:00Z",
    "hour 24": "2026-02-15T24:00:00Z",
    "minute 60": "2026-02-15T00:60:00Z",
    "second 61": "2026-02-15T00:00:61Z",
    "offset of a day": "2026-02-15T00:00:00+24:00",
    "offset without colon": "2026-02-15T00:00:00+0100",
    "line end": "2026-02-15T00:00:00Z\n",
    "other digits": "２026-02-15T00:00:00Z",
}


@pytest.mark.parametrize("text", GOOD)
def test_good_time(text):
    """Z or an offset, and a fraction of any number of digits."""
    assert are_times([text])
    verify_time(text, "$.ts")


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_bad_time(text):
    """Anything else is refused at its path."""
    assert not are_times([text])
    assert not are_times([GOOD[0], text])
    with pytest.raises(FormatError, match="not an RFC 3339 time") as caught:
        verify_time(text, "$.ts")
    assert caught.value.json_path == "$.ts"


@patient
@given(times())
def test_every_moment_at_every_offset_is_a_time(text):
    """What Python's own calendar prints is accepted."""
    assert are_times([text])

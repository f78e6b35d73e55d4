"""Times as RFC 3339 texts: checking, comparing and writing them; read texts are never rewritten."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Final

import msgspec

from reenact.errors import FormatError

Time = Annotated[str, msgspec.Meta(extra_json_schema={"format": "date-time"})]
"""A field with an RFC 3339 text. Decoding does not check it; the reader of the record does."""

_TIME: Final = re.compile(
    r"""
    (?: \d{4}-(?: (?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])
                | (?:0[469]|11)-(?:0[1-9]|[12]\d|30)
                | 02-(?:0[1-9]|1\d|2[0-8]) )
      | (?: \d\d(?:0[48]|[2468][048]|[13579][26]) | (?:[02468][048]|[13579][26])00 )-02-29 )
    T (?:[01]\d|2[0-3]) : [0-5]\d : (?:[0-5]\d|60)
    (?: \.\d+ )?
    (?: Z | [+-](?:[01]\d|2[0-3]):[0-5]\d )
    """,
    re.ASCII | re.VERBOSE,
)


_PLAIN_LENGTHS: Final = frozenset({20, 24, 27, 30})


def are_times(texts: Iterable[str]) -> bool:
    """Whether all of *texts* are times; fast for times in the usual notation."""
    times = list(texts)
    return _are_plain(times) or all(map(_TIME.fullmatch, times))


def _are_plain(times: list[str]) -> bool:
    """Whether all are times in UTC in the usual notation; msgspec alone would accept more."""
    joined = "".join(times)
    if not _PLAIN_LENGTHS.issuperset(map(len, times)) or joined.count("T") != joined.count("Z"):
        return False
    try:
        msgspec.convert(times, list[datetime])
    except msgspec.ValidationError:
        return False
    return joined.count("Z") == len(times)


def verify_time(text: str, json_path: str) -> None:
    """:class:`FormatError` at *json_path* unless *text* is a date and time with ``Z`` or an offset.

    The fraction may have any number of digits; second 60 is accepted as a leap second on any day.
    """
    if _TIME.fullmatch(text) is None:
        raise FormatError(
            f"{text[:40]!r} is not an RFC 3339 time such as 2026-02-15T00:00:00.000Z", json_path=json_path
        )


def moment(text: str) -> datetime:
    """A valid *text* as a datetime, for comparing.

    Python has no leap second, which becomes the second before, and no year 0.
    """
    for spelled in (text, text.replace(":60", ":59")):
        with suppress(ValueError):
            return datetime.fromisoformat(spelled)
    return datetime.min.replace(tzinfo=UTC)


def rfc3339(moment: datetime) -> str:
    """*moment* as traces and results write it: UTC, three fractional digits."""
    if moment.tzinfo is None:
        raise ValueError("the start of the run needs a time zone; use datetime.now(UTC)")
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def rfc3339_of_ms(ts_ms: int | float) -> str:
    """A time of a capture, milliseconds since the epoch, as traces and logs write it."""
    try:
        return rfc3339(datetime.fromtimestamp(ts_ms / 1000, UTC))
    except (ValueError, OverflowError, OSError):
        raise FormatError(f"ts {ts_ms} is outside the calendar; record again") from None

"""Parses times in texts and numbers, and decides whether one was *now* for a run.

A text may name a second or a day, with or without a time zone, so it can mean several instants. It was now
if one of them lies within the time of the run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from math import ceil, floor
from typing import Final, NamedTuple

from reenact.lazy_regex import LazyRegex

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MONTH: Final = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?"
    r"|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
_WEEKDAY: Final = r"(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?"
_CLOCK: Final = (
    r"(?P<hour#>\d{1,2}):(?P<minute#>\d\d)(?::(?P<second#>\d\d)(?:[.,](?P<fraction#>\d{1,9}))?)?"
    r"(?: ?(?P<half#>[AaPp])\.?[Mm]\b\.?)?(?: ?(?P<zone#>Z|UTC|GMT|[+-]\d\d:?\d\d)(?![0-9A-Za-z:]))?"
)
_CLOCK_1: Final = _CLOCK.replace("#", "1")
_CLOCK_2: Final = _CLOCK.replace("#", "2")
_ALONE: Final = r"(?<![0-9A-Za-z])"
_END: Final = r"(?![0-9A-Za-z])"

_WRITTEN: Final = (
    rf"(?:(?P<weekday>{_WEEKDAY}),? )?"
    rf"(?:(?P<month>{_MONTH})\.? (?P<day>\d{{1,2}})(?:st|nd|rd|th)?"
    rf"|(?P<day2>\d{{1,2}})(?:st|nd|rd|th)?(?: of)?[ -](?P<month2>{_MONTH})\.?)"
    rf"(?: {_CLOCK_1})?(?:(?:,? |-)(?P<year>\d{{4}}))?(?:(?:,? at|,| -)? {_CLOCK_2})?"
)
_NUMBERED: Final = (
    rf"(?:(?P<weekday>{_WEEKDAY}),? )?(?P<year>\d{{4}})(?P<dash>[-/.])(?P<month>\d\d)(?P=dash)(?P<day>\d\d)"
    rf"(?:(?:[T ]|, ){_CLOCK_1}"
    r"|[T_ -](?P<hour2>\d\d)(?P<dot>[-.])(?P<minute2>\d\d)(?P=dot)(?P<second2>\d\d)"
    r"(?:[-.](?P<fraction2>\d{3,9}))?(?P<zone2>Z)?)?"
)
_TURNED: Final = (
    r"(?P<first>\d{1,2})(?P<dash>[/.])(?P<second_number>\d{1,2})(?P=dash)(?P<year>\d{4})"
    rf"(?:(?:,? at|,| -)? {_CLOCK_1})?"
)
_COMPACT: Final = (
    r"(?P<year>\d{4})(?P<month>\d\d)(?P<day>\d\d)"
    r"(?:[T_-]?(?P<hour1>\d\d)(?P<minute1>\d\d)(?P<second1>\d\d)(?:[._-]?(?P<fraction1>\d{3}|\d{6}))?(?P<zone1>Z)?)?"
)
_CLOCK_ALONE: Final = rf"(?<![.:]){_CLOCK_1}(?!:)"
_EPOCH: Final = r"(?P<s>\d{10}(?:\.\d{1,9})?)|(?P<ms>\d{13}(?:\.\d{1,6})?)|(?P<us>\d{16})|(?P<ns>\d{19})"
_FORMS: Final = {
    name: LazyRegex(pattern)
    for name, pattern in {
        "numbered": _NUMBERED,
        "written": _WRITTEN,
        "turned": _TURNED,
        "compact": _COMPACT,
        "epoch": _EPOCH,
        "clock": _CLOCK_ALONE,
    }.items()
}
_NAMED_GROUP: Final = LazyRegex(r"\(\?P<\w+>")
_REFERENCE: Final = {"(?P=dash)": r"[-/.]", "(?P=dot)": r"[-.]"}


def _without_names(pattern: str) -> str:
    for reference, plain in _REFERENCE.items():
        pattern = pattern.replace(reference, plain)
    return _NAMED_GROUP.sub("(?:", pattern)


FOUND: Final = "|".join(f"{_ALONE}(?:{_without_names(form.pattern)}){_END}" for form in _FORMS.values())
"""Finds candidates; :func:`was_now` decides whether one is a time."""
_FOUND: Final = LazyRegex(FOUND)
_ID_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_ID_WORDS: Final = {10: LazyRegex("[0-9]+"), 16: LazyRegex("[0-9a-f]+"), 36: LazyRegex("[0-9a-z]+")}
_MAX_SHARE: Final = 1e-5
"""A longer time span, as a share of all time since 1970, has numbers that stand in many texts by chance."""
_DIGITS: Final = LazyRegex(r"\d+")
_SPELLING: Final = LazyRegex(
    r"(?P<fraction>(?<=0:0:0)[.,]0)|(?P<ordinal>(?<=0)(?:st|nd|rd|th)\b)|(?P<half>[AP](?=\.?M\b))"
    r"|(?P<sign>(?<=[:.,]0)[+-](?=0))",
    re.IGNORECASE,
)
_SPELLED: Final = {"fraction": "", "ordinal": "th", "half": "A", "sign": "+"}
"""Spelling that depends on the numbers: a full second is often written without a fraction."""
_NAMES: Final = LazyRegex(rf"\b(?:{_MONTH}|{_WEEKDAY})\b")
_UNITS: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_ROUNDED_S: Final = 1e-6
"""How much earlier the milliseconds that code makes of a float may be."""


class Window(NamedTuple):
    """The time from the start of a run to some moment of it."""

    start_s: float
    end_s: float
    zones: tuple[tzinfo, ...] = (UTC,)
    """The zones that a time without a zone may be in."""
    shift_s: float = 0.0
    """How much later a second clock is, which shows another time all the while."""

    @property
    def spans(self) -> tuple[tuple[float, float], ...]:
        """The start and end by each clock."""
        spans = ((self.start_s, self.end_s), (self.start_s + self.shift_s, self.end_s + self.shift_s))
        return spans if self.shift_s else spans[:1]

    def meets(self, start_s: float, length_s: float) -> bool:
        return any(start_s <= end and start_s + length_s > start - _ROUNDED_S for start, end in self.spans)


def are_both_now(one: str, other: str, there: Window, here: Window) -> bool:
    """Whether both texts are times in the same form, *one* within *there* and *other* within *here*."""
    return form_of(one) == form_of(other) and was_now(one, there) and was_now(other, here)


def form_of(text: str) -> str:
    """The format of a time: its text with digits, months and weekdays replaced."""
    if text.isdigit():
        return f"{len(text)} digits"
    plain = _DIGITS.sub("0", _NAMES.sub("Mmm", text))
    return _SPELLING.sub(lambda found: _SPELLED[found.lastgroup or ""], plain)


def was_now(text: str, window: Window) -> bool:
    """Whether *text* is a time within *window*."""
    return any(window.meets(start_s, length_s) for start_s, length_s in _meanings(text, window))


def find_times(text: str) -> list[str]:
    """The parts of *text* that look like times, each once."""
    return [*dict.fromkeys(found[0] for found in _FOUND.finditer(text))]


def is_one_of(time: str, others: Iterable[str], window: Window) -> bool:
    """Whether one of *others* may be the same time as *time*, however it is written."""
    wanted = set(_meanings(time, window))
    return any(time == other or not wanted.isdisjoint(_meanings(other, window)) for other in others)


def _meanings(time: str, window: Window) -> Iterator[tuple[float, float]]:
    return (span for reading in _readings(time) for span in _spans(*reading, window))


def holds_instant(text: str, window: Window) -> bool:
    """Whether a time within *window* stands in *text*, at least to the second, also between other letters."""
    spans = (span for found in _FOUND.finditer(text) for span in _meanings(found[0], window))
    if any(length_s <= 1 and window.meets(start_s, length_s) for start_s, length_s in spans):
        return True
    return any(
        _holds_number(text.lower(), floor(start_s * unit), ceil(end_s * unit), base)
        for start_s, end_s in window.spans
        for unit in _UNITS.values()
        for base in _ID_WORDS
    )


def _holds_number(text: str, first: int, last: int, base: int) -> bool:
    """Whether a number from *first* to *last* stands in *text*, written to *base*."""
    low, high = _to_base(first, base), _to_base(last, base)
    if last - first > last * _MAX_SHARE or len(low) != len(high):
        return False
    words = (found[0] for found in _ID_WORDS[base].finditer(text))
    return any(
        low <= word[at : at + len(low)] <= high for word in words for at in range(len(word) - len(low) + 1)
    )


def _to_base(number: int, base: int) -> str:
    written = ""
    while number:
        number, digit = divmod(number, base)
        written = _ID_DIGITS[digit] + written
    return written


def was_now_number(value: float, window: Window) -> bool:
    """Whether *value*, in s, ms, µs or ns since 1970, is a time within *window*."""
    return any(window.meets(*_cut_or_rounded(value / unit, 1 / unit)) for unit in _UNITS.values())


def _cut_or_rounded(start_s: float, length_s: float) -> tuple[float, float]:
    """The start and length of the time span that a number of this precision may mean."""
    return start_s - length_s / 2, length_s * 1.5


def _readings(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    for name, form in _FORMS.items():
        found = form.fullmatch(text)
        if found:
            yield name, {key: value for key, value in found.groupdict().items() if value is not None}


def _spans(form: str, fields: dict[str, str], window: Window) -> Iterator[tuple[float, float]]:
    """The start and length in seconds of each time span that *fields* may mean."""
    if form == "epoch":
        unit, number = next(iter(fields.items()))
        length_s = 10.0 ** -len(number.partition(".")[2]) / _UNITS[unit]
        yield _cut_or_rounded(float(number) / _UNITS[unit], length_s)
        return
    clock = _read_clock(fields)
    for zone in _zones(fields, window):
        for day in _days(form, fields, window, zone):
            if clock is None:
                start = datetime(day.year, day.month, day.day, tzinfo=zone)
                yield start.timestamp(), 86400.0
            elif (hour := clock[0]) < 24 and clock[1] < 60 and clock[2] < 60:
                start = datetime(day.year, day.month, day.day, hour, clock[1], int(clock[2]), tzinfo=zone)
                yield start.timestamp() + clock[2] % 1, clock[3]


def _read_clock(fields: dict[str, str]) -> tuple[int, int, float, float] | None:
    """Hour, minute, second, and the precision in seconds."""
    number = "1" if "hour1" in fields else "2"
    if f"hour{number}" not in fields:
        return None
    hour = int(fields[f"hour{number}"])
    half = fields.get(f"half{number}", "").lower()
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    second, fraction = fields.get(f"second{number}"), fields.get(f"fraction{number}", "")
    length_s = 60.0 if second is None else 10.0 ** -len(fraction)
    return hour, int(fields[f"minute{number}"]), float(f"{second or 0}.{fraction or 0}"), length_s


def _zones(fields: dict[str, str], window: Window) -> tuple[tzinfo, ...]:
    named = fields.get("zone1") or fields.get("zone2")
    if named is None:
        return window.zones
    if named[0] not in "+-":
        return (UTC,)
    minutes = int(named[1:3]) * 60 + int(named[-2:])
    return (timezone(timedelta(minutes=-minutes if named[0] == "-" else minutes)),) if minutes < 1440 else ()


def _days(form: str, fields: dict[str, str], window: Window, zone: tzinfo) -> Iterator[date]:
    nows = {datetime.fromtimestamp(at_s, zone).date() for span in window.spans for at_s in span}
    if form == "clock":
        yield from nows
        return
    years = [int(fields["year"])] if "year" in fields else sorted({now.year for now in nows})
    for year in years:
        for month, day in _months_and_days(form, fields):
            try:
                found = date(year, month, day)
            except ValueError:
                continue
            weekday = fields.get("weekday", "")[:3].lower()
            if not weekday or _DAYS[found.weekday()] == weekday:
                yield found


def _months_and_days(form: str, fields: dict[str, str]) -> list[tuple[int, int]]:
    if form == "turned":
        first, second = int(fields["first"]), int(fields["second_number"])
        return [(first, second), (second, first)]
    day = int(fields.get("day") or fields["day2"])
    month = fields.get("month") or fields["month2"]
    return [(int(month) if month.isdigit() else _MONTHS.index(month[:3].lower()) + 1, day)]

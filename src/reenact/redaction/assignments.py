"""``password=…``, ``api_key: …``, ``"token": "…"`` in running text.

Text is where false alarms hurt: code, prose and documentation speak of passwords all the time. So a
value counts only where its surroundings or its look say that it is one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote_plus

from reenact.redaction.edits import Edit
from reenact.redaction.names import CORES, HARMLESS, holds_numbers, is_secret_name
from reenact.redaction.placeholder import Placeholders

_CORE: Final = re.compile(CORES, re.IGNORECASE)
_HEAD: Final = re.compile(r"[A-Za-z0-9_\-]*\Z")
_TAIL: Final = re.compile(r"[A-Za-z0-9_\-]*")
_MAX_NAME: Final = 100
_ASSIGNED: Final = re.compile(
    r"""(?P<closed>\\*["'])?\]?(?P<joint>[ \t]*(?:=>|:=|[:=])[ \t]*)
    (?:(?P<quote>\\*["'`])(?P<quoted>.{0,4096}?)(?<!\\)(?P=quote)
      |(?P<bare>(?!-)[^\s"'`\\,;&<>(){}\[\]|]{1,1024}+)(?![(\[{]))""",
    re.VERBOSE,
)
_BARE_REST: Final = re.compile(r"[^\s\"'`\\,;&<>(){}\[\]|]*+")
_FIELD_START: Final = re.compile(r"(?P<joint>\A|[&?#])(?:[\w.-]+(?:\[|%5[Bb]))?\Z")
_FIELD: Final = re.compile(r"(?:%5[Dd]|\])?=(?P<value>[^&\s#\"'<>\\]{1,1024}+)(?P<joint>[&#\s]|\Z|)")
_FIELD_REST: Final = re.compile(r"[^&\s#\"'<>\\]*+")
_MAX_JOINT: Final = 3
"""What can stand between a name and its value inside another value: ``]:=``."""
_JUDGED_CHARS: Final = 1024
"""A value is judged by its beginning. In ``secret=secret=…`` each value holds all that follow, and reading
each to its end would take time quadratic in the text; what is replaced is read to its end once."""

AFTER_NAME: Final = rb"[\w\-]*+(?:%5d)?[\]\\\"'`\st]*+[:=](?!\s*(?:\[|\{(?!\"\$py\")))"
"""What follows a core in a text with an assignment, for the prefilter; in lowercase."""


def assignment_edits(text: str, placeholders: Placeholders, *, strict: bool) -> Iterator[Edit]:
    """Edits for the values that *text* assigns to secret names."""
    has_logprobs = "logprob" in text
    done = 0
    for start, end in _names(text):
        name = text[start:end]
        is_inside = end + _MAX_JOINT < done
        if is_inside or not is_secret_name(name) or (has_logprobs and name == "token"):
            continue
        span = _field_value(text, start, end) or _assigned_value(text, name, end, strict=strict)
        if span is not None:
            done = span[1]
            yield Edit(*span, placeholders.of(_plain(text[slice(*span)])))


def _names(text: str) -> Iterator[tuple[int, int]]:
    done = 0
    for core in _CORE.finditer(text):
        if core.start() >= done:
            head = _HEAD.search(text[max(done, core.start() - _MAX_NAME) : core.start()])
            tail = _TAIL.match(text, core.end())
            assert head is not None
            assert tail is not None
            done = tail.end()
            yield core.start() - len(head[0]), done


def _field_value(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The value of a form field or query parameter: it stands between separators, so it is a value."""
    before = _FIELD_START.search(text, max(0, start - _MAX_NAME), start)
    field = _FIELD.match(text, end) if before is not None else None
    if before is None or field is None or HARMLESS.match(field["value"]):
        return None
    is_long = len(field["value"]) == _JUDGED_CHARS
    if not (is_long or field["joint"] or field.end() == len(text)):
        return None
    is_call = not before["joint"] and (field["joint"].isspace() or "(" in field["value"])
    return None if is_call else _whole(text, field.span("value"), _FIELD_REST)


def _assigned_value(text: str, name: str, end: int, *, strict: bool) -> tuple[int, int] | None:
    found = _ASSIGNED.match(text, end)
    if found is None:
        return None
    group = "quoted" if found["quoted"] is not None else "bare"
    value = found[group]
    if HARMLESS.match(value):
        return None
    if group == "quoted":
        is_value = found["closed"] is not None or (len(value) >= 4 and not re.search(r"\s", value))
    elif found["closed"] is not None:
        is_value = value.isdigit() and holds_numbers(name)
    else:
        is_variable = found["joint"] == "=" and (strict or name.isupper())
        is_value = _looks_secret(value) or (is_variable and _is_word(value))
    if not is_value:
        return None
    return found.span("quoted") if group == "quoted" else _whole(text, found.span("bare"), _BARE_REST)


def _whole(text: str, span: tuple[int, int], rest: re.Pattern[str]) -> tuple[int, int]:
    """The span of a value whose beginning was judged, to its end."""
    found = rest.match(text, span[1])
    assert found is not None
    return span[0], found.end()


def _looks_secret(value: str) -> bool:
    """Whether a word without quotes is a value rather than prose or an expression of a program."""
    return len(value) >= 6 and bool(re.search(r"\d", value))


def _is_word(value: str) -> bool:
    """Whether a word without digits is a value: no reference to something that has a secret name."""
    return len(value) >= 4 and not re.search(rf"(?i:{CORES})|[./]", value)


def _plain(value: str) -> str:
    """The value behind the escapes of JSON and of forms."""
    if "\\" in value:
        try:
            value = json.loads(f'"{value}"')
        except ValueError:
            return value
    return unquote_plus(value) if "%" in value else value

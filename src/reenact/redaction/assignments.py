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
      |(?P<bare>(?!-)[^\s"'`\\,;&<>(){}\[\]|]++)(?![(\[{]))""",
    re.VERBOSE,
)
_FIELD_START: Final = re.compile(r"(?P<joint>\A|[&?#])(?:[\w.-]+(?:\[|%5[Bb]))?\Z")
_FIELD: Final = re.compile(r"(?:%5[Dd]|\])?=(?P<value>[^&\s#\"'<>\\]+)(?P<joint>[&#\s]|\Z)")

AFTER_NAME: Final = rb"[\w\-]*+(?:%5d)?[\]\\\"'`\st]*+[:=](?!\s*(?:\[|\{(?!\"\$py\")))"
"""What follows a core in a text with an assignment, for the prefilter; in lowercase."""


def assignment_edits(text: str, placeholders: Placeholders, *, strict: bool) -> Iterator[Edit]:
    """Edits for the values that *text* assigns to secret names."""
    has_logprobs = "logprob" in text
    for start, end in _names(text):
        name = text[start:end]
        if not is_secret_name(name) or (has_logprobs and name == "token"):
            continue
        span = _field_value(text, start, end) or _assigned_value(text, name, end, strict=strict)
        if span is not None:
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
    field = _FIELD.match(text, end)
    before = _FIELD_START.search(text, max(0, start - _MAX_NAME), start)
    if field is None or before is None or HARMLESS.match(field["value"]):
        return None
    is_call = not before["joint"] and (field["joint"].isspace() or "(" in field["value"])
    return None if is_call else field.span("value")


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
    return found.span(group) if is_value else None


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

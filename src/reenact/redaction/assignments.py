"""Finds the values that a text assigns to secret names: ``password = …``, form fields, options, settings.

Code, prose and documentation mention passwords all the time, so false alarms are likely. A value counts
only if its context or its own form shows that it is a secret.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote_plus

from reenact.lazy_regex import LazyRegex
from reenact.redaction.edits import Edit
from reenact.redaction.names import CORES, HARMLESS, core_spans, holds_numbers, is_secret_name
from reenact.redaction.nearby import is_mixed, nearby_value, value_before
from reenact.redaction.placeholder import Placeholders

_HEAD: Final = LazyRegex(r"[A-Za-z0-9_\-]*\Z")
_TAIL: Final = LazyRegex(r"[A-Za-z0-9_\-]{0,200}+")
_ESCAPE: Final = LazyRegex(r"[0-9A-Fa-f]{2}")
_MAX_NAME: Final = 100
_ASSIGNED: Final = LazyRegex(
    r"""(?P<closed>\\*["'])?\]?\*{0,2}
    (?P<joint>(?<=-)>[ \t]*|[ \t]*(?:=>|->|→|==|:=|:[ \t]*[A-Za-z][\w.\[\]|!]{0,40}[ \t]*=|[:=])\*{0,2}[ \t]*)
    (?:(?:[bru]{0,2}|(?:\w{0,20}Secret\w{0,20}|Some|Just|String|str|bytes)\(b?)
        (?P<quote>(?P<mark>\\*["'`])(?P<triple>(?P=mark){2})?)
        (?P<quoted>(?(triple)[\s\S]{0,4096}?|.{0,4096}?))(?:(?<!\\)(?P=quote)|\Z)
      |(?P<bare>(?!-(?:-|\s|\Z))[^\s"'`\\,;&<>(){}\[\]|]{1,1024}+)(?![(\[{]))""",
    re.VERBOSE,
)
_BARE_REST: Final = LazyRegex(r"[^\s\"'`\\,;&<>(){}\[\]|]*+")
_FIELD_START: Final = LazyRegex(r"(?P<joint>\A|[&?#])(?:-D|[\w.\-\[\]%]{1,100}(?:\[|%5[Bb]|\.))?\Z")
_FIELD: Final = LazyRegex(
    r"(?:%5[Dd]|\]|(?:\[|%5[Bb])\d*(?:\]|%5[Dd]))?=(?P<value>[^&\s#\"'<>\\]{1,1024}+)(?P<joint>[&#\s]|\Z|)"
)
_AMONG_SETTINGS: Final = LazyRegex(
    r"(?:\A|[;\s\"'])[A-Za-z][\w. ]{0,40}=(?:[^;\n=\"'(){}]{0,200};[ \t]*|[^\s;=\"'(){}]{0,200}[ \t]+)\Z"
)
"""A setting of the same line before this one, as in ``Server=h;Password=`` and ``host=h password=``."""
_SETTING_OF_LINE: Final = LazyRegex(
    r"=(?:(?P<value>[^;\s\"'(){}<>\\]{1,1024})|\{(?P<braced>[^{}\"\n]{1,256})\})(?=[;\s\"']|\Z)"
)
"""ODBC writes a value with special characters in braces; templates do that with names."""
_FIELD_REST: Final = LazyRegex(r"[^&\s#\"'<>\\]*+")
_MAX_JOINT: Final = 3
"""The most characters between a name and its value inside another value: ``]:=``."""
_JUDGED_CHARS: Final = 1024
"""A value is judged by its first characters. In ``secret=secret=…`` each value contains all that follow, so
that reading each to its end would take quadratic time; only a value that is replaced is read to its end."""
_BEHIND_OPTION: Final = LazyRegex(r"(?<!\S)--?[A-Za-z][\w\-]{0,30}[ =]?[\"']?(?:[\w\-]+\.)*\Z")
"""``-d password=…``, ``-Dpassword=…``, ``--set db.password=…``: options that take a setting."""
_CALL_START: Final = LazyRegex(r"[({,]\s{0,20}[\"']?\Z")
_SETTING: Final = LazyRegex(
    r"\s*(?:[#;].*|```\w*|\[[^\]]+\]|(?:-\s+)*(?:export\s+)?(?://\S+?:)?[\w.\-]+\s*[=:](?:\s+\S.*|\S.*)?)\Z"
)
_BEFORE_NAME: Final = LazyRegex(r"[ \t\-]*(?:export[ \t]+)?(?://\S*:)?(?:[\w\-]+\.)*\Z")
_VARIABLE: Final = LazyRegex(r"(?:\A|(?<=\n))[ \t]*(?:(?:export|set|ENV)[ \t]+)?\Z")
_VARIABLE_VALUE: Final = LazyRegex(r"=(?!\$\()(?P<value>[^\s\"'`]{1,1024}+)(?=\s|\Z)")
_FUNCTION_CALL: Final = LazyRegex(r"[\w.]+\(.*\)\Z")
_CODE: Final = LazyRegex(r"[(){}]|;\s*\Z|\b(?:await|new|const|let|var|def|return|self|this)\b")
_SETTING_VALUE: Final = LazyRegex(
    r"[ \t]*[=:][ \t]*(?P<value>[^\s\"'#;\[{][^\n#]{0,1024}?)[ \t]*(?:#.*)?\r?$", re.M
)
_OPTION_VALUE: Final = LazyRegex(
    r"(?:[ \t]+|[\"'],\s*)(?:(?P<quote>[\"'])(?P<quoted>[^\"'\n]{1,4096})(?P=quote)"
    r"|(?P<bare>(?!--?(?:[A-Za-z]|\s|\Z))[^\s\"'`\\;&<>(){}|]{1,1024}+))"
)
_SETS_VARIABLE: Final = LazyRegex(
    r"(?:\A|[\n;&|({\"'`>$]|\b(?i:run|sudo)\b)[ \t]*(?i:setx|setenv|set[ \t]+-\w{1,4}|env)[ \t]+\Z"
)
"""Commands that set a variable to the word after its name."""
_GOES_ON: Final = LazyRegex(r"\s*(?:\Z|[-|&;>\n]|\S*[/.=\d])")
_MAX_BLOCK: Final = 2000
_REFERENCE: Final = LazyRegex(r"[\w\-]*(?:/[\w.\-]*)+|\w*(?:\.\w+(?:-\w+)*)+\.?|[\w\-]+(?:\.\w+(?:-\w+)*)+")
"""A path, or names joined by dots."""

AFTER_NAME: Final = (
    rb"[\w\-]{0,200}+(?:%(?:25)*+(?:22|27|5d|5b|20))*+(?:\[\d*\])?[\]\\\"'`*\stnr]{0,100}+(?:[:=]|(?<=-)>|->|\xe2\x86\x92|(?<=\\)u2192|%(?:25)*+3[ad])"
    rb"(?!\s*(?:(?:none|null|nil)(?:\\+[rn]|[\r\n])"  # no value, and nothing else in the line
    rb"|\[(?!\s*\\*\")|\{(?!\"\$py\"|[^{}\s\"]{6,256}\}(?:[;\"\\\s]|\Z)|[^{}]{0,300}"
    rb"(?:value|val|plain|plaintext|string|text|raw|current|content|data|new|old|\"v|\"s)\\*\")))"
)
"""For the prefilter: the lowercase text after a core of a name in an assignment."""


def assignment_edits(text: str, placeholders: Placeholders, *, strict: bool) -> Iterator[Edit]:
    """Edits for the values that *text* assigns to secret names."""
    has_logprobs = "logprob" in text
    done = 0
    for start, end in _names(text):
        name = text[start:end]
        is_inside = end + _MAX_JOINT < done
        if is_inside or not is_secret_name(name) or (has_logprobs and name == "token"):
            continue
        span = (
            _field_value(text, start, end)
            or _variable_value(text, start, end)
            or _value_among_settings(text, start, end)
            or _assigned_value(text, start, end, strict=strict)
            or _option_value(text, start, end)
            or _setting_value(text, start, end)
            or nearby_value(text, start, end)
            or value_before(text, start)
        )
        if span is not None:
            done = span[1]
            yield Edit(*span, placeholders.of(_unescape(text[slice(*span)])))


def _names(text: str) -> Iterator[tuple[int, int]]:
    done = 0
    for core_start, core_end in core_spans(text):
        if core_start >= done:
            head = _HEAD.search(text[max(done, core_start - _MAX_NAME) : core_start])
            tail = _TAIL.match(text, core_end)
            assert head is not None
            assert tail is not None
            start, done = core_start - len(head[0]), tail.end()
            # An escape or ``-D`` before the name is not a part of it: ``user%5Bpassword%5D=``.
            is_escape = text[start - 1 : start] == "%" and _ESCAPE.match(head[0])
            yield start + (2 if is_escape or text.startswith("-D", start) else 0), done


def _field_value(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The value of a form field or query parameter; any text between the separators counts."""
    before = _FIELD_START.search(text, max(0, start - _MAX_NAME), start)
    field = _FIELD.match(text, end) if before is not None else None
    if before is None or field is None or HARMLESS.match(field["value"]):
        return None
    is_long = len(field["value"]) == _JUDGED_CHARS
    if not (is_long or before["joint"] or field["joint"] or field.end() == len(text)):
        return None
    is_call = not before["joint"] and (field["joint"].isspace() or "(" in field["value"])
    return None if is_call else _extend_to_end(text, field.span("value"), _FIELD_REST)


def _variable_value(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The value of ``export DB_PASSWORD=…`` on its own line, with any characters."""
    if not text[start:end].isupper():
        return None
    found = _VARIABLE_VALUE.match(text, end)
    line_start = text.rfind("\n", 0, start) + 1
    if found is None or not _VARIABLE.match(text[line_start:start]):
        return None
    value = found["value"]
    is_value = (looks_secret(value) or _is_word(value)) and not _FUNCTION_CALL.match(value)
    return found.span("value") if is_value and not HARMLESS.match(value) else None


def _value_among_settings(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The value among settings in one line: ``Server=h;Password=letmein;``, ``host=h password=letmein``."""
    found = _SETTING_OF_LINE.match(text, end)
    if found is None or not _AMONG_SETTINGS.search(text, max(0, start - 250), start):
        return None
    if found["braced"]:
        return found.span("braced") if is_lone_value(found["braced"]) else None
    value = found["value"]
    is_value = looks_secret(value) or _is_word(value)
    return found.span("value") if is_value and not HARMLESS.match(value) else None


def _assigned_value(text: str, start: int, end: int, *, strict: bool) -> tuple[int, int] | None:
    found = _ASSIGNED.match(text, end)
    if found is None:
        return None
    name = text[start:end]
    group = "quoted" if found["quoted"] is not None else "bare"
    value = found[group]
    if HARMLESS.match(value):
        return None
    if "==" in found["joint"] and not is_lone_value(value):  # code of parsers compares tokens with words
        return None
    if group == "quoted":
        is_value = found["closed"] is not None or (len(value) >= 4 and not re.search(r"\s", value.strip()))
        is_value = is_value or (
            bool(value) and _CALL_START.search(text, max(0, start - 25), start) is not None
        )
    elif found["closed"] is not None:
        is_value = value.isdigit() and holds_numbers(name)
    else:
        is_certain = strict or name.isupper() or name.startswith("--") or is_lone_value(value)
        is_setting = _BEHIND_OPTION.search(text, max(0, start - 40), start) is not None
        is_variable = found["joint"] == "=" and (is_certain or is_setting)
        is_value = looks_secret(value) or (is_variable and _is_word(value, may_refer=not is_setting))
    if not is_value:
        return None
    return found.span("quoted") if group == "quoted" else _extend_to_end(text, found.span("bare"), _BARE_REST)


def _option_value(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The next word in a command line, not in prose: ``--password letmein``, ``setx PASSWORD letmein``."""
    is_option = text[start] == "-" and len(text[start:end].strip("-")) > 1
    is_variable = text[start:end].isupper() and _SETS_VARIABLE.search(text, max(0, start - 40), start)
    found = _OPTION_VALUE.match(text, end) if is_option or is_variable else None
    if found is None:
        return None
    group = "quoted" if found["quoted"] is not None else "bare"
    value = found[group]
    is_value = group == "quoted" or looks_secret(value)
    is_value = is_value or (_is_word(value) and _GOES_ON.match(text, found.end(group)) is not None)
    return found.span(group) if is_value and not HARMLESS.match(value) else None


def _setting_value(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The value of ``password = letmein`` among other lines of this form: INI, dotenv, YAML."""
    value = _SETTING_VALUE.match(text, end)
    line_start = text.rfind("\n", 0, start) + 1
    if (
        value is None
        or start - line_start > _MAX_BLOCK
        or not _BEFORE_NAME.match(text[line_start:start])
        or HARMLESS.match(value["value"])
    ):
        return None
    if "=" in value[0][: value.start("value") - value.start()] and not _is_word(value["value"]):
        return None
    block = _nearby_lines(text, line_start, end)
    if not all(_SETTING.match(line) for line in block) or any(map(_CODE.search, block)):
        return None
    is_alone = len(block) == 1
    if is_alone and (len(text.strip()) > _MAX_NAME or not _is_word(value["value"]) or " " in value["value"]):
        return None
    return value.span("value")


def _nearby_lines(text: str, line_start: int, end: int) -> list[str]:
    """The nearby lines up to the next empty ones."""
    before = text[max(0, line_start - _MAX_BLOCK) : line_start]
    after = text[line_start : end + _MAX_BLOCK]
    lines = [*re.split(r"\n\s*\n", before)[-1].splitlines()[1 if len(before) == _MAX_BLOCK else 0 :]]
    rest = re.split(r"\n\s*\n", after)[0].splitlines()
    return [line for line in (*lines, *(rest[:-1] if len(after) > _MAX_BLOCK else rest)) if line.strip()]


def _extend_to_end(text: str, span: tuple[int, int], rest: LazyRegex[str]) -> tuple[int, int]:
    """Extend the span of a value to its end; only its first characters were judged."""
    found = rest.match(text, span[1])
    assert found is not None
    return span[0], found.end()


def looks_secret(value: str) -> bool:
    """Whether an unquoted word is a value, not prose or an expression in code."""
    return len(value) >= 6 and (bool(re.search(r"\d", value)) or is_mixed(value))


def is_lone_value(value: str) -> bool:
    """Whether the second string of a single pair is a value; it may also be the next in a list of names."""
    is_name = value.isidentifier() or re.search(r"\s", value) is not None
    return looks_secret(value) or (len(value) >= 6 and not is_name and not is_secret_name(value))


def _is_word(value: str, *, may_refer: bool = True) -> bool:
    """Whether a word without digits is a value, and not a reference to something with a secret name."""
    is_reference = may_refer and _REFERENCE.fullmatch(value) is not None
    return len(value) >= 4 and not is_reference and not re.search(rf"(?i:{CORES})", value)


def _unescape(value: str) -> str:
    """Decode the escapes of JSON and of forms."""
    if "\\" in value:
        try:
            value = json.loads(f'"{value}"')
        except ValueError:
            return value
    return unquote_plus(value) if "%" in value else value

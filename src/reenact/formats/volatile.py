"""Rules for values that differ from run to run, which a replay ignores.

A rule has a pattern of JSON paths (:mod:`json_paths`). Without a mask, the values there are not compared;
with one, only the matches of this regular expression (RE2) in the texts there and below are not compared.

In ``reenact.toml``::                            On the command line and in Python::

    [[volatile]]                                    llm $.body.input[*].output =~ Wall time: [0-9.]+ seconds
    call = "llm"
    path = "$.body.input[*].output"
    mask = 'Wall time: [0-9.]+ seconds'
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from reenact.errors import FormatError
from reenact.formats.json_paths import PathPattern, Wildcard
from reenact.formats.pattern import Pattern
from reenact.formats.record import ABSENT, Absent, Codec, Record

TABLE: Final = "volatile"
"""The array of tables in ``reenact.toml``."""
KINDS: Final = {"llm_request": "llm", "tool_call": "tool", "state_mutation": "state"}
"""The kind of call in a rule, by event type; other calls are named by their source."""
_PATH: Final = re.compile(r"(?<!\S)\$")  # a tool's name may contain the sign
_REGEX: Final = re.compile(r"\s*=~ (?P<mask>.+)", re.DOTALL)


_ANY_TEXTS: Final = ("x", "7", "Hello, world!", '{"a": [1]}', "first\nsecond line", "Grüße")


class VolatileRule(Record, frozen=True):
    """One rule; its path and mask are checked when it is read from a file or an option."""

    path: str
    """A path in the request, as in divergences."""
    mask: str | Absent = ABSENT
    call: str | Absent = ABSENT
    """Only for calls of this kind (``llm``, ``tool``, ``network``…), or kind and name (``tool search``)."""

    @classmethod
    def parse(cls, text: str) -> VolatileRule:
        """A rule from one line: ``[CALL] PATH [=~ MASK]``."""
        start = _PATH.search(text)
        if start is None:
            raise FormatError(f"{text!r} names no path; write for example: llm $.body.user")
        call, rest = text[: start.start()], text[start.start() :]
        _, end = PathPattern.parse_beginning(rest)
        path, behind = rest[:end], rest[end:]
        found = _REGEX.fullmatch(behind)
        if behind.strip() and found is None:
            raise FormatError(f"{behind.strip()!r} is neither path nor mask; write PATH =~ MASK")
        return check_rule(
            cls(path=path, mask=found["mask"] if found else ABSENT, call=" ".join(call.split()) or ABSENT)
        )

    def to_toml(self) -> str:
        """The rule as a table for ``reenact.toml``."""
        lines = [f"[[{TABLE}]]"]
        for name, value in (("call", self.call), ("path", self.path), ("mask", self.mask)):
            if value is not ABSENT:
                lines.append(f"{name} = {_toml_text(value)}")
        return "\n".join(lines) + "\n"

    def __str__(self) -> str:
        call = "" if self.call is ABSENT else f"{self.call} "
        return f"{call}{self.path}" + ("" if self.mask is ABSENT else f" =~ {self.mask}")


AnyRule: TypeAlias = VolatileRule | Mapping[str, Any] | str
rule_codec: Final[Codec[VolatileRule]] = Codec(VolatileRule)


def read_rule(value: AnyRule) -> VolatileRule:
    """The rule in *value*, which may have any of the forms."""
    if isinstance(value, str):
        return VolatileRule.parse(value)
    if isinstance(value, VolatileRule):
        return check_rule(value)
    return check_rule(rule_codec.from_json(dict(value)))


def check_rule(rule: VolatileRule) -> VolatileRule:
    """Return *rule*; :class:`FormatError` if it cannot be applied."""
    for name in rule.extra:  # an unknown member may restrict the rule
        raise FormatError(f"{name!r} is unknown; a rule has path, mask and call")
    is_everywhere = all(isinstance(step, Wildcard) for step in PathPattern.parse(rule.path).steps)
    if is_everywhere and rule.mask is ABSENT:
        raise FormatError(f"{rule.path} is everything that was asked; name the part that may differ")
    if is_everywhere and rule.mask is not ABSENT and _takes_words(rule.mask):
        raise FormatError(
            f"the mask {rule.mask!r} finds every word, and {rule.path} is everything that was asked; "
            "name the part that may differ"
        )
    if rule.mask is not ABSENT and _takes_all(rule.mask):
        raise FormatError(
            f"the mask {rule.mask!r} matches every text completely; name the part that may differ"
        )
    if rule.mask is not ABSENT and Pattern(rule.mask).search([""]) != [False]:
        raise FormatError(
            f"the mask {rule.mask!r} finds nothing in every text; let it find at least one sign"
        )
    return rule


def _takes_all(mask: str) -> bool:
    pattern = Pattern(mask)
    return all(not pattern.replace(text, "") for text in _ANY_TEXTS)


def _takes_words(mask: str) -> bool:
    return not any(map(str.isalpha, Pattern(mask).replace("first\nsecond line", "")))


def rules_in(project: Mapping[str, object], *, file: str) -> tuple[VolatileRule, ...]:
    """The rules of a ``reenact.toml``."""
    tables = project.get(TABLE, [])
    if not isinstance(tables, list) or not all(isinstance(table, Mapping) for table in tables):
        raise FormatError(f"expected tables [[{TABLE}]]", file=file, json_path=f"$.{TABLE}")
    return read_rules(tables, file=file)


def read_rules(values: Iterable[AnyRule], *, file: str) -> tuple[VolatileRule, ...]:
    """The rules in the member ``volatile`` of *file*."""
    rules = []
    for number, value in enumerate(values):
        try:
            rules.append(read_rule(value))
        except FormatError as error:
            below = (error.json_path or "$").removeprefix("$")
            place = f"$.{TABLE}[{number}]{below}"
            raise FormatError(error.reason, file=file, json_path=place) from None
    return tuple(rules)


def describe_call(event_type: str, name: str) -> str:
    """The name of a call of this type and name in rules."""
    return f"{KINDS[event_type]} {name}".strip() if event_type in KINDS else name.replace("/", " ", 1)


def _toml_text(text: str) -> str:
    if "'" not in text and text.isprintable():
        return f"'{text}'" if "\\" in text or '"' in text else f'"{text}"'
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")

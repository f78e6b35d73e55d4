"""What the tests of the formats share: golden files, the examples of the docs, JSON at random."""

import re
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"

UNREADABLE = {
    "empty": b"",
    "white space": b" \n",
    "binary": bytes(range(256)),
    "truncated": b'{"a": [1, 2',
    "invalid UTF-8": b'{"a": "\xff"}',
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "lone surrogate": b'{"a": "\\ud800"}',
    "duplicate key": b'{"a": 1, "a": 2}',
    "NaN": b'{"a": NaN}',
    "integer beyond 64 bits": b'{"a": 18446744073709551616}',
    "deep nesting": b'{"a": ' + b"[" * 300 + b"]" * 300 + b"}",
    "bottomless nesting": b"[" * 100_000,
    "two values": b"{} {}",
    "an array": b"[]",
    "a number": b"5",
    "null": b"null",
    "an empty object": b"{}",
}
"""Bytes that are no record of any format, by what is wrong with them."""


def golden_files(folder, pattern="*.json"):
    """The golden files of a format, for a parametrized test."""
    return sorted((GOLDEN / folder).glob(pattern))


def examples(page, kind):
    """The fenced blocks of a page of ``docs/formats`` that are marked as a *kind*."""
    text = (ROOT / "docs" / "formats" / page).read_text(encoding="utf-8")
    return [block.encode() for block in re.findall(rf'^```\w+ title="{kind}"\n(.*?)^```$', text, re.M | re.S)]


law = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""For every property: a busy machine is no counterexample."""

texts = st.text(st.characters(codec="utf-8"), max_size=8)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda children: st.lists(children, max_size=3) | st.dictionaries(texts, children, max_size=3),
    max_leaves=6,
)


def unknown_fields():
    """Fields no version of a format knows; the mark keeps them apart from those it does."""
    return st.dictionaries(texts.map("x-".__add__), json_values, max_size=2)


def record(required, optional=None):
    """Objects with all of *required*, some of *optional*, and unknown fields."""
    known = st.fixed_dictionaries(required, optional=optional or {})
    return st.builds(lambda fields, extra: {**fields, **extra}, known, unknown_fields())

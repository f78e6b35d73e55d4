"""Patterns from outside: found, refused, and never endless."""

import time

import pytest

from reenact.errors import FormatError
from reenact.formats.pattern import MAX_STEPS, Pattern

FOUND = {
    "in the middle": ("b+", "abbc", True),
    "not there": ("x", "abc", False),
    "case ignored": ("(?i)ABC", "xabcx", True),
    "the whole text": ("^abc$", "abc", True),
    "the end is the end": ("^abc$", "abc\n", False),
    "every line when asked": ("(?m)^b$", "a\nb\nc", True),
    "beyond ASCII": ("^é.$", "é☀", True),
    "the empty text": ("^$", "", True),
}


@pytest.mark.parametrize("name", FOUND)
def test_patterns_search(name):
    """In RE2's syntax."""
    pattern, text, expected = FOUND[name]
    assert Pattern(pattern).search([text, text]) == [expected, expected]


@pytest.mark.parametrize("pattern", ["[", "(", "*", r"(a)\1", "(?=a)", "(?<!a)b", "a{1,2000}", "\ud800"])
def test_what_is_no_pattern_is_refused(pattern):
    """So are back references and looking around, which no linear search can have."""
    with pytest.raises(FormatError, match=r"\Anot a pattern of RE2's syntax: ."):
        Pattern(pattern)


HOSTILE = {
    "nested repetition": ("(a+)+$", "a" * 100_000 + "!"),
    "overlapping choice": ("(a|aa|a?)+b$", "a" * 100_000 + "!"),
    "many stars": (".*.*.*.*.*.*=.*", "a" * 100_000),
    "a large counter": ("[ab]*a[ab]{900}c", "ab" * 50_000),
    "nested counters": ("(([ab]{0,30}){0,30}){1,1}c", "ab" * 50_000),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_patterns_end(name):
    """Backtracking would take longer than the universe has been there."""
    pattern, text = HOSTILE[name]
    start = time.monotonic()
    assert Pattern(pattern).search([text]) != [True]
    assert time.monotonic() - start < 30


def test_too_much_work_is_not_begun():
    """The size of the pattern times that of all texts decides, so the answer never depends on the machine."""
    pattern = Pattern("(" + "[ab]?" * 900 + ")c")
    assert pattern.search(["ab" * 10]) == [False]
    assert pattern.search(["ab" * (MAX_STEPS // 1800), "c"]) == [None, None]


def test_a_lone_surrogate_is_no_text():
    """It cannot be told what a pattern would find in it."""
    assert Pattern("a").search(["\ud800"]) == [None]

"""The words of what was removed from a log, and their removal from the texts that stay.

An error message likes to repeat the parameters. A word that the log itself uses as a name is none of these.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeAlias

MIN_WORD_CHARS: Final = 8
MANY_WORDS: Final = 20_000
_WORD: Final = re.compile(r"\w+")
_SPACED: Final = re.compile(r"\S+")
MASK: Final = "…"


def words_of(value: Any) -> Iterator[str]:
    """The words of a JSON value, keys included, as far as they are long enough to tell something.

    A word is a run of letters, digits and underscores, or of anything but white space, or a whole string.
    """
    if isinstance(value, dict):
        for key, child in value.items():
            yield from words_of(key)
            yield from words_of(child)
    elif isinstance(value, list):
        for child in value:
            yield from words_of(child)
    elif value is not None and not isinstance(value, bool):
        text = str(value)
        for word in (text.strip(), *_SPACED.findall(text), *_WORD.findall(text)):
            if len(word) >= MIN_WORD_CHARS:
                yield word


def masker(words: Iterable[str], names: Iterable[str]) -> Callable[[str], str]:
    """What replaces each of *words* in a text, but for those that are *names*."""
    patterns = set(words).difference(names)
    if not patterns:
        return lambda text: text
    find = _found_by_beginning(patterns) if len(patterns) > MANY_WORDS else _found_by_automaton(patterns)

    def masked(text: str) -> str:
        pieces, done = [], 0
        for start, end in find(text):
            pieces += [text[done:start], MASK]
            done = end
        return "".join([*pieces, text[done:]])

    return masked


_Find: TypeAlias = Callable[[str], Iterable[tuple[int, int]]]
"""Where words stand in a text, one behind the other: the first one, and of several there the longest."""


def _found_by_automaton(words: set[str]) -> _Find:
    from ahocorasick_rs import AhoCorasick, MatchKind

    matcher = AhoCorasick(sorted(words), matchkind=MatchKind.LeftmostLongest)
    return lambda text: ((start, end) for _, start, end in matcher.find_matches_as_indexes(text))


def _found_by_beginning(words: set[str]) -> _Find:
    """The same by the characters that every word has: an automaton of many words takes minutes to make."""
    beginnings: dict[str, set[int]] = {}
    for word in words:
        beginnings.setdefault(word[:MIN_WORD_CHARS], set()).add(len(word))
    lengths = {beginning: sorted(found, reverse=True) for beginning, found in beginnings.items()}

    def find(text: str) -> Iterator[tuple[int, int]]:
        start = 0
        while start <= len(text) - MIN_WORD_CHARS:
            known = lengths.get(text[start : start + MIN_WORD_CHARS], ())
            length = next((size for size in known if text[start : start + size] in words), 0)
            if length:
                yield start, start + length
            start += length or 1

    return find

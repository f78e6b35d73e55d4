"""The words of what was removed from a log, and their removal from the texts that stay.

An error message likes to repeat the parameters. A word that the log itself uses as a name is none of these.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

MIN_WORD_CHARS: Final = 8
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
    from ahocorasick_rs import AhoCorasick, MatchKind

    patterns = sorted(set(words).difference(names))
    if not patterns:
        return lambda text: text
    matcher = AhoCorasick(patterns, matchkind=MatchKind.LeftmostLongest)

    def masked(text: str) -> str:
        pieces, done = [], 0
        for _, start, end in matcher.find_matches_as_indexes(text):
            pieces += [text[done:start], MASK]
            done = end
        return "".join([*pieces, text[done:]])

    return masked

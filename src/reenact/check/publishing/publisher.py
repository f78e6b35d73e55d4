"""A log in the forms in which it may be published, one per policy.

The words of what was removed are taken out of the texts that stay, because an error message likes to repeat
the parameters. A word that the log itself uses as a name is none of these.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, Final, TypeAlias

from reenact.check.publishing.policies import (
    KINDS,
    POLICIES,
    Cleaner,
    MemberKind,
    PolicyName,
    Wording,
    fields_of,
    publish_event,
    wording,
)
from reenact.formats.dialects import Event
from reenact.formats.dialects.common import Dialect
from reenact.formats.record import ABSENT
from reenact.formats.seal import SealedLine

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


class Publisher:
    """Publishes the events of one log; who knows *seed* can undo the blinding of names and hashes.

    Only the policy ``open`` needs the whole log first: *events* is not looked at for others.
    """

    def __init__(
        self,
        events: Iterable[Event],
        dialect: Dialect[Any],
        seed: bytes,
        policies: Collection[PolicyName] = POLICIES,
        outputs: Iterable[Any] = (),
    ) -> None:
        """*outputs* are what the tools returned, where more of it is known than the log has."""
        self._to_json = dialect.to_json
        key = hmac.digest(seed, b"reenact-seal-blinding-v1", "sha256")
        cleaner = Cleaner(key)
        masked: Callable[[str], str] = str
        if "open" in policies:
            masked = _masker(events, dialect, wording("open", key, cleaner, str), outputs)
        self._words: dict[PolicyName, Wording] = {
            policy: wording(policy, key, cleaner, masked) for policy in policies
        }

    def publish(self, event: Event, policy: PolicyName) -> dict[str, Any] | None:
        """*event* under *policy*; ``None`` where it may not be published."""
        return publish_event(event, self._to_json(event), self._words[policy])

    def sealed(self, event: Event) -> SealedLine:
        """*event* in all its forms."""
        line = self._to_json(event)
        forms = {policy: publish_event(event, line, words) for policy, words in self._words.items()}
        known = {policy: form for policy, form in forms.items() if form is not None}
        return SealedLine(original=line, **known)


def _masker(
    events: Iterable[Event], dialect: Dialect[Any], unmasked: Wording, outputs: Iterable[Any]
) -> Callable[[str], str]:
    """What takes the words of everything that is removed from the log out of its texts."""
    words = {word for output in outputs for word in words_of(output)}
    names: set[str] = set()
    for event in events:
        line = dialect.to_json(event)
        kept = fields_of(publish_event(event, line, unmasked) or {})
        for path, value in fields_of(line).items():
            shown = set(words_of(kept.get(path)))
            words.update(word for word in words_of(value) if word not in shown)
            if path not in kept:
                words.update(words_of(path))
            if KINDS.get(path.removeprefix("$.")) is MemberKind.NAME:
                names |= shown
    return masker(words, names)


def forms_of(line: SealedLine) -> Iterator[tuple[PolicyName, dict[str, Any]]]:
    """The forms in which a sealed line may be published."""
    for policy, form in zip(POLICIES, (line.open, line.private, line.paranoid), strict=True):
        if form is not ABSENT:
            yield policy, form

"""A log in the forms in which it may be published, one per policy."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from reenact.check.commitment import fields_of
from reenact.check.layer_c import KINDS, POLICIES, Cleaner, Kind, PolicyName, Wording, published, wording
from reenact.check.removed import masker, words_of
from reenact.formats.dialects import Event
from reenact.formats.dialects.common import Dialect
from reenact.formats.record import ABSENT
from reenact.formats.seal_secret import SealedLine


class Publisher:
    """Publishes the events of one log; who knows *seed* can undo the blinding of names and hashes."""

    def __init__(self, events: Iterable[Event], dialect: Dialect[Any], seed: bytes) -> None:
        self._dialect = dialect
        key = hmac.digest(seed, b"reenact-seal-blinding-v1", "sha256")
        cleaner = Cleaner(key)
        masked = _masker(events, dialect, wording("open", key, cleaner, str))
        self._words: dict[PolicyName, Wording] = {
            name: wording(name, key, cleaner, masked) for name in POLICIES
        }

    def publish(self, event: Event, policy: PolicyName) -> dict[str, Any] | None:
        """*event* under *policy*; ``None`` where it may not be published."""
        return published(event, self._dialect, self._words[policy])

    def sealed(self, event: Event) -> SealedLine:
        """*event* in all its forms."""
        forms = {policy: self.publish(event, policy) for policy in POLICIES}
        known = {policy: form for policy, form in forms.items() if form is not None}
        return SealedLine(original=self._dialect.to_json(event), **known)


def _masker(events: Iterable[Event], dialect: Dialect[Any], unmasked: Wording) -> Callable[[str], str]:
    """What takes the words of everything that is removed from the log out of its texts."""
    words: set[str] = set()
    names: set[str] = set()
    for event in events:
        kept = fields_of(published(event, dialect, unmasked) or {})
        for path, value in fields_of(dialect.to_json(event)).items():
            shown = set(words_of(kept.get(path)))
            words |= {word for word in words_of(value) if word not in shown}
            words |= set() if path in kept else set(words_of(path))
            names |= shown if KINDS.get(path[2:]) is Kind.NAME else set()
    return masker(words, names)


def forms_of(line: SealedLine) -> Iterator[tuple[PolicyName, dict[str, Any]]]:
    """The forms in which a sealed line may be published."""
    for policy, form in zip(POLICIES, (line.open, line.private, line.paranoid), strict=True):
        if form is not ABSENT:
            yield policy, form

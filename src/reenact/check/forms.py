"""A log in the forms in which it may be published, one per policy."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from reenact.check.commitment import fields_of
from reenact.check.layer_c import KINDS, POLICIES, Cleaner, Kind, PolicyName, Wording, published, wording
from reenact.check.removed import masker, words_of
from reenact.formats.dialects import Event
from reenact.formats.dialects.common import Dialect
from reenact.formats.record import ABSENT
from reenact.formats.seal_secret import SealedLine


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
        return published(event, self._to_json(event), self._words[policy])

    def sealed(self, event: Event) -> SealedLine:
        """*event* in all its forms."""
        line = self._to_json(event)
        forms = {policy: published(event, line, words) for policy, words in self._words.items()}
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
        kept = fields_of(published(event, line, unmasked) or {})
        for path, value in fields_of(line).items():
            shown = set(words_of(kept.get(path)))
            words.update(word for word in words_of(value) if word not in shown)
            if path not in kept:
                words.update(words_of(path))
            if KINDS.get(path.removeprefix("$.")) is Kind.NAME:
                names |= shown
    return masker(words, names)


def forms_of(line: SealedLine) -> Iterator[tuple[PolicyName, dict[str, Any]]]:
    """The forms in which a sealed line may be published."""
    for policy, form in zip(POLICIES, (line.open, line.private, line.paranoid), strict=True):
        if form is not ABSENT:
            yield policy, form

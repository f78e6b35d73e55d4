"""Masked keys: they compare calls without the volatile parts of their requests.

A request that is equal without masking needs no rule. So masked keys are computed only if that comparison
failed: once for the live call, and once for each recorded call that it is compared with.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Any, Final

import msgspec

from reenact.canonical import encode_clean
from reenact.comparing.differences import Difference
from reenact.formats.volatile import VolatileRule, describe_call, read_rules
from reenact.replayer.lanes import Key
from reenact.replayer.source import RecordedCall, ReplaySource
from reenact.volatile.masking import DEFAULTS, Masking
from reenact.volatile.shapes import suggest_rules

_decode: Final = msgspec.json.Decoder().decode


def rules_in_force(source: ReplaySource, given: Iterable[VolatileRule]) -> tuple[VolatileRule, ...]:
    """The rules for replaying a capture, without duplicates: the defaults, its own, and *given*."""
    kept = read_rules(source.manifest().volatile or (), file=f"{source.reader.given}/manifest.json")
    return tuple({str(rule): rule for rule in (*DEFAULTS, *kept, *given)}.values())


def beyond_defaults(rules: Iterable[VolatileRule | str]) -> list[str]:
    """Those of *rules* that are no defaults, as text."""
    usual = {str(rule) for rule in DEFAULTS}
    return [str(rule) for rule in rules if str(rule) not in usual]


class VolatileKeys:
    """Computes masked keys of live and recorded calls under *rules*."""

    def __init__(self, source: ReplaySource, rules: tuple[VolatileRule, ...]) -> None:
        self.rules = rules
        self._source = source
        self._masking = Masking(rules)
        self._recorded: dict[int, Key] = {}

    def of_live(self, key: Key, request_text: bytes) -> Key | None:
        """The masked key of a live call; ``None`` if no rule applies to such calls."""
        if not self._masking.may_apply(key.type, key.name):
            return None
        return self._key(key.type, key.name, _decode(request_text))

    def of_recorded(self, call: RecordedCall) -> Key:
        found = self._recorded.get(call.seq)
        if found is None:
            found = self._recorded[call.seq] = self._key(call.type, call.name, self._source.request(call))
        return found

    def request_of(self, call: RecordedCall) -> Any:
        """The request of a recorded call without its volatile parts."""
        return self.without_volatile(call.type, call.name, self._source.request(call))

    def without_volatile(self, event_type: str, name: str, request: object) -> object:
        """*request* without its volatile parts."""
        if not self._masking.may_apply(event_type, name):
            return request
        return self._masking.mask(event_type, name, request)

    def differences(self, call: RecordedCall, request: object) -> tuple[Difference, ...]:
        """The differences between *request* and that of the recorded *call*, without volatile parts."""
        return self._masking.differences(call.type, call.name, self._source.request(call), request)

    def suggested(self, key: Key, places: tuple[Difference, ...]) -> tuple[VolatileRule, ...]:
        """New rules under which a call that differs at *places* would be equal."""
        known = set(map(str, self.rules))
        rules = suggest_rules(describe_call(key.type, key.name), places)
        return tuple(rule for rule in rules if str(rule) not in known)

    def _key(self, event_type: str, name: str, request: object) -> Key:
        masked = self._masking.mask(event_type, name, request)
        digest = sha256(encode_clean(masked)).digest()
        return Key(event_type, _mask_name(name, request, masked), digest, is_masked=True)


def _mask_name(name: str, request: Any, masked: Any) -> str:
    """Mask the name of an HTTP call, too: it contains the URL, which may have volatile parts."""
    if isinstance(request, dict) and name == f"network/{request.get('method')} {request.get('url')}":
        return f"network/{request['method']} {masked.get('url')}"
    return name

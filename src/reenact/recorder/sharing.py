"""Chat histories repeat: request N+1 contains request N. Write each message once.

A list that begins like a list written before becomes a reference to it and the rest:
``{"$ref": {"call": "c7", "path": ["body", "messages"], "items": 20}, "then": [...]}``. A large value
that was written before, such as the tool schemas, becomes a reference without ``items``. References
point to the call before, not to each message, so a run of N turns costs O(N) bytes.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final, NamedTuple

from reenact.canonical import encode_clean

REF: Final = "$ref"
THEN: Final = "then"
_MIN_BYTES: Final = 200
"""Smaller values are cheaper to repeat than to refer to."""
_SMALL_CHARS: Final = _MIN_BYTES // len(b"\\u0000") - 1
"""A string of so many characters is smaller than that, whatever they are; a number always is."""


class _Place(NamedTuple):
    call_id: str
    path: tuple[str, ...]
    items: int | None

    def reference(self) -> dict[str, Any]:
        where: dict[str, Any] = {"call": self.call_id, "path": list(self.path)}
        if self.items is not None:
            where["items"] = self.items
        return {REF: where}


class Sharing:
    """What a run has written so far, by digest; one per run."""

    def __init__(self) -> None:
        self._written: dict[bytes, _Place] = {}

    def shrink(self, call_id: str, value: Any) -> Any:
        """*value*, a request about to be written as *call_id*, with references for what is there already.

        For one caller at a time, who writes the result before the next one asks.
        """
        return self._shrink(call_id, value, ())

    def _shrink(self, call_id: str, value: Any, path: tuple[str, ...]) -> Any:
        if isinstance(value, dict) and len(path) < 2:
            return {key: self._shrink(call_id, child, (*path, key)) for key, child in value.items()}
        if isinstance(value, list):
            return self._shrink_list(call_id, value, path)
        if not isinstance(value, dict) and not (isinstance(value, str) and len(value) > _SMALL_CHARS):
            return value
        text = encode_clean(value)
        if len(text) < _MIN_BYTES:
            return value
        found = self._written.setdefault(sha256(text).digest(), _Place(call_id, path, None))
        return value if found.call_id == call_id else found.reference()

    def _shrink_list(self, call_id: str, value: list[Any], path: tuple[str, ...]) -> Any:
        """The longest beginning known already, then the rest; every new beginning becomes known."""
        chain = sha256()
        size_bytes = known_bytes = 0
        known: _Place | None = None
        for count, item in enumerate(value, 1):
            text = encode_clean(item)
            size_bytes += len(text)
            chain.update(b"%d:" % len(text))
            chain.update(text)
            place = self._written.get(digest := chain.digest())
            if place is None:
                self._written[digest] = _Place(call_id, path, count)
            elif place.call_id != call_id:
                known, known_bytes = place, size_bytes
        if known is None or known_bytes < _MIN_BYTES:
            return value
        return known.reference() | {THEN: value[known.items :]}

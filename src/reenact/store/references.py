"""Payloads put back where they belong: out of blobs, and out of the earlier requests they repeat."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import msgspec

from reenact.errors import FormatError

_decode: Final = msgspec.json.Decoder().decode
_CACHED_VALUES: Final = 16

_UNREADABLE: Final = (
    LookupError,
    TypeError,
    AttributeError,
    ValueError,
    msgspec.DecodeError,
    RecursionError,
)
"""What following a reference that nobody wrote like that may raise."""

_Place: TypeAlias = tuple[str, tuple[str, ...]]
"""A call's id, and the path of a value in its request."""


class References:
    """Follows the references of one log; see :mod:`reenact.recorder.sharing` for how they are written.

    *find* gives the number and the line of the event that made a call, *blob* the bytes of a digest.
    """

    def __init__(
        self, find: Callable[[str], tuple[int, bytes]], blob: Callable[[object], bytes], *, file: str
    ) -> None:
        self._find_call = find
        self._blob = blob
        self._file = file
        self._values: dict[_Place, Any] = {}

    def resolved(self, value: Any) -> Any:
        """*value*, read from an event, with every stored-elsewhere payload in its place."""
        try:
            return self._resolved(value)
        except _UNREADABLE as error:
            reason = f"a payload refers to what is not there ({type(error).__name__}: {error}); record again"
            raise FormatError(reason, file=self._file) from None

    def _resolved(self, value: Any) -> Any:
        if isinstance(value, dict):
            if "$blob" in value:
                return self._resolved(_decode(self._blob(value["$blob"])))
            if "$ref" in value:
                return self._referred(value)
            if "$json" in value:
                return self._resolved(_decode(value["$json"]))
            return {key: self._resolved(child) for key, child in value.items()}
        if isinstance(value, list):
            return [self._resolved(child) for child in value]
        return value

    def _referred(self, value: dict[str, Any]) -> Any:
        place = _place(value)
        found = self._value_at(place)
        if len(self._values) >= _CACHED_VALUES:
            del self._values[next(iter(self._values))]
        self._values[place] = found
        return _continued(found, value)

    def _value_at(self, place: _Place) -> Any:
        """What stands in an earlier request; a chat of N turns is a chain of N references."""
        chain: list[dict[str, Any]] = []
        latest = sys.maxsize
        while (found := self._values.get(place)) is None:
            seq, found = self._find(*place)
            if seq >= latest:
                raise FormatError(f"the reference to {place[0]} leads in a circle", file=self._file)
            if not isinstance(found, dict) or "$ref" not in found:
                break
            chain.append(found)
            latest, place = seq, _place(found)
        for link in reversed(chain):
            found = _continued(found, link)
        return found

    def _find(self, call_id: str, path: tuple[str, ...]) -> tuple[int, Any]:
        """The number of the call's event, and what is stored at *path* of its request."""
        seq, line = self._find_call(call_id)
        value = _decode(line)["data"]["request"]
        if "$blob" in value:
            value = _decode(self._blob(value["$blob"]))
        for key in path:
            value = value[key]
        return seq, value


def _place(value: dict[str, Any]) -> _Place:
    return value["$ref"]["call"], tuple(value["$ref"]["path"])


def _continued(found: Any, value: dict[str, Any]) -> Any:
    """The value that begins with *found*, as the reference *value* says."""
    items = value["$ref"].get("items")
    if items is None:
        return found
    if len(found) < items:
        raise IndexError(f"only {len(found)} of {items} items are there")
    return found[:items] + value["then"]


def blobs_in(value: Any) -> Iterator[str]:
    """The digests that a decoded event refers to, in its order."""
    if isinstance(value, dict):
        if isinstance(value.get("$blob"), str):
            yield value["$blob"]
        for child in value.values():
            yield from blobs_in(child)
    elif isinstance(value, list):
        for child in value:
            yield from blobs_in(child)

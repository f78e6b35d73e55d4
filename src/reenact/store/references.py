"""Payloads put back where they belong: out of blobs, and out of the earlier requests they repeat."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeAlias

import msgspec

from reenact.errors import FormatError

_decode: Final = msgspec.json.Decoder().decode
_CACHED_VALUES: Final = 16
_MAX_DEPTH: Final = 8
"""So many references may stand within each other; a recorder writes two."""
_MAX_PLACES: Final = 16
_MAX_REPEATED_BYTES: Final = 64 * 1024 * 1024
"""How much one payload may repeat of what it refers to; a recorder repeats nothing."""

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
_Sized: TypeAlias = tuple[Any, int, _Place]
"""A value, the bytes of the texts it was read from, and where the first of them stands."""


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
        self._values: dict[_Place, _Sized] = {}

    def resolved(self, value: Any) -> Any:
        """*value*, read from an event, with every stored-elsewhere payload in its place."""
        try:
            return self._resolved(value, _Allowance(self._file), 0)
        except _UNREADABLE as error:
            reason = f"a payload refers to what is not there ({type(error).__name__}: {error}); record again"
            raise FormatError(reason, file=self._file) from None

    def _resolved(self, value: Any, allowance: _Allowance, depth: int) -> Any:
        if isinstance(value, dict):
            if "$blob" in value:
                text = self._blob(value["$blob"])
                allowance.take(value["$blob"], len(text), depth)
                return self._resolved(_decode(text), allowance, depth + 1)
            if "$ref" in value:
                return self._referred(value, allowance)
            if "$json" in value:
                allowance.take(None, 0, depth)
                return self._resolved(_decode(value["$json"]), allowance, depth + 1)
            return {key: self._resolved(child, allowance, depth) for key, child in value.items()}
        if isinstance(value, list):
            return [self._resolved(child, allowance, depth) for child in value]
        return value

    def _referred(self, value: dict[str, Any], allowance: _Allowance) -> Any:
        place = _place(value)
        found, size_bytes, base = self._values.get(place) or self._value_at(place)
        allowance.take(base, size_bytes, 0)
        if place not in self._values and len(self._values) >= _CACHED_VALUES:
            del self._values[next(iter(self._values))]
        self._values[place] = found, size_bytes, base
        return _continued(found, [value])

    def _value_at(self, place: _Place) -> _Sized:
        """What stands in an earlier request; a chat of N turns is a chain of N references."""
        chain: list[dict[str, Any]] = []
        size_bytes, latest = 0, sys.maxsize
        while (known := self._values.get(place)) is None:
            seq, found, text_bytes = self._find(*place)
            size_bytes += text_bytes
            if seq >= latest:
                raise FormatError(f"the reference to {place[0]} leads in a circle", file=self._file)
            if not isinstance(found, dict) or "$ref" not in found:
                break
            chain.append(found)
            latest, place = seq, _place(found)
        else:
            found, known_bytes, place = known
            size_bytes += known_bytes
        return _continued(found, chain[::-1]), size_bytes, place

    def _find(self, call_id: str, path: tuple[str, ...]) -> tuple[int, Any, int]:
        """The number of the call's event, what stands at *path* of its request, and how long the text is."""
        seq, text = self._find_call(call_id)
        value = _decode(text)["data"]["request"]
        if "$blob" in value:
            text = self._blob(value["$blob"])
            value = _decode(text)
        for key in path:
            value = value[key]
        return seq, value, len(text)


class _Allowance:
    """What one payload may still put in the place of references: everything once, and then only so much."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._seen: set[object] = set()
        self._places_in: Counter[str] = Counter()
        self._left_bytes = _MAX_REPEATED_BYTES

    def take(self, what: object, size_bytes: int, depth: int) -> None:
        if depth >= _MAX_DEPTH:
            reason = f"a payload has references more than {_MAX_DEPTH} deep within each other"
            raise FormatError(f"{reason}; it was not recorded like that", file=self._file)
        if what is None or (what not in self._seen and self._is_one_of_few(what)):
            self._seen.add(what)
            return
        self._left_bytes -= size_bytes
        if self._left_bytes < 0:
            reason = f"a payload repeats more than {_MAX_REPEATED_BYTES} bytes of what it refers to"
            raise FormatError(f"{reason}; it was not recorded like that", file=self._file)

    def _is_one_of_few(self, what: object) -> bool:
        """Whether not too many places of one call are referred to: one may stand within the other."""
        if not isinstance(what, tuple):
            return True
        self._places_in[what[0]] += 1
        return self._places_in[what[0]] <= _MAX_PLACES


def _place(value: dict[str, Any]) -> _Place:
    return value["$ref"]["call"], tuple(value["$ref"]["path"])


def _continued(found: Any, links: Iterable[dict[str, Any]]) -> Any:
    """The value that begins with *found*, as the references *links* say, one behind the other."""
    is_ours = False
    for link in links:
        items = link["$ref"].get("items")
        if items is None:
            continue
        if not isinstance(found, list):
            raise TypeError(f"a {type(found).__name__} has no items")
        if not is_ours:
            found, is_ours = [*found], True
        if not 0 <= items <= len(found):
            raise IndexError(f"only {len(found)} of {items} items are there")
        del found[items:]
        found += link["then"]
    return found


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

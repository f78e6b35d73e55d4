"""Commitments to the fields of an event: each hides its value until its salt is told.

A field is a member that is no object, at any depth; an array is one field. Its name is its JSON path.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any, Final, Literal, TypeAlias

from reenact import canonical
from reenact.check.merkle import leaf_hash
from reenact.formats.seal import SALT_BYTES

TreeName: TypeAlias = Literal["events", "log"]

_COMMITMENT: Final = b"\x02"


def fields_of(value: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an event by their names; an empty object is a field too."""
    return dict(_fields(value, "$"))


def _fields(value: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    for key, child in value.items():
        name = canonical.child_path(path, key)
        if isinstance(child, dict) and child:
            yield from _fields(child, name)
        else:
            yield name, child


class Salts:
    """The salts of one event's fields, drawn from the seed: who lacks it learns nothing from some of them."""

    def __init__(self, seed: bytes, tree: TreeName, position: int) -> None:
        self._seed = seed
        self._place = ["reenact-seal-salt-v1", tree, position]

    def of(self, name: str) -> bytes:
        """The salt of the field *name*."""
        place = canonical.encode([*self._place, name])
        return hmac.digest(self._seed, place, "sha256")[:SALT_BYTES]


def commitment(name: str, value: Any, salt: bytes) -> bytes:
    """What is published of a field whose value is withheld."""
    return sha256(_COMMITMENT + salt + canonical.encode([name, value])).digest()


def commitments_of(fields: Mapping[str, Any], salts: Salts) -> dict[str, bytes]:
    """The commitments of all fields in the order in which a leaf holds them: by name."""
    return {name: commitment(name, fields[name], salts.of(name)) for name in sorted(fields)}


def leaf_of(commitments: Iterable[bytes]) -> bytes:
    """The leaf of an event; names are inside the commitments, so they stay hidden with the values."""
    return leaf_hash(b"".join(commitments))

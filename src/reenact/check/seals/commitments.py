"""Commitments to the fields of an event, and the Merkle tree of RFC 6962 over them.

A commitment hides its value until its salt is published. The tree has one hash for a sequence of leaves, and
short proofs that a leaf is in it; leaves and nodes are hashed with different first bytes, so that neither can
be mistaken for the other.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Final, Literal, TypeAlias

from reenact import canonical
from reenact.canonical import JsonValue
from reenact.formats.seal import SALT_BYTES

_LEAF: Final = b"\x00"
_NODE: Final = b"\x01"


def leaf_hash(data: bytes) -> bytes:
    """The hash of a leaf that holds *data*."""
    return sha256(_LEAF + data).digest()


def root_of(leaves: Iterable[bytes]) -> bytes:
    """The root over the hashes of all leaves, in memory that grows with the tree's height only."""
    peaks: list[bytes] = []
    for count, leaf in enumerate(leaves):
        peak = leaf
        # Every set bit of the number of leaves so far is a full tree; adding one carries like counting.
        while count & 1:
            peak = _node(peaks.pop(), peak)
            count >>= 1
        peaks.append(peak)
    if not peaks:
        return sha256().digest()
    root = peaks.pop()
    while peaks:
        root = _node(peaks.pop(), root)
    return root


def path_of(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """The hashes to combine with the leaf at *index* to compute the root, from the leaf upwards."""
    if len(leaves) == 1:
        return []
    split = _split(len(leaves))
    if index < split:
        return [*path_of(leaves[:split], index), root_of(leaves[split:])]
    return [*path_of(leaves[split:], index - split), root_of(leaves[:split])]


def root_by_path(leaf: bytes, index: int, count: int, path: Sequence[bytes]) -> bytes | None:
    """The root of *count* leaves that *leaf* and *path* give; ``None`` if *path* has the wrong length."""
    if not 0 <= index < count:
        return None
    if count == 1:
        return None if path else leaf
    if not path:
        return None
    split = _split(count)
    if index < split:
        left = root_by_path(leaf, index, split, path[:-1])
        return left and _node(left, path[-1])
    right = root_by_path(leaf, index - split, count - split, path[:-1])
    return right and _node(path[-1], right)


def _node(left: bytes, right: bytes) -> bytes:
    return sha256(_NODE + left + right).digest()


def _split(count: int) -> int:
    """The largest power of two below *count*: the number of leaves on the left."""
    return 1 << ((count - 1).bit_length() - 1)


TreeName: TypeAlias = Literal["events", "log"]

_COMMITMENT: Final = b"\x02"


class Salts:
    """The salts of one event's fields, derived from the seed; without it, one salt reveals no other."""

    def __init__(self, seed: bytes, tree: TreeName, position: int) -> None:
        self._seed = seed
        self._place = ["reenact-seal-salt-v1", tree, position]

    def of(self, name: str) -> bytes:
        """The salt of the field *name*."""
        place = canonical.encode([*self._place, name])
        return hmac.digest(self._seed, place, "sha256")[:SALT_BYTES]


def commitment(name: str, value: JsonValue, salt: bytes) -> bytes:
    """The hash that is published in place of a withheld value."""
    return sha256(_COMMITMENT + salt + canonical.encode([name, value])).digest()


def commitments_of(fields: Mapping[str, JsonValue], salts: Salts) -> dict[str, bytes]:
    """The commitments of all fields, sorted by name as in a leaf."""
    return {name: commitment(name, fields[name], salts.of(name)) for name in sorted(fields)}


def leaf_of(commitments: Iterable[bytes]) -> bytes:
    """The leaf of an event; names are inside the commitments, so they stay hidden with the values."""
    return leaf_hash(b"".join(commitments))

"""The Merkle tree of RFC 6962: one hash for a sequence, short proofs that something stands in it.

Leaves and nodes are hashed with different first bytes, so that neither can be passed off as the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Final

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
    """What must be hashed with the leaf at *index* to come to the root, from the leaf upwards."""
    if len(leaves) == 1:
        return []
    split = _split(len(leaves))
    if index < split:
        return [*path_of(leaves[:split], index), root_of(leaves[split:])]
    return [*path_of(leaves[split:], index - split), root_of(leaves[:split])]


def root_by_path(leaf: bytes, index: int, count: int, path: Sequence[bytes]) -> bytes | None:
    """The root of *count* leaves to which *path* leads from *leaf*; ``None`` if no such path does."""
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
    """The largest power of two below *count*: how many leaves stand on the left."""
    return 1 << ((count - 1).bit_length() - 1)

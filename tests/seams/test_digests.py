"""Digests are watched while a replay is open: it is known what went into each."""

from __future__ import annotations

import copy
import hashlib
import hmac
import pickle
import uuid
from collections.abc import Callable

import pytest

from reenact.seams.stdlib.digests import Digests, watch_digests

COMPUTED: dict[str, Callable[[bytes], str]] = {
    "at once": lambda text: hashlib.sha256(text).hexdigest(),
    "by its name": lambda text: hashlib.new("md5", text).hexdigest(),
    "its beginning": lambda text: hashlib.sha256(text).hexdigest()[:6],
    "its end": lambda text: hashlib.sha256(text).hexdigest()[-12:],
    "without a claim to be safe": lambda text: hashlib.sha1(text, usedforsecurity=False).hexdigest(),
    "of a wanted length": lambda text: hashlib.shake_128(text).hexdigest(10),
    "keyed": lambda text: hashlib.blake2b(text, key=b"k").hexdigest(),
    "as a UUID": lambda text: str(uuid.uuid5(uuid.NAMESPACE_DNS, text.decode())),
}


@pytest.mark.parametrize("compute", COMPUTED.values(), ids=COMPUTED.keys())
def test_what_went_into_a_digest_is_known(compute: Callable[[bytes], str]) -> None:
    """Whoever computed it, and only while it is watched; it is the same digest as ever."""
    digests = Digests()
    with watch_digests(digests):
        name = compute(b"ants")
    assert name == compute(b"ants")
    assert any(content.endswith(b"ants") for content in digests.inputs_of(name))
    assert not list(digests.inputs_of(compute(b"bees")))


def test_long_inputs_are_not_kept() -> None:
    """What they are digests of is content."""
    digests = Digests()
    with watch_digests(digests):
        name = hashlib.sha256(b"ants" * 1000).hexdigest()
        digest = hashlib.sha256()
        for _ in range(1000):
            digest.update(b"bees")
    assert not list(digests.inputs_of(name))
    assert not list(digests.inputs_of(digest.hexdigest()))


def test_who_takes_hash_objects_can_use_them() -> None:
    """Their sizes, their names, their constants; message authentication is as ever."""
    before = hmac.new(b"key", b"ants", hashlib.sha256).hexdigest()
    with watch_digests(Digests()):
        digest = hashlib.sha256(b"ants")
        assert (digest.digest_size, digest.block_size, digest.name) == (32, 64, "sha256")
        assert hashlib.blake2b.MAX_DIGEST_SIZE == 64  # type: ignore[attr-defined]
        assert hmac.new(b"key", b"ants", hashlib.sha256).hexdigest() == before
        assert hmac.digest(b"key", b"ants", hashlib.sha256).hex() == before


def test_hashes_are_left_as_they_were() -> None:
    """Nothing of it stays behind."""
    before = hashlib.sha256, hashlib.new, hashlib.blake2b
    with watch_digests(Digests()), watch_digests(Digests()):
        assert hashlib.sha256 is not before[0]
    assert (hashlib.sha256, hashlib.new, hashlib.blake2b) == before


@pytest.mark.parametrize("name", ["sha256", "md5", "blake2b"])
def test_a_watched_function_is_copied_and_pickled_as_ever(name: str) -> None:
    """A setting that names one is given to other processes."""
    with watch_digests(Digests()):
        function = getattr(hashlib, name)
        for copied in (copy.deepcopy([function])[0], pickle.loads(pickle.dumps(function))):
            assert copied(b"ants").hexdigest() == function(b"ants").hexdigest()
        with pytest.raises(TypeError, match="cannot pickle"):
            pickle.dumps(function(b"ants"))

"""Digests that any code in this process computed during a replay, libraries included.

A library may make an id from a digest of a fresh value: of a UUID, of the time. The id is known to be
generated if its digest was computed here and a fresh value went into it. So short inputs are kept with their
digests; whether something in them is fresh is asked only when an id is looked up.
"""

from __future__ import annotations

import base64
import hashlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from functools import partial
from typing import Any, Final, NoReturn, cast
from uuid import UUID

from reenact.process_state import open_digests
from reenact.seams.patches import Patch, attach, detach
from reenact.seams.stdlib.draws import spell_in_bases

_KEPT: Final = 2**12
"""How many of the latest digests to remember."""
_MAX_INPUT: Final = 1024
"""Longer inputs are content, not what ids are made of."""
_MIN_START: Final = 6
_MIN_ANYWHERE: Final = 12
"""A part of a digest must be longer than its beginning to be known."""
_UUID_VERSIONS: Final = (3, 4, 5)


class Digests:
    """The digests of one replay."""

    def __init__(self) -> None:
        self._unread: deque[tuple[bytes, bytes]] = deque(maxlen=_KEPT)
        self._written: deque[tuple[bytes, str]] = deque(maxlen=_KEPT)

    def note(self, content: bytes, digest: bytes) -> None:
        self._unread.append((content, digest))

    def inputs_of(self, name: str) -> Iterator[bytes]:
        """What went into each digest that *name* may be a part of."""
        while self._unread:
            content, digest = self._unread.popleft()
            self._written.append((content, "\n".join(["", *_forms(digest)])))
        forms = {form for form in (name, name.replace("-", "").lower()) if len(form) >= _MIN_START}
        parts = {form if len(form) >= _MIN_ANYWHERE else f"\n{form}" for form in forms}
        if len(name) > _MIN_ANYWHERE:
            parts.add(name[1:])  # some ids must begin with a letter, which is put before
        if parts:
            for content, written in [*self._written]:
                if any(part in written for part in parts):
                    yield content


def _forms(digest: bytes) -> Iterator[str]:
    """The texts that a digest is written as."""
    yield digest.hex()
    yield base64.urlsafe_b64encode(digest).decode().rstrip("=")
    yield base64.b64encode(digest).decode().rstrip("=")
    yield base64.b32encode(digest).decode().rstrip("=")
    number = int.from_bytes(digest)
    yield str(number)
    yield from spell_in_bases(number)
    if len(digest) >= 16:
        yield from (UUID(bytes=digest[:16], version=version).hex for version in _UUID_VERSIONS)


@contextmanager
def watch_digests(digests: Digests) -> Iterator[None]:
    """Add to *digests* what is computed in the block."""
    attach(_PATCHES)
    try:
        with open_digests.holding(digests):
            yield
    finally:
        detach(_PATCHES)


class _Hash:
    """A hash object that keeps what went into it, as long as that is short."""

    def __init__(self, real: Any, content: bytes | None) -> None:
        self._real = real
        self._content = content

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)

    def update(self, data: bytes | bytearray | memoryview, /) -> None:
        self._real.update(data)
        if self._content is not None:
            self._content = _join(self._content, data)

    def copy(self) -> _Hash:
        return _Hash(self._real.copy(), self._content)

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"cannot pickle {type(self._real).__name__!r} object")  # as the real one says

    def digest(self, *length: int) -> bytes:
        return self._note_digest(self._real.digest(*length))

    def hexdigest(self, *length: int) -> str:
        return self._note_digest(self._real.digest(*length)).hex()

    def _note_digest(self, digest: bytes) -> bytes:
        if self._content is not None:
            for digests in open_digests.entries:
                digests.note(self._content, digest)
        return digest


def _join(content: bytes, data: bytes | bytearray | memoryview) -> bytes | None:
    """Both, unless that is too long to keep."""
    more = memoryview(data)
    return content + more.tobytes() if len(content) + more.nbytes <= _MAX_INPUT else None


class _Constructor:
    """``hashlib.sha256`` and its like, whose hash objects are watched; all else is the real one's."""

    def __init__(self, real: Callable[..., object], given: int) -> None:
        self._real = real
        self._given = given

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object]]:
        return copy, (self._real,)  # a copy of a function is the function

    def __call__(self, *args: object, **kwargs: object) -> object:
        made = self._real(*args, **kwargs)
        if not open_digests.entries:
            return made
        data = args[self._given] if len(args) > self._given else kwargs.get("string", kwargs.get("data", b""))
        return _Hash(made, _join(b"", cast("bytes", data)))  # else the real one has refused it


def _watch(given: int) -> Callable[[Callable[..., object]], object]:
    """Wrap a constructor of hash objects whose first input is its argument *given*."""
    return lambda original: _Constructor(original, given)


_NAMED: Final = sorted(filter(partial(hasattr, hashlib), hashlib.algorithms_guaranteed))
_PATCHES: Final = [
    Patch(hashlib, "new", _watch(1)),
    *(Patch(hashlib, name, _watch(0)) for name in _NAMED),
]
"""The functions that others use: a UUID of a name uses ``hashlib.sha1``, HMAC its constructor."""

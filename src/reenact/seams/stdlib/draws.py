"""What chance gave to anybody in this process while a replay is open, libraries included.

Their draws are not recorded: how many there are differs from run to run, and most reach no request. But a
name in a request that was drawn here is known to be generated, and nobody gave it. So the sources are only
watched: a draw costs half a microsecond more, and what names it may have become is found out when one is
asked for.
"""

from __future__ import annotations

import base64
import os
import random
import secrets
import string
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from reenact.seams.patches import Patch, attach, detach

_KEPT: Final = 2**16
"""Of so many draws the latest are remembered."""
_MIN_NAME: Final = 6
_MIN_AMONG_OTHERS: Final = 8
"""What was drawn letter by letter has no beginning and end of its own, so it must be longer."""
_MIN_NUMBER: Final = 10**6
_NANOID: Final = "_-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_NANOID_OTHER: Final = "useandom-26T198340PX75pxJACKVERYMINDBUSHWOLF_GQZbfghjklqvwyzrict"
_BASES: Final = (
    "0123456789abcdefghijklmnopqrstuvwxyz",
    "23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
    string.digits + string.ascii_letters,
    string.digits + string.ascii_uppercase + string.ascii_lowercase,
)
_TABLES: Final = [
    bytes(ord(letters[byte & 63]) for byte in range(256)) for letters in (_NANOID, _NANOID_OTHER)
]


class Draws:
    """The draws of one replay."""

    def __init__(self) -> None:
        self._new: deque[Any] = deque(maxlen=_KEPT)
        self._names: deque[str] = deque(maxlen=8 * _KEPT)
        self._letters: deque[str] = deque(maxlen=_KEPT)
        self._words: set[str] = set()

    def has_given(self, name: str) -> bool:
        """Whether *name*, or what it begins or ends, was drawn."""
        if len(name) < _MIN_NAME:
            return False
        self._read()
        text = "\n".join(["", *self._names, ""])
        plain = name.replace("-", "").lower()
        is_drawn = any(f"\n{form}" in text or f"{form}\n" in text for form in {name, plain} if form)
        return is_drawn or (len(name) >= _MIN_AMONG_OTHERS and name in "".join(self._letters))

    def has_chosen(self, word: str) -> bool:
        """Whether *word* was chosen among others."""
        self._read()
        return word in self._words

    def see(self, drawn: Any) -> None:
        self._new.append(drawn)

    def _read(self) -> None:
        while self._new:
            drawn = self._new.popleft()
            if isinstance(drawn, bytes):
                self._names.extend(_names_of_bytes(drawn))
            elif isinstance(drawn, tuple):
                self._names.extend(_names_of_bits(*drawn))
            elif isinstance(drawn, int):
                self._names.append(str(drawn))
            elif isinstance(drawn, list):
                self._names.append("".join(drawn))
                self._words.update(drawn)
            elif len(drawn) == 1:
                self._letters.append(drawn)
            else:
                self._words.add(drawn)


_open: tuple[Draws, ...] = ()
"""Replaced, never changed, because draws read it without a lock."""


@contextmanager
def watched_by(draws: Draws) -> Iterator[None]:
    """Have *draws* see what is drawn in the block."""
    global _open
    attach(_PATCHES)
    _open = (*_open, draws)
    try:
        yield
    finally:
        _open = tuple(each for each in _open if each is not draws)
        detach(_PATCHES)


def _names_of_bytes(drawn: bytes) -> Iterator[str]:
    yield drawn.hex()
    yield base64.urlsafe_b64encode(drawn).decode().rstrip("=")
    yield base64.b32encode(drawn).decode().rstrip("=")
    yield from (drawn.translate(table).decode() for table in _TABLES)
    yield from _names_of_bits(len(drawn) * 8, int.from_bytes(drawn))


def _names_of_bits(count: int, drawn: int) -> Iterator[str]:
    yield f"{drawn:x}".zfill(count // 4)
    yield str(drawn)
    if count == 128:
        # As `uuid.UUID(…, version=4)` has it.
        drawn = drawn & ~(0xF000 << 64) & ~(0xC000 << 48) | 4 << 76 | 0x8000 << 48
        yield f"{drawn:032x}"
    if count >= 64:
        yield from (_in_base(drawn, letters) for letters in _BASES)


def _in_base(number: int, letters: str) -> str:
    written = ""
    while number:
        number, digit = divmod(number, len(letters))
        written = letters[digit] + written
    return written


def _watch(original: Callable[..., Any]) -> Callable[..., Any]:
    def draw(*args: Any, **kwargs: Any) -> Any:
        drawn = original(*args, **kwargs)
        for draws in _open:
            draws.see(drawn)
        return drawn

    return draw


def _watch_number(original: Callable[..., int]) -> Callable[..., int]:
    def draw(*args: Any, **kwargs: Any) -> int:
        drawn = original(*args, **kwargs)
        if drawn >= _MIN_NUMBER:
            for draws in _open:
                draws.see(drawn)
        return drawn

    return draw


def _watch_bits(original: Callable[[int], int]) -> Callable[[int], int]:
    def draw(k: int, /) -> int:
        drawn = original(k)
        if drawn >= _MIN_NUMBER:
            for draws in _open:
                draws.see((k, drawn))
        return drawn

    return draw


def _watch_choice(original: Callable[..., Any]) -> Callable[..., Any]:
    def choose(*args: Any, **kwargs: Any) -> Any:
        chosen = original(*args, **kwargs)
        if type(chosen) is str:
            for draws in _open:
                draws.see(chosen)
        return chosen

    return choose


def _watch_choices(original: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    def choose(*args: Any, **kwargs: Any) -> list[Any]:
        chosen = original(*args, **kwargs)
        if chosen and type(chosen[0]) is str and all(type(one) is str for one in chosen):
            for draws in _open:
                draws.see(list(chosen))
        return chosen

    return choose


_PATCHES: Final = [
    Patch(os, "urandom", _watch),
    Patch(random, "_urandom", _watch),
    Patch(random, "randbytes", _watch),
    Patch(random, "getrandbits", _watch_bits),
    Patch(random, "randint", _watch_number),
    Patch(random, "randrange", _watch_number),
    Patch(random, "choice", _watch_choice),
    Patch(random, "choices", _watch_choices),
    Patch(random, "sample", _watch_choices),
    Patch(random.Random, "choice", _watch_choice),
    Patch(random.Random, "choices", _watch_choices),
    Patch(random.Random, "sample", _watch_choices),
    Patch(secrets, "choice", _watch_choice),
]
"""What other draws are made of; a UUID of ``os.urandom``, a token of ``random``'s own name for it."""

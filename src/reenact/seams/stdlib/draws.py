"""Random values that any code in this process drew during a replay, libraries included.

Libraries' draws are not recorded: their number differs from run to run, and most reach no request. But if a
name in a request was drawn here, it is known to be generated, and may differ from the recorded one. So the
sources are only watched. That adds about a microsecond to a draw; the names that may have been made from it
are computed only when one is looked up.
"""

from __future__ import annotations

import base64
import errno
import os
import random
import secrets
import socket
import string
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from weakref import ref

from reenact.process_state import open_draws, seeded_generators
from reenact.seams.patches import Patch, attach, detach

_KEPT: Final = 2**16
"""How many of the latest draws to remember."""
_MIN_NAME: Final = 6
_MIN_AMONG_OTHERS: Final = 8
"""A name that was drawn letter by letter has no known start and end, so it must be longer."""
_MIN_NUMBER: Final = 10**6
_MAX_BITS: Final = 8 * 1024
"""A larger draw is material for something else; as a number it has more digits than Python writes."""
_PORTS: Final = range(1024, 2**16)
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
        self.unread: deque[Any] = deque(maxlen=_KEPT)
        self._names: deque[str] = deque(maxlen=8 * _KEPT)
        self._letters: deque[str] = deque(maxlen=_KEPT)
        self._words: set[str] = set()
        self.ports: set[int] = set()
        """Ports that the run bound because they were free, whichever code chose them."""
        self.numbers: deque[int] = deque(maxlen=_KEPT)
        """Drawn numbers that may be ports."""
        self.has_met_taken_port = False

    def has_given(self, name: str) -> bool:
        """Whether *name* was drawn, or is the beginning or end of what was drawn."""
        self._read()
        text = "\n".join(["", *self._names, ""])
        forms = {form for form in (name, name.replace("-", "").lower()) if len(form) >= _MIN_NAME}
        is_drawn = any(f"\n{form}" in text or f"{form}\n" in text for form in forms)
        return is_drawn or (len(name) >= _MIN_AMONG_OTHERS and name in "".join(self._letters))

    def note_bound(self, port: int, *, wanted: int) -> None:
        """Keep *port* if it was not fixed: any was *wanted* (0), it was drawn, or another one was in use."""
        if wanted == 0 or self.has_met_taken_port or port in self.numbers:
            self.ports.add(port)

    def has_chosen(self, word: str) -> bool:
        """Whether *word* was drawn from a list."""
        self._read()
        return word in self._words

    def are_in(self, content: bytes) -> bool:
        """Whether something that was drawn stands in *content*, as bytes or as text."""
        self._read()
        written = content.decode("latin-1")
        text = "\n".join([content.hex(), written, written.replace("-", "").lower()])
        return any(len(name) >= _MIN_AMONG_OTHERS and name in text for name in [*self._names])

    def _read(self) -> None:
        while self.unread:
            drawn = self.unread.popleft()
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


@contextmanager
def watch_draws(draws: Draws) -> Iterator[None]:
    """Add to *draws* what is drawn in the block."""
    attach(_PATCHES)
    try:
        with open_draws.holding(draws):
            yield
    finally:
        detach(_PATCHES)


def _is_too_large(drawn: object) -> bool:
    """Whether what was drawn is too large for a name: bytes, a number, or a number of so many bits."""
    if isinstance(drawn, bytes):
        return len(drawn) * 8 > _MAX_BITS
    if isinstance(drawn, tuple):
        return bool(drawn[0] > _MAX_BITS)
    return isinstance(drawn, int) and drawn.bit_length() > _MAX_BITS


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
        # With the bits that `uuid.UUID(…, version=4)` sets.
        drawn = drawn & ~(0xF000 << 64) & ~(0xC000 << 48) | 4 << 76 | 0x8000 << 48
        yield f"{drawn:032x}"
    if count >= 64:
        yield from spell_in_bases(drawn)


def spell_in_bases(number: int) -> Iterator[str]:
    """*number* in the letters and digits that ids are written with."""
    return (_to_base(number, letters) for letters in _BASES)


def _to_base(number: int, letters: str) -> str:
    written = ""
    while number:
        number, digit = divmod(number, len(letters))
        written = letters[digit] + written
    return written


_shared: Final[random.Random] = random.random.__self__  # type: ignore[attr-defined]  # of a bound method


def _see(drawn: object, generator: random.Random | None = None) -> None:
    if id(generator) not in seeded_generators and not _is_too_large(drawn):
        for draws in open_draws.entries:
            draws.unread.append(drawn)


def _see_number(drawn: int, generator: random.Random | None = None) -> None:
    if drawn >= _MIN_NUMBER:
        _see(drawn, generator)
    elif drawn in _PORTS and id(generator) not in seeded_generators:
        for draws in open_draws.entries:
            draws.numbers.append(drawn)


def _see_choice(drawn: object, generator: random.Random | None = None) -> None:
    if type(drawn) is str:
        _see(drawn, generator)
    elif type(drawn) is int:
        _see_number(drawn, generator)


def _see_choices(drawn: list[object], generator: random.Random | None = None) -> None:
    if drawn and all(type(one) is str for one in drawn):
        _see(list(drawn), generator)


def _watch(see: Callable[..., None], *generator: random.Random) -> Callable[[Any], object]:
    """Wrap a function that draws from *generator*, or from the system, so that *see* gets its results."""

    def watch(original: Callable[..., object]) -> Callable[..., object]:
        def draw(*args: object, **kwargs: object) -> object:
            drawn = original(*args, **kwargs)
            see(drawn, *generator)
            return drawn

        return draw

    return watch


def _watch_method(see: Callable[..., None]) -> Callable[[Any], object]:
    def watch(original: Callable[..., object]) -> Callable[..., object]:
        def draw(self: random.Random, *args: object, **kwargs: object) -> object:
            drawn = original(self, *args, **kwargs)
            see(drawn, self)
            return drawn

        return draw

    return watch


def _watch_bits(original: Callable[[int], int]) -> Callable[[int], int]:
    def draw(k: int, /) -> int:
        drawn = original(k)
        if drawn >= _MIN_NUMBER:
            _see((k, drawn), _shared)
        return drawn

    return draw


def _note_seed(generator: random.Random, seed: object) -> None:
    identity = id(generator)
    seeded_generators.pop(identity, None)
    if seed is not None:
        seeded_generators[identity] = ref(generator, lambda _: seeded_generators.pop(identity, None))


def _watch_seed(original: Callable[..., None]) -> Callable[..., None]:
    def seed(self: random.Random, a: object = None, *args: object, **kwargs: object) -> None:
        original(self, a, *args, **kwargs)
        _note_seed(self, a)

    return seed


def _watch_shared_seed(original: Callable[..., None]) -> Callable[..., None]:
    def seed(a: object = None, *args: object, **kwargs: object) -> None:
        original(a, *args, **kwargs)
        _note_seed(_shared, a)

    return seed


def _watch_bind(original: Callable[..., None]) -> Callable[..., None]:
    def bind(self: socket.socket, address: object, /) -> None:
        try:
            original(self, address)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                for draws in open_draws.entries:
                    draws.has_met_taken_port = True
            raise
        if self.family in (socket.AF_INET, socket.AF_INET6) and isinstance(address, tuple):
            port = self.getsockname()[1]
            for draws in open_draws.entries:
                draws.note_bound(port, wanted=address[1])

    return bind


_PATCHES: Final = [
    Patch(socket.socket, "bind", _watch_bind),
    Patch(os, "urandom", _watch(_see)),
    Patch(random, "_urandom", _watch(_see)),
    Patch(random, "randbytes", _watch(_see, _shared)),
    Patch(random, "getrandbits", _watch_bits),
    Patch(random, "randint", _watch(_see_number, _shared)),
    Patch(random, "randrange", _watch(_see_number, _shared)),
    Patch(random, "choice", _watch(_see_choice, _shared)),
    Patch(random, "choices", _watch(_see_choices, _shared)),
    Patch(random, "sample", _watch(_see_choices, _shared)),
    Patch(random, "seed", _watch_shared_seed),
    Patch(random.Random, "choice", _watch_method(_see_choice)),
    Patch(random.Random, "choices", _watch_method(_see_choices)),
    Patch(random.Random, "sample", _watch_method(_see_choices)),
    Patch(random.Random, "seed", _watch_seed),
    Patch(secrets, "choice", _watch(_see_choice)),
]
"""The functions that other draws use: a UUID uses ``os.urandom``, a token ``random._urandom``."""

"""Chance that libraries draw, seeded as in the recorded run.

The seed follows from the capture and from the process: two processes draw differently, and a replay the same.
"""

from __future__ import annotations

import _random
import atexit
import os
import random
import sys
from collections.abc import Callable
from hashlib import sha256
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any, Final

from reenact.injected.children import NewChild
from reenact.injected.handover import SEED_VARIABLE, Handover
from reenact.process_state import this_process
from reenact.seams.imports import Libraries, watch_imports
from reenact.seams.patches import Patch, attach

if TYPE_CHECKING:
    from sqlite3 import Connection


def seed_process(handover: Handover, new_child: NewChild | None) -> None:
    """Seed the shared generator of :mod:`random` as in the recorded run; each process has its own seed.

    ``random.seed`` is not called: it would mark the generator as one that the agent has seeded.
    """
    this_process.seed = os.environ.get(SEED_VARIABLE, this_process.seed)
    if this_process.seed:
        words = sys.orig_argv[1:]
        name = f"{words} {handover.count_start(words)}" if new_child is None else new_child.root
        this_process.name = name
        seed = f"{this_process.seed} {name}"
        shared: random.Random = random.random.__self__  # type: ignore[attr-defined]  # of a bound method
        _random.Random.seed(shared, int.from_bytes(sha256(seed.encode()).digest()))
        shared.gauss_next = None  # type: ignore[attr-defined]  # the cached value of an earlier draw
        this_process.numpy_seeds.seed(int.from_bytes(sha256(f"{seed} numpy".encode()).digest()))


def seed_libraries() -> None:
    """Do the same for generators that libraries make, in Python and in native code."""
    if not this_process.seed:
        return
    # Kept by the process: multiprocessing clears the atexit handlers of a forked child, and without
    # another reference the patches would end.
    this_process.attached.enter_context(watch_imports(_NATIVE))
    atexit.register(this_process.attached.close)
    if not this_process.generators:
        this_process.generators["random"] = 0
        attach([Patch(random.Random, "seed", _seed_generator)])


def _seed_generator(original: Callable[..., None]) -> Callable[..., None]:
    """Seed ``random.Random()``.

    Generators are counted by the module that makes them: another one in another library changes nothing.
    """

    def seed(self: random.Random, a: object = None, version: int = 2) -> None:
        if a is None:
            a = _draw_seed(sys._getframe(1))  # noqa: SLF001
        original(self, a, version)

    return seed


def _draw_seed(frame: FrameType | None) -> bytes:
    """The seed of the next generator that the module of *frame*, or of its caller, makes."""
    while frame is not None and frame.f_globals.get("__name__") == "random":
        frame = frame.f_back
    module = "" if frame is None else str(frame.f_globals.get("__name__"))
    number = this_process.generators[module] = this_process.generators.get(module, 0) + 1
    return sha256(f"{this_process.seed} {this_process.name} {module} {number}".encode()).digest()


def _seed_numpy(module: ModuleType) -> list[Patch]:
    """Unseeded generators of numpy take their seed from ``randbits``."""

    def draw_seed(k: int) -> int:
        return this_process.numpy_seeds.getrandbits(k)

    return [Patch(module, "randbits", lambda _: draw_seed)]


def _seed_polars(module: ModuleType) -> list[Patch]:
    module.set_random_seed(int.from_bytes(_draw_seed(None)[:8]))
    return []


def _seed_duckdb(module: ModuleType) -> list[Patch]:
    """Each connection draws by itself."""

    def wrap(original: Callable[..., object]) -> Callable[..., object]:
        def connect(*args: object, **kwargs: object) -> object:
            return _set_seed(original(*args, **kwargs), sys._getframe(1))  # noqa: SLF001

        return connect

    _set_seed(module, None)  # its default connection
    return [Patch(module, "connect", wrap)]


def _set_seed(connection: Any, frame: FrameType | None) -> object:
    fraction = int.from_bytes(_draw_seed(frame)[:6]) / 2**48
    connection.execute(f"select setseed({fraction})").fetchall()
    return connection


def _seed_sqlite(module: ModuleType) -> list[Patch]:
    """SQLite cannot be seeded: its functions are replaced in each connection."""

    def wrap(original: Callable[..., Connection]) -> Callable[..., Connection]:
        def connect(*args: object, **kwargs: object) -> Connection:
            connection = original(*args, **kwargs)
            drawn = _random.Random()
            drawn.seed(int.from_bytes(_draw_seed(sys._getframe(1))))  # noqa: SLF001
            connection.create_function("random", 0, lambda: drawn.getrandbits(64) - 2**63)
            connection.create_function("randomblob", 1, lambda size: draw_blob(drawn, size))
            return connection

        return connect

    def draw_blob(drawn: _random.Random, size: object) -> bytes:
        length = max(1, size) if isinstance(size, int) else 1
        return drawn.getrandbits(8 * length).to_bytes(length)

    return [Patch(place, "connect", wrap) for place in (module, module.dbapi2)]


_NATIVE: Final[Libraries] = {
    "numpy.random.bit_generator": _seed_numpy,
    "polars": _seed_polars,
    "duckdb": _seed_duckdb,
    "sqlite3": _seed_sqlite,
}

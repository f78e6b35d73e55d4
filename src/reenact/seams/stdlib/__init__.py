"""Stand-ins, in the agent's modules, for the standard library's sources of chance and ways to the outside.

Libraries such as logging, asyncio or pydantic keep the real functions. Each stand-in decides at each call
whether to record, by the run that the calling code belongs to.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Final, get_args

from reenact.boundary import Context
from reenact.errors import UsageError
from reenact.formats.capture import StandIns
from reenact.formats.record import ABSENT
from reenact.seams.patches import attach, detach
from reenact.seams.stdlib import clock, cwd, environ, files, locks, process, rng, system
from reenact.seams.stdlib.exchange import Exchanged, close_exchange, exchanges_of, open_exchange
from reenact.seams.stdlib.sources import Source, forget_sources, record_sources

_NAMES: Final[dict[str, tuple[Exchanged, ...]]] = {
    "time": exchanges_of(clock.STAND_INS),
    "random": exchanges_of(rng.STAND_INS),
    "uuid": exchanges_of(rng.UUID_STAND_INS),
    "secrets": exchanges_of(rng.SECRETS_STAND_INS),
    "subprocess": exchanges_of(process.STAND_INS, gives_way=True),
    "files": exchanges_of(files.STAND_INS),
    "cwd": exchanges_of(cwd.STAND_INS, gives_way=True),
    "system": exchanges_of(system.STAND_INS),
    "environ": exchanges_of(environ.STAND_INS, gives_way=True),
}
_LOCKS: Final = exchanges_of(locks.STAND_INS, gives_way=True)
"""Not a source that can be chosen: exchanged whenever any source is."""
DEFAULT_SOURCES: Final[tuple[Source, ...]] = tuple(
    source for source in get_args(Source) if source != "environ"
)

NOTHING: Final = StandIns(sources=[], modules=[])
"""For a capture that does not say what it exchanged."""


def stand_ins(
    sources: Collection[Source] | None, modules: Collection[str], environ: Collection[str] = ()
) -> StandIns:
    """What to exchange in which modules; if *sources* is ``None``, everything but the environment.

    Of the environment, the variables in *environ* are recorded; all of them if ``environ`` is a source.
    """
    if isinstance(environ, str):
        raise UsageError(f"environ={environ!r} is one text; give a list")
    chosen = list(DEFAULT_SOURCES if sources is None else sources)
    is_by_name = bool(environ) and "environ" not in chosen
    chosen += ["environ"] if is_by_name else []
    unknown = sorted(set(chosen) - set(get_args(Source)))
    if unknown:
        raise UsageError(f"sources={unknown[0]!r} is unknown; choose from {', '.join(get_args(Source))}")
    everywhere = ["subprocess"] if "subprocess" in chosen else []
    return StandIns(
        sources=sorted(chosen),
        modules=sorted(modules),
        everywhere=everywhere or ABSENT,
        environ=sorted(environ) if is_by_name else ABSENT,
        deadlines=True,
    )


@contextmanager
def attach_stdlib(stand_ins: StandIns, context: Context) -> Iterator[None]:
    """In the block, let the agent's modules see the stand-ins for the run of *context*."""
    if not stand_ins.sources:
        yield
        return
    names = [name for source in stand_ins.sources for name in _NAMES.get(source, ())]
    names += _LOCKS
    patterns = tuple(stand_ins.modules)
    patches = files.PATCHES if "files" in stand_ins.sources else []
    if "system" in stand_ins.sources:
        patches = [*patches, *system.PATCHES]
    if stand_ins.everywhere:
        patches = [*patches, *process.PATCHES]
    record_sources(
        context,
        frozenset(stand_ins.sources),
        frozenset(stand_ins.everywhere or ()),
        None if stand_ins.environ is ABSENT else frozenset(stand_ins.environ),
    )
    open_exchange(names, patterns)
    attach(patches)
    try:
        yield
    finally:
        detach(patches)
        close_exchange(patterns)
        forget_sources(context)

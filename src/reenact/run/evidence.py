"""The origin of names in a replayed run: random draws, or the input of the command."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from time import time
from typing import Final

from reenact.lazy_regex import LazyRegex
from reenact.replayer.renaming import Forms
from reenact.run.given import Given
from reenact.seams.stdlib.digests import Digests
from reenact.seams.stdlib.draws import Draws
from reenact.seams.stdlib.wall_clock import clock_gain_s
from reenact.volatile.places import own_places
from reenact.volatile.times import Window, holds_instant

_NOT_YET_S: Final = float(2**40)
_LISTENING: Final = "0A"
_WORD: Final = LazyRegex(r"[A-Za-z0-9_-]{12,}")
_SOCKET_TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))


class RunEvidence:
    """See :class:`~reenact.replayer.renaming.Evidence`."""

    def __init__(
        self,
        forms: Forms,
        *,
        draws: Draws | None = None,
        given: Given | None = None,
        began_s: float | None = None,
        places: Mapping[str, str] | None = None,
        processes: Callable[[], Mapping[int, int]] = dict,
    ) -> None:
        """The run begins with :meth:`begin`, unless it has begun before; *places* are its current folders.

        *processes* returns the ids of the run's processes, by those of the recorded ones.
        """
        self._processes = processes
        self._places = own_places() if places is None else places
        self.forms: Forms = forms
        self.draws = draws
        self.digests = Digests()
        self._given = given
        self.began_s = began_s if began_s is not None else _NOT_YET_S
        self.clock_shift_s = 0.0

    def begin(self, at_s: float) -> None:
        self.began_s = min(self.began_s, at_s)

    def now_s(self) -> float:
        return time() + clock_gain_s()

    def is_drawn(self, name: str) -> bool:
        return self.draws is not None and (self.draws.has_given(name) or self._is_derived(name))

    def _is_derived(self, name: str) -> bool:
        """Whether it is of a digest that something fresh went into."""
        return any(self._has_fresh(content) for content in self.digests.inputs_of(name))

    def _has_fresh(self, content: bytes) -> bool:
        text = content.decode("latin-1")
        zones = (UTC, datetime.now(UTC).astimezone().tzinfo or UTC)
        now = Window(self.began_s, self.now_s(), zones, self.clock_shift_s)
        return (
            holds_instant(text, now)
            or (self.draws is not None and self.draws.are_in(content))
            or any(self._is_derived(word) for word in _WORD.findall(text))
        )

    def is_drawn_word(self, word: str) -> bool:
        return self.draws is not None and self.draws.has_chosen(word)

    def is_given(self, name: str) -> bool:
        return self._given is not None and self._given.holds(name)

    def is_given_time(self, time: str, now: Window) -> bool:
        return self._given is not None and self._given.holds_time(time, now)

    def is_own_port(self, port: int) -> bool:
        return port in set(_listening_ports())

    def is_drawn_port(self, port: int) -> bool:
        return self.draws is not None and port in self.draws.ports

    def is_own_process(self, number: int) -> bool:
        if number in (os.getpid(), os.getppid()) or Path(f"/proc/self/task/{number}").exists():
            return True
        return number > 1 and _is_below(number, os.getpid())

    def is_same_process(self, recorded: int, live: int) -> bool:
        return self._processes().get(recorded) == live

    def is_own_address(self, number: int) -> bool:
        return any(number in mapped for mapped in _mapped_memory())

    def places(self) -> Mapping[str, str]:
        return self._places


def _is_below(pid: int, ancestor: int) -> bool:
    """Whether process *pid* descends from *ancestor*, where the system tells."""
    try:
        while pid > 1:
            # The name of the program, in parentheses, may hold anything.
            status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
            pid = int(status.split()[1])
            if pid == ancestor:
                return True
    except (OSError, ValueError, IndexError):
        pass
    return False


def _mapped_memory() -> Iterator[range]:
    """The address ranges of this process; none where the system does not tell."""
    try:
        lines = Path("/proc/self/maps").read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return
    for line in lines:
        first, _, end = line.partition(" ")[0].partition("-")
        yield range(int(first, 16), int(end, 16))


def _listening_ports() -> Iterator[int]:
    """The ports with a listener on this host; none if the system does not say."""
    for table in _SOCKET_TABLES:
        try:
            lines = table.read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == _LISTENING:
                yield int(fields[1].rpartition(":")[2], 16)

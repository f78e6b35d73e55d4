"""The origin of names in a replayed run: random draws, or the input of the command."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from time import time
from typing import Final

from reenact.lazy_regex import LazyRegex
from reenact.replayer.renaming import Forms
from reenact.seams.stdlib.digests import Digests
from reenact.seams.stdlib.draws import Draws
from reenact.seams.stdlib.written import is_users_file, tell_place
from reenact.volatile.places import own_places
from reenact.volatile.times import Window, holds_instant

_MAX_FILE_BYTES: Final = 2 * 2**20
_MAX_BYTES: Final = 64 * 2**20
_MAX_FILES: Final = 5000
_PASSED_BY: Final = frozenset(
    {"node_modules", "site-packages", "dist-packages", "__pycache__", ".git", ".hg", ".venv", "venv", ".tox"}
)
_MAX_PATH: Final = 4096
_CAPTURE: Final = "events.jsonl"
_NOT_YET_S: Final = float(2**40)
_LISTENING: Final = "0A"
_WORD: Final = LazyRegex(r"[A-Za-z0-9_-]{12,}")
_SOCKET_TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))


class Given:
    """The input of a command: its words, its environment, and the files that existed before it.

    Files are those that its words name, those in its working folder and *more*. They are read on first use;
    of a large folder only the first ones.
    """

    def __init__(
        self,
        words: Sequence[str],
        environ: Mapping[str, str],
        folder: Path,
        *,
        before_s: float,
        more: Callable[[], Iterable[Path]] = lambda: (),
        input_copy: Path | None = None,
    ) -> None:
        """*input_copy* has what the command has read from a pipe so far."""
        self._texts = [*words, *environ.values()]
        self._words = words
        self._folder = folder
        self._before_s = before_s
        self._more = more
        self._input_copy = input_copy

    def holds(self, name: str) -> bool:
        """Whether the input contains *name*."""
        if any(name in text for text in self._texts):
            return True
        wanted = name.encode()
        return wanted in self._input() or any(wanted in content for content in self._contents)

    def _input(self) -> bytes:
        try:
            if self._input_copy is not None and self._input_copy.exists():
                return self._input_copy.read_bytes()
            # A new descriptor reads from the beginning and does not move the position of the command.
            return Path("/dev/stdin").read_bytes() if stat.S_ISREG(os.fstat(0).st_mode) else b""
        except OSError:
            return b""

    @cached_property
    def _contents(self) -> list[bytes]:
        found: list[bytes] = [os.fsencode(path) for path in _files_in(self._folder)]
        room_bytes = _MAX_BYTES
        for path in dict.fromkeys(self._files()):
            content = self._read(path)
            if content is not None and len(content) <= room_bytes:
                room_bytes -= len(content)
                found.append(content)
        return found

    def _files(self) -> Iterator[Path]:
        for word in self._words:
            parts = word, word.partition("=")[2]
            yield from (self._folder / part for part in parts if 0 < len(part) < _MAX_PATH)
        yield from self._more()
        yield from _files_in(self._folder)

    def _read(self, path: Path) -> bytes | None:
        """The content of a file before the run; ``None`` if it is not known."""
        try:
            state = path.stat()
            is_fit = path.is_file() and state.st_size <= _MAX_FILE_BYTES and state.st_mtime < self._before_s
            return path.read_bytes() if is_fit else None
        except (OSError, ValueError):
            return None


def changed_files(folder: Path, *, since_s: float) -> list[str]:
    """The files in *folder* that were written since then, as relative names."""
    return [
        tell_place(str(path), str(folder))
        for path in _files_in(folder)
        if is_users_file(str(path), str(folder)) and path.stat().st_mtime >= since_s
    ]


def _files_in(folder: Path) -> Iterator[Path]:
    """The files of a project, except libraries and captures, which contain the recorded names."""
    count = 0
    for place, folders, names in os.walk(folder):
        is_capture = _CAPTURE in names
        folders[:] = [] if is_capture else sorted(set(folders) - _PASSED_BY)
        for name in () if is_capture else sorted(names):
            count += 1
            if count > _MAX_FILES:
                return
            yield Path(place, name)


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
    ) -> None:
        """The run begins with :meth:`begin`, unless it has begun before; *places* are its current folders."""
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
        return time()

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

    def is_own_port(self, port: int) -> bool:
        return port in set(_listening_ports())

    def is_drawn_port(self, port: int) -> bool:
        return self.draws is not None and port in self.draws.ports

    def is_own_process(self, number: int) -> bool:
        if number in (os.getpid(), os.getppid()) or Path(f"/proc/self/task/{number}").exists():
            return True
        return number > 1 and _is_below(number, os.getpid())

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

"""The input of a replayed command: names and times that stand in it were not generated.

A program is given its words, its environment, what comes by its standard input, the files of its working
folder, and the other files that it opens, as far as they are older than the run.
"""

from __future__ import annotations

import base64
import io
import os
import re
import stat
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple
from uuid import UUID

from reenact.boundary import hear_audit_events
from reenact.lazy_regex import LazyRegex
from reenact.library import is_library
from reenact.replayer.renaming import spellings
from reenact.seams.stdlib.written import is_users_file, tell_place
from reenact.volatile.times import Window, find_times, is_one_of

_MAX_FILE_BYTES: Final = 2 * 2**20
_MAX_BYTES: Final = 64 * 2**20
_MAX_FILES: Final = 5000
_PASSED_BY: Final = frozenset(
    {"node_modules", "site-packages", "dist-packages", "__pycache__", ".git", ".hg", ".venv", "venv", ".tox"}
)
_MAX_PATH: Final = 4096
_CAPTURE: Final = "events.jsonl"
_OF_SYSTEM: Final = ("/proc/", "/sys/", "/dev/")
_CHANGED_BY: Final = ("open", "sqlite3.connect", "os.rename", "os.remove")
_GZIP: Final = b"\x1f\x8b"
_ZIP: Final = b"PK\x03\x04"
_MIN_PACKED: Final = 30
"""In shorter names it takes too long to look into all that could be base64."""
_MIN_PART: Final = 4
"""Shorter words stand in any text, so that names would be made of them by chance."""
_MAY_BE_PACKED: Final = LazyRegex(rb"\0|[A-Za-z0-9+/]{40}|\d{30}")


class _Content(NamedTuple):
    text: bytes
    """In small letters."""
    raw: bytes
    """As it is, if a name may be packed in it; else empty, which saves most of the time."""


def _as_content(content: bytes) -> _Content:
    return _Content(content.lower(), content if _MAY_BE_PACKED.search(content) else b"")


class OpenedFiles:
    """The files that the program has opened and that are older than the run; libraries' own are left out."""

    def __init__(self, before_s: float, passed_by: Sequence[Path] = ()) -> None:
        """The files below *passed_by* are reenact's."""
        self._before_s = before_s
        self._passed_by = (*_OF_SYSTEM, *(f"{folder}{os.sep}" for folder in passed_by))
        self._contents: dict[str, _Content | None] = {}
        """By path; what the program is about to change is read before, all else when it is asked for."""
        self._unread: dict[str, None] = {}
        self._room_bytes = _MAX_BYTES

    def watch(self) -> None:
        """Note what is opened until the end of the process."""
        hear_audit_events(_CHANGED_BY, self._note)

    def _note(self, event: str, arguments: tuple[object, ...]) -> None:
        path = arguments[1 if event == "os.rename" else 0]
        is_full = len(self._unread) + len(self._contents) >= _MAX_FILES
        if is_full or not isinstance(path, str | bytes | os.PathLike):
            return
        with suppress(OSError, ValueError):  # the program gets these itself
            path = os.path.abspath(os.fsdecode(path))
            if path in self._contents or is_library(path) or path.startswith(self._passed_by):
                return
            is_read = event == "open" and not int(str(arguments[2] or 0)) & (os.O_WRONLY | os.O_RDWR)
            if is_read or event in ("open", "sqlite3.connect"):
                self._unread[path] = None
            if not is_read and path in self._unread:
                self._read(path)

    def contents(self, besides: Container[str]) -> Iterator[_Content]:
        """What stood in them when the run began; in all but those at the paths *besides*."""
        for path in [*self._unread]:
            if path not in besides:
                self._read(path)
        yield from (
            each for path, each in [*self._contents.items()] if each is not None and path not in besides
        )

    def _read(self, path: str) -> None:
        self._unread.pop(path, None)
        self._contents[path] = None  # so that opening it here is not noted
        content = read_older(Path(path), self._before_s, self._room_bytes)
        if content is not None:
            self._room_bytes = max(0, self._room_bytes - len(content))
            self._contents[path] = _as_content(content)


class Given:
    """The input of one command.

    Its files are those that its words name, those in its working folder, *more*, and those that were
    *opened*. They are read on first use; of a large folder only the first ones.
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
        opened: OpenedFiles | None = None,
    ) -> None:
        """*input_copy* has what the command has read from a pipe so far."""
        self._given = [_as_content(os.fsencode(text)) for text in (*words, *environ.values())]
        self._words = words
        self._folder = folder
        self._before_s = before_s
        self._more = more
        self._input_copy = input_copy
        self._opened = opened
        self._looked_through: set[str] = set()

    def holds(self, name: str) -> bool:
        """Whether the input contains *name*, in any spelling, or the words that it is put together from."""
        texts = {spelling.lower().encode() for spelling in spellings(name)}
        packed = [*dict.fromkeys(_packed_forms(name))]
        return any(
            any(form in content.text for form in texts) or any(form in content.raw for form in packed)
            for content in self._everything()
        ) or self._holds_parts(name.lower().encode())

    def _holds_parts(self, name: bytes) -> bool:
        """Whether *name* is several words of the input, one directly behind the other."""
        ends = {0}
        for begin in range(len(name)):
            for end in range(begin + _MIN_PART, len(name) + 1) if begin in ends else ():
                part = name[begin:end]
                texts = [content.text for content in self._everything() if part in content.text]
                if not texts:
                    break
                alone = re.compile(rb"(?<![a-z0-9])" + re.escape(part) + rb"(?![a-z0-9])")
                if any(map(alone.search, texts)):
                    ends.add(end)
        return len(name) in ends

    def _everything(self) -> Iterator[_Content]:
        yield from self._given
        yield _as_content(self._input())
        yield from self._contents
        if self._opened is not None:
            yield from self._opened.contents(self._looked_through)

    def holds_time(self, time: str, now: Window) -> bool:
        """Whether the user wrote *time*: in the words, in files that they name, in the source or the input.

        What else the command was given, its environment and other files, often has the current time in it.
        """
        return is_one_of(
            time, [*self._written_times, *find_times(self._input().decode(errors="replace"))], now
        )

    @cached_property
    def _written_times(self) -> list[str]:
        texts = [
            *self._words,
            *(content.decode(errors="replace") for content in self._read_all(self._named_files())),
        ]
        return [time for text in texts for time in find_times(text)]

    def _input(self) -> bytes:
        try:
            if self._input_copy is not None and self._input_copy.exists():
                return self._input_copy.read_bytes()
            # A new descriptor reads from the beginning and does not move the position of the command.
            return Path("/dev/stdin").read_bytes() if stat.S_ISREG(os.fstat(0).st_mode) else b""
        except OSError:
            return b""

    @cached_property
    def _contents(self) -> list[_Content]:
        names = b"\n".join(os.fsencode(path) for path in _files_in(self._folder))
        files = self._read_all([*self._named_files(), *_files_in(self._folder)])
        return [_as_content(names), *map(_as_content, files)]

    def _read_all(self, paths: Iterable[Path]) -> Iterator[bytes]:
        room_bytes = _MAX_BYTES
        for path in dict.fromkeys(paths):
            content = read_older(path, self._before_s, _MAX_FILE_BYTES)
            if content is not None and len(content) <= room_bytes:
                room_bytes -= len(content)
                self._looked_through.add(os.path.abspath(path))
                yield content

    def _named_files(self) -> Iterator[Path]:
        """The files that the words name, and the agent's source."""
        for word in self._words:
            parts = word, word.partition("=")[2]
            yield from (self._folder / part for part in parts if 0 < len(part) < _MAX_PATH)
        yield from self._more()


def read_older(path: Path, before_s: float, max_bytes: int) -> bytes | None:
    """The content of a file as it was before the run, unpacked; ``None`` if it is not known."""
    try:
        state = path.stat()
        is_fit = path.is_file() and state.st_size <= max_bytes and state.st_mtime < before_s
        return _unpacked(path.read_bytes()) if is_fit else None
    except (OSError, ValueError):
        return None


def _unpacked(content: bytes) -> bytes:
    """What a packed file has in it; of a large one the beginning."""
    if not content.startswith((_GZIP, _ZIP)):
        return content
    import gzip  # few files are packed, and these take 10 ms to import
    import zipfile
    import zlib

    packed = io.BytesIO(content)
    try:
        if content.startswith(_GZIP):
            return gzip.GzipFile(fileobj=packed).read(_MAX_BYTES)
        parts = [content]
        with zipfile.ZipFile(packed) as archive:
            for name in archive.namelist():
                parts.append(archive.open(name).read(max(0, _MAX_BYTES - sum(map(len, parts)))))
        return b"\n".join(parts)
    except (OSError, EOFError, ValueError, RuntimeError, NotImplementedError, zlib.error, zipfile.BadZipFile):
        return content


def _packed_forms(name: str) -> Iterator[bytes]:
    """How *name* may stand in a database or in a packed value."""
    forms = {form for spelling in spellings(name) for form in (spelling, spelling.lower(), spelling.upper())}
    for form in sorted(forms) if len(name) >= _MIN_PACKED else ():
        yield form.encode("utf-16-le")
        yield from _in_base64(form.encode())
    with suppress(ValueError):
        uuid = UUID(name)
        yield uuid.bytes
        yield uuid.bytes[::-1]
        yield uuid.bytes_le
        yield str(uuid.int).encode()


def _in_base64(text: bytes) -> Iterator[bytes]:
    """The letters of *text* in base64 that do not depend on what stands before and behind."""
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + text)
        first = -(-before * 4 // 3)
        yield encoded[first : (before + len(text)) * 8 // 6]


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

"""A run's own folders: a path below one of them matches the same path below another run's folder.

A capture does not contain these folders in the clear. It has a salted digest of each, by which a replay in
another folder recognises their names in recorded texts.
"""

from __future__ import annotations

import hmac
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

TEST_FOLDER_VARIABLE: Final = "REENACT_TEST_FOLDER"
"""Set by the pytest plugin: the temporary folder of these tests, which has another name each time."""
_MIN_CHARACTERS: Final = 2
"""Excludes ``/``, which is not a folder of a run."""
_MAX_CHARACTERS: Final = 400
_MAX_TRIED: Final = 20_000
_PATH_START: Final = re.compile(r"(?:(?<![\w.~/-])|(?<=file://)|(?<=\\[nrt]))~?/(?=[^/\s])")
_MAY_END: Final = re.compile(r"[^\w-]|$")
_MAY_NAME: Final = re.compile("/|%2[Ff]")
_STAND_IN: Final = "\ue000"


_getcwd: Final = os.getcwd
"""The original function: a test may patch ``os.getcwd``."""


def working_folder(gone: str = os.devnull) -> str:
    """The working directory, or *gone* if it was removed; no path is below the default."""
    try:
        return _getcwd()
    except OSError:
        return gone


def own_places(workspace: str | None = None, given: str = "") -> dict[str, str]:
    """The folders of a run that begins now, by kind; *given* is the user's spelling of *workspace*.

    A folder can have other names: a symbolic link, or ``~`` below the home. Their keys have the kind and the
    sort of name, such as ``workspace/given``.
    """
    home = os.path.expanduser("~").rstrip(os.sep)
    found = {
        "cwd": working_folder(),
        "cwd/given": _alias_of(os.environ.get("PWD", ""), working_folder()),
        "home": home,
        "python": sys.prefix,
        "test": os.environ.get(TEST_FOLDER_VARIABLE, ""),
        "tmp": tempfile.gettempdir(),
    }
    if workspace is not None:
        found |= {"workspace": workspace, "workspace/given": _alias_of(given, workspace)}
    for name in ("cwd", "workspace"):
        if home and found.get(name, "").startswith(f"{home}/"):
            found[f"{name}/home"] = "~" + found[name].removeprefix(home)
    plain = {name: place.rstrip(os.sep) for name, place in found.items()}
    return {name: place for name, place in plain.items() if len(place) >= _MIN_CHARACTERS}


def _alias_of(given: str, real: str) -> str:
    """Return *given* if it is another name of the folder *real*, else an empty text."""
    name = os.path.normpath(given) if os.path.isabs(given) else ""
    return name if name and name != real and os.path.realpath(name) == os.path.realpath(real) else ""


def mark_places(places: Mapping[str, str], salt: bytes) -> dict[str, str]:
    """The salted digests of *places* for a capture."""
    return {name: _mark(place, salt) for name, place in places.items()}


def _mark(place: str, salt: bytes) -> str:
    return hmac.digest(salt, place.encode("utf-8", "surrogatepass"), "sha256").hex()[:32]


def bounded_pattern(spelling: str) -> str:
    """A pattern that finds *spelling* as a whole path or as the first folders of one."""
    before = r"(?:(?<![\w.~-])|(?<=\\[nrt]))"
    if spelling.startswith("%"):
        before = r"(?:(?<![\w.~-])|(?<=%(?:2F|2f|3A|3a|3D|3d|20|22)))"
    return rf"{before}{re.escape(spelling)}{_ENDS}"


_ENDS: Final = r"(?![\w+@~-])(?!\.\w)(?!%(?!2[Ff29Cc]|3[AaBbEe]|0[AaDd]))"
"""Not followed by characters that continue a name; an escaped slash, quote or line end does not."""


def spellings(place: str) -> tuple[str, ...]:
    """The spellings of *place* in texts: plain, with escaped slashes, as a ``file:`` URL, percent-encoded."""
    return place, place.replace("/", "\\/"), f"file://{quote(place)}", quote(place, safe="")


def _unescape(text: str) -> Iterator[str]:
    """Yield *text*, and its unescaped forms if it has escaped slashes."""
    yield text
    if "\\/" in text:
        yield text.replace("\\/", "/")
    if "%2F" in text or "%2f" in text or "file://" in text:
        yield unquote(text)


class Neutral(NamedTuple):
    """Two texts in which a placeholder replaces the folders that correspond to each other."""

    recorded: str
    live: str
    pairs: list[tuple[str, str]]

    def restore(self, text: object, *, is_live: bool) -> object:
        """Put the folders back into *text*, a part of one of the two texts."""
        if not isinstance(text, str) or _STAND_IN not in text:
            return text
        whole = self.live if is_live else self.recorded
        before = whole.count(_STAND_IN, 0, max(0, whole.find(text)))
        names = iter([pair[is_live] for pair in self.pairs[before:]])
        return re.sub(_STAND_IN, lambda _: next(names, _STAND_IN), text)


class Places:
    """Translates between the folders of the recorded run and those of this one."""

    def __init__(self, marks: Mapping[str, str], live: Mapping[str, str], salt: bytes) -> None:
        self._salt = salt
        here: dict[str, set[str]] = {}
        for name, place in live.items():
            here.setdefault(_kind(name), set()).add(place)
        unmoved = {(kind, _mark(place, salt)) for kind, places in here.items() for place in places}
        moved = {
            name: mark
            for name, mark in marks.items()
            if _kind(name) in live and (_kind(name), mark) not in unmoved
        }
        self._names_by_mark: dict[str, frozenset[str]] = {}
        for name, mark in moved.items():
            self._names_by_mark[mark] = self._names_by_mark.get(mark, frozenset()) | {_kind(name)}
        self._unfound = set(self._names_by_mark)
        self.are_moved = bool(self._names_by_mark)
        self._live: dict[str, frozenset[str]] = {}
        for kind in {_kind(name) for name in moved}:
            for place in here[kind]:
                self._live[place] = self._live.get(place, frozenset()) | {kind}
        self._preferred = {kind: live[kind] for kind in _BY_PREFERENCE if kind in map(_kind, moved)}
        self._spelled: dict[str, tuple[str, int]] = {}
        """By spelling: the folder, and the number of the spelling."""
        self.recorded: dict[str, frozenset[str]] = {}
        """The folders of the recorded run that were found so far, with their kinds."""
        self._tried: set[str] = set()
        self._find_recorded = self._find_either = _NOTHING

    def find_folder(self, recorded: str) -> str:
        """The folder of this run that corresponds to *recorded*."""
        names = self.recorded[recorded]
        return next(place for name, place in self._preferred.items() if name in names)

    def look_through(self, text: str) -> bool:
        """Look in *text* for folders of the recorded run; returns whether a new one was found."""
        if not self._unfound or not _MAY_NAME.search(text):
            return False
        known = len(self.recorded)
        for said in _unescape(text):
            self._learn_from(said)
        if len(self.recorded) == known:
            return False
        self._find_recorded = _pattern(self.recorded)
        self._find_either = _pattern([*self.recorded, *self._live])
        for place in [*self._live, *self.recorded]:
            for number, spelling in reversed([*enumerate(spellings(place))]):
                self._spelled[spelling] = place, number
        return True

    def _learn_from(self, text: str) -> None:
        for beginning in _PATH_START.finditer(text):
            for path in _prefixes(text[beginning.start() : beginning.start() + _MAX_CHARACTERS]):
                if path not in self._tried and len(self._tried) < _MAX_TRIED:
                    self._tried.add(path)
                    mark = _mark(path, self._salt)
                    if mark in self._unfound:
                        self._unfound.discard(mark)
                        self.recorded[path] = self._names_by_mark[mark]

    def neutralize(self, recorded: str, live: str) -> Neutral | None:
        """Replace corresponding folders in both texts; ``None`` if the texts do not name the same folders."""
        self.look_through(recorded)
        if not self.recorded:
            return None
        mine, others = list(self._find_recorded.finditer(recorded)), list(self._find_either.finditer(live))
        if not mine or len(mine) != len(others):
            return None
        pairs = [(one[0], other[0]) for one, other in zip(mine, others, strict=True)]
        if not all(self._is_same(*pair) for pair in pairs):
            return None
        return Neutral(
            self._find_recorded.sub(_STAND_IN, recorded), self._find_either.sub(_STAND_IN, live), pairs
        )

    def _is_same(self, recorded: str, live: str) -> bool:
        if recorded == live:
            return True
        (there, one), (here, other) = self._spelled[recorded], self._spelled[live]
        return one == other and bool(self.recorded[there] & self._live.get(here, frozenset()))


_BY_PREFERENCE: Final = ("cwd", "workspace", "python", "home", "test", "tmp")
_NOTHING: Final = re.compile(r"(?!)")


def _prefixes(text: str) -> Iterator[str]:
    for end in _MAY_END.finditer(text, 1):
        yield text[: end.start()]


def _pattern(places: Iterable[str]) -> re.Pattern[str]:
    found = {spelling for place in places for spelling in spellings(place)}
    return re.compile("|".join(map(bounded_pattern, sorted(found, key=len, reverse=True))))


def _kind(name: str) -> str:
    """The kind in a key of :func:`own_places`."""
    return name.partition("/")[0]

"""The folders that a run has of its own: a path below one of them means the same below another run's.

A capture does not tell where it was made. It has a salted digest of each such folder, by which a replay
elsewhere recognises the folder where the recording names it.
"""

from __future__ import annotations

import hmac
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

_MIN_CHARACTERS: Final = 2
"""The root of all folders is nobody's own."""
_MAX_CHARACTERS: Final = 400
_MOST_TRIED: Final = 20_000
_BEGINS: Final = re.compile(r"(?:(?<![\w.~/-])|(?<=file://))/(?=[^/\s])")
_MAY_END: Final = re.compile(r"[^\w-]|$")
_STAND_IN: Final = "\ue000"


def own_places() -> dict[str, str]:
    """The folders of a run that begins now, by what they are."""
    found = {
        "cwd": os.getcwd(),
        "home": os.path.expanduser("~"),
        "python": sys.prefix,
        "tmp": tempfile.gettempdir(),
    }
    plain = {name: place.rstrip(os.sep) for name, place in found.items()}
    return {name: place for name, place in plain.items() if len(place) >= _MIN_CHARACTERS}


def mark_places(places: Mapping[str, str], salt: bytes) -> dict[str, str]:
    """What a capture says of *places*."""
    return {name: _mark(place, salt) for name, place in places.items()}


def _mark(place: str, salt: bytes) -> str:
    return hmac.digest(salt, place.encode("utf-8", "surrogatepass"), "sha256").hex()[:32]


def bounded(place: str) -> str:
    """A pattern that finds *place* where it is a whole path, or the beginning of one."""
    return rf"(?<![\w.~-]){re.escape(place)}(?![\w-])(?!\.\w)"


class Neutral(NamedTuple):
    """Two texts with a stand-in for the folders that both name at the same places."""

    recorded: str
    live: str
    pairs: list[tuple[str, str]]

    def restore(self, text: Any, *, is_live: bool) -> Any:
        """*text*, a part of one of the two, with the folders it had; as it is where that is not known."""
        if not isinstance(text, str) or _STAND_IN not in text:
            return text
        whole = self.live if is_live else self.recorded
        before = whole.count(_STAND_IN, 0, max(0, whole.find(text)))
        names = iter([pair[is_live] for pair in self.pairs[before:]])
        return re.sub(_STAND_IN, lambda _: next(names, _STAND_IN), text)


class Places:
    """The recorded run's folders and those of this one."""

    def __init__(self, marks: Mapping[str, str], live: Mapping[str, str], salt: bytes) -> None:
        self._salt = salt
        moved = {
            name: mark for name, mark in marks.items() if name in live and _mark(live[name], salt) != mark
        }
        self._names_by_mark: dict[str, frozenset[str]] = {}
        for name, mark in moved.items():
            self._names_by_mark[mark] = self._names_by_mark.get(mark, frozenset()) | {name}
        self._unfound = set(self._names_by_mark)
        self._live: dict[str, frozenset[str]] = {}
        for name in moved:
            self._live[live[name]] = self._live.get(live[name], frozenset()) | {name}
        self._preferred = {name: live[name] for name in _BY_PREFERENCE if name in moved}
        self.recorded: dict[str, frozenset[str]] = {}
        """Those of the recorded run that were found, with what they were."""
        self._tried: set[str] = set()
        self._find_recorded = self._find_either = _NOTHING

    @property
    def are_moved(self) -> bool:
        return bool(self._names_by_mark)

    def here(self, recorded: str) -> str:
        """The folder of this run for one of the recorded run's."""
        names = self.recorded[recorded]
        return next(place for name, place in self._preferred.items() if name in names)

    def look_through(self, text: str) -> bool:
        """Learn the recorded run's folders where *text* names them; whether there was a new one."""
        if not self._unfound or "/" not in text:
            return False
        known = len(self.recorded)
        for beginning in _BEGINS.finditer(text):
            for path in _prefixes(text[beginning.start() : beginning.start() + _MAX_CHARACTERS]):
                if path not in self._tried and len(self._tried) < _MOST_TRIED:
                    self._tried.add(path)
                    mark = _mark(path, self._salt)
                    if mark in self._unfound:
                        self._unfound.discard(mark)
                        self.recorded[path] = self._names_by_mark[mark]
        if len(self.recorded) == known:
            return False
        self._find_recorded = _pattern(self.recorded)
        self._find_either = _pattern({**self.recorded, **self._live})
        return True

    def neutral(self, recorded: str, live: str) -> Neutral | None:
        """Both texts without the folders they name alike; ``None`` where they do not."""
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
        return recorded == live or bool(self.recorded[recorded] & self._live.get(live, frozenset()))


_BY_PREFERENCE: Final = ("cwd", "workspace", "python", "home", "tmp")
_NOTHING: Final = re.compile(r"(?!)")


def _prefixes(text: str) -> Iterator[str]:
    for end in _MAY_END.finditer(text, 1):
        yield text[: end.start()]


def _pattern(places: Mapping[str, Any]) -> re.Pattern[str]:
    return re.compile("|".join(map(bounded, sorted(places, key=len, reverse=True))))

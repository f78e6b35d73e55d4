"""Regular expressions that are compiled on first use.

There are several hundred, and most runs need few of them. Compiling all of them took a third of a second for
each recorded command. Expressions that every event needs are compiled by ``re`` as usual.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import AnyStr, Final, Generic

_METHODS: Final = ("match", "fullmatch", "search", "finditer", "findall", "split", "sub")


class LazyRegex(Generic[AnyStr]):
    """Has the methods of a compiled expression; an invalid one raises on first use."""

    def __init__(self, pattern: AnyStr, flags: int = 0) -> None:
        self.pattern: AnyStr = pattern
        self._flags = flags

    @cached_property
    def _compiled(self) -> re.Pattern[AnyStr]:
        compiled = re.compile(self.pattern, self._flags)
        # From now on they are found before the methods below, which cost 0.1 µs a call.
        self.__dict__.update({name: getattr(compiled, name) for name in _METHODS})
        return compiled

    def match(self, text: AnyStr, start: int = 0, end: int = sys.maxsize) -> re.Match[AnyStr] | None:
        return self._compiled.match(text, start, end)

    def fullmatch(self, text: AnyStr, start: int = 0, end: int = sys.maxsize) -> re.Match[AnyStr] | None:
        return self._compiled.fullmatch(text, start, end)

    def search(self, text: AnyStr, start: int = 0, end: int = sys.maxsize) -> re.Match[AnyStr] | None:
        return self._compiled.search(text, start, end)

    def finditer(self, text: AnyStr, start: int = 0, end: int = sys.maxsize) -> Iterator[re.Match[AnyStr]]:
        return self._compiled.finditer(text, start, end)

    def findall(self, text: AnyStr) -> list[AnyStr]:
        return self._compiled.findall(text)

    def split(self, text: AnyStr) -> list[AnyStr]:
        return self._compiled.split(text)

    def sub(self, new: AnyStr | Callable[[re.Match[AnyStr]], AnyStr], text: AnyStr) -> AnyStr:
        return self._compiled.sub(new, text)

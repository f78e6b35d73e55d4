"""Regular expressions that are compiled when they are first asked.

Several hundred of ours stand ready for what a run may meet, and most runs meet few of them. To compile them
all took a third of a second of each recorded command. What every event asks is compiled by ``re`` as usual.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import AnyStr, Generic


class LazyRegex(Generic[AnyStr]):
    """Answers as the compiled expression does; a wrong one raises when it is first asked."""

    def __init__(self, pattern: AnyStr, flags: int = 0) -> None:
        self.pattern: AnyStr = pattern
        self._flags = flags

    @cached_property
    def _compiled(self) -> re.Pattern[AnyStr]:
        return re.compile(self.pattern, self._flags)

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

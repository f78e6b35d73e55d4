"""Regular expressions that cannot hang the run.

Authors' patterns run in the ``regex`` library, whose matching loop looks at the clock and gives up by itself.
The standard ``re`` cannot be interrupted: it holds the interpreter until it is done, so neither a thread nor
a timer bounds it, and a linear engine such as RE2 would refuse lookaround and back-references.
``^`` and ``$`` match at every line, as in Ruby.
"""

from __future__ import annotations

from time import process_time
from typing import Final

import regex

from reenact.errors import UsageError
from reenact.suite.verdict import quoted

BUDGET_S: Final = 0.7
"""Of processor time, for all searches of one assertion together; the library counts it so."""
MAX_PATTERN_CHARACTERS: Final = 5_000


class Searcher:
    """Searches with a common deadline; one per assertion, so that many slow patterns are bounded too."""

    def __init__(self, budget_s: float = BUDGET_S) -> None:
        self._budget_s = budget_s
        self._deadline = process_time() + budget_s

    def search(self, pattern: str, text: str, *, ignore_case: bool = True) -> regex.Match[str] | None:
        """The first match; :class:`UsageError` for a pattern that is none, or that takes too long."""
        remaining_s = max(self._deadline - process_time(), 0.001)
        compiled = _compiled(pattern, ignore_case)
        try:
            return compiled.search(text, timeout=remaining_s)
        except TimeoutError:
            raise UsageError(
                f"the pattern {quoted(pattern)} was given up after {self._budget_s} s on "
                f"{len(text)} characters; it backtracks, so simplify its nested repetitions"
            ) from None


def _compiled(pattern: str, ignore_case: bool) -> regex.Pattern[str]:
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        raise UsageError(f"the pattern {quoted(pattern)} is longer than {MAX_PATTERN_CHARACTERS} characters")
    try:
        return regex.compile(pattern, regex.MULTILINE | (regex.IGNORECASE if ignore_case else 0))
    except (regex.error, RecursionError, OverflowError, MemoryError) as error:
        raise UsageError(f"the pattern {quoted(pattern)} is not a regular expression: {error}") from None

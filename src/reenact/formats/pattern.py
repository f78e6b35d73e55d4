"""Regular expressions from untrusted files, with bounded time and memory.

RE2 takes time linear in the text for any pattern, so the result does not depend on the load of the machine,
as it would with a time limit. The time also grows with the size of the compiled pattern; the product of both
is bounded by ``MAX_STEPS``, about two seconds.
"""

from __future__ import annotations

from typing import Any, Final

from reenact.errors import FormatError

MAX_STEPS: Final = 100_000_000
MAX_MEMORY_BYTES: Final = 8 * 1024 * 1024


class Pattern:
    """A compiled pattern in RE2's syntax; ``$`` matches only at the end of the text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._compiled = _compile(text)

    def search(self, texts: list[str]) -> list[bool | None]:
        """For each of *texts* whether it has a match; ``None`` if the search would take too long."""
        try:
            encoded = [text.encode() for text in texts]
        except UnicodeEncodeError:
            return [None] * len(texts)  # a lone surrogate is not Unicode text
        if self._compiled.programsize * sum(map(len, encoded)) > MAX_STEPS:
            return [None] * len(texts)
        return [self._compiled.search(text) is not None for text in encoded]

    def replace(self, text: str, by: str) -> str:
        """*text* with every match replaced by *by*; unchanged if the search would take too long."""
        try:
            encoded = text.encode()
        except UnicodeEncodeError:
            return text
        if self._compiled.programsize * len(encoded) > MAX_STEPS or self._compiled.search(encoded) is None:
            return text
        changed: bytes = self._compiled.sub(by.encode().replace(b"\\", rb"\\"), encoded)
        return changed.decode("utf-8", "replace")


def _compile(text: str) -> Any:
    import re2  # type: ignore[import-untyped]  # ships no types; imported here, because few runs need it

    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_MEMORY_BYTES
    try:
        return re2.compile(text.encode(), options)
    except (re2.error, UnicodeEncodeError) as error:
        raise FormatError(f"not a pattern of RE2's syntax: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    reason = error.args[0] if error.args else error
    return reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(error)

"""Regular expressions from outside, which can neither hang nor exhaust us.

RE2 searches in time linear in the text, whatever the pattern, so the same pattern and text give the same
answer on a busy machine and on an idle one; a time limit could not promise that. What remains is the factor:
the size of the compiled pattern. The product of both is bounded by ``MAX_STEPS``, about two seconds.
"""

from __future__ import annotations

from typing import Any, Final

from reenact.errors import FormatError

MAX_STEPS: Final = 100_000_000
MAX_MEMORY_BYTES: Final = 8 * 1024 * 1024


class Pattern:
    """A compiled pattern in RE2's syntax; ``$`` is the end of the text and nothing else."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._compiled = _compile(text)

    def search(self, texts: list[str]) -> list[bool | None]:
        """For each of *texts* whether the pattern occurs in it; ``None`` where finding out takes too long."""
        try:
            encoded = [text.encode() for text in texts]
        except UnicodeEncodeError:
            return [None] * len(texts)  # a lone surrogate: no text at all
        if self._compiled.programsize * sum(map(len, encoded)) > MAX_STEPS:
            return [None] * len(texts)
        return [self._compiled.search(text) is not None for text in encoded]

    def replace(self, text: str, by: str) -> str:
        """*text* with *by* for every occurrence; as it is where finding them takes too long."""
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

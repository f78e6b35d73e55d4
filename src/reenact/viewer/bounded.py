"""Values small enough for a page, whatever was recorded."""

from __future__ import annotations

from typing import Any, Final

TEXT_CHARACTERS: Final = 200_000
LIST_ITEMS: Final = 5_000
WHOLE_CHARACTERS: Final = 2_000_000


class Bounded:
    """Shortens values; ``is_short`` tells afterwards whether anything was left out."""

    def __init__(self, characters: int = WHOLE_CHARACTERS) -> None:
        self._left = characters
        self.is_short = False

    def __call__(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, list | tuple):
            return [self(child) for child in self._items(value)]
        if isinstance(value, dict):
            return {self._text(key): self(child) for key, child in self._items(list(value.items()))}
        self._left -= 8
        return value

    def _items(self, items: Any) -> Any:
        kept = items[: LIST_ITEMS if self._left > 0 else 0]
        self.is_short = self.is_short or len(kept) < len(items)
        return kept

    def _text(self, text: str) -> str:
        length = max(0, min(TEXT_CHARACTERS, self._left))
        self._left -= min(len(text), length) + 8
        if len(text) <= length:
            return text
        self.is_short = True
        return f"{text[:length]}… ({len(text) - length:,} more characters)"

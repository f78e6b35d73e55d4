"""Strings that arrive in pieces."""

from __future__ import annotations

from typing import Any


class Growth:
    """Collects pieces for members of objects and joins them once: adding each at once is quadratic."""

    def __init__(self) -> None:
        # Holding the object keeps its id from being used again.
        self._grown: dict[tuple[int, str], tuple[dict[str, Any], list[str]]] = {}

    def add(self, target: dict[str, Any], key: str, piece: Any) -> None:
        """Append *piece* to the text ``target[key]``; what is no text is ignored."""
        if not isinstance(piece, str):
            return
        slot = self._grown.get((id(target), key))
        if slot is None:
            start = target.get(key)
            slot = self._grown[id(target), key] = (target, [start] if isinstance(start, str) else [])
        slot[1].append(piece)

    def settle(self) -> None:
        """Write every grown text into its place."""
        for (_, key), (target, pieces) in self._grown.items():
            target[key] = "".join(pieces)
        self._grown.clear()

"""Recorded Python values as the plain JSON that assertions compare: tags off, contents kept."""

from __future__ import annotations

from typing import Any

from reenact.formats.values import TAG


def plain(value: Any) -> Any:
    """*value* without type tags: a tuple is a list, a date its text, an unrecordable object null."""
    if isinstance(value, list):
        return [plain(child) for child in value]
    if not isinstance(value, dict):
        return value
    if TAG not in value:
        return {key: plain(child) for key, child in value.items()}
    if value[TAG] == "dict":
        return {str(plain(key)): plain(child) for key, child in value["value"]}
    return plain(value.get("value"))

"""Recorded Python values as the plain JSON that assertions compare: tags off, contents kept."""

from __future__ import annotations

from typing import Any

from reenact.formats.tags import TAG


def plain(value: Any) -> Any:
    """*value* without type tags: a tuple is a list, a date its text, an unrecordable object null."""
    if isinstance(value, list):
        return [plain(child) for child in value]
    if not isinstance(value, dict):
        return value
    kind = value.get(TAG)
    if kind is None:
        return {_name(key): plain(child) for key, child in value.items()}
    if kind == "dict":
        return {name: child for entry in value["value"] for name, child in _entry(entry).items()}
    if kind == "error":
        return {"type": value["type"], "message": value["message"]}
    return plain(value.get("value"))


def _entry(entry: Any) -> dict[str, Any]:
    if isinstance(entry, dict):
        found: dict[str, Any] = plain(entry)
        return found
    key, child = entry
    return {str(plain(key)): plain(child)}


def _name(key: str) -> str:
    """A name that began with our sign was given a second one."""
    return key[1:] if key.startswith("$$") else key

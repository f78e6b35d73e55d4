"""Looking into JSON of unknown shape: a member of another type counts as absent."""

from __future__ import annotations

from typing import Any


def text_of(value: Any, key: str) -> str | None:
    member = value.get(key) if isinstance(value, dict) else None
    return member if isinstance(member, str) else None


def integer_of(value: Any, key: str) -> int | None:
    member = value.get(key) if isinstance(value, dict) else None
    return member if isinstance(member, int) and not isinstance(member, bool) else None


def object_of(value: Any, key: str) -> dict[str, Any]:
    """The member, or an empty object."""
    member = value.get(key) if isinstance(value, dict) else None
    return member if isinstance(member, dict) else {}


def list_of(value: Any, key: str) -> list[Any]:
    """The member, or an empty list."""
    member = value.get(key) if isinstance(value, dict) else None
    return member if isinstance(member, list) else []


def objects_of(value: Any, key: str) -> list[dict[str, Any]]:
    """The objects in a list member."""
    return [item for item in list_of(value, key) if isinstance(item, dict)]


def either(value: dict[str, Any], *keys: str) -> Any:
    """The first of the members that is there and not null."""
    return next((value[key] for key in keys if value.get(key) is not None), None)

"""How much is redacted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

Profile: TypeAlias = Literal["none", "default", "strict"]

PROFILES: Final[tuple[Profile, ...]] = ("none", "default", "strict")

_OFF: Final = frozenset({"", "0", "false", "no"})


def default_profile(environ: Mapping[str, str]) -> Profile:
    """``strict`` where ``CI`` is set, for captures made there are usually shared; else ``default``."""
    return "default" if environ.get("CI", "").strip().lower() in _OFF else "strict"

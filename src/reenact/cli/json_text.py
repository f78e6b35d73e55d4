"""JSON on stdout in which nothing can steer the terminal: what is not printable is escaped."""

from __future__ import annotations

import json
import re
from typing import Any, Final

_SUSPECT: Final = re.compile(r"[^\n -~]")


def safe_json(value: Any, indent: int | None = 2) -> str:
    """*value* as JSON text that means the same everywhere."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return _SUSPECT.sub(lambda found: _safe(found[0]), text)


def _safe(mark: str) -> str:
    return mark if mark.isprintable() else json.dumps(mark)[1:-1]

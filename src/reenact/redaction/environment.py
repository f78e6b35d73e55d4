"""Secrets that the environment already names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reenact.redaction.names import HARMLESS, is_secret_name

_MIN_LENGTH: Final = 8
"""Shorter values are ``test`` or ``admin`` and would be found in ordinary words."""


def environment_secrets(environ: Mapping[str, str]) -> list[str]:
    """The values of variables like ``*_API_KEY``, to be registered; values that are paths are none."""
    return [
        value
        for name, value in environ.items()
        if is_secret_name(name)
        and len(value) >= _MIN_LENGTH
        and not value.startswith(("/", "~", "."))
        and not HARMLESS.match(value)
    ]

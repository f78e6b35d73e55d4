"""Reading the argument ``redact``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeAlias, cast

from reenact.errors import UsageError
from reenact.formats.capture import RedactionProfile
from reenact.redaction import PROFILES, Redactor, environment_secrets

Redact: TypeAlias = RedactionProfile | Sequence[str] | tuple[RedactionProfile | None, Sequence[str]] | None
"""A profile, a list of secrets to hide in every form, or both as a pair."""


def profile_and_secrets(redact: Redact) -> tuple[RedactionProfile | None, tuple[str, ...]]:
    """Split *redact* into profile and secrets; the profile may be ``None``."""
    if redact is None:
        return None, ()
    if isinstance(redact, str):
        return _known_profile(redact), ()
    if isinstance(redact, tuple) and len(redact) == 2 and not isinstance(redact[1], str):
        return _known_profile(redact[0]), tuple(redact[1])
    return None, tuple(cast(Sequence[str], redact))


def _known_profile(name: str | None) -> RedactionProfile | None:
    if name is not None and name not in PROFILES:
        raise UsageError(f"redact={name!r} is unknown; name a profile, or give a list of secrets")
    return name


def make_redactor(profile: RedactionProfile, values: Sequence[str], salt: bytes) -> Redactor:
    """A redactor for *values* and, unless the profile is ``none``, for the keys in the environment."""
    known = environment_secrets(os.environ) if profile != "none" else []
    return Redactor(profile, secrets=[*values, *known], salt=salt)

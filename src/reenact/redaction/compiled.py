"""What a redactor looks for, made ready once for all runs of a process that look for the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from reenact.redaction.prefilter import Prefilter
from reenact.redaction.profile import Profile
from reenact.redaction.registered import Registered
from reenact.redaction.rules import SHAPES, STRICT_SHAPES, Rule, Shapes
from reenact.redaction.triggers import base64_triggers, checks, triggers

_REMEMBERED: Final = 8
"""Few: a process hardly ever looks for more than the keys in its environment and those of one test."""


@dataclass(frozen=True)
class Compiled:
    """Rules and registered secrets, and the two prefilters that say whether any can be in a text."""

    registered: Registered
    shapes: Shapes
    every_shape: Shapes
    """Those of other profiles too: what a secret is called does not depend on who looks."""
    may_hold_secret: Callable[[bytes], bool]
    may_hold_base64: Callable[[bytes], bool]


@lru_cache(maxsize=_REMEMBERED)
def compiled(profile: Profile, secrets: tuple[str | bytes, ...], extra_rules: tuple[Rule, ...]) -> Compiled:
    """What *profile*, the registered *secrets* and the caller's own rules find together."""
    by_name, strict = profile != "none", profile == "strict"
    rules = (*extra_rules, *(SHAPES if by_name else ()), *(STRICT_SHAPES if strict else ()))
    registered = Registered(secrets)
    return Compiled(
        registered,
        Shapes(rules),
        Shapes((*extra_rules, *SHAPES, *STRICT_SHAPES)),
        Prefilter(
            triggers(registered, rules, by_name=by_name), checks(extra_rules, by_name=by_name, strict=strict)
        ).may_hold_secret,
        Prefilter(base64_triggers(registered, rules)).may_hold_secret,
    )

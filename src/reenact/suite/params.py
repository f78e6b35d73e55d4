"""Parameters of assertions: typed, with defaults, and strict about names nobody knows."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Any, Final, TypeVar

import msgspec

from reenact.errors import UsageError


class Params(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the parameters of one assertion type; a field without a default must be given."""


P = TypeVar("P")

_PLACED: Final = re.compile(r"(?P<reason>.*?)(?: - at `\$(?P<path>.*)`)?\Z", re.DOTALL)
_NAMED: Final = re.compile(r"Object (?P<what>missing required|contains unknown) field `(?P<name>.*)`")


def read_params(kind: type[P], given: dict[str, Any], path: str = "params") -> P:
    """*given* as *kind*; :class:`UsageError` that names the culprit and, for a typo, what was meant."""
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise UsageError(_explained(str(error), kind, path)) from None


def _explained(message: str, kind: Any, path: str) -> str:
    placed = _PLACED.match(message)
    assert placed is not None
    place, reason = path + (placed["path"] or ""), placed["reason"]
    named = _NAMED.fullmatch(reason)
    if named is None:
        return f"{place}: {reason[:1].lower()}{reason[1:]}"
    if named["what"] == "missing required":
        return f"{place}.{named['name']}: required, but missing"
    known = [] if placed["path"] else [field.encode_name for field in msgspec.structs.fields(kind)]
    return f"{place}.{named['name']}: {unknown_name(named['name'], 'parameter', known)}"


def unknown_name(name: str, what: str, known: list[str]) -> str:
    """That nobody knows *name*, and the nearest known one, or all."""
    near = get_close_matches(name, known, n=1)
    if near:
        return f"unknown {what}; did you mean {near[0]!r}?"
    return f"unknown {what}; known are {', '.join(known)}" if known else f"unknown {what}"

"""The policy and the rules of a replay, from arguments, environment and project."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, cast, get_args

from reenact.errors import FormatError, UsageError
from reenact.formats.volatile import AnyRule, VolatileRule, read_rule, rules_in
from reenact.replayer.engine import Policy
from reenact.replayer.step import OnUnmatched
from reenact.store.project import find_project_file, read_project
from reenact.volatile.beside import hosts_in

REPLAY_POLICY_VARIABLE: Final = "REENACT_POLICY"
_POLICIES: Final = get_args(Policy)


def choose_policy(given: Policy | None, start: Path) -> Policy:
    """*given*, else ``REENACT_POLICY``, else the nearest ``reenact.toml``, else ``strict``."""
    if given is not None:
        if given not in _POLICIES:
            raise UsageError(f"policy {given!r} is unknown; choose strict or lenient")
        return given
    named = os.environ.get(REPLAY_POLICY_VARIABLE)
    if named:
        if named not in _POLICIES:
            raise UsageError(f"{REPLAY_POLICY_VARIABLE}={named!r} is unknown; choose strict or lenient")
        return cast(Policy, named)
    return _project_policy(start) or "strict"


def check_on_unmatched(given: OnUnmatched, policy: Policy) -> OnUnmatched:
    """Check that *given* is known and has an effect under *policy*."""
    if given not in get_args(OnUnmatched):
        raise UsageError(f"on_unmatched {given!r} is unknown; choose error, empty or live")
    if policy == "strict" and given != "error":
        raise UsageError(
            f"on_unmatched {given!r}: a strict replay stops at the first difference; choose lenient"
        )
    return given


def _project_policy(start: Path) -> Policy | None:
    file = find_project_file(start)
    table = {} if file is None else read_project(file).get("replay", {})
    policy = table.get("policy") if isinstance(table, Mapping) else table
    unknown = sorted(table.keys() - {"policy"}) if isinstance(table, Mapping) else []
    if unknown:
        raise FormatError(
            "is unknown; the table has policy alone", file=str(file), json_path=f"$.replay.{unknown[0]}"
        )
    if policy is not None and policy not in _POLICIES:
        raise FormatError('expected "strict" or "lenient"', file=str(file), json_path="$.replay.policy")
    return cast(Policy | None, policy)


def project_rules(start: Path) -> tuple[VolatileRule, ...]:
    """The rules of the nearest ``reenact.toml`` in *start* or above it."""
    file = find_project_file(start)
    return () if file is None else rules_in(read_project(file), file=str(file))


def project_beside(start: Path) -> tuple[str, ...]:
    """The hosts outside of runs that the nearest ``reenact.toml`` in *start* or above it names."""
    file = find_project_file(start)
    return () if file is None else hosts_in(read_project(file), file=str(file))


def read_rules(given: Iterable[AnyRule]) -> list[VolatileRule]:
    """Read rules that are texts or :class:`VolatileRule`."""
    try:
        return [read_rule(rule) for rule in given]
    except FormatError as error:
        raise UsageError(f"volatile: {error}") from None

"""What may differ in a replay, as the project and the caller say."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from reenact.errors import FormatError, UsageError
from reenact.formats.volatile import AnyRule, VolatileRule, read_rule, rules_in
from reenact.store.project import find_project_file, read_project
from reenact.volatile.beside import hosts_in


def project_rules(start: Path) -> tuple[VolatileRule, ...]:
    """The rules of the nearest ``reenact.toml`` in *start* or above it."""
    file = find_project_file(start)
    return () if file is None else rules_in(read_project(file), file=str(file))


def project_beside(start: Path) -> tuple[str, ...]:
    """The hosts to which nothing belongs to a run, by the nearest ``reenact.toml`` in *start* or above it."""
    file = find_project_file(start)
    return () if file is None else hosts_in(read_project(file), file=str(file))


def read_rules(given: Iterable[AnyRule]) -> list[VolatileRule]:
    """The rules that a caller gave as text or as they are."""
    try:
        return [read_rule(rule) for rule in given]
    except FormatError as error:
        raise UsageError(f"volatile: {error}") from None

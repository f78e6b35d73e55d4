"""Making disclosures: one event of a sealed run, proved, and opened as far as asked."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from reenact.check.commitment import Salts, TreeName, commitments_of
from reenact.check.merkle import path_of
from reenact.errors import UsageError
from reenact.formats.disclosure import VERSION, Disclosure


def prove(leaves: Sequence[bytes], tree: TreeName, position: int) -> Disclosure:
    """That an event stands at *position*, 1-based; nothing is told about it."""
    path = [node.hex() for node in path_of(leaves, position - 1)]
    return Disclosure(
        disclosure=VERSION, tree=tree, position=position, path=path, leaf=leaves[position - 1].hex()
    )


def disclose(
    leaves: Sequence[bytes],
    tree: TreeName,
    position: int,
    *,
    fields: dict[str, Any],
    seed: bytes,
    names: Collection[str],
) -> Disclosure:
    """The same, and the values of the fields *names*; a name stands for all below it too."""
    chosen = {field for name in names for field in _matching(fields, name)}
    salts = Salts(seed, tree, position)
    entries: list[str | tuple[str, str, Any]] = [
        (name, salts.of(name).hex(), fields[name]) if name in chosen else commitment.hex()
        for name, commitment in commitments_of(fields, salts).items()
    ]
    path = [node.hex() for node in path_of(leaves, position - 1)]
    return Disclosure(disclosure=VERSION, tree=tree, position=position, path=path, fields=entries)


def _matching(fields: dict[str, Any], name: str) -> list[str]:
    found = [field for field in fields if field == name or field.startswith((f"{name}.", f"{name}["))]
    if not found:
        known = ", ".join(sorted(field for field in fields if field.startswith("$")))
        raise UsageError(f"the event has no field {name!r}; it has {known}")
    return found

"""All capsules: the built-in ones, and those that installed packages add by entry point.

A package adds one with an entry point of the group ``reenact.capsules`` whose name is the capsule's id
and whose object is a :class:`~reenact.check.actions.capsule.Capsule`. Built-in ones cannot be replaced.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Final

from reenact.check.actions.action import ACTION
from reenact.check.actions.capsule import Capsule
from reenact.errors import UsageError

GROUP: Final = "reenact.capsules"
BUILT_IN: Final = {capsule.manifest.id: capsule for capsule in (ACTION,)}


def capsule_ids() -> list[str]:
    """The ids of all capsules, sorted; the code of other packages is not loaded."""
    return sorted({*BUILT_IN, *entry_points(group=GROUP).names})


def find_capsule(capsule_id: str) -> Capsule:
    """The capsule with that id; :class:`UsageError` if there is none or its package is faulty."""
    if capsule_id in BUILT_IN:
        return BUILT_IN[capsule_id]
    found = list(entry_points(group=GROUP, name=capsule_id))
    if not found:
        raise UsageError(f"no capsule is called {capsule_id!r}; choose from {', '.join(capsule_ids())}")
    if len(found) > 1:
        packages = ", ".join(sorted(_package(point) for point in found))
        raise UsageError(f"capsule {capsule_id!r} is in several packages: {packages}; uninstall all but one")
    return _load(found[0])


def _load(point: EntryPoint) -> Capsule:
    try:
        capsule = point.load()
    except Exception as error:
        raise UsageError(
            f"capsule {point.name!r} of {_package(point)} cannot be loaded: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(capsule, Capsule):
        raise UsageError(
            f"{point.value} of {_package(point)} is not a Capsule but a {type(capsule).__name__}"
        )
    if capsule.manifest.id != point.name:
        raise UsageError(
            f"capsule {point.name!r} of {_package(point)} calls itself {capsule.manifest.id!r}; "
            "its author must name the entry point after its id"
        )
    return capsule


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "an unnamed package"

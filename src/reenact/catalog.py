"""The formats and capsules that this version knows, by name."""

from __future__ import annotations

import msgspec

from reenact.canonical import JsonValue
from reenact.check.actions.registry import capsule_ids, find_capsule
from reenact.errors import UsageError
from reenact.formats.schemas import SCHEMAS, json_schema


class CapsuleSummary(msgspec.Struct, frozen=True, omit_defaults=True):
    """A capsule in a list; of one that cannot be loaded, only the id and the error are known."""

    id: str
    version: str = ""
    profile: str = ""
    digest: str = ""
    """Identifies the manifest."""
    summary: str = ""
    error: str = ""


def schema(name: str) -> dict[str, JsonValue]:
    """Return the JSON Schema of a format, or of the values that a capsule takes."""
    if name in SCHEMAS:
        return json_schema(name)
    if name in capsule_ids():
        return find_capsule(name).json_schema()
    known = sorted([*SCHEMAS, *capsule_ids()])
    raise UsageError(f"no format is called {name!r}; choose from {', '.join(known)}")


def list_schemas() -> dict[str, str]:
    """Return the names that :func:`schema` takes, sorted, each with a summary."""
    summaries = {name: entry.summary for name, entry in SCHEMAS.items()}
    for capsule in list_capsules():
        summaries.setdefault(capsule.id, capsule.summary or f"({capsule.error})")
    return dict(sorted(summaries.items()))


def list_capsules() -> list[CapsuleSummary]:
    """Return all capsules, sorted by id: the built-in ones and those of installed packages."""
    return [_summarize(capsule_id) for capsule_id in capsule_ids()]


def _summarize(capsule_id: str) -> CapsuleSummary:
    try:
        capsule = find_capsule(capsule_id)
    except UsageError as error:  # a broken package must not hide the others
        return CapsuleSummary(capsule_id, error=str(error))
    manifest = capsule.manifest
    return CapsuleSummary(capsule_id, manifest.version, manifest.profile, capsule.digest, manifest.summary)

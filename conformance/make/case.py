"""What a case is, and how a good artifact becomes a bad one."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from reenact import canonical
from reenact.formats.hashes import output_hash

Event = dict[str, Any]
Change = Callable[[Any], object]


class Found(NamedTuple):
    """One expected finding."""

    code: str
    line: int | None = None
    path: str | None = None
    severity: str = "error"


class Case(NamedTuple):
    """Files by name, the one to verify, and what must be found in it."""

    name: str
    about: str
    artifact: str
    files: dict[str, bytes]
    findings: tuple[Found, ...] = ()
    options: Mapping[str, Any] = MappingProxyType({})
    exit: int | None = None
    """``None`` for what the findings mean: 1 when there is an error."""


def changed(value: Any, change: Change) -> Any:
    """A copy of *value* that *change* was made to."""
    value = copy.deepcopy(value)
    change(value)
    return value


def lines_of(events: list[Event]) -> bytes:
    return b"".join(canonical.encode(event) + b"\n" for event in events)


def document(value: Any) -> bytes:
    return json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n"


def set_fields(index: int, **fields: Any) -> Change:
    """A change that sets fields of one event."""
    return lambda events: events[index].update(fields)


def as_it_is(_: Any) -> None:
    """The change that is none."""


OK = output_hash(success=True, content="fn main() {}", error=None)
FAILED = output_hash(success=False, content="", error="read-only file system")
OTHER = "sha256:" + "1" * 64


def document_case(
    file: str, base: Event, name: str, about: str, change: Change = as_it_is, *found: Found
) -> Case:
    return Case(name, about, file, {file: document(changed(base, change))}, found)

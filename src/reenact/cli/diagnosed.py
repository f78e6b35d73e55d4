"""What the doctor found, for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from reenact.cli.brief import plural
from reenact.cli.failure import printable
from reenact.formats.differences import shown
from reenact.formats.divergence import ReplayDivergence
from reenact.formats.volatile import VolatileRule, rule_codec
from reenact.volatile.diagnosis import Diagnosis, Source

_HEADINGS: Final = {
    "rule": "volatile; a rule lets it differ",
    "nothing": "volatile; no rule can cover it",
    "recording": "differs, but a replay has it from the recording",
}
_SOURCES: Final = 20
_STRAYS: Final = 10


class _Proof(Protocol):
    @property
    def verdict(self) -> str: ...
    @property
    def answered(self) -> int: ...
    @property
    def divergences(self) -> list[ReplayDivergence]: ...


def as_text(
    captures: Sequence[Path], diagnosis: Diagnosis, file: Path, rules: Sequence[VolatileRule], proof: _Proof
) -> str:
    """The whole report."""
    lines = [*_sources(diagnosis), *_strays(diagnosis), *_written(file, rules), *_proved(captures[-1], proof)]
    if proof.verdict != "reproduced":
        lines += [f"  {printable(reason)}" for reason in diagnosis.reasons or ["see the divergence above"]]
    return "\n".join(lines)


def as_json(
    captures: Sequence[Path], diagnosis: Diagnosis, file: Path, rules: Sequence[VolatileRule], proof: _Proof
) -> dict[str, Any]:
    """The same as one object."""
    return {
        "captures": [str(path) for path in captures],
        "sources": [msgspec.to_builtins(source) for source in diagnosis.sources()],
        "notInEveryRun": diagnosis.strays,
        "uncovered": diagnosis.reasons,
        "written": {"file": str(file), "rules": [rule_codec.to_json(rule) for rule in rules]},
        "proof": {
            "path": str(captures[-1]),
            "verdict": proof.verdict,
            "answered": proof.answered,
            "divergences": [divergence.to_json() for divergence in proof.divergences],
        },
    }


def _sources(diagnosis: Diagnosis) -> Iterator[str]:
    sources = diagnosis.sources()
    if not sources and not diagnosis.strays:
        yield "nothing differs between the runs"
    for cover, heading in _HEADINGS.items():
        found = [source for source in sources if source.covered_by == cover]
        if found:
            yield f"{heading}:"
        for source in found[:_SOURCES]:
            yield from _source(source)
        if len(found) > _SOURCES:
            yield f"  … and {len(found) - _SOURCES} more places; --json has them all"


def _source(source: Source) -> Iterator[str]:
    yield printable(f"  {source.call} {source.path}")
    yield f"    seen    in {len(source.seqs)} of {plural(source.of, 'call')}, first in event {source.seqs[0]}"
    one, other = source.examples
    yield f"    either  {shown(one, other)}"
    yield f"    or      {shown(other, one)}"
    if source.covered_by == "rule":
        yield from (printable(f"    rule    {rule}") for rule in source.rules or ["is in force already"])


def _strays(diagnosis: Diagnosis) -> Iterator[str]:
    if diagnosis.strays:
        yield "calls that not every run made:"
        yield from (printable(f"  {stray}") for stray in diagnosis.strays[:_STRAYS])
    if len(diagnosis.strays) > _STRAYS:
        yield f"  … and {len(diagnosis.strays) - _STRAYS} more; --json has them all"


def _written(file: Path, rules: Sequence[VolatileRule]) -> Iterator[str]:
    if rules:
        yield printable(f"wrote {plural(len(rules), 'rule')} to {file}")


def _proved(path: Path, proof: _Proof) -> Iterator[str]:
    answered = plural(proof.answered, "call")
    if proof.verdict == "reproduced":
        yield printable(f"proved: {path} replays strictly, {answered} answered from the capture")
        return
    yield printable(f"not reproduced: {path} diverges, {answered} answered from the capture")
    for divergence in proof.divergences[:1]:
        yield from (printable(f"  {line}") for line in divergence.explain().splitlines())

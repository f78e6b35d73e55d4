"""What the doctor found, for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from reenact.analysis.brief import plural
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


class Proof(NamedTuple):
    """How a replay went."""

    verdict: str
    answered: int
    divergences: list[ReplayDivergence]

    @property
    def is_good(self) -> bool:
        return self.verdict == "reproduced"


class Findings(NamedTuple):
    """All there is to tell."""

    captures: list[Path]
    diagnosis: Diagnosis
    file: Path
    """Where rules belong."""
    rules: list[VolatileRule]
    """Those that were not there before; they are written if the proof is good."""
    proof: Proof
    beside: list[str]
    """What libraries sent or looked up by themselves, which is not compared."""

    @property
    def written(self) -> list[VolatileRule]:
        return self.rules if self.proof.is_good else []

    @property
    def not_written(self) -> list[VolatileRule]:
        return [] if self.proof.is_good else self.rules


def as_text(findings: Findings) -> str:
    """The whole report."""
    lines = [*_sources(findings.diagnosis), *_strays(findings.diagnosis)]
    if findings.beside:
        lines += ["beside the run, not compared:", *(f"  {request}" for request in findings.beside)]
    if findings.written:
        lines.append(f"wrote {plural(len(findings.written), 'rule')} to {findings.file}")
    lines += _proved(findings.captures[-1], findings.proof)
    if not findings.proof.is_good:
        lines += [f"  no rule covers: {reason}" for reason in findings.diagnosis.reasons]
    if findings.not_written:
        lines.append(f"nothing was written to {findings.file}, because these rules alone do not suffice:")
        lines += [line for rule in findings.not_written for line in rule.to_toml().splitlines()]
    return "\n".join(map(printable, lines))


def as_json(findings: Findings) -> dict[str, Any]:
    """The same as one object."""
    captures, diagnosis, file, _, proof, beside = findings
    return {
        "captures": [str(path) for path in captures],
        "sources": [msgspec.to_builtins(source) for source in diagnosis.sources()],
        "notInEveryRun": diagnosis.strays,
        "beside": beside,
        "uncovered": diagnosis.reasons,
        "written": {"file": str(file), "rules": [rule_codec.to_json(rule) for rule in findings.written]},
        "notWritten": [rule_codec.to_json(rule) for rule in findings.not_written],
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
    yield f"  {source.call} {source.path}"
    yield f"    seen    in {len(source.seqs)} of {plural(source.of, 'call')}, first in event {source.seqs[0]}"
    one, other = source.examples
    yield f"    either  {shown(one, other)}"
    yield f"    or      {shown(other, one)}"
    if source.covered_by == "rule":
        yield from (f"    rule    {rule}" for rule in source.rules or ["is in force already"])


def _strays(diagnosis: Diagnosis) -> Iterator[str]:
    if diagnosis.strays:
        yield "calls that not every run made:"
        yield from (f"  {stray}" for stray in diagnosis.strays[:_STRAYS])
    if len(diagnosis.strays) > _STRAYS:
        yield f"  … and {len(diagnosis.strays) - _STRAYS} more; --json has them all"


def _proved(path: Path, proof: Proof) -> Iterator[str]:
    answered = plural(proof.answered, "call")
    if proof.is_good:
        yield f"proved: {path} replays strictly, {answered} answered from the capture"
        return
    yield f"not reproduced: {path} diverges, {answered} answered from the capture"
    for divergence in proof.divergences[:1]:
        yield from (f"  {line}" for line in divergence.explain().splitlines())

"""``reenact validate``: check actions against their capsule and a policy."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, Protocol

import click
import msgspec

from reenact.analysis.brief import plural
from reenact.check.actions.files import STDIN, ValidateReport, validate
from reenact.check.actions.validation import JudgedValue
from reenact.cli.terminal import DIFFERS, INVALID, message_of, printable, progress_bar, report
from reenact.errors import FormatError
from reenact.formats import verifiable
from reenact.formats.action import ACTION_ID
from reenact.formats.verifiable import VerifiableRecord

_SHOWN: Final = 10
"""Problems per value, and models, that are printed; --json has all."""
_SHOWN_VALUES: Final = 20
"""Bad values that are explained; the others are only counted."""


@click.command("validate")
@click.argument("paths", metavar="FILE...", nargs=-1, required=True)
@click.option(
    "--capsule",
    "capsule_id",
    metavar="ID",
    default=ACTION_ID,
    show_default=True,
    help="The capsule (rules) to check against.",
)
@click.option("--policy", "policy_file", metavar="FILE", help="Also apply this policy (YAML or JSON).")
@click.option(
    "--record", "with_records", is_flag=True, help="Print the verifiable record of each accepted action."
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object: a result per action and a summary."
)
def command(
    paths: tuple[str, ...], capsule_id: str, policy_file: str | None, with_records: bool, as_json: bool
) -> int:
    """Check whether actions are well formed and allowed.

    FILE is a JSON file, a file with one action per line, a directory of both, here or at an address, or - for
    standard input.

    Exit status: 0 when everything is accepted, 1 when something is rejected or not allowed by the
    policy, 2 when something cannot be read.
    """
    output: _Output = _Json() if as_json else _Text(with_records)
    found = validate(
        *(sys.stdin.buffer if path == STDIN else path for path in paths),
        capsule=capsule_id,
        policy=policy_file,
        records=with_records,
        on_judged=output.show,
        progress_bar=progress_bar,
    )
    output.end(found)
    if found.unreadable or found.unrecorded:
        return INVALID
    return 0 if found.is_good else DIFFERS


class _Output(Protocol):
    """Writes results one by one, and the counts at the end."""

    def show(self, judged: JudgedValue, record: VerifiableRecord | FormatError | None) -> None: ...
    def end(self, found: ValidateReport) -> None: ...


class _Text:
    """For people: the problems, a line for a single good value, counts for several."""

    def __init__(self, with_records: bool) -> None:
        self._with_records = with_records
        self._good: JudgedValue | None = None
        self._bad = 0

    def show(self, judged: JudgedValue, record: VerifiableRecord | FormatError | None) -> None:
        error = judged.error or (record if isinstance(record, FormatError) else None)
        if error is not None or not judged.is_good:
            self._bad += 1
            if self._bad <= _SHOWN_VALUES:
                self._refuse(judged, error)
        elif isinstance(record, VerifiableRecord):
            sys.stdout.write(verifiable.write_verifiable(record).decode())
        else:
            self._good = judged

    def _refuse(self, judged: JudgedValue, error: Exception | None) -> None:
        if error is not None:
            report(error)
        else:
            self._say(*_explain(judged))

    def end(self, found: ValidateReport) -> None:
        if self._bad > _SHOWN_VALUES:
            self._say(f"… and {self._bad - _SHOWN_VALUES:,} more that did not pass; --json lists them all")
        if found.count > 1:
            self._say(*_counts(found))
            if found.pack_digest is not None:
                self._say(f"pack      {found.pack_digest}")
        elif self._good is not None:
            self._say(_accepted_line(self._good))

    def _say(self, *lines: str) -> None:
        # Records on stdout are for programs, so text goes to stderr.
        stream = sys.stderr if self._with_records else sys.stdout
        stream.writelines(f"{line}\n" for line in lines)


def _explain(judged: JudgedValue) -> Iterator[str]:
    place, decision = printable(judged.place), judged.decision
    if decision is not None:
        verdict = "denied by" if decision.verdict == "deny" else "up for review by"
        yield f"{place}: {verdict} {printable(decision.rule)}: {printable(decision.reason)}"
    elif judged.result is not None:
        yield f"{place}: rejected"
        problems = judged.result.problems
        for problem in problems[:_SHOWN]:
            yield f"  {problem.code:<20}  {printable(problem.path) or 'the value'}: {problem.message}"
        if len(problems) > _SHOWN:
            yield f"  and {len(problems) - _SHOWN:,} more; --json lists them all"


def _accepted_line(judged: JudgedValue) -> str:
    data = judged.result.data if judged.result else None
    if type(data) is not dict or "model_full_name" not in data:
        return f"{printable(judged.place)}: accepted"
    counts = data["summary"]
    seen = plural(counts["message_count"], "message")
    made = plural(counts["tool_calls_emitted"], "tool call")
    return f"{printable(judged.place)}: accepted ({printable(data['model_full_name'])}, {seen}, {made})"


def _counts(found: ValidateReport) -> Iterator[str]:
    yield (
        f"{found.count:,} checked: {found.accepted:,} accepted, {found.rejected:,} rejected, "
        f"{found.unreadable:,} unreadable"
    )
    for name, counts in (("problems", found.problems), ("models", found.models), ("policy", found.verdicts)):
        if counts:
            yield f"{name:<8}  {_describe_largest(counts)}"


def _describe_largest(counts: dict[str, int]) -> str:
    """The first few of *counts*, which are sorted by size."""
    shown = ", ".join(f"{printable(key)} {count:,}" for key, count in islice(counts.items(), _SHOWN))
    hidden = len(counts) - _SHOWN
    return f"{shown}, and {hidden:,} more" if hidden > 0 else shown


class _Json:
    """For programs: one object, written piece by piece to save memory."""

    def __init__(self) -> None:
        self._before = '{"results": [\n'

    def show(self, judged: JudgedValue, record: VerifiableRecord | FormatError | None) -> None:
        error = judged.error or (record if isinstance(record, FormatError) else None)
        if error is not None:
            report(error)
        sys.stdout.write(self._before + json.dumps(_row(judged, record, error)))
        self._before = ",\n"

    def end(self, found: ValidateReport) -> None:
        summary: dict[str, object] = {"count": found.count, "accepted": found.accepted}
        summary |= {"rejected": found.rejected, "unreadable": found.unreadable}
        summary |= {"problems": found.problems, "models": found.models}
        summary |= {"verdicts": found.verdicts} if found.verdicts else {}
        summary |= {} if found.pack_digest is None else {"pack": found.pack_digest}
        sys.stdout.write(f'\n], "summary": {json.dumps(summary)}}}\n')


def _row(judged: JudgedValue, record: Any, error: Exception | None) -> dict[str, object]:
    row: dict[str, object] = {"file": judged.file, "line": judged.line}
    if judged.result is None:
        row["status"] = "unreadable"
    else:
        row |= msgspec.to_builtins(judged.result)
    if judged.decision is not None:
        row["policy"] = msgspec.to_builtins(judged.decision)
    if error is not None:
        row["error"] = message_of(error)
    elif record is not None:
        row["record"] = verifiable.CODEC.to_json(record)
    return row

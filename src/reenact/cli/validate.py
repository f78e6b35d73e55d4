"""``reenact validate``: actions against their capsule, and against a policy."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol

import click
import msgspec

from reenact._version import __version__
from reenact.analysis.brief import plural
from reenact.check.actions.capsule import Capsule
from reenact.check.actions.policy import Policy
from reenact.check.actions.registry import find_capsule
from reenact.check.actions.validation import LINE_SUFFIXES, Judged, ValidationTally, validate_stream
from reenact.cli.terminal import DIFFERS, INVALID, message_of, printable, progress_bar, report
from reenact.errors import FormatError, UsageError
from reenact.formats import verifiable
from reenact.formats.action import ACTION_ID
from reenact.formats.verifiable import VerifiableRecord

_SUFFIXES: Final = (".json", *LINE_SUFFIXES)
_PRODUCER: Final = {"name": "reenact", "version": __version__}
_PROGRESS_VALUES: Final = 1000
_SHOWN: Final = 10
"""How many problems of a value and how many models are named to people; --json has all."""
_SHOWN_VALUES: Final = 20
"""How many values that are not good are explained to people; of the others there are counts."""


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

    FILE is a JSON file, a file with one action per line, a directory of both, or - for standard input.

    Exit status: 0 when everything is accepted, 1 when something is rejected or not allowed by the
    policy, 2 when something cannot be read.
    """
    if capsule_id != ACTION_ID and (with_records or policy_file):
        raise UsageError(f"--record and --policy are about actions; leave out --capsule {capsule_id}")
    capsule = find_capsule(capsule_id)
    policy = Policy.load(policy_file) if policy_file else None
    output: _Output = _Json() if as_json else _Text(with_records)
    tally, records = ValidationTally(), _Records() if with_records else None
    for judged in _judge_all(paths, capsule, policy):
        tally.add(judged)
        output.show(judged, records.add(judged) if records and judged.is_good else None)
    output.end(tally, records)
    if tally.unreadable or (records and records.failed):
        return INVALID
    return 0 if tally.is_good else DIFFERS


def _judge_all(paths: Iterable[str], capsule: Capsule, policy: Policy | None) -> Iterator[Judged]:
    for path in paths:
        try:
            yield from _judge_path(path, capsule, policy)
        except (OSError, FormatError) as error:
            yield Judged(path, None, None, None, error)


def _judge_path(path: str, capsule: Capsule, policy: Policy | None) -> Iterator[Judged]:
    if path == "-":
        yield from validate_stream(sys.stdin.buffer, "-", capsule, policy=policy)
    elif Path(path).is_dir():
        files = sorted(_files_below(path))
        if not files:
            raise FormatError(f"holds no file that ends in {' or '.join(_SUFFIXES)}", file=path)
        yield from _judge_all(files, capsule, policy)
    else:
        with Path(path).open("rb") as stream:
            judged = validate_stream(stream, path, capsule, policy=policy)
            yield from _with_progress(judged, stream, "validating")


def _files_below(folder: str) -> Iterator[str]:
    def stop(error: OSError) -> None:  # os.walk passes over what it may not enter
        raise error

    for parent, _, names in os.walk(folder, onerror=stop):
        files = (Path(parent, name) for name in names if Path(name).suffix in _SUFFIXES)
        yield from (str(file) for file in files if file.is_file())


class _Records:
    """The records of what passes, and the digest of them all."""

    def __init__(self) -> None:
        self.digests: set[str] = set()
        self.failed = 0

    def add(self, judged: Judged) -> VerifiableRecord | FormatError:
        """The record of a good action, or why RFC 8785 cannot hold it."""
        try:
            record = verifiable.verifiable_record(judged.value, producer=_PRODUCER)
        except FormatError as error:
            self.failed += 1
            return error.at(file=judged.file, line=judged.line)
        self.digests.add(record.receipt.record_digest)
        return record

    @property
    def pack_digest(self) -> str:
        return verifiable.pack_digest(self.digests)


class _Output(Protocol):
    """Where results go, one by one, and the counts at the end."""

    def show(self, judged: Judged, record: VerifiableRecord | FormatError | None) -> None: ...
    def end(self, tally: ValidationTally, records: _Records | None) -> None: ...


class _Text:
    """For people: what is wrong, a line for a single good value, counts for several."""

    def __init__(self, with_records: bool) -> None:
        self._with_records = with_records
        self._good: Judged | None = None
        self._bad = 0

    def show(self, judged: Judged, record: VerifiableRecord | FormatError | None) -> None:
        error = judged.error or (record if isinstance(record, FormatError) else None)
        if error is not None or not judged.is_good:
            self._bad += 1
            if self._bad <= _SHOWN_VALUES:
                self._refuse(judged, error)
        elif isinstance(record, VerifiableRecord):
            sys.stdout.write(verifiable.write_verifiable(record).decode())
        else:
            self._good = judged

    def _refuse(self, judged: Judged, error: Exception | None) -> None:
        if error is not None:
            report(error)
        else:
            self._say(*_explain(judged))

    def end(self, tally: ValidationTally, records: _Records | None) -> None:
        if self._bad > _SHOWN_VALUES:
            self._say(f"… and {self._bad - _SHOWN_VALUES:,} more that did not pass; --json lists them all")
        if tally.count > 1:
            self._say(*_counts(tally))
            if records is not None:
                self._say(f"pack      {records.pack_digest}")
        elif self._good is not None:
            self._say(_praise(self._good))

    def _say(self, *lines: str) -> None:
        # Records are for programs: where they go, no words stand between them.
        stream = sys.stderr if self._with_records else sys.stdout
        stream.writelines(f"{line}\n" for line in lines)


def _explain(judged: Judged) -> Iterator[str]:
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


def _praise(judged: Judged) -> str:
    data = judged.result.data if judged.result else None
    if type(data) is not dict or "model_full_name" not in data:
        return f"{printable(judged.place)}: accepted"
    counts = data["summary"]
    seen = plural(counts["message_count"], "message")
    made = plural(counts["tool_calls_emitted"], "tool call")
    return f"{printable(judged.place)}: accepted ({printable(data['model_full_name'])}, {seen}, {made})"


def _counts(tally: ValidationTally) -> Iterator[str]:
    yield (
        f"{tally.count:,} checked: {tally.accepted:,} accepted, {tally.rejected:,} rejected, "
        f"{tally.unreadable:,} unreadable"
    )
    for name, counter in (("problems", tally.problems), ("models", tally.models), ("policy", tally.verdicts)):
        if counter:
            yield f"{name:<8}  {_largest(counter)}"


def _largest(counter: Counter[str]) -> str:
    shown = ", ".join(f"{printable(key)} {count:,}" for key, count in counter.most_common(_SHOWN))
    hidden = len(counter) - _SHOWN
    return f"{shown}, and {hidden:,} more" if hidden > 0 else shown


class _Json:
    """For programs: one object, written as it comes, so that a long stream takes no memory."""

    def __init__(self) -> None:
        self._before = '{"results": [\n'

    def show(self, judged: Judged, record: VerifiableRecord | FormatError | None) -> None:
        error = judged.error or (record if isinstance(record, FormatError) else None)
        if error is not None:
            report(error)
        sys.stdout.write(self._before + json.dumps(_row(judged, record, error)))
        self._before = ",\n"

    def end(self, tally: ValidationTally, records: _Records | None) -> None:
        summary = tally.to_json() | ({} if records is None else {"pack": records.pack_digest})
        sys.stdout.write(f'\n], "summary": {json.dumps(summary)}}}\n')


def _row(judged: Judged, record: Any, error: Exception | None) -> dict[str, object]:
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


def _with_progress(items: Iterator[Judged], stream: BinaryIO, what: str) -> Iterator[Judged]:
    """The same *items*, which are made by reading *stream*, with a bar."""
    with progress_bar(_size_bytes(stream), what) as advance:
        done_bytes = 0
        for number, item in enumerate(items):
            if number % _PROGRESS_VALUES == 0 and stream.seekable():
                advance(stream.tell() - done_bytes)
                done_bytes = stream.tell()
            yield item


def _size_bytes(stream: BinaryIO) -> int:
    """0 where it is not known beforehand."""
    try:
        return os.fstat(stream.fileno()).st_size
    except (OSError, ValueError):
        return 0

"""Actions in files and folders, validated and counted."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, TypeAlias

import msgspec

from reenact._version import __version__
from reenact.check.actions.capsule import Capsule
from reenact.check.actions.policy import Policy
from reenact.check.actions.registry import find_capsule
from reenact.check.actions.validation import JudgedValue, ValidationTally, validate_stream
from reenact.errors import FormatError, StoreError, UsageError
from reenact.formats import verifiable
from reenact.formats.action import ACTION_ID
from reenact.formats.lines import LINE_SUFFIXES
from reenact.formats.verifiable import VerifiableRecord
from reenact.progress import ProgressBar, no_progress_bar
from reenact.store.remote import local_files, remote_name

STDIN: Final = "-"
"""The name of standard input among files."""
_SUFFIXES: Final = (".json", *LINE_SUFFIXES)
_PRODUCER: Final = {"name": "reenact", "version": __version__}
_VALUES_PER_STEP: Final = 1000

OnJudged: TypeAlias = Callable[[JudgedValue, VerifiableRecord | FormatError | None], None]
"""Called with each value and its record, or with the reason why there is no record."""


class ValidateReport(msgspec.Struct, frozen=True):
    """The counts of a validation; the values themselves are passed to ``on_judged``."""

    accepted: int
    rejected: int
    unreadable: int
    problems: dict[str, int]
    """Problems by code, the most frequent first; one value may have several."""
    models: dict[str, int]
    """Values by the full name of their model, if it is known."""
    verdicts: dict[str, int]
    """Accepted values by the policy's verdict; empty without a policy."""
    is_good: bool
    """Whether everything was accepted, and allowed if there is a policy."""
    unrecorded: int = 0
    """Valid actions without a record, because RFC 8785 cannot represent them."""
    pack_digest: str | None = None
    """The digest over all records; ``None`` if no records were made."""

    @property
    def count(self) -> int:
        return self.accepted + self.rejected + self.unreadable


def validate(
    *paths: str | Path | BinaryIO,
    capsule: str = ACTION_ID,
    policy: str | Path | None = None,
    records: bool = False,
    on_judged: OnJudged | None = None,
    progress_bar: ProgressBar = no_progress_bar,
) -> ValidateReport:
    """Check whether actions are well formed, and with a *policy* file whether they are allowed.

    *paths* are JSON files, files with one action per line, folders of both, also at addresses, and open
    streams. Each value is
    checked against the rules of *capsule* and handed to *on_judged*, so that memory does not grow with
    the input. A file that cannot be read is counted and does not stop the others. With *records* each good
    action gets a verifiable record.
    """
    if capsule != ACTION_ID and (records or policy is not None):
        raise UsageError(f"capsule {capsule}: records and policies are for actions; leave the capsule out")
    rules = find_capsule(capsule)
    decider = Policy.load(str(policy)) if policy is not None else None
    tally, digests, unrecorded = ValidationTally(), set[str](), 0
    for judged in _judge_all(paths, rules, decider, progress_bar):
        tally.add(judged)
        record = _make_record(judged) if records and judged.is_good else None
        if isinstance(record, FormatError):
            unrecorded += 1
        elif record is not None:
            digests.add(record.receipt.record_digest)
        if on_judged is not None:
            on_judged(judged, record)
    return ValidateReport(
        accepted=tally.accepted,
        rejected=tally.rejected,
        unreadable=tally.unreadable,
        problems=dict(tally.problems.most_common()),
        models=dict(tally.models.most_common()),
        verdicts=dict(tally.verdicts.most_common()),
        is_good=tally.is_good and not unrecorded,
        unrecorded=unrecorded,
        pack_digest=verifiable.pack_digest(digests) if records else None,
    )


def _make_record(judged: JudgedValue) -> VerifiableRecord | FormatError:
    try:
        return verifiable.verifiable_record(judged.value, producer=_PRODUCER)
    except FormatError as error:
        return error.at(file=judged.file, line=judged.line)


def _judge_all(
    paths: Iterable[str | Path | BinaryIO], capsule: Capsule, policy: Policy | None, bar: ProgressBar
) -> Iterator[JudgedValue]:
    for path in paths:
        if not isinstance(path, str | Path):
            yield from validate_stream(path, STDIN, capsule, policy=policy)
            continue
        name = remote_name(path)
        try:
            with local_files(path) as local:
                yield from _judge_path(_Named(local, name), capsule, policy, bar)
        except (OSError, FormatError, StoreError) as error:
            yield JudgedValue(name, None, None, None, _named_error(error, name))


class _Named(NamedTuple):
    """A file or folder, and its name in reports."""

    path: Path
    name: str


def _named_error(error: OSError | FormatError | StoreError, name: str) -> OSError | FormatError:
    if not isinstance(error, StoreError):
        return error
    return FormatError(str(error).removeprefix(f"{name}: "), file=name)


def _judge_path(
    given: _Named, capsule: Capsule, policy: Policy | None, bar: ProgressBar
) -> Iterator[JudgedValue]:
    if given.path.is_dir():
        below = sorted(_files_below(given.path))
        if not below:
            raise FormatError(f"holds no file that ends in {' or '.join(_SUFFIXES)}", file=given.name)
        for file in below:
            inner = _Named(given.path / file, os.path.join(given.name, file))
            try:
                yield from _judge_path(inner, capsule, policy, bar)
            except (OSError, FormatError) as error:
                yield JudgedValue(inner.name, None, None, None, error)
        return
    with given.path.open("rb") as stream, bar(_size_bytes(stream), "validating") as advance:
        done_bytes = 0
        for number, judged in enumerate(validate_stream(stream, given.name, capsule, policy=policy)):
            if number % _VALUES_PER_STEP == 0 and stream.seekable():
                advance(stream.tell() - done_bytes)
                done_bytes = stream.tell()
            yield judged


def _files_below(folder: Path) -> Iterator[str]:
    """Their paths relative to *folder*."""

    def stop(error: OSError) -> None:  # os.walk skips what it may not enter
        raise error

    for parent, _, names in os.walk(folder, onerror=stop):
        files = (Path(parent, name) for name in names if Path(name).suffix in _SUFFIXES)
        yield from (str(file.relative_to(folder)) for file in files if file.is_file())


def _size_bytes(stream: BinaryIO) -> int:
    """The size of *stream*; 0 if it is unknown."""
    try:
        return os.fstat(stream.fileno()).st_size
    except (OSError, ValueError):
        return 0

"""Checks a dataset: each row is derived again from the run that it names, and compared.

A row names everything that it depends on, so that nothing else in the dataset has to be trusted.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from reenact.canonical import JsonValue, encode_clean
from reenact.check.findings import Finding, VerifyReport
from reenact.check.kinds import DATASET_SCHEMA, PARQUET_MAGIC, dataset_files
from reenact.errors import FormatError, ReenactError, StoreError, UsageError
from reenact.formats.dataset import DatasetFile, RowsDigest, manifest_codec, manifest_place
from reenact.formats.lines import read_lines
from reenact.progress import Progress
from reenact.store.paths import open_inside
from reenact.store.reader import CaptureReader
from reenact.store.remote import is_remote, local_run
from reenact.store.rundir import RunDir
from reenact.trace.to_conversations import Chat, conversations, message_digests
from reenact.trace.to_rows import (
    CallRow,
    RowOptions,
    RowSource,
    RunVerdict,
    call_rows,
    fidelity_of,
    find_seal,
    run_verdict,
)

_KEPT_RUNS: Final = 4
"""Runs kept open at a time; the rows of one run follow each other, and a pair comes from two runs."""


class SftProvenance(RowSource, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a conversation comes from, and how it became a row."""

    schema: str
    reasoning: str
    export_redaction: str


class PairProvenance(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the two conversations of a pair come from; they begin alike."""

    schema: str
    chosen: RowSource
    rejected: RowSource
    reasoning: str
    export_redaction: str
    test: str
    """Digest of the test that judged both; empty without a test."""


class ParquetProvenance(RowSource, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a call comes from."""

    schema: str
    export_redaction: str


def check_dataset(path: Path, *, runs: Path | None = None, progress: Progress | None = None) -> VerifyReport:
    """Trace every row back to its run, which is at the path in the row or in the folder *runs*."""
    checking = _Checking(runs)
    files = dataset_files(path)
    written = _written_files(path, checking.findings)
    with checking.copies:
        for file in files:
            found, known = RowsDigest(), len(checking.findings)
            for number, row in _rows(file, checking.findings):
                found.add(row.value)
                checking.check(file, number, row)
                if progress is not None:
                    progress(row.size_bytes)
            if written is not None:
                is_each_good = len(checking.findings) == known
                checking.findings += _whole_findings(file.name, found, written, is_each_good=is_each_good)
    if written is not None and path.is_dir():
        for name in written.keys() - {file.name for file in files}:
            reason = f"the file {name} is missing; {written[name].rows} rows were written to it"
            checking.findings.append(Finding("rows_missing", reason, path.name))
    facts: dict[str, JsonValue] = {
        "rows": sum(checking.rows.values()),
        "kinds": [*sorted(checking.rows)],
        "runs": len(checking.captures),
        "sealed": sum(checking.captures.values()),
        "redaction": [*sorted(checking.redactions)],
    }
    if path.is_dir():
        facts["files"] = [file.name for file in files]
    return VerifyReport("dataset", str(path), checking.findings, facts)


def _written_files(path: Path, findings: list[Finding]) -> dict[str, DatasetFile] | None:
    """The files in the manifest of the dataset, by name; ``None`` without a readable manifest."""
    places = [manifest_place(path, is_folder=path.is_dir())]
    if not path.is_dir():
        places.append(manifest_place(path.parent, is_folder=True))  # one file of several
    place = next((each for each in places if each.is_file()), None)
    if place is None:
        reason = f"there is no {places[0].name}, so missing rows cannot be detected; export again"
        findings.append(Finding("no_manifest", reason, path.name, severity="warning"))
        return None
    try:
        manifest = manifest_codec.from_bytes(place.read_bytes())
    except FormatError as error:
        findings.append(Finding.of("manifest_unreadable", error, file=place.name))
        return None
    except OSError as error:
        findings.append(Finding("manifest_unreadable", f"cannot be read: {error.strerror}", place.name))
        return None
    return {file.name: file for file in manifest.files}


def _whole_findings(
    name: str, found: RowsDigest, written: dict[str, DatasetFile], *, is_each_good: bool
) -> Iterator[Finding]:
    """Findings if a file does not have exactly the rows that were written, in the same order."""
    file = written.get(name)
    if file is None:
        yield Finding("rows_added", "was not written with the other files of the dataset", name)
    elif found.count < file.rows:
        yield Finding("rows_missing", f"has {found.count} rows; {file.rows} were written", name)
    elif found.count > file.rows:
        yield Finding("rows_added", f"has {found.count} rows; {file.rows} were written", name)
    elif is_each_good and found.digest != file.digest:
        yield Finding("rows_moved", "the rows are in another order, or others than were written", name)


class _Row(NamedTuple):
    value: dict[str, Any]
    size_bytes: int


def _rows(file: Path, findings: list[Finding]) -> Iterator[tuple[int, _Row]]:
    if _is_parquet(file):
        yield from enumerate(_parquet_rows(file), 1)
        return
    count = 0
    with file.open("rb") as stream:

        def report(error: FormatError) -> None:
            findings.append(Finding.of("row_unreadable", error, file=file.name))

        for line in read_lines(stream, file=file.name, on_error=report):
            count += 1
            try:
                value = msgspec.json.decode(line.text)
            except (msgspec.DecodeError, ValueError, RecursionError):
                value = None
            if isinstance(value, dict):
                yield line.number, _Row(value, len(line.text))
            else:
                findings.append(
                    Finding("row_unreadable", "the line is not a JSON object", file.name, line=line.number)
                )
    if not count:
        findings.append(Finding("no_rows", "it has no rows", file.name, severity="warning"))


def _is_parquet(file: Path) -> bool:
    with file.open("rb") as stream:
        return stream.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC


def _parquet_rows(file: Path) -> Iterator[_Row]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise UsageError(
            f"{file}: Parquet needs pyarrow; install it with: pip install 'reenact[query]'"
        ) from None
    try:
        with parquet.ParquetFile(file) as opened:
            for batch in opened.iter_batches(batch_size=256):
                for value in batch.to_pylist():
                    yield _Row(value, batch.nbytes // max(1, batch.num_rows))
    except (pyarrow.ArrowException, OSError) as error:
        raise FormatError(f"is not readable Parquet: {error}", file=str(file)) from None


class _Run(NamedTuple):
    reader: CaptureReader
    conversations: dict[RowOptions, dict[int, Chat]]
    calls: dict[RowOptions, dict[int, CallRow]]


class _Problem(Exception):
    def __init__(self, code: str, reason: str, json_path: str | None = None) -> None:
        super().__init__(reason)
        self.code = code
        self.json_path = json_path


class _Checking:
    def __init__(self, runs: Path | None) -> None:
        self.findings: list[Finding] = []
        self.copies = ExitStack()
        """The temporary copies of runs at addresses."""
        self.rows: Counter[str] = Counter()
        self.captures: dict[str, bool] = {}
        """By capture id: whether the run was sealed."""
        self.redactions: set[str] = set()
        self._places: dict[bytes, str] = {}
        """The file and line of each row, by the digest of its provenance."""
        self._runs = runs
        self._kept: dict[str, _Run | _Problem] = {}

    def check(self, file: Path, number: int, row: _Row) -> None:
        try:
            self._check(file.parent, row.value)
            self._refuse_second(file, number, row.value["provenance"])
        except _Problem as problem:
            self.findings.append(
                Finding(problem.code, str(problem), file.name, line=number, json_path=problem.json_path)
            )

    def _check(self, folder: Path, row: dict[str, JsonValue]) -> None:
        provenance = row.get("provenance")
        schema = provenance.get("schema") if isinstance(provenance, dict) else None
        if schema != DATASET_SCHEMA:
            raise _Problem("row_without_source", "the row does not say where it comes from", "$.provenance")
        kind = "preference" if "chosen" in row else "sft" if "messages" in row else "calls"
        self.rows[kind] += 1
        try:
            if kind == "sft":
                self._check_conversation(folder, row, msgspec.convert(provenance, SftProvenance))
            elif kind == "preference":
                self._check_pair(folder, row, msgspec.convert(provenance, PairProvenance))
            else:
                self._check_call(folder, row, msgspec.convert(provenance, ParquetProvenance))
        except msgspec.ValidationError as error:
            raise _Problem(
                "row_without_source", f"its provenance is damaged: {error}", "$.provenance"
            ) from None

    def _refuse_second(self, file: Path, number: int, provenance: JsonValue) -> None:
        """Raise if another row, in any file, has the same provenance."""
        digest = blake2b(encode_clean(provenance), digest_size=16).digest()
        place = f"{file.name}:{number}"
        first = self._places.setdefault(digest, place)
        if first is not place:
            raise _Problem("row_twice", f"the row is a duplicate of {first}")

    def _check_conversation(self, folder: Path, row: dict[str, JsonValue], provenance: SftProvenance) -> None:
        found = self._conversation(
            folder, provenance, _options(provenance.reasoning, provenance.export_redaction)
        )
        _compare(row["messages"], found.messages, "$.messages")
        _compare(row.get("tools"), found.tools, "$.tools")
        _refuse_others(row, ("messages", "tools", "provenance"))

    def _check_pair(self, folder: Path, row: dict[str, JsonValue], provenance: PairProvenance) -> None:
        options = _options(provenance.reasoning, provenance.export_redaction)
        prompt = row.get("prompt")
        if not isinstance(prompt, list):
            raise _Problem("row_changed", "there is no prompt", "$.prompt")
        chosen = self._conversation(folder, provenance.chosen, options)
        rejected = self._conversation(folder, provenance.rejected, options)
        _compare(prompt, chosen.messages[: len(prompt)], "$.prompt")
        _compare(row["chosen"], chosen.messages[len(prompt) :], "$.chosen")
        _compare(row.get("rejected"), rejected.messages[len(prompt) :], "$.rejected")
        _compare(row.get("tools"), chosen.tools, "$.tools")
        shared = [
            message_digests(each.messages, among_runs=True)[: len(prompt)] for each in (chosen, rejected)
        ]
        if shared[0] != shared[1]:
            raise _Problem("row_changed", "the two runs do not begin with this prompt", "$.prompt")
        for name, source in (("chosen", provenance.chosen), ("rejected", provenance.rejected)):
            self._check_verdict(folder, row, name, source)
        _refuse_others(row, ("prompt", "chosen", "rejected", "tools", "verdicts", "provenance"))

    def _check_verdict(self, folder: Path, row: dict[str, JsonValue], name: str, source: RowSource) -> None:
        """Verdicts of tests are not checked again: a test may need code of the project."""
        place = f"$.verdicts.{name}"
        verdicts = row.get("verdicts")
        try:
            stated = msgspec.convert(verdicts[name] if isinstance(verdicts, dict) else None, RunVerdict)
        except (msgspec.ValidationError, KeyError):
            raise _Problem("row_changed", "the verdict is damaged", place) from None
        expected = msgspec.structs.replace(run_verdict(self._run(folder, source).reader), tests=stated.tests)
        _compare(msgspec.to_builtins(stated), msgspec.to_builtins(expected), place)

    def _check_call(self, folder: Path, row: dict[str, JsonValue], provenance: ParquetProvenance) -> None:
        run = self._run(folder, provenance)
        options = _options("keep", provenance.export_redaction)
        if options not in run.calls:
            run.calls[options] = {call.first_event: call for call in call_rows(run.reader, options)}
        call = run.calls[options].get(provenance.first_event)
        if call is None or call.last_event != provenance.last_event:
            raise _Problem("row_not_in_run", f"the run has no call at event {provenance.first_event}")
        expected = msgspec.to_builtins(call)
        stated = {name: value for name, value in row.items() if name != "provenance"}
        _compare(stated, expected, "$")

    def _conversation(self, folder: Path, source: RowSource, options: RowOptions) -> Chat:
        run = self._run(folder, source)
        if options not in run.conversations:
            found = conversations(run.reader, options, lambda _: None)
            run.conversations[options] = {each.last_event: each for each in found}
        conversation = run.conversations[options].get(source.last_event)
        if conversation is None or conversation.first_event != source.first_event:
            place = f"events {source.first_event} to {source.last_event}"
            raise _Problem("row_not_in_run", f"the run has no conversation at {place}")
        return conversation

    def _run(self, folder: Path, source: RowSource) -> _Run:
        place = source.run if is_remote(source.run) else os.path.normpath(folder / source.run)
        found = self._kept.get(f"{place} {source.capture_id}")
        if found is None:
            try:
                found = _Run(self._open(place, source), {}, {})
            except _Problem as problem:
                found = problem
            if len(self._kept) >= _KEPT_RUNS:
                del self._kept[next(iter(self._kept))]
            self._kept[f"{place} {source.capture_id}"] = found
        if isinstance(found, _Problem):
            raise found
        self._check_source(found.reader, source)
        return found

    def _open(self, place: str, source: RowSource) -> CaptureReader:
        if is_remote(place):
            try:
                return CaptureReader(self.copies.enter_context(local_run(place)))
            except (ReenactError, OSError) as error:
                raise _Problem("run_missing", f"its run cannot be had: {error}") from None
        candidates = [Path(place)] if RunDir(Path(place)).is_capture else []
        if not candidates and self._runs is not None:
            candidates = self._by_capture_id.get(source.capture_id, [])
        if not candidates:
            remedy = "put it back, or name the folder it is in with --runs"
            raise _Problem("run_missing", f"there is no run in {place}; {remedy}")
        try:
            return CaptureReader(candidates[0])
        except (ReenactError, OSError) as error:
            raise _Problem("run_changed", f"its run cannot be read: {error}") from None

    @cached_property
    def _by_capture_id(self) -> dict[str, list[Path]]:
        found: dict[str, list[Path]] = {}
        for manifest in sorted((self._runs or Path()).rglob("manifest.json")):
            try:
                with open_inside(manifest.parent, manifest.name) as stream:
                    value = msgspec.json.decode(stream.read())
            except (StoreError, OSError, ValueError):
                continue
            if isinstance(value, dict) and isinstance(value.get("captureId"), str):
                found.setdefault(value["captureId"], []).append(manifest.parent)
        return found

    def _check_source(self, reader: CaptureReader, source: RowSource) -> None:
        manifest = reader.manifest
        for name, stated, is_there in (
            ("capture_id", source.capture_id, manifest.captureId),
            ("events_hash", source.events_hash, manifest.integrity.eventsHash),
            ("redaction", source.redaction, manifest.redaction.profile),
            ("fidelity", source.fidelity, fidelity_of(manifest)),
        ):
            if stated != is_there:
                reason = f"its run is another one now: the row says {stated}, {reader.path} has {is_there}"
                raise _Problem("run_changed", reason, f"$.provenance.{name}")
        if source.seal and find_seal(reader.path) != source.seal:
            raise _Problem("seal_changed", f"the seal of {reader.path} is another one, or gone")
        self.captures[source.capture_id] = bool(source.seal)
        self.redactions.add(source.redaction)


def _options(reasoning: str, redact: str) -> RowOptions:
    return msgspec.convert({"reasoning": reasoning, "redact": redact}, RowOptions)


def _refuse_others(row: dict[str, JsonValue], known: Sequence[str]) -> None:
    others = [name for name in row if name not in known]
    if others:
        raise _Problem("row_changed", f"no run contains this: {', '.join(others)}", f"$.{others[0]}")


def _compare(stated: object, expected: object, place: str) -> None:
    difference = _difference(stated, expected, place)
    if difference is not None:
        raise _Problem("row_changed", "the row says something else than its run", difference)


def _difference(stated: object, expected: object, place: str) -> str | None:
    """The first place where two values differ; tables have nulls for members that a message lacks."""
    if isinstance(stated, dict) and isinstance(expected, dict):
        for name in [*expected, *(name for name in stated if name not in expected)]:
            found = _difference(stated.get(name), expected.get(name), f"{place}.{name}")
            if found is not None:
                return found
        return None
    if isinstance(stated, list) and isinstance(expected, list):
        if len(stated) != len(expected):
            return place
        pairs = enumerate(zip(stated, expected, strict=True))
        return next(
            (found for at, (one, other) in pairs if (found := _difference(one, other, f"{place}[{at}]"))),
            None,
        )
    return None if type(stated) is type(expected) and stated == expected else place

"""Converts runs to rows for training: selects runs, finds duplicates and assigns each row to a file.

Everything depends only on the runs and the options: the same export gives the same rows. The functions for
one run take one path, so that worker processes can share the runs.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from hashlib import blake2b, sha256
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Any, BinaryIO, Final, Literal, NamedTuple, TypeAlias

import msgspec
import yaml

from reenact._version import __version__
from reenact.canonical import JsonValue
from reenact.check.datasets import PairProvenance, ParquetProvenance, SftProvenance
from reenact.check.kinds import DATASET_SCHEMA
from reenact.errors import ReenactError, UsageError
from reenact.formats.capture import without_marks
from reenact.formats.dataset import (
    DATASET_MANIFEST_SCHEMA,
    DatasetFile,
    DatasetManifest,
    RowsDigest,
    manifest_codec,
    manifest_place,
)
from reenact.formats.dialects.losses import Loss
from reenact.formats.record import ABSENT
from reenact.store.outfile import is_written_through, open_output, write_output
from reenact.store.paths import folder_name
from reenact.store.reader import CaptureReader
from reenact.store.remote import local_run
from reenact.suite.runner import judge_capture
from reenact.trace.to_conversations import Chat, ChatMessage, conversations, message_digests
from reenact.trace.to_rows import (
    CallRow,
    RowOptions,
    RowPlace,
    RowSource,
    RunVerdict,
    call_rows,
    row_source,
    run_verdict,
)

DatasetFormat: TypeAlias = Literal["sft", "preference", "parquet"]
Dedupe: TypeAlias = Literal["none", "exact", "near"]
NEAR: Final = 0.85
"""The share of equal shingles from which two rows are near duplicates."""
_SHINGLE_WORDS: Final = 5
_BINS: Final = 128
_BAND_BINS: Final = 4
_MAX_GENERATIONS: Final = 64
_KEPT_RUNS: Final = 8
_BATCH_ROWS: Final = 512
_SPOOLED_BYTES: Final = 16 * 1024 * 1024


class Selection(msgspec.Struct, frozen=True):
    """Which runs to export; a run that lacks a value to compare is left out."""

    status: tuple[str, ...] = ()
    test: str | None = None
    """A file with assertions; it ranks pairs, and for everything else it must pass."""
    min_utility: float | None = None
    min_verification_delta: int | None = None
    allow_code: bool = False


def judge(reader: CaptureReader, selection: Selection) -> RunVerdict:
    """The run's status, ratings and verifications, and the result of the test."""
    verdict = run_verdict(reader)
    if selection.test is None:
        return verdict
    tests = judge_capture(Path(selection.test), reader, allow_code=selection.allow_code)
    return msgspec.structs.replace(verdict, tests=tests)


def reason_against(verdict: RunVerdict, selection: Selection, *, ranks: bool = False) -> str | None:
    """Why a run is left out; ``None`` if it is exported. If the test *ranks* runs, a failure is no reason."""
    if selection.status and verdict.status not in selection.status:
        return f"status {verdict.status}"
    if selection.test is not None and verdict.tests == "failed" and not ranks:
        return "failed the test"
    if selection.min_utility is not None:
        if not verdict.rated_steps:
            return "no step is rated"
        if verdict.utility < selection.min_utility:
            return f"step utility below {selection.min_utility}"
    if selection.min_verification_delta is not None:
        if not verdict.verifications:
            return "nothing was verified"
        if verdict.verification_delta < selection.min_verification_delta:
            return f"verification delta below {selection.min_verification_delta}"
    return None


class DatasetPlan(msgspec.Struct, frozen=True):
    """How to convert runs to rows; it is sent to worker processes."""

    to: DatasetFormat
    folder: str
    """The folder of the files; rows have the paths of their runs relative to it."""
    options: RowOptions
    selection: Selection


class DatasetRow(NamedTuple):
    """A row, with the values that decide whether and where it is written."""

    value: dict[str, Any]
    digest: bytes
    words: list[str]
    """The words of its texts, to find near duplicates; rows of calls have none."""
    family: str
    """All rows of a family go to the same split."""


class RunRows(NamedTuple):
    """The rows of one run."""

    rows: list[DatasetRow]
    losses: list[Loss]
    left_out: str | None
    """Why the run was not selected."""


def rows_of_run(path: str, plan: DatasetPlan) -> RunRows:
    """The rows of one run, for ``sft`` and ``parquet``."""
    with local_run(path) as folder:
        return _rows_of(CaptureReader(folder), RowPlace(plan.folder, path), plan)


def _rows_of(reader: CaptureReader, place: RowPlace, plan: DatasetPlan) -> RunRows:
    left_out = reason_against(judge(reader, plan.selection), plan.selection)
    if left_out is not None:
        return RunRows([], [], left_out)
    losses = DistinctLosses()
    family = find_family(reader)
    if plan.to == "parquet":
        return RunRows(
            [_call_row(reader, call, place, plan, family) for call in call_rows(reader, plan.options)],
            [],
            None,
        )
    found = conversations(reader, plan.options, losses.add)
    return RunRows([_sft_row(reader, each, place, plan, family) for each in found], losses.found(), None)


class DistinctLosses:
    """Losses without repetition: of each kind, the first one."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str | None, str], Loss] = {}

    def add(self, loss: Loss) -> None:
        self._found.setdefault((loss.event, loss.field, loss.reason), loss)

    def found(self) -> list[Loss]:
        return list(self._found.values())


def _sft_row(
    reader: CaptureReader, found: Chat, place: RowPlace, plan: DatasetPlan, family: str
) -> DatasetRow:
    source = row_source(reader, found.first_event, found.last_event, place)
    provenance = SftProvenance(
        **msgspec.structs.asdict(source),
        schema=DATASET_SCHEMA,
        reasoning=plan.options.reasoning,
        export_redaction=plan.options.redact,
    )
    value = {"messages": found.messages, "tools": found.tools, "provenance": msgspec.to_builtins(provenance)}
    tools = msgspec.json.encode(without_marks(found.tools))
    digest = message_digests(found.messages, among_runs=True)[-1] + sha256(tools).digest()
    return DatasetRow(value, digest, [*_words(found.messages)], family)


def _call_row(
    reader: CaptureReader, call: CallRow, place: RowPlace, plan: DatasetPlan, family: str
) -> DatasetRow:
    source = row_source(reader, call.first_event, call.last_event, place)
    provenance = ParquetProvenance(
        **msgspec.structs.asdict(source), schema=DATASET_SCHEMA, export_redaction=plan.options.redact
    )
    fields = [call.kind, call.name, call.ok, call.input, call.output, call.error]
    value = msgspec.to_builtins(call) | {"provenance": msgspec.to_builtins(provenance)}
    return DatasetRow(value, sha256(msgspec.json.encode(fields)).digest(), [], family)


def _words(messages: Iterable[ChatMessage]) -> Iterator[str]:
    for message in map(without_marks, messages):
        yield message["role"]
        yield from message["content"].split()
        for call in message.get("tool_calls", ()):
            yield from msgspec.json.encode(call["function"]).decode().split()


def find_family(reader: CaptureReader) -> str:
    """The id of the first ancestor of a fork; the run's own id if it is not a fork."""
    path, manifest = reader.path, reader.manifest
    for _ in range(_MAX_GENERATIONS):
        if manifest.fork is ABSENT:
            break
        parent = manifest.fork.parent
        path = path / parent.path
        try:
            found = CaptureReader(path).manifest
        except (ReenactError, OSError):
            return parent.captureId
        if found.captureId != parent.captureId:
            return parent.captureId
        manifest = found
    return manifest.captureId


# Pairs


class Continuation(NamedTuple):
    """A conversation of a run that may become one half of a pair."""

    path: str
    last_event: int
    digests: list[bytes]
    roles: list[str]
    verdict: RunVerdict


class RunContinuations(NamedTuple):
    """The conversations of one run, for pairs."""

    found: list[Continuation]
    losses: list[Loss]
    left_out: str | None


def continuations_of_run(path: str, plan: DatasetPlan) -> RunContinuations:
    """The conversations of one run, for ``preference``."""
    with local_run(path) as folder:
        return _continuations_of(CaptureReader(folder), path, plan)


def _continuations_of(reader: CaptureReader, path: str, plan: DatasetPlan) -> RunContinuations:
    verdict = judge(reader, plan.selection)
    left_out = reason_against(verdict, plan.selection, ranks=True)
    if left_out is not None:
        return RunContinuations([], [], left_out)
    losses = DistinctLosses()
    found = [
        Continuation(
            path,
            each.last_event,
            message_digests(each.messages, among_runs=True),
            [message["role"] for message in each.messages],
            verdict,
        )
        for each in conversations(reader, plan.options, losses.add)
    ]
    return RunContinuations(found, losses.found(), None)


class Pair(NamedTuple):
    """Two conversations with *shared* messages, after which the model answered differently."""

    chosen: Continuation
    rejected: Continuation
    shared: int


def find_pairs(found: Sequence[Continuation]) -> Iterator[Pair]:
    """Pair each conversation with the best one that shares the longest prefix, if its run is better.

    If two differ in a tool's result or a user's message, the model made no choice, and there is no pair.
    """
    best: dict[bytes, list[tuple[Continuation, bytes]]] = {}
    """The best two different continuations of each prefix, by its digest, with the next message's digest."""
    for each in found:
        for at in range(1, len(each.digests)):
            if each.roles[at] == "assistant":
                _keep_best(best.setdefault(each.digests[at - 1], []), each, each.digests[at])
    for rejected in found:
        for at in range(len(rejected.digests) - 1, 0, -1):
            if rejected.roles[at] != "assistant":
                continue
            others = (one for one, how in best[rejected.digests[at - 1]] if how != rejected.digests[at])
            chosen = next(others, None)
            if chosen is not None and chosen.verdict.rank > rejected.verdict.rank:
                yield Pair(chosen, rejected, at)
                break


def _keep_best(kept: list[tuple[Continuation, bytes]], new: Continuation, how: bytes) -> None:
    """Keep at most two that continue differently; of equally good ones, the first one found."""
    for place, (known, known_how) in enumerate(kept):
        if known_how == how:
            if new.verdict.rank > known.verdict.rank:
                kept[place] = new, how
            break
    else:
        kept.append((new, how))
    kept.sort(key=lambda each: each[0].verdict.rank, reverse=True)
    del kept[2:]


def pair_rows(pairs: Iterable[Pair], plan: DatasetPlan) -> Iterator[DatasetRow]:
    """The pairs as rows; the runs are read again, with a small cache."""
    kept: OrderedDict[str, dict[int, tuple[Chat, RowSource]]] = OrderedDict()

    def read(one: Continuation) -> tuple[Chat, RowSource]:
        if one.path not in kept:
            with local_run(one.path) as folder:
                reader, place = CaptureReader(folder), RowPlace(plan.folder, one.path)
                kept[one.path] = {
                    each.last_event: (each, row_source(reader, each.first_event, each.last_event, place))
                    for each in conversations(reader, plan.options, lambda _: None)
                }
            if len(kept) > _KEPT_RUNS:
                kept.popitem(last=False)
        kept.move_to_end(one.path)
        return kept[one.path][one.last_event]

    test = plan.selection.test
    tested = "" if test is None else f"sha256:{sha256(Path(test).read_bytes()).hexdigest()}"
    for pair in pairs:
        (chosen, better), (rejected, worse) = read(pair.chosen), read(pair.rejected)
        provenance = PairProvenance(
            schema=DATASET_SCHEMA,
            chosen=better,
            rejected=worse,
            reasoning=plan.options.reasoning,
            export_redaction=plan.options.redact,
            test=tested,
        )
        verdicts = {"chosen": pair.chosen.verdict, "rejected": pair.rejected.verdict}
        value = {
            "prompt": chosen.messages[: pair.shared],
            "chosen": chosen.messages[pair.shared :],
            "rejected": rejected.messages[pair.shared :],
            "tools": chosen.tools,
            "verdicts": msgspec.to_builtins(verdicts),
            "provenance": msgspec.to_builtins(provenance),
        }
        words = [*_words(chosen.messages), *_words(rejected.messages[pair.shared :])]
        # Rows with the same beginning go to one split: all that share their first question.
        opening = pair.chosen.digests[pair.chosen.roles.index("user") if "user" in pair.chosen.roles else 0]
        yield DatasetRow(value, pair.chosen.digests[-1] + pair.rejected.digests[-1], words, opening.hex())


# Splits


class Splits:
    """Assigns families to splits by their digests."""

    def __init__(self, shares: Mapping[str, float]) -> None:
        if not shares or not all(0 < share <= 1 for share in shares.values()):
            raise UsageError("a split has names and shares above 0, such as train=0.9,test=0.1")
        if abs(sum(shares.values()) - 1) > 1e-6:
            listed = ",".join(f"{name}={share:g}" for name, share in shares.items())
            raise UsageError(f"the shares of {listed} are {sum(shares.values()):g} together; they must be 1")
        for name in shares:
            if folder_name(name) != name or "/" in name:
                raise UsageError(f"{name!r} cannot be the name of a split; use letters and digits")
        self._shares = dict(shares)

    @property
    def names(self) -> list[str]:
        return list(self._shares)

    def split_of(self, family: str) -> str:
        """The split of a family; it depends only on the family and the shares, not on other rows."""
        place = int.from_bytes(sha256(f"reenact split {family}".encode()).digest()[:8], "big") / 2**64
        for name, share in self._shares.items():
            place -= share
            if place < 0:
                return name
        return self.names[-1]


# Duplicates


class Duplicates:
    """Recognises duplicates of earlier rows."""

    def __init__(self, dedupe: Dedupe) -> None:
        self._dedupe = dedupe
        self._seen: set[bytes] = set()
        self._bands: dict[tuple[int, tuple[int, ...]], list[list[int]]] = {}

    def is_one(self, row: DatasetRow) -> bool:
        """Whether *row* equals an earlier one, or nearly equals it."""
        if self._dedupe == "none":
            return False
        if row.digest in self._seen:
            return True
        self._seen.add(row.digest)
        return self._dedupe == "near" and bool(row.words) and self._is_near(row.words)

    def _is_near(self, words: list[str]) -> bool:
        signature = near_signature(words)
        bands = [
            (start, tuple(signature[start : start + _BAND_BINS])) for start in range(0, _BINS, _BAND_BINS)
        ]
        for band in bands:
            for other in self._bands.get(band, ()):
                equal = sum(one == two for one, two in zip(signature, other, strict=True))
                if equal >= NEAR * _BINS:
                    return True
        for band in bands:
            self._bands.setdefault(band, []).append(signature)
        return False


def near_signature(words: list[str]) -> list[int]:
    """A MinHash of the text's shingles of five words, by one permutation.

    The share of equal numbers in two signatures estimates the share of shingles that two texts have in
    common.
    """
    lowest = [-1] * _BINS
    for start in range(max(1, len(words) - _SHINGLE_WORDS + 1)):
        shingle = " ".join(words[start : start + _SHINGLE_WORDS]).encode("utf-8", "surrogatepass")
        number = int.from_bytes(blake2b(shingle, digest_size=8).digest(), "big")
        place, value = number % _BINS, number // _BINS
        if lowest[place] < 0 or value < lowest[place]:
            lowest[place] = value
    # An empty bin takes the value of the next one that is not empty, with the distance to it.
    filled = list(lowest)
    for place in range(_BINS):
        step = 0
        while lowest[(place + step) % _BINS] < 0:
            step += 1
        filled[place] = lowest[(place + step) % _BINS] * _BINS + step
    return filled


# Files


class ExportedDataset(msgspec.Struct, frozen=True):
    """The files that were written, and the number of rows left out."""

    files: dict[str, int]
    """Rows by file."""
    duplicates: int
    redaction: str
    """The profile applied to the rows; ``none`` if only the redaction of each run applies."""


class RowWriter:
    """Writes each row to its file, unless it is a duplicate."""

    def __init__(
        self,
        splits: Splits | None,
        dedupe: Dedupe,
        write: Mapping[str, Callable[[DatasetRow], None]],
        written: Mapping[str, RowsDigest],
    ) -> None:
        self._splits = splits
        self._duplicates = Duplicates(dedupe)
        self._write = write
        self.written = written
        """The digests of the rows in file order, by split; complete when the file is closed."""
        self.counts: Counter[str] = Counter(dict.fromkeys(write, 0))
        self.duplicates = 0

    def add(self, row: DatasetRow) -> bool:
        if self._duplicates.is_one(row):
            self.duplicates += 1
            return False
        name = "" if self._splits is None else self._splits.split_of(row.family)
        self._write[name](row)
        self.counts[name] += 1
        return True


@contextmanager
def open_rows(out: Path, to: DatasetFormat, splits: Splits | None, dedupe: Dedupe) -> Iterator[RowWriter]:
    """Open *out*, or one file per split in it; the files appear only if everything succeeds."""
    with ExitStack() as stack:
        writers, written = {}, {}
        for name in [""] if splits is None else splits.names:
            file = split_file(out, name, to)
            file.parent.mkdir(parents=True, exist_ok=True)
            stream = stack.enter_context(open_output(file, replace=True))
            make = _parquet_writer if to == "parquet" else _line_writer
            written[name] = RowsDigest()
            writers[name] = stack.enter_context(make(stream, written[name]))
        yield RowWriter(splits, dedupe, writers, written)


def split_file(out: Path, name: str, to: DatasetFormat) -> Path:
    """The file of a split; *out* itself without splits."""
    return out / f"{name}.{'parquet' if to == 'parquet' else 'jsonl'}" if name else out


@contextmanager
def _line_writer(stream: BinaryIO, written: RowsDigest) -> Iterator[Callable[[DatasetRow], None]]:
    """Write rows with new members first, and all others after them.

    Readers such as Hugging Face's take the types of a file from its first megabytes, and fail at later rows
    with other types.
    """
    seen: set[object] = set()
    with SpooledTemporaryFile(max_size=_SPOOLED_BYTES) as others:

        def write(row: DatasetRow) -> None:
            shapes = {*_shapes(row.value)}
            text = msgspec.json.encode(row.value) + b"\n"
            if shapes <= seen:
                others.write(text)
            else:
                seen.update(shapes)
                stream.write(text)
                written.add(row.value)

        yield write
        others.seek(0)
        for text in others:
            stream.write(text)
            written.add(msgspec.json.decode(text))


def _shapes(row: Mapping[str, Any]) -> Iterator[object]:
    """What determines the types of a row: the members of its messages, and its tools."""
    for column in ("messages", "prompt", "chosen", "rejected"):
        for message in row.get(column, ()):
            yield column, frozenset(message)
    yield sha256(msgspec.json.encode(row.get("tools"))).digest()


@contextmanager
def _parquet_writer(stream: BinaryIO, written: RowsDigest) -> Iterator[Callable[[DatasetRow], None]]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise UsageError("Parquet needs pyarrow; install it with: pip install 'reenact[query]'") from None
    types = {"int": pyarrow.int64(), "float": pyarrow.float64(), "bool": pyarrow.bool_()}

    def fields_of(struct: type[msgspec.Struct]) -> list[tuple[str, Any]]:
        # Annotations are strings here: ``int | None``.
        names = msgspec.structs.fields(struct)
        return [(each.name, types.get(_plain_type(each.type), pyarrow.string())) for each in names]

    source = pyarrow.struct(fields_of(ParquetProvenance))
    schema = pyarrow.schema([*fields_of(CallRow), ("provenance", source)])
    held: list[dict[str, JsonValue]] = []
    with parquet.ParquetWriter(stream, schema, compression="zstd") as file:

        def flush() -> None:
            table = pyarrow.Table.from_pylist(held, schema=schema)
            file.write_table(table)
            for row in table.to_pylist():
                written.add(row)
            held.clear()

        def write(row: DatasetRow) -> None:
            held.append(row.value)
            if len(held) >= _BATCH_ROWS:
                flush()

        yield write
        flush()


def write_manifest(out: Path, plan: DatasetPlan, splits: Splits | None, writer: RowWriter) -> None:
    """Write the number of rows and their digests next to them; not for a device or a pipe."""
    if splits is None and is_written_through(out):
        return
    manifest = DatasetManifest(
        schema=DATASET_MANIFEST_SCHEMA,
        to=plan.to,
        producer=f"reenact {__version__}",
        exportRedaction=plan.options.redact,
        files=[
            DatasetFile(name=split_file(out, name, plan.to).name, rows=rows.count, digest=rows.digest)
            for name, rows in writer.written.items()
        ],
    )
    text = msgspec.json.format(manifest_codec.to_bytes(manifest), indent=1)
    write_output(manifest_place(out, is_folder=splits is not None), text + b"\n")


def dataset_card(
    plan: DatasetPlan, counts: Mapping[str, int], dedupe: Dedupe, duplicates: int, left_out: Mapping[str, int]
) -> str:
    """The README of a dataset with splits, for Hugging Face and people: files, types and selection."""
    chats = ["messages"] if plan.to == "sft" else ["prompt", "chosen", "rejected"]
    features: list[dict[str, object]] = [{"name": name, "list": "json"} for name in [*chats, "tools"]]
    if plan.to == "preference":
        verdicts = [{"name": name, "struct": _card_fields(RunVerdict)} for name in ("chosen", "rejected")]
        features.append({"name": "verdicts", "struct": verdicts})
        sources = [{"name": name, "struct": _card_fields(RowSource)} for name in ("chosen", "rejected")]
        others = [
            {"name": name, "dtype": "string"} for name in ("schema", "reasoning", "export_redaction", "test")
        ]
        features.append({"name": "provenance", "struct": [*sources, *others]})
    else:
        features.append({"name": "provenance", "struct": _card_fields(SftProvenance)})
    # An empty split would stop Hugging Face from reading the others.
    files = [{"split": name, "path": f"{name}.jsonl"} for name, count in counts.items() if count]
    head = {
        "configs": [{"config_name": "default", "data_files": files}],
        "dataset_info": {"features": features},
    }
    lines = [
        f"Written by `reenact export --to {plan.to}`; `reenact verify` traces every row back to its run.",
        "",
        *(f"- {name}: {count} rows" for name, count in counts.items()),
        f"- redaction: as each row says for its run; in addition: {plan.options.redact}",
        f"- reasoning: {plan.options.reasoning}",
        f"- duplicates left out ({dedupe}): {duplicates}",
        *(f"- runs left out, {reason}: {count}" for reason, count in left_out.items()),
    ]
    return f"---\n{yaml.safe_dump(head, sort_keys=False)}---\n\n" + "\n".join(lines) + "\n"


def _card_fields(struct: type[msgspec.Struct]) -> list[dict[str, str]]:
    types = {"int": "int64", "float": "float64"}
    return [
        {"name": each.name, "dtype": types.get(_plain_type(each.type), "string")}
        for each in msgspec.structs.fields(struct)
    ]


def _plain_type(annotation: object) -> str:
    return next((name for name in ("bool", "int", "float") if name in str(annotation)), "str")

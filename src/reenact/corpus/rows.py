"""Makes table rows from runs of any kind, replay receipts and test results, with and without an index."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from reenact.analysis.artifact import Artifact, open_artifact
from reenact.analysis.index import STATES, StepIndex
from reenact.analysis.stats import find_retries
from reenact.corpus.captures import CaptureBatch, RunFacts, run_row
from reenact.corpus.messages import AnswerAsStored, ExchangeAsStored, message_rows
from reenact.corpus.sources import size_on_disk
from reenact.corpus.tables import (
    CorpusSource,
    SourceReading,
    TableRows,
    clean_text,
    int_or_none,
    short_json,
    text_or_none,
    time_us,
)
from reenact.errors import FormatError, ReenactError, StoreError
from reenact.formats.event import event_name
from reenact.formats.replay_receipt import read_replay_receipt
from reenact.formats.result import TestError, read_result
from reenact.formats.rfc3339 import moment
from reenact.store.objects import address_in
from reenact.trace.sources.capture import CaptureSource
from reenact.trace.sources.source import RunSource
from reenact.values.tags import strip_tags

_UNREADABLE: Final = (ReenactError, OSError, RecursionError, msgspec.ValidationError)


def read_sources(sources: Iterable[CorpusSource], into: TableRows) -> Iterator[SourceReading]:
    """Add the rows of each of *sources*, in this order, and yield its result after its rows were added.

    Consecutive finished captures are read in batches, in a fifth of the time.
    """
    batch = CaptureBatch(into.needed)
    waiting: list[CorpusSource] = []
    for source in sources:
        is_local_run = source.kind == "run" and address_in(source.path) is None
        is_taken = is_local_run and batch.add(source.path, source.name, is_finished=source.is_finished)
        if is_taken:
            waiting.append(source)
        if batch.is_full or not is_taken:
            yield from _read_batch(batch, waiting, into)
            batch, waiting = CaptureBatch(into.needed), []
        if not is_taken:
            yield read_source(source, into)
    yield from _read_batch(batch, waiting, into)


def _read_batch(
    batch: CaptureBatch, sources: Sequence[CorpusSource], into: TableRows
) -> Iterator[SourceReading]:
    with closing(batch):
        try:
            if sources:
                batch.add_rows(into)
        except _UNREADABLE:
            yield from [read_source(source, into) for source in sources]  # to find the unreadable one
        else:
            yield from [SourceReading(None, is_final=True)] * len(sources)


def read_source(source: CorpusSource, into: TableRows) -> SourceReading:
    """Add the rows of one *source*; a run that cannot be read gets one row with the reason."""
    mark = into.mark()
    try:
        if source.kind == "run":
            return _read_run(source, into)
        (_read_receipt if source.kind == "receipt" else _read_test_result)(source, into)
    except _UNREADABLE as error:
        into.cut(mark)
        problem = _describe_problem(source, error)
        if source.kind == "run" and into.needs("runs"):
            _add_unreadable(source, problem, into)
        return SourceReading(problem, is_final=False)
    return SourceReading(None, is_final=True)


def _describe_problem(source: CorpusSource, error: Exception) -> str:
    text = f"{source.name}: {error.strerror}" if isinstance(error, OSError) else str(error)
    return clean_text(text.replace(source.path, source.name))


def _add_unreadable(source: CorpusSource, problem: str, into: TableRows) -> None:
    row = dict.fromkeys(into.rows["runs"])
    size_bytes = source.size_bytes or size_on_disk(source.path)
    row |= {"run": source.name, "status": "unreadable", "size_bytes": size_bytes, "problem": problem}
    into.add("runs", *row.values())


def _read_run(source: CorpusSource, into: TableRows) -> SourceReading:
    with open_artifact(source.path) as artifact:
        artifact.index()
        header = artifact.header()
        problem = None if artifact.problem is None else _describe_problem(source, artifact.problem)
        if into.needs("runs"):
            counts = artifact.counts()
            facts = RunFacts(
                events=counts.events,
                steps=counts.steps,
                errors=counts.states.get("error", 0),
                tokens=counts.tokens,
                duration_ms=counts.duration_ms,
                size_bytes=artifact.size_bytes,
                problem=problem,
            )
            into.add("runs", *run_row(source.name, header, facts))
        if into.needs("calls"):
            _add_calls(source.name, artifact, into)
        if into.needs("messages"):
            into.extend("messages", message_rows(source.name, _exchanges(artifact), artifact.source))
        if into.needs("events"):
            _add_events(source.name, artifact, into)
        is_final = problem is None and header.state in (None, "complete", "recovered")
        return SourceReading(problem, is_final)


def _add_calls(run: str, artifact: Artifact, into: TableRows) -> None:
    """Add whole columns, because the step index is stored by column."""
    payloads: list[_ToolPayloads]
    index, rows = artifact.rows, into.rows["calls"]
    count = len(index)
    kinds = [clean_text(index.kinds[number]) for number in range(len(index.kinds))]
    names = [clean_text(index.names[number]) for number in range(len(index.names))]
    lanes = [clean_text(index.lanes[number]) for number in range(len(index.lanes))]
    kind = [kinds[number] for number in index.kind]
    name = [names[number] for number in index.name]
    start_ms = index.start_ms or 0
    rows["run"] += [run] * count
    rows["seq"] += index.seq
    rows["outcome_seq"] += [seq or None for seq in index.outcome_seq]
    rows["kind"] += kind
    rows["name"] += name
    rows["tool"] += [each if what == "tool" else None for what, each in zip(kind, name, strict=True)]
    rows["model"] += [each if what == "model" else None for what, each in zip(kind, name, strict=True)]
    rows["state"] += [STATES[number] for number in index.state]
    rows["started_at"] += [time_us(start_ms + at_ms) for at_ms in index.at_ms]
    rows["at_ms"] += index.at_ms
    rows["latency_ms"] += _known(index.took_ms)
    for column, tokens in (
        ("input_tokens", index.input_tokens),
        ("output_tokens", index.output_tokens),
        ("cached_tokens", index.cached_tokens),
    ):
        rows[column] += [n if n or what == "model" else None for what, n in zip(kind, tokens, strict=True)]
    rows["utility"] += _known(index.utility)
    rows["lane"] += [lanes[number] for number in index.lane]
    rows["parent_seq"] += [index.seq[place] if place >= 0 else None for place in index.parent]
    retried = find_retries(artifact) if index.state_counts["error"] else ()
    rows["is_retry"] += [place in retried for place in range(count)]
    payloads = [(None, None, None)] * count
    if into.needs("calls", "arguments", "result", "error"):
        payloads = _payloads(artifact.source, index, kind)
        into.text_bytes += sum([len(text) for texts in payloads for text in texts if text is not None])
    for column, values in zip(("arguments", "result", "error"), zip(*payloads, strict=True), strict=False):
        rows[column] += values
    into.text_bytes += 150 * count


def _known(numbers: Iterable[float]) -> list[float | None]:
    return [None if math.isnan(number) else number for number in numbers]


_ToolPayloads: TypeAlias = tuple[str | None, str | None, str | None]
"""Arguments, result and error of a call."""


def _payloads(source: RunSource, index: StepIndex, kinds: list[str]) -> list[_ToolPayloads]:
    found: list[_ToolPayloads] = []
    for place, kind in enumerate(kinds):
        has_failed = STATES[index.state[place]] == "error"
        if kind != "tool" and not has_failed:
            found.append((None, None, None))
            continue
        began, ended = source.event(index.seq[place]), None
        if index.outcome_seq[place]:
            ended = source.event(index.outcome_seq[place])
        outcome = ended.data if ended else {}
        error = (ended.failure or outcome.get("modelError")) if ended and has_failed else None
        arguments = result = None
        if kind == "tool" and began is not None:
            arguments = _payload(source, began.data.get("args"))
            result = _payload(source, outcome.get("result"))
        found.append((arguments, result, _payload(source, error)))
    return found


def _payload(source: RunSource, value: object) -> str | None:
    """A payload as JSON text; ``None`` if there is none, or if it refers to a missing one."""
    if value is None:
        return None
    try:
        return short_json(strip_tags(source.resolve(value)))
    except (FormatError, StoreError):
        return None


def _exchanges(artifact: Artifact) -> Iterator[ExchangeAsStored]:
    """The model calls of a run."""
    index, run = artifact.rows, artifact.source
    for place in range(len(index)):
        if index.kinds[index.kind[place]] == "model":
            began = run.event(index.seq[place])
            assert began is not None
            ended = run.event(index.outcome_seq[place]) if index.outcome_seq[place] else None
            answer = None
            if ended is not None:
                said = ended.data
                answer = AnswerAsStored(
                    provider=str(said.get("provider")),
                    response=said.get("response"),
                    pieces=said.get("pieces"),
                    text=said.get("text"),
                    is_whole=False,
                )
            request, lane = began.data.get("request"), index.lanes[index.lane[place]]
            yield ExchangeAsStored(began.seq, lane, request, None, answer)


def _add_events(name: str, artifact: Artifact, into: TableRows) -> None:
    run, damage = artifact.source, artifact.problem
    last = run.count if damage is None or damage.line is None else damage.line - 1
    has_data = into.needs("events", "data")
    for seq in range(1, last + 1):
        event = run.event(seq, has_changes=False) if isinstance(run, CaptureSource) else run.event(seq)
        if event is None:
            continue
        head = event.head()
        into.add(
            "events",
            name,
            seq,
            time_us(event.ts),
            event.type,
            text_or_none(event_name(head.type, head.data)) or None,
            text_or_none(head.data.callId),
            text_or_none(head.data.lane),
            short_json(event.data) if has_data else None,
        )


# Receipts and test results


def _read_receipt(source: CorpusSource, into: TableRows) -> None:
    receipt = read_replay_receipt(Path(source.path).read_bytes(), file=source.name)
    at = receipt.replayedAt
    replayed_at = time_us(at) if isinstance(at, int) else None
    same = (source.name, receipt.capture.captureId, replayed_at, receipt.matching.policy)
    for found in receipt.divergences:
        into.add(
            "divergences",
            *same,
            text_or_none(found.get("code")),
            int_or_none(found.get("eventSeq")),
            text_or_none(found.get("jsonPath")),
            text_or_none(found.get("detail")),
            text_or_none(found.get("sourceLine")),
        )
    for refused in receipt.liveCallsRefused:
        detail = clean_text(f"{refused.kind} {refused.target}")
        into.add("divergences", *same, "live_call_refused", None, None, detail, text_or_none(refused.frame))


_ABOUT: Final = ("capture", "replay_log", "replay_file")
"""The names in a result's artifacts for the run that the test is about."""


def _read_test_result(source: CorpusSource, into: TableRows) -> None:
    result = read_result(Path(source.path).read_bytes(), source.name)
    about = next((result.artifacts[name] for name in _ABOUT if name in result.artifacts), None)
    same = (
        source.name,
        text_or_none(result.test_case_id),
        clean_text(result.test_file),
        clean_text(result.test_run_id),
        result.status,
        time_us(moment(result.started_at).timestamp() * 1000),
        result.duration_ms,
        text_or_none(about),
    )
    for found in result.assertions:
        into.add(
            "assertions",
            *same,
            clean_text(found.id),
            clean_text(found.type),
            found.severity,
            found.status,
            clean_text(found.message),
            short_json(found.params),
            short_json(found.observed),
        )
    if isinstance(result.error, TestError):
        into.add("assertions", *same, None, None, None, None, clean_text(result.error.message), None, None)

"""A run in the terminal: header, one line per step, counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from reenact.analysis.artifact import Counts, StepMoment
from reenact.analysis.brief import brief, duration, plural
from reenact.analysis.steps import RunStep
from reenact.cli.terminal import Cell, TextLine, shell_line, width
from reenact.formats.capture import NO_MODEL
from reenact.trace.sources.source import Header

_STATES: Final = {
    "open": ("being recorded", "yellow"),
    "interrupted": ("interrupted; complete it with: reenact recover", "red"),
    "complete": ("complete", "green"),
    "recovered": ("recovered after an interruption", "yellow"),
}
_KINDS: Final = {
    "events": "events of a capture, without the rest of it",
    "replay-log": "replay log",
    "replay-log-legacy": "replay log, older dialect",
    "bundle": "replay bundle",
    "trace": "normalized trace",
}
_OUTCOME_STYLES: Final = {"ok": "", "error": "red", "cancelled": "yellow", "open": "yellow"}
_KIND_STYLES: Final = {"tool": "cyan", "model": "magenta", "message": "blue"}
_MIN_TEXT: Final = 20
_MAX_GUTTER: Final = 8
"""Calls that overlap more than this are drawn in the last column."""


def header_lines(header: Header, counts: Counts) -> Iterator[TextLine]:
    """The header of a run: state, command, model, times and warnings."""
    yield (Cell(header.path, "bold"),)
    if header.kind in _KINDS:
        yield field_line("kind", _KINDS[header.kind])
    if header.state is not None:
        yield field_line("state", *_STATES[header.state])
    if header.status is not None:
        ended = f"exit status {header.exit_status}"
        exit_status = ended if header.exit_status and header.error != ended else None
        parts = filter(None, (header.status, header.error, exit_status))
        yield field_line("status", ", ".join(parts), "green" if header.status == "ok" else "red")
    has_model = header.model not in (None, NO_MODEL.model)
    started = "" if header.created_at_ms is None else _date(header.created_at_ms)
    if header.created_at_ms is not None and header.completed_at_ms is not None:
        started += f", took {duration(header.completed_at_ms - header.created_at_ms)}"
    elif started:
        started += f", {duration(counts.duration_ms)} so far"
    facts = {
        "capture": f"{header.capture_id}, {header.run_id}" if header.capture_id else "",
        "run": "" if header.capture_id else header.run_id,
        "command": shell_line(header.command or ()),
        "model": f"{header.model}, {header.provider}" if has_model else header.model,
        "started": started,
        "redaction": header.redaction,
        "producer": header.producer if header.capture_id is None else "",
        "output": "" if header.final_output is None else brief(header.final_output, 2 * width()),
    }
    for name, value in facts.items():
        if value:
            yield field_line(name, value)
    if header.forked_from is not None:
        yield field_line("fork of", header.forked_from)
    for warning in header.warnings:
        yield field_line("warning", warning, "yellow")
    yield ()


def run_line(header: Header, width: int) -> TextLine:
    """A run on one line: its path in *width* columns, its status, start and model."""
    word = header.status or header.state or header.kind
    style = {"ok": "green", "error": "red"}.get(word, "yellow")
    began = "" if header.created_at_ms is None else _date(header.created_at_ms)
    model = "" if header.model in (None, NO_MODEL.model) else str(header.model)
    return (
        *(Cell(header.path, "bold", width), Cell("  "), Cell(word, style, 11), Cell("  ")),
        *(Cell(began, "dim", 23), Cell("  "), Cell(model, "magenta"), Cell("  ")),
        Cell(brief(header.error, 60) if header.error else "", "red"),
    )


def _date(at_ms: float) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def footer(counts: Counts, *, is_open: bool, matched: int | None = None) -> Iterator[TextLine]:
    """The counts of a run."""
    yield ()
    chosen = "" if matched is None else f", {matched:,} shown"
    yield (Cell(f"{plural(counts.events, 'event')}, {describe_counts(counts.kinds)}{chosen}"),)
    if counts.tokens is not None:
        tokens = counts.tokens
        cached = f", {tokens.cached_input:,} of them cached" if tokens.cached_input else ""
        cost = "" if counts.cost is None else f"; cost {counts.cost:.6g}"
        yield (Cell(f"tokens: {tokens.input:,} in{cached}, {tokens.output:,} out{cost}"),)
    if counts.torn_bytes and not is_open:
        yield (Cell(f"then half a line, {plural(counts.torn_bytes, 'byte')}", "yellow"),)


def describe_counts(kinds: Mapping[str, int]) -> str:
    """``3 calls: 2 tool, 1 clock``."""
    each = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())
    return plural(sum(kinds.values()), "call") + (f": {each}" if each else "")


class Layout:
    """The columns of one listing; a column that would be empty is left out."""

    def __init__(self, counts: Counts) -> None:
        self._seq = max(3, len(str(counts.events)))
        self._tokens = 13 if counts.tokens is not None else 0
        self._cost = 9 if counts.cost is not None else 0
        self._gutter = min(counts.columns, _MAX_GUTTER) if counts.columns > 1 else 0
        widths = (self._seq, 9, 9, self._tokens, self._cost, 8, self._gutter)
        fixed = sum(each + 2 for each in widths if each) + 2
        text = max(2 * _MIN_TEXT, width() - fixed)
        self._call = text * 3 // 5
        self._outcome = text - self._call

    def titles(self) -> TextLine:
        return self._line(
            *(Cell("seq"), Cell("at"), Cell("took"), Cell("tokens"), Cell("cost"), Cell("task")),
            *(Cell(""), Cell("call"), Cell("outcome")),
            style="dim",
        )

    def row(self, step: RunStep) -> TextLine:
        came = "no outcome" if step.state == "open" else step.came
        return self._step(
            step, step.seq, step.at_ms, call_text(step), Cell(came, _OUTCOME_STYLES[step.state])
        )

    def moment(self, moment: StepMoment) -> TextLine:
        """The beginning or end of a step on one line."""
        step = moment.step
        outcome = Cell(step.came if moment.ends else "", _OUTCOME_STYLES[step.state] if moment.ends else "")
        called = call_text(step) if moment.begins else f"{'  ' * step.depth}⤷ {step.kind} {step.name}"
        return self._step(step, moment.seq, moment.at_ms, called, outcome, is_over=moment.ends)

    def _step(
        self, step: RunStep, seq: int, at_ms: float, called: str, outcome: Cell, *, is_over: bool = True
    ) -> TextLine:
        took = "" if step.took_ms is None or not is_over else duration(step.took_ms)
        used = f"{step.tokens.input:,}+{step.tokens.output:,}" if step.tokens and is_over else ""
        cost = "" if step.cost is None or not is_over else f"{step.cost:.4g}"
        gutter = ""  # ``│●│``: the step among the calls that were open when it began
        for column in range(self._gutter):
            is_own = column == min(step.column, self._gutter - 1)
            gutter += "●" if is_own else "│" if column in step.beside else " "
        return self._line(
            *(Cell(str(seq), "dim"), Cell(f"{at_ms / 1000:.3f} s", "dim"), Cell(took), Cell(used)),
            *(Cell(cost), Cell(step.lane, "dim"), Cell(gutter, "dim")),
            *(Cell(called, _KIND_STYLES.get(step.kind, "")), outcome),
        )

    def _line(self, *cells: Cell, style: str = "") -> TextLine:
        widths = (-self._seq, -9, -9, -self._tokens, -self._cost, 8, self._gutter, self._call, self._outcome)
        line: list[Cell] = []
        for cell, each in zip(cells, widths, strict=True):
            if each:
                line += Cell(cell.text, style or cell.style, each), Cell("  ")
        return tuple(line[:-1])


def call_text(step: RunStep) -> str:
    """``tool search(query="lamp")``, indented by the number of enclosing calls."""
    kind = f"derived {step.kind}" if step.derived else step.kind
    what = f"{'  ' * step.depth}{kind} {step.name}"
    return f"{what}({step.asked})" if step.kind == "tool" else f"{what} {step.asked}"


def field_line(name: str, value: str, style: str = "") -> TextLine:
    """A fact with its name before it."""
    return (Cell(f"  {name}", "dim", 13), Cell(value, style))

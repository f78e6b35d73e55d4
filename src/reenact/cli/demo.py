"""``reenact demo``: record, replay, change and verify a small agent."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from textwrap import indent

import click
from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from reenact.cli.terminal import A_PATH, shell_line
from reenact.formats.capture import LlmRequest, LlmResponse, ToolCall, ToolResult
from reenact.store.reader import CaptureReader
from reenact.testing.demo import DemoReport, demo


@click.command("demo")
@click.option("-o", "--output", metavar="DIR", type=A_PATH, help="Where to record [runs/demo-TIME].")
def command(output: Path | None) -> int:
    """Record, replay, break and verify a small agent, without key or network.

    A support agent talks to a scripted model on this machine, with the real anthropic SDK if it is
    installed, otherwise over HTTP.
    """
    _DemoPrinter(Console(highlight=False)).print_report(demo(output))
    return 0


class _DemoPrinter:
    def __init__(self, console: Console) -> None:
        self._console = console

    def print_report(self, report: DemoReport) -> None:
        self._head("1", "Record a run")
        client = "with the anthropic SDK" if report.uses_sdk else "over HTTP"
        self._say(f"A support agent asks a model at {report.url}, {client}, and uses two tools:")
        self._console.print(Padding(_timeline(report.path), (0, 0, 0, 2)))
        self._say(f"→ {report.answer}", "bold")

        self._head("2", "Replay it, with the model switched off")
        same = "the same answer" if report.replayed_answer == report.answer else "ANOTHER ANSWER"
        self._say(f"✓ {same} in {report.replay_ms:.0f} ms: no connection, no key, no token", "green")
        self._say(f"verdict {report.verdict}, {report.blocked} live calls tried")

        self._head("3", "Change one tool argument and replay again")
        if report.divergence is not None:
            self._say("✗ the replay stopped at the first difference:", "red")
            # Not wrapped, so that a terminal can open the paths.
            self._console.print(Text(indent(report.divergence.explain(), "    ")), soft_wrap=True)

        self._head("4", "Verify the recording")
        is_good, facts = report.verified.is_good, report.verified.facts
        verdict = "✓ every event, link and digest holds" if is_good else "✗ it does not hold"
        self._say(f"{verdict}: {facts['events']} events", "green" if is_good else "red")
        self._say(str(facts["eventsHash"]), "dim")

        self._console.print(Rule(style="dim"))
        self._say(f"The recording is in {report.path}. Try:")
        for words in (*([verb, str(report.path)] for verb in ("show", "view", "verify")), ["--help"]):
            # Not wrapped, so that it can be pasted.
            self._console.print(Text(shell_line([*_program(), *words]), style="cyan"), soft_wrap=True)

    def _head(self, number: str, title: str) -> None:
        self._console.print(Rule(f"[bold]{number}[/bold]  {title}", align="left", style="dim"))

    def _say(self, text: str, style: str = "") -> None:
        self._console.print(Padding(Text(text, style=style), (0, 0, 0, 2)))


def _program() -> list[str]:
    """The words that start this program in the user's shell."""
    script = Path(sys.argv[0])
    # `uvx` and `uv run` put their environment on the path for us alone, and say so.
    if shutil.which("reenact") is not None and "UV" not in os.environ:
        return ["reenact"]
    if script.name == "reenact" and script.is_file():
        return [os.path.relpath(script)]
    return [sys.executable, "-m", "reenact"]


def _timeline(path: Path) -> Table:
    """One row per recorded call, with its outcome."""
    reader = CaptureReader(path)
    rows: dict[str, list[str]] = {}
    for event in reader.events():
        if isinstance(event, LlmRequest):
            rows[event.data.callId] = ["model", event.data.model, "…"]
        elif isinstance(event, ToolCall):
            rows[event.data.callId] = ["tool", f"{event.data.tool}{_shorten(event.data.args)}", "…"]
        elif isinstance(event, LlmResponse):
            usage = event.data.usage or {}
            tokens = f"{usage.get('inputTokens', 0)}→{usage.get('outputTokens', 0)} tokens"
            rows[event.data.callId][2] = f"{event.data.stopReason}, {tokens}"
        elif isinstance(event, ToolResult):
            rows[event.data.callId][2] = _shorten(reader.resolve(event.data.result))
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for kind, call, outcome in rows.values():
        table.add_row(
            Text(kind, style="magenta" if kind == "model" else "yellow"), call, Text(outcome, style="dim")
        )
    return table


def _shorten(value: object, limit: int = 60) -> str:
    text = (
        ", ".join(f"{key}={item!r}" for key, item in value.items()) if isinstance(value, dict) else str(value)
    )
    return f"({text})" if len(text) <= limit else f"({text[: limit - 1]}…)"

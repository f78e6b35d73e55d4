"""``reenact demo``: the whole story on a built-in scripted provider."""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

import click
from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from reenact.check.integrity.capture import check_capture
from reenact.cli.terminal import A_PATH, shell_line
from reenact.errors import Diverged
from reenact.formats.capture import LlmRequest, LlmResponse, ToolCall, ToolResult
from reenact.formats.divergence import ReplayDivergence
from reenact.run import ReplayRun, capture, replay
from reenact.store.reader import CaptureReader
from reenact.testing import ScriptedProvider, support_agent


@click.command("demo")
@click.option("-o", "--output", metavar="DIR", type=A_PATH, help="Where to record [runs/demo-TIME].")
def command(output: Path | None) -> int:
    """Record, replay, break and verify a small agent, without key or network.

    A support agent talks to a scripted model on this machine, with the real anthropic SDK if it is
    installed, otherwise over HTTP.
    """
    path = output or Path("runs") / time.strftime("demo-%Y%m%d-%H%M%S")
    console = Console(highlight=False)
    _Story(console, path).tell()
    return 0


class _Story:
    def __init__(self, console: Console, path: Path) -> None:
        self._console = console
        self._path = path
        self._url = ""
        self._connections = 0

    def tell(self) -> None:
        recorded = self._record()
        self._replay(recorded)
        self._diverge()
        self._verify()
        self._go_on()

    def _record(self) -> str:
        self._head("1", "Record a run")
        with ScriptedProvider(support_agent.script(), models=(support_agent.MODEL,)) as provider:
            self._url = provider.base_url("anthropic")
            with capture(self._path) as run:
                run.final_output = support_agent.answer(support_agent.QUESTION, self._url)
            self._connections = provider.connections
        by = "with the anthropic SDK" if support_agent.has_sdk() else "over HTTP"
        self._say(f"A support agent asks a model at {self._url}, {by}, and uses two tools:")
        self._console.print(Padding(_timeline(self._path), (0, 0, 0, 2)))
        self._say(f"→ {run.final_output}", "bold")
        return str(run.final_output)

    def _replay(self, recorded: str) -> None:
        self._head("2", "Replay it, with the model switched off")
        began = time.perf_counter()
        with replay(self._path, policy="strict") as run:
            run.final_output = support_agent.answer(support_agent.QUESTION, self._url)
        took_ms = (time.perf_counter() - began) * 1000
        same = "the same answer" if run.final_output == recorded else "ANOTHER ANSWER"
        self._say(f"✓ {same} in {took_ms:.0f} ms: no connection, no key, no token", "green")
        self._say(f"verdict {_verdict(run)}, {len(run.blocked)} live calls tried")

    def _diverge(self) -> None:
        self._head("3", "Change one tool argument and replay again")
        try:
            with replay(self._path, policy="strict"):
                support_agent.answer(support_agent.QUESTION, self._url, support_agent.CHANGED_TOOLS)
        except Diverged as error:
            found = error.divergence
            assert isinstance(found, ReplayDivergence)
            self._say("✗ the replay stopped at the first difference:", "red")
            self._console.print(Padding(Text(found.explain()), (0, 0, 0, 4)))

    def _verify(self) -> None:
        self._head("4", "Verify the recording")
        report = check_capture(self._path)
        verdict = "✓ every event, link and digest holds" if report.is_good else "✗ it does not hold"
        self._say(f"{verdict}: {report.facts['events']} events", "green" if report.is_good else "red")
        self._say(str(report.facts["eventsHash"]), "dim")

    def _go_on(self) -> None:
        self._console.print(Rule(style="dim"))
        self._say(f"The recording is in {self._path}. Try:")
        for words in (*([verb, str(self._path)] for verb in ("show", "view", "verify")), ["--help"]):
            # Not wrapped, so that it can be pasted.
            self._console.print(Text(shell_line([*_program(), *words]), style="cyan"), soft_wrap=True)

    def _head(self, number: str, title: str) -> None:
        self._console.print(Rule(f"[bold]{number}[/bold]  {title}", align="left", style="dim"))

    def _say(self, text: str, style: str = "") -> None:
        self._console.print(Padding(Text(text, style=style), (0, 0, 0, 2)))


def _program() -> list[str]:
    """How this program is called from here."""
    script = Path(sys.argv[0])
    if shutil.which("reenact") is not None:
        return ["reenact"]
    if script.name == "reenact" and script.is_file():
        return [os.path.relpath(script)]
    return [sys.executable, "-m", "reenact"]


def _verdict(run: ReplayRun) -> str:
    return run.receipt.verdict if run.receipt is not None else "unknown"


def _timeline(path: Path) -> Table:
    """One row per call of the recording, with what came back."""
    reader = CaptureReader(path)
    rows: dict[str, list[str]] = {}
    for event in reader.events():
        if isinstance(event, LlmRequest):
            rows[event.data.callId] = ["model", event.data.model, "…"]
        elif isinstance(event, ToolCall):
            rows[event.data.callId] = ["tool", f"{event.data.tool}{_short(event.data.args)}", "…"]
        elif isinstance(event, LlmResponse):
            usage = event.data.usage or {}
            tokens = f"{usage.get('inputTokens', 0)}→{usage.get('outputTokens', 0)} tokens"
            rows[event.data.callId][2] = f"{event.data.stopReason}, {tokens}"
        elif isinstance(event, ToolResult):
            rows[event.data.callId][2] = _short(reader.resolve(event.data.result))
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for kind, what, came in rows.values():
        table.add_row(
            Text(kind, style="magenta" if kind == "model" else "yellow"), what, Text(came, style="dim")
        )
    return table


def _short(value: object, limit: int = 60) -> str:
    text = (
        ", ".join(f"{key}={item!r}" for key, item in value.items()) if isinstance(value, dict) else str(value)
    )
    return f"({text})" if len(text) <= limit else f"({text[: limit - 1]}…)"

"""Hash and check the example files, through the library and through the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from reenact import FormatError, canonical
from reenact.formats.capture import read_events

HERE = Path(__file__).parent
console = Console(highlight=False)


def main() -> None:
    """The three parts, one after the other."""
    show_profiles(HERE / "order.json")
    show_events(HERE / "events.jsonl")
    show_problems(HERE / "events-broken.jsonl")
    run_cli("hash", "examples/order.json", "examples/order-twice.json")
    run_cli("schema")


def show_profiles(file: Path) -> None:
    """One value, two canonical texts, two digests."""
    value = json.loads(file.read_bytes())
    console.rule(f"[bold]{file.name}[/] in two profiles")
    for profile in ("replay", "jcs"):
        console.print(f"[cyan]{profile:>6}[/]  {canonical.encode(value, profile).decode()}", soft_wrap=True)
        console.print(f"        [dim]{canonical.digest(value, profile)}[/]", soft_wrap=True)


def show_events(file: Path) -> None:
    """A capture's events, each read as its type and checked."""
    table = Table("seq", "event", "digest of the line", box=None, pad_edge=False)
    with file.open("rb") as stream:
        for line, event in read_events(stream, file=file.name):
            name = type(event).__name__
            table.add_row(
                str(event.seq), f"[green]✓[/] {name}", canonical.digest_of_bytes(line.text)[:23] + "…"
            )
    console.rule(f"[bold]{file.name}[/] is sound")
    console.print(table)


def show_problems(file: Path) -> None:
    """The same log, damaged: every problem with its place."""
    problems: list[FormatError] = []
    with file.open("rb") as stream:
        for _ in read_events(stream, file=file.name, on_error=problems.append):
            pass
    console.rule(f"[bold]{file.name}[/] is not")
    for problem in problems:
        console.print(f"[red]✗[/] {problem}", soft_wrap=True)


def run_cli(*arguments: str) -> None:
    """One command as a user types it, with its exit status."""
    console.rule(f"[bold]$ reenact {' '.join(arguments)}[/]")
    done = subprocess.run(
        [sys.executable, "-m", "reenact", *arguments],
        cwd=HERE.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    console.print(done.stdout.rstrip(), soft_wrap=True, markup=False)
    console.print(f"[dim]exit status {done.returncode}[/]")


if __name__ == "__main__":
    main()

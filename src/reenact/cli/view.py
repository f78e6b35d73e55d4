"""``reenact view``: look at recorded runs in the browser."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path
from threading import Thread

import click

from reenact.analysis.brief import plural
from reenact.cli.terminal import A_PATH, printable


@click.command("view")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=A_PATH)
@click.option(
    "--port", metavar="N", type=click.IntRange(0, 65535), help="Serve on this port; 0 takes a free one."
)
@click.option("--no-open", is_flag=True, help="Do not open a browser.")
@click.option(
    "--html",
    "page",
    metavar="FILE",
    type=A_PATH,
    help="Write one page instead of serving.",
)
@click.option("--full", is_flag=True, help="Put everything that was recorded into the page.")
def command(paths: tuple[Path, ...], port: int | None, no_open: bool, page: Path | None, full: bool) -> int:
    """Look at recorded runs in the browser.

    PATH is a run (a capture, a REPLAY.jsonl, a bundle, a trace), a folder of runs, a corpus made by
    `reenact index`, a replay receipt, or a report of `reenact shadow --json`. The viewer serves these
    paths only, on this machine only, and changes nothing.

    --html writes one run into a single page that you can send to others. Private parts are left out,
    unless --full is given.
    """
    if page is None:
        from reenact.suite.settings import project_prices
        from reenact.viewer.server import view

        def on_start(url: str, runs: int) -> None:
            click.echo(f"{plural(runs, 'run')} at {url} (end with Ctrl-C)")
            sys.stdout.flush()
            if not no_open:
                _open(url)

        view(*paths, port=port, prices=project_prices(), on_start=on_start)
        return 0
    from reenact.viewer.page import write_page

    report = write_page(*paths, out=page, full=full)
    how = "with all that was recorded" if report.full else "without what is private"
    click.echo(printable(f"{report.page}: one page, {how}; it opens in any browser"))
    return 0


def _open(url: str) -> None:
    # A browser that runs in the terminal would block the server, so it is started in a thread.
    Thread(target=webbrowser.open, args=(url,), daemon=True).start()

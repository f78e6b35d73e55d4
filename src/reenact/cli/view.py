"""``reenact view``: recorded runs in the browser."""

from __future__ import annotations

import sys
import webbrowser
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Final

import click

from reenact.analysis.brief import plural
from reenact.cli.terminal import A_PATH, printable
from reenact.errors import StoreError, UsageError
from reenact.store.outfile import write_output

_PUBLISHABLE: Final = ("capture", "replay-log", "replay-log-legacy")


@click.command("view")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=A_PATH)
@click.option("--port", metavar="N", type=click.IntRange(0, 65535), help="Serve on this port; 0 is any.")
@click.option("--no-open", is_flag=True, help="Do not open a browser.")
@click.option(
    "--html",
    "page",
    metavar="FILE",
    type=A_PATH,
    help="Write one page instead.",
)
@click.option("--full", is_flag=True, help="Let the page hold all that was recorded.")
def command(paths: tuple[Path, ...], port: int | None, no_open: bool, page: Path | None, full: bool) -> int:
    """Look at recorded runs in the browser.

    PATH is a run (a capture, a REPLAY.jsonl, a bundle, a trace), a folder of runs, the corpus that `reenact
    index` made of them, or a replay receipt, which is shown with its run. Nothing but these paths is served,
    on this machine only, and nothing is changed.

    With --html one run goes into a page that can be sent to others. It is published first, without what is
    private in it, unless --full says that they may read everything.
    """
    if page is None:
        return _serve(paths, port, no_open)
    return _write(paths, page, full)


def _write(paths: tuple[Path, ...], page: Path, full: bool) -> int:
    from reenact.viewer.page import write_page

    if full:
        text = write_page(paths)
    elif len(paths) > 1:
        raise UsageError(f"{paths[1]}: a page for others holds one run alone; name one, or add --full")
    else:
        with TemporaryDirectory() as folder:
            text = write_page((_write_published(paths[0], Path(folder)),))
    write_output(page, text)
    how = "with all that was recorded" if full else "without what is private"
    click.echo(printable(f"{page}: one page, {how}; it opens in any browser"))
    return 0


def _write_published(path: Path, folder: Path) -> Path:
    """The run in *path* as others may read it, in a log in *folder*; a published log stays what it is."""
    from reenact.check.seals.runs import publish
    from reenact.viewer.page import kind_of

    if kind_of(path) not in _PUBLISHABLE:
        raise UsageError(f"{path}: only captures and logs can be published; share all of it with --full")
    file = folder / f"{path.absolute().stem}.jsonl"
    publish(path, file)
    return file


def _serve(paths: tuple[Path, ...], port: int | None, no_open: bool) -> int:
    from reenact.suite.settings import project_prices
    from reenact.viewer.server import address, bind, serve, viewer_app
    from reenact.viewer.shelf import Shelf

    shelf = Shelf(paths, project_prices(Path.cwd()))
    if not shelf.ids:
        raise StoreError(f"{paths[0]}: is a receipt; name the run that was replayed beside it")
    listener = bind(port)
    url = address(listener)
    with closing(shelf), suppress(KeyboardInterrupt):
        click.echo(f"{plural(len(shelf.ids), 'run')} at {url} (end with Ctrl-C)")
        sys.stdout.flush()
        serve(viewer_app(shelf), listener, on_start=(lambda: None) if no_open else lambda: _open(url))
    return 0


def _open(url: str) -> None:
    # A browser that starts in the terminal would stop the server; it gets a thread of its own.
    Thread(target=webbrowser.open, args=(url,), daemon=True).start()

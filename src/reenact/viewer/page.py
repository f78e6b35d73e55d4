"""A run as one self-contained page: style, program and data in one file.

The content security policy of the page has the digests of its style and program, so nothing else can run; the
data is JSON without ``<``, so it cannot end its element.
"""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec

from reenact.analysis.artifact import Artifact, open_artifact
from reenact.canonical import JsonValue
from reenact.check.artifact import check_artifact
from reenact.errors import UsageError
from reenact.store.outfile import write_output
from reenact.viewer.api import Api, ApiAnswer
from reenact.viewer.jobs import can_verify
from reenact.viewer.shelf import Shelf
from reenact.viewer.static import INDEX, page_program, static_files

MAX_STEPS: Final = 10_000
_PUBLISHABLE: Final = ("capture", "replay-log", "replay-log-legacy")


class PageReport(msgspec.Struct, frozen=True):
    """A page that was written."""

    page: str
    size_bytes: int
    full: bool
    """Whether it contains everything that was recorded."""


def write_page(*paths: str | Path, out: str | Path, full: bool = False) -> PageReport:
    """Put one run into the page *out*, which needs no server: to look at, or to send to others.

    The page gets the published form of the run, without its private parts. With *full* it gets the whole run,
    and the replay receipts in *paths*.
    """
    runs = tuple(map(Path, paths))
    if full:
        text = make_page(runs)
    elif len(runs) > 1:
        raise UsageError(f"{runs[1]}: a page for others holds one run alone; name one, or add --full")
    else:
        with TemporaryDirectory() as folder:
            text = make_page((_publish(runs[0], Path(folder)),))
    write_output(Path(out), text)
    return PageReport(str(out), len(text), full)


def _publish(path: Path, folder: Path) -> Path:
    """Publish the run in *path* as a log in *folder*; a log that is published already does not change."""
    from reenact.check.seals.runs import publish  # cryptography is slow to import

    with open_artifact(path) as artifact:
        kind = artifact.header().kind
    if kind not in _PUBLISHABLE:
        raise UsageError(f"{path}: only captures and logs can be published; share all of it with --full")
    file = folder / f"{path.absolute().stem}.jsonl"
    publish(path, file)
    return file


def make_page(paths: tuple[Path, ...]) -> bytes:
    """The page of the only run in *paths*, with its replay receipts."""
    shelf = Shelf(paths)
    try:
        if len(shelf.ids) != 1:
            raise UsageError(f"a page holds one run, and there are {len(shelf.ids)}; name one")
        return _page(_collect_data(shelf))
    finally:
        shelf.close()


def _collect_data(shelf: Shelf) -> ApiAnswer:
    """All data that the page may request."""
    [run_id] = shelf.ids
    api = Api(shelf)
    with shelf.open(run_id) as artifact:
        artifact.index()
        if len(artifact) > MAX_STEPS:
            advice = "look at it with: reenact view"
            raise UsageError(f"{artifact.path}: {len(artifact):,} steps are too many for a page; {advice}")
        query = {"run": run_id}
        return {
            "run": _run(api, artifact, query),
            "steps": msgspec.to_builtins(artifact.steps(0, len(artifact))),
            "details": {seq: _detail(api, artifact, query | {"seq": str(seq)}) for seq in artifact.rows.seq},
            "turns": _turns(api, artifact),
            "receipts": api.divergences(artifact, query)["receipts"],
            "forks": api.forks(artifact, query)["nodes"],
            "report": _report(artifact),
        } | _files(api, artifact, query)


def _run(api: Api, artifact: Artifact, query: dict[str, str]) -> ApiAnswer:
    """The header of the run, without its path."""
    run = api.run(artifact, query)
    header = {name: value for name, value in run["header"].items() if name not in ("path", "command")}
    return run | {"header": header}


def _detail(api: Api, artifact: Artifact, query: dict[str, str]) -> ApiAnswer:
    """A step without the command that forks it, which contains the path of the run."""
    return api.detail(artifact, query) | {"fork": {}}


def _files(api: Api, artifact: Artifact, query: dict[str, str]) -> ApiAnswer:
    if not api.run(artifact, query)["hasFiles"]:
        return {"files": {"moments": []}, "filesAt": []}
    files = api.files(artifact, query)
    numbers = range(len(files["moments"]))
    return {
        "files": files,
        "filesAt": [api.files_at(artifact, query | {"number": str(number)}) for number in numbers],
    }


def _turns(api: Api, artifact: Artifact) -> list[JsonValue]:
    turns: list[JsonValue] = []
    place: int | None = 0
    while place is not None:
        answer = api.conversation(artifact, {"from": str(place)})
        turns += answer["rows"]
        place = answer["next"]
    return turns


def _report(artifact: Artifact) -> ApiAnswer | None:
    if not can_verify(artifact.header().kind):
        return None
    path = Path(artifact.path)
    return check_artifact(path).to_json() | {"path": path.name}


def _page(carried: ApiAnswer) -> bytes:
    page = _OnePage(carried)
    page.feed(static_files()[INDEX].decode())
    page.close()
    return "".join(page.parts).encode()


class _OnePage(HTMLParser):
    """Copies the page of the viewer, and inserts the run and everything that the page refers to."""

    def __init__(self, carried: ApiAnswer) -> None:
        super().__init__(convert_charrefs=False)
        self.parts: list[str] = []
        self._collect_data = carried
        self._styles: list[str] = []
        self._head_at = 0

    def handle_decl(self, decl: str) -> None:
        self.parts.append(f"<!{decl}>")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "link":
            if given["rel"] == "stylesheet":
                self._styles.append(static_files()[given["href"] or ""].decode())
        elif tag != "script":
            self.parts.append(self.get_starttag_text() or "")
        if "charset" in given:  # it must be near the beginning; nothing else may come before the policy
            self._head_at = len(self.parts)

    def handle_endtag(self, tag: str) -> None:
        if tag == "head":
            self.parts.insert(self._head_at, self._head())
        elif tag == "body":
            self.parts.append(self._tail())
        if tag != "script":
            self.parts.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        is_left_over = data.isspace() and bool(self.parts) and self.parts[-1].isspace()
        self.parts.append("" if is_left_over else data)

    def _head(self) -> str:
        style = "".join(self._styles)
        policy = (
            f"default-src 'none'; script-src '{_digest(page_program())}'; style-src '{_digest(style)}'; "
            "img-src data:; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; "
            "trusted-types 'none'"
        )
        return (
            f'\n<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">'
            f'\n<link rel="icon" href="data:,">\n<style>{style}</style>'
        )

    def _tail(self) -> str:
        return (
            f'<script type="application/json" id="run">{_data(self._collect_data)}</script>\n'
            f'<script type="module">{page_program()}</script>\n'
        )


def _digest(text: str) -> str:
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()


def _data(value: JsonValue) -> str:
    """JSON for the inside of an element: ``<`` occurs only in texts, where it is escaped."""
    return msgspec.json.encode(value).decode().replace("<", "\\u003c")

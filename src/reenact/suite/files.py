"""Assertions on the recorded files of a run."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import wraps
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Final, NamedTuple, TypeAlias

import msgspec

from reenact.canonical import digest_of_bytes
from reenact.errors import StoreError, UsageError
from reenact.formats.trace import Trace
from reenact.formats.workspace import EntryKind, Tree, TreeEntry, read_tree
from reenact.store.reader import CaptureReader
from reenact.suite.params import Params
from reenact.suite.patterns import Searcher
from reenact.suite.verdict import Verdict, count_of, quote, verdict
from reenact.workspace.compare import (
    FileChange,
    ReadContent,
    ReadTree,
    compare_trees,
    find_entry,
    printable_path,
)
from reenact.workspace.history import WorkspaceHistory
from reenact.workspace.scan import Scanner


class FilesAt(NamedTuple):
    """The files at one moment."""

    event: int
    """The event after which the files were like this; 0 for the end."""
    tree: str


class RunFiles:
    """Assertions on the files of a run; a method raises :class:`AssertionError` with what it found.

    Files that are ignored, too large, or secret by their name are not included.
    """

    def __init__(self, look: Callable[[], list[FilesAt]], read_tree: ReadTree, content: ReadContent) -> None:
        """*look* returns the trees of the run in order, from start to end."""
        self._look = look
        self.read_tree = read_tree
        self.content = content

    @property
    def trees(self) -> list[FilesAt]:
        """All known states of the files, in order."""
        return self._look()

    @classmethod
    def of_capture(cls, path: str | Path) -> RunFiles:
        """The recorded files at every step; :class:`UsageError` for a capture without files."""
        try:
            reader = CaptureReader(path)
        except StoreError as error:
            raise UsageError(str(error)) from None
        history = WorkspaceHistory(reader)
        trees = [FilesAt(state.seq, state.tree) for state in history.states]
        trees.append(FilesAt(0, history.tree_at(None)))
        return cls(lambda: trees, history.read_tree, history.content)

    def find(self, tree: str, path: str) -> TreeEntry | None:
        """The entry of *tree* at *path*."""
        found = find_entry(self.read_tree, tree, os.fsencode(path))
        return None if found is None or found.kind == "left-out" else found

    def find_at_end(self, path: str) -> TreeEntry | None:
        return self.find(self.trees[-1].tree, path)

    def file_exists(self, path: str, *, kind: EntryKind | None = None, exists: bool = True) -> None:
        """Assert that *path* exists at the end and has this *kind*, or that it does not exist."""
        _assert(file_exists(self, FileExists(path=path, kind=kind, exists=exists)))

    def file_contains(self, path: str, text: str | None = None, *, pattern: str | None = None) -> None:
        """Assert that the file at the end contains *text*, or a match of the regular expression *pattern*."""
        _assert(file_contains(self, FileContains(path=path, text=text, pattern=pattern)))

    def file_unchanged(self, path: str) -> None:
        """Assert that the file, or the folder with its contents, never changed."""
        _assert(file_unchanged(self, FileUnchanged(path=path)))

    def files_changed_only(self, *patterns: str) -> None:
        """Assert that every changed path matches one of *patterns*; ``*`` matches any text."""
        _assert(files_changed_only(self, FilesChangedOnly(patterns=list(patterns))))


class LiveFiles(RunFiles):
    """The files in *folder*, read at each assertion; the start is the state at construction."""

    def __init__(self, folder: Path, run: RunInFolder | None = None) -> None:
        """*run* runs commands; ``None`` if they are not allowed."""
        self.folder = folder
        """The folder that the run works in."""
        self._run = run
        self._blobs: dict[str, bytes] = {}
        self._scanner = Scanner(folder, self._keep)
        start = FilesAt(1, self._scanner.take())
        super().__init__(
            lambda: [start, FilesAt(0, self._scanner.take())],
            self._read_tree,
            lambda entry: self._blobs[entry.digest],
        )

    def command_succeeds(self, *words: str, folder: str = ".", timeout_s: float = 60.0) -> None:
        """Assert that the command exits with 0 in a copy of the files; it must be allowed to run."""
        wanted = CommandSucceedsInWorkspace(command=list(words), folder=folder, timeout_s=timeout_s)
        if self._run is None:
            raise AssertionError(_not_run(wanted, "--reenact-allow-commands"))
        _assert(_judge_end(wanted, self._run(self.folder, wanted)))

    def _keep(self, data: bytes) -> str:
        self._blobs.setdefault(digest := digest_of_bytes(data), data)
        return digest

    def _read_tree(self, digest: str) -> Tree:
        return read_tree(self._blobs[digest], file=digest)


def _assert(found: Verdict) -> None:
    if not found.passed:
        raise AssertionError(found.message)


class FileExists(Params, frozen=True, kw_only=True):
    path: str
    kind: str | None = None
    """``file``, ``folder`` or ``link``; any of them if absent."""
    exists: bool = True
    """Whether it must exist at the end."""


def file_exists(trace: Trace | RunFiles, params: FileExists) -> Verdict:
    """The path exists at the end, or does not."""
    found = _files_of(trace).find_at_end(params.path)
    is_there = found is not None and params.kind in (None, found.kind)
    wanted = f"a {params.kind}" if params.kind else "there"
    message = f"expected {params.path} {'' if params.exists else 'not '}to be {wanted} at the end, "
    message += f"found {'nothing' if found is None else _article(found)}"
    observed = {"path": params.path, "kind": None if found is None else found.kind}
    return verdict(is_there == params.exists, message, observed=observed)


class FileContains(Params, frozen=True, kw_only=True):
    path: str
    text: str | None = None
    pattern: str | None = None
    """A regular expression."""


def file_contains(trace: Trace | RunFiles, params: FileContains) -> Verdict:
    """The file at the end contains the text or a match; secrets are replaced by placeholders."""
    if (params.text is None) == (params.pattern is None):
        raise UsageError("params: give text or pattern, one of them")
    files = _files_of(trace)
    entry = files.find_at_end(params.path)
    wanted = f"expected {params.path} to contain {quote(params.text or params.pattern or '')}"
    if entry is None or entry.kind != "file":
        found = "nothing" if entry is None else _article(entry)
        return verdict(False, f"{wanted}, found {found}", observed={"path": params.path, "size_bytes": None})
    content = files.content(entry).decode("utf-8", "replace")
    if params.text is not None:
        is_there = Searcher().contains(content, params.text, case_sensitive=True)
    else:
        is_there = Searcher().search(params.pattern or "", content, ignore_case=False) is not None
    message = f"{wanted}, found {count_of(len(content), 'character')} {'with' if is_there else 'without'} it"
    return verdict(is_there, message, observed={"path": params.path, "size_bytes": entry.size_bytes})


class FileUnchanged(Params, frozen=True, kw_only=True):
    path: str
    """A file, or a folder with its contents."""


def file_unchanged(trace: Trace | RunFiles, params: FileUnchanged) -> Verdict:
    """The path did not change at any step of the run."""
    files = _files_of(trace)
    trees = files.trees
    first = files.find(trees[0].tree, params.path)
    for seq, tree in trees:
        if files.find(tree, params.path) != first:
            place = f"at event {seq}" if seq else "at the end"
            message = f"expected {params.path} never to change, it was another {place}"
            return verdict(False, message, observed={"path": params.path, "event": seq or None})
    observed = {"path": params.path, "event": None}
    return verdict(True, f"{params.path} never changed", observed=observed)


class FilesChangedOnly(Params, frozen=True, kw_only=True):
    patterns: list[str]
    """Paths in which ``*`` matches any text, also slashes."""


def files_changed_only(trace: Trace | RunFiles, params: FilesChangedOnly) -> Verdict:
    """Every path that the run changed, at any step, matches a pattern; folders are not checked."""
    files = _files_of(trace)
    changed: set[str] = set()
    for before, after in pairwise(files.trees):
        for change in compare_trees(files.read_tree, before.tree, after.tree):
            changed |= {printable_path(path) for path in _paths(change)}
    others = sorted(path for path in changed if not any(fnmatchcase(path, p) for p in params.patterns))
    message = f"expected changes only in {', '.join(params.patterns)}, "
    message += f"found {count_of(len(others), 'other')}{': ' if others else ''}{', '.join(others[:10])}"
    return verdict(not others, message, observed={"changed": sorted(changed), "others": others})


_SHELL_WORDS: Final = frozenset({"&&", "||", "|", ";", "&", ">", ">>", "<", "2>&1"})


class CommandSucceedsInWorkspace(Params, frozen=True, kw_only=True):
    command: str | list[str]
    """Words, or a text that is split like a shell command; it runs without a shell."""
    folder: str = "."
    """The working folder, relative to the root of the files."""
    timeout_s: Annotated[float, msgspec.Meta(gt=0)] = 60.0

    @property
    def words(self) -> list[str]:
        """The command as words; :class:`UsageError` if it needs a shell."""
        try:
            words = shlex.split(self.command) if isinstance(self.command, str) else self.command
        except ValueError as error:
            raise UsageError(f"params.command: not a command: {error}") from None
        if not words:
            raise UsageError("params.command: is empty; name a program")
        if isinstance(self.command, str) and not _SHELL_WORDS.isdisjoint(words):
            raise UsageError("params.command: no shell runs it; write [sh, -c, '…']")
        return words


class CommandEnd(msgspec.Struct, frozen=True):
    """How a command ended that ran in the files of a run."""

    exit_status: int | None
    """``None`` if it was stopped at its time limit."""
    output: str
    """The end of what it printed, without secrets."""
    is_offline: bool
    """Whether it had no way to reach other machines."""


RunInFiles: TypeAlias = Callable[[Path, CommandSucceedsInWorkspace], CommandEnd]
"""Runs a command in a copy of the files at the end of a capture."""
RunInFolder: TypeAlias = Callable[[Path, CommandSucceedsInWorkspace], CommandEnd]
"""Runs a command in a copy of a folder."""


def command_succeeds_in_workspace(_: Trace, params: CommandSucceedsInWorkspace) -> Verdict:
    """The command exits with 0 in a copy of the files at the end; fails because commands are not allowed."""
    return verdict(False, _not_run(params, "--allow-commands"), observed={"exit_status": None})


def _not_run(params: CommandSucceedsInWorkspace, option: str) -> str:
    return f"{quote(shlex.join(params.words))} was not run: commands are run only with {option}"


def allow_commands(run: RunInFiles) -> Callable[[Trace, CommandSucceedsInWorkspace], Verdict]:
    """Return the assertion that runs its command by *run*."""

    @wraps(command_succeeds_in_workspace)
    def succeeds(trace: Trace, params: CommandSucceedsInWorkspace) -> Verdict:
        return _judge_end(params, run(_capture_of(trace), params))

    return succeeds


def _judge_end(params: CommandSucceedsInWorkspace, end: CommandEnd) -> Verdict:
    wanted = f"expected {quote(shlex.join(params.words))} to succeed among the files at the end"
    observed = {"exit_status": end.exit_status, "output": end.output, "offline": end.is_offline}
    if end.exit_status == 0:
        return verdict(True, f"{wanted}, it did", observed=observed)
    last_line = next((line for line in reversed(end.output.splitlines()) if line.strip()), "it said nothing")
    how = f"exit status {end.exit_status}"
    if end.exit_status is None:
        how = f"it was stopped after {params.timeout_s:g} s"
    return verdict(False, f"{wanted}, found {how}: {quote(last_line.strip())}", observed=observed)


def _paths(change: FileChange) -> list[bytes]:
    entry = change.after or change.before
    if entry is None or entry.kind == "folder":
        return []
    return [path for path in (change.path, change.came_from) if path]


def _files_of(trace: Trace | RunFiles) -> RunFiles:
    if isinstance(trace, RunFiles):
        return trace
    return RunFiles.of_capture(_capture_of(trace))


def _capture_of(trace: Trace) -> Path:
    capture = trace.artifacts.get("capture")
    if not isinstance(capture, str):
        raise UsageError("only a capture has files; name one as adapter_input.capture")
    return Path(capture)


def _article(entry: TreeEntry) -> str:
    return f"a {entry.kind}"

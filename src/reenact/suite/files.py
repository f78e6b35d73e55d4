"""Assertions on the files of a run, where they were recorded with it."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import wraps
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import msgspec

from reenact.errors import StoreError, UsageError
from reenact.formats.trace import Trace
from reenact.formats.workspace import TreeEntry
from reenact.store.reader import CaptureReader
from reenact.suite.params import Params
from reenact.suite.patterns import Searcher
from reenact.suite.verdict import Verdict, counted, quoted, verdict
from reenact.workspace.compare import FileChange, compare_trees, find_entry
from reenact.workspace.history import WorkspaceHistory


class FileExists(Params, frozen=True, kw_only=True):
    path: str
    kind: str | None = None
    """``file``, ``folder`` or ``link``; any of them when absent."""
    exists: bool = True
    """Whether it is to be there at the end."""


def file_exists(trace: Trace, params: FileExists) -> Verdict:
    """The path is among the files at the end, or is not."""
    history = _history_of(trace)
    found = _find(history, history.end_tree, params.path)
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


def file_contains(trace: Trace, params: FileContains) -> Verdict:
    """The file at the end holds the text, or what the pattern matches; placeholders stand for secrets."""
    if (params.text is None) == (params.pattern is None):
        raise UsageError("params: give text or pattern, one of them")
    history = _history_of(trace)
    entry = _find(history, history.end_tree, params.path)
    wanted = f"expected {params.path} to contain {quoted(params.text or params.pattern or '')}"
    if entry is None or entry.kind != "file":
        found = "nothing" if entry is None else _article(entry)
        return verdict(False, f"{wanted}, found {found}", observed={"path": params.path, "size_bytes": None})
    content = history.content(entry).decode("utf-8", "replace")
    if params.text is not None:
        is_there = Searcher().contains(content, params.text, case_sensitive=True)
    else:
        is_there = Searcher().search(params.pattern or "", content, ignore_case=False) is not None
    message = f"{wanted}, found {counted(len(content), 'character')} {'with' if is_there else 'without'} it"
    return verdict(is_there, message, observed={"path": params.path, "size_bytes": entry.size_bytes})


class FileUnchanged(Params, frozen=True, kw_only=True):
    path: str
    """A file, or a folder with all that is in it."""


def file_unchanged(trace: Trace, params: FileUnchanged) -> Verdict:
    """The path was never another during the run, at any step."""
    history = _history_of(trace)
    trees = [(state.seq, state.tree) for state in history.states] + [(0, history.end_tree)]
    first = _find(history, history.start.tree, params.path)
    for seq, tree in trees:
        if _find(history, tree, params.path) != first:
            place = f"at event {seq}" if seq else "at the end"
            message = f"expected {params.path} never to change, it was another {place}"
            return verdict(False, message, observed={"path": params.path, "event": seq or None})
    observed = {"path": params.path, "event": None}
    return verdict(True, f"{params.path} never changed", observed=observed)


class FilesChangedOnly(Params, frozen=True, kw_only=True):
    patterns: list[str]
    """Paths with ``*``, which stands for any text, slashes included."""


def files_changed_only(trace: Trace, params: FilesChangedOnly) -> Verdict:
    """What the run changed, at any step, is named by the patterns; folders follow from what is in them."""
    history = _history_of(trace)
    changed: set[str] = set()
    before = history.start.tree
    for tree in [*(state.tree for state in history.states), history.end_tree]:
        for change in compare_trees(history.read_tree, before, tree):
            changed |= {path.decode("utf-8", "backslashreplace") for path in _paths(change)}
        before = tree
    others = sorted(path for path in changed if not any(fnmatchcase(path, p) for p in params.patterns))
    message = f"expected changes only in {', '.join(params.patterns)}, "
    message += f"found {counted(len(others), 'other')}{': ' if others else ''}{', '.join(others[:10])}"
    return verdict(not others, message, observed={"changed": sorted(changed), "others": others})


_SHELL_WORDS: Final = frozenset({"&&", "||", "|", ";", "&", ">", ">>", "<", "2>&1"})


class CommandSucceedsInWorkspace(Params, frozen=True, kw_only=True):
    command: str | list[str]
    """Words, or one text that is split into words as a shell would; no shell runs it."""
    folder: str = "."
    """Where it begins, from the root of the files."""
    timeout_s: Annotated[float, msgspec.Meta(gt=0)] = 60.0

    @property
    def words(self) -> list[str]:
        """The command; :class:`UsageError` for one that only a shell would understand."""
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
    """How a command ended that ran among the files of a run."""

    exit_status: int | None
    """``None`` where it was stopped when its time was over."""
    output: str
    """The end of what it printed, without secrets."""
    is_offline: bool
    """Whether it could reach nobody beyond this machine."""


RunInFiles: TypeAlias = Callable[[Path, CommandSucceedsInWorkspace], CommandEnd]
"""Runs a command in a copy of the files at the end of a capture."""


def command_succeeds_in_workspace(_: Trace, params: CommandSucceedsInWorkspace) -> Verdict:
    """The command ends with exit status 0 in a copy of the files at the end; nobody allowed it here."""
    message = f"{quoted(shlex.join(params.words))} was not run: commands are run only with --allow-commands"
    return verdict(False, message, observed={"exit_status": None})


def allow_commands(run: RunInFiles) -> Callable[[Trace, CommandSucceedsInWorkspace], Verdict]:
    """The assertion on a command, which *run* really runs."""

    @wraps(command_succeeds_in_workspace)
    def succeeds(trace: Trace, params: CommandSucceedsInWorkspace) -> Verdict:
        wanted = f"expected {quoted(shlex.join(params.words))} to succeed among the files at the end"
        end = run(Path(_history_of(trace).reader.path), params)
        observed = {"exit_status": end.exit_status, "output": end.output, "offline": end.is_offline}
        if end.exit_status == 0:
            return verdict(True, f"{wanted}, it did", observed=observed)
        said = next((line for line in reversed(end.output.splitlines()) if line.strip()), "it said nothing")
        how = f"exit status {end.exit_status}"
        if end.exit_status is None:
            how = f"it was stopped after {params.timeout_s:g} s"
        return verdict(False, f"{wanted}, found {how}: {quoted(said.strip())}", observed=observed)

    return succeeds


def _paths(change: FileChange) -> list[bytes]:
    entry = change.after or change.before
    if entry is None or entry.kind == "folder":
        return []
    return [path for path in (change.path, change.came_from) if path]


def _history_of(trace: Trace) -> WorkspaceHistory:
    capture = trace.artifacts.get("capture")
    if not isinstance(capture, str):
        raise UsageError("only a capture has files; name one as adapter_input.capture")
    try:
        reader = CaptureReader(capture)
    except StoreError as error:
        raise UsageError(str(error)) from None
    if not WorkspaceHistory.has_one(reader):
        raise UsageError(f"{capture}: has no files; record with --workspace")
    return WorkspaceHistory(reader)


def _find(history: WorkspaceHistory, tree: str, path: str) -> TreeEntry | None:
    found = find_entry(history.read_tree, tree, path.encode("utf-8"))
    return None if found is None or found.kind == "left-out" else found


def _article(entry: TreeEntry) -> str:
    return f"a {entry.kind}"

"""The files of a replayed run: recorded changes by answered calls are applied, the rest is compared."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory, gettempdir
from threading import RLock
from typing import Final, NamedTuple

from reenact.canonical import digest_of_bytes
from reenact.errors import ReenactError
from reenact.formats.divergence import Observed, ReplayDivergence
from reenact.formats.event import read_head
from reenact.formats.workspace import WORKSPACE_ROOT, Tree, TreeEntry, read_tree
from reenact.redaction import Redactor
from reenact.store.blobs import BlobStore
from reenact.store.reader import EventReader
from reenact.volatile.places import Places
from reenact.workspace.compare import (
    FileChange,
    NotInGit,
    compare_trees,
    describe_change,
    diff_lines,
    find_entry,
    is_restored,
    walk,
)
from reenact.workspace.history import WorkspaceHistory
from reenact.workspace.ignore import make_rules
from reenact.workspace.restore import apply_changes, is_outside_link
from reenact.workspace.scan import LIMIT_BYTES, Scanner

_PREFIX: Final = "reenact-workspace-"
_SHORT_PREFIX: Final = "re-"
_RANDOM_CHARACTERS: Final = 8
"""How many characters :mod:`tempfile` adds to the prefix."""
_LONGEST_NAME: Final = 200
_SHOWN: Final = 5
_MAX_LINES: Final = 60
_MAX_COMPARED_BYTES: Final = 1 << 20
_BEFORE: Final = "the files are not as they were before this call"


class WorkspaceFolder(NamedTuple):
    """The folder with the recorded files in which a command is replayed."""

    root: Path
    cwd: Path | None
    """The command's working directory; ``None`` if the recorded one was outside the workspace."""
    notes: list[str]
    repository: Path
    """The git repository with the files that the capture does not store."""

    def locate(self, words: Sequence[str]) -> list[str]:
        """Adapt the command line to the folder: files that exist only here get absolute paths."""
        return [self._locate(word.replace("{workspace}", str(self.root))) for word in words]

    def _locate(self, word: str) -> str:
        is_path = os.sep in word or "." in word
        if self.cwd is None or os.path.isabs(word) or not is_path or (self.cwd / word).exists():
            return word
        return os.path.abspath(word) if os.path.exists(word) else word


@contextmanager
def restore_start(reader: EventReader, repository: str | Path | None = None) -> Iterator[WorkspaceFolder]:
    """Restore the files at the start of a recorded run to a temporary folder, for the block."""
    place = Path(repository or "").absolute()
    history = WorkspaceHistory(reader, repository=place)
    with _scratch_folder(history.start.path_bytes) as root:
        restored = history.restore(history.start.tree, root, refuse_links_out=True)
        notes = [f"{path}: placeholders replace secrets in it" for path in restored.hidden]
        notes += [f"{path}: is a link that leads out of the files; not made" for path in restored.refused]
        cwd = root / history.start.cwd if history.start.cwd is not None else None
        if cwd is not None and not cwd.is_dir():
            cwd = root
        yield WorkspaceFolder(root, cwd, notes, place)


@contextmanager
def _scratch_folder(path_bytes: int | None) -> Iterator[Path]:
    """Yield a path for a new folder, if possible of the same length as the recorded path.

    So counts over texts that contain the path, such as tokens, stay the same.
    """
    above = len(os.fsencode(os.path.realpath(gettempdir()))) + _RANDOM_CHARACTERS + 2
    wanted = path_bytes or 0
    prefix = _SHORT_PREFIX if above + len(_PREFIX) >= wanted > above + len(_SHORT_PREFIX) else _PREFIX
    left = wanted - above - len(prefix)
    name = "workspace".ljust(left, "_")[:left] if 0 < left <= _LONGEST_NAME else "workspace"
    with TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as scratch:
        yield Path(os.path.realpath(scratch), name)


class WorkspaceReplay:
    """The folder *root* in which a run is replayed; it started with the recorded files."""

    def __init__(
        self,
        history: WorkspaceHistory,
        root: Path,
        redactor: Redactor,
        places: Places,
        *,
        own: BlobStore | None = None,
    ) -> None:
        """*places* knows the folders of both runs.

        Blobs that the recorded run does not have are stored in *own*, or in memory without it.
        """
        self._history = history
        self.root = root
        self._places = places
        self._own_store = own
        self._own: dict[str, bytes] = {}
        start = history.start
        self.scanner = Scanner(
            root,
            self._store_blob,
            redactor=redactor,
            limit_bytes=LIMIT_BYTES if start.limit_bytes is None else start.limit_bytes,
            rules=make_rules(start.above),
            in_git=_find_in_git(history),
        )
        self._quiet = frozenset(_find_quiet(history))
        trees = [state.tree for state in history.states]
        self._trees = list(dict.fromkeys([*trees, history.end_tree]))
        self._latest = 0
        """The index of the tree that the files matched last."""
        self._open: set[int] = set()
        self._reported: set[tuple[bytes, TreeEntry | None]] = set()
        """Differences that were reported."""
        self._lock = RLock()

    def check_before(self, seq: int, *, is_in_turn: bool = True) -> ReplayDivergence | None:
        """Note that the call recorded at *seq* is made, and compare the files with the recorded ones.

        They are compared only if no other call was open in either run, which might be changing them.
        """
        with self._lock:
            is_known = self._history.is_known_before(seq)
            is_quiet = is_known and is_in_turn and not self._open and seq in self._quiet
            self._open.add(seq)
            if not is_quiet:
                return None
            return self._compare(self._history.tree_before(seq), _BEFORE, seq)

    def difference_before(self, seq: int) -> ReplayDivergence | None:
        """Compare the files before a call that may still be made, including differences already reported."""
        with self._lock:
            if seq not in self._quiet or not self._history.is_known_before(seq):
                return None
            known, self._reported = self._reported, set()
            try:
                return self._compare(self._history.tree_before(seq), _BEFORE, seq)
            finally:
                self._reported = known

    def note_answer(self, seq: int, outcome_seq: int, *, has_run: bool) -> None:
        """Note that the call is answered; unless it *has_run* live, apply its recorded file changes."""
        with self._lock:
            self._open.discard(seq)
            if has_run:
                return
            before, after = self._history.tree_before(seq), self._history.state_at(outcome_seq).tree
            if before != after:
                changes = compare_trees(self._history.read_tree, before, after)
                apply_changes(self.root, changes, self._history.content)

    def find_recorded(self, tree: str) -> str:
        """The recorded tree that *tree* equals up to left-out files; *tree* itself if there is none.

        Only trees near the last match are tried: a replay passes them in the same order.
        """
        with self._lock:
            latest = self._latest
            for number in (latest, latest + 1, latest + 2, latest + 3, latest - 1):
                if 0 <= number < len(self._trees):
                    recorded = self._trees[number]
                    if is_restored(self._read_tree, recorded, tree):
                        self._latest = number
                        return recorded
            return tree

    def has_file(self, place: str) -> bool:
        """Whether the run has a file at *place*, relative to the recorded working directory."""
        return not os.path.isabs(place) and (self.root / (self._history.start.cwd or "") / place).is_file()

    def is_same_write(self, seq: int, recorded: Mapping[str, object], live: Mapping[str, object]) -> bool:
        """Whether the agent wrote what the event *seq* records, up to the names of the runs' folders.

        If the recorded content is unknown, because the file was written to again, the next scan compares the
        whole file; so the file must be in the trees.
        """
        path = self._path_in_files(live)
        if path is None:
            return False
        after = next((state.tree for state in self._history.states if state.recorded_at > seq), None)
        entry = find_entry(self._history.read_tree, after or self._history.end_tree, os.fsencode(path))
        if entry is None or entry.kind != "file":
            return False
        contents = self._written_contents(recorded, live)
        return contents is None or self._is_neutral(*contents)

    def describe_write(self, recorded: Mapping[str, object], live: Mapping[str, object]) -> tuple[str, ...]:
        """A diff between the recorded and the live content of a written file, if both are known."""
        contents = self._written_contents(recorded, live)
        if contents is None or recorded.get("path") != live.get("path"):
            return ()
        return (f"changed {live['path']}", *diff_lines(*contents)[:_MAX_LINES])

    def _path_in_files(self, write: Mapping[str, object]) -> Path | None:
        place = PurePosixPath(str(write.get("path")))
        if place.is_relative_to(WORKSPACE_ROOT):
            return Path(place.relative_to(WORKSPACE_ROOT))
        absolute = Path(os.path.realpath(place))
        return absolute.relative_to(self.root) if absolute.is_relative_to(self.root) else None

    def _written_contents(
        self, recorded: Mapping[str, object], live: Mapping[str, object]
    ) -> tuple[bytes, bytes] | None:
        """The recorded and the live content; ``None`` if one is unknown or is not the whole file."""
        path, digest = self._path_in_files(live), recorded.get("sha256")
        size_bytes = live.get("bytes")
        if path is None or not isinstance(digest, str) or not self._history.has_blob(digest):
            return None
        if not isinstance(size_bytes, int) or size_bytes > _MAX_COMPARED_BYTES:
            return None
        try:
            with open(self.root / path, "rb") as file:
                content = file.read(size_bytes + 1)
        except OSError:
            return None
        known = self._history.reader.blob(digest)
        return (known, content) if digest_of_bytes(content) == live.get("sha256") else None

    def at_end(self) -> ReplayDivergence | None:
        """Compare the files with those at the end of the recorded run, if these are known."""
        if not self._history.knows_end:
            return None
        with self._lock:
            return self._compare(self._history.end_tree, "the files at the end are not as recorded")

    def _compare(self, expected: str, what: str, seq: int | None = None) -> ReplayDivergence | None:
        try:
            live = self.scanner.take()
        except ReenactError as error:
            return ReplayDivergence(code="event_payload_mismatch", detail=f"{what}: {error}", event_seq=seq)
        if live == expected:
            return None
        changes = [
            change
            for change in compare_trees(self._read_tree, expected, live)
            if (change.path, change.after) not in self._reported and not self._is_same(change)
        ]
        if not changes:
            return None
        self._reported.update((change.path, change.after) for change in changes)
        shown = ", ".join(" ".join(str(change).split()) for change in changes[:_SHOWN])
        more = f" and {len(changes) - _SHOWN} more" if len(changes) > _SHOWN else ""
        lines = [line for change in changes for line in describe_change(change, self._content)]
        if len(lines) > _MAX_LINES:
            lines = [*lines[:_MAX_LINES], f"… {len(lines) - _MAX_LINES} more lines"]
        return ReplayDivergence(
            code="event_payload_mismatch",
            detail=f"{what}: {shown}{more}",
            expected={"tree": expected},
            observed=Observed("workspace", {"tree": live, "paths": [change.text for change in changes]}),
            event_seq=seq,
            files=tuple(lines),
        )

    def _is_same(self, change: FileChange) -> bool:
        """Whether the contents differ only in the names of the two runs' folders."""
        before, after = change.before, change.after
        if before is not None and after is None and is_outside_link(change.path, before):
            return True  # a replay does not restore such links
        if change.how != "changed" or before is None or after is None or before.mode != after.mode:
            return False
        if before.kind != "file" or after.kind != "file":
            return False
        if max(before.size_bytes, after.size_bytes) > _MAX_COMPARED_BYTES:
            return False
        try:
            return self._is_neutral(*(self._content(entry) for entry in (before, after)))
        except NotInGit:
            return False

    def _is_neutral(self, recorded: bytes, live: bytes) -> bool:
        try:
            neutral = self._places.neutralize(recorded.decode(), live.decode())
        except UnicodeDecodeError:
            return False
        return neutral is not None and neutral.recorded == neutral.live

    def _store_blob(self, data: bytes) -> str:
        digest = digest_of_bytes(data)
        if digest not in self._own and not self._history.has_blob(digest):
            if self._own_store is None:
                self._own[digest] = data
            else:
                self._own_store.put(data)
        return digest

    def _read_tree(self, digest: str) -> Tree:
        own = self._own_blob(digest)
        return self._history.read_tree(digest) if own is None else read_tree(own, file=digest)

    def _content(self, entry: TreeEntry) -> bytes:
        own = self._own_blob(entry.digest)
        return self._history.content(entry) if own is None else own

    def _own_blob(self, digest: str) -> bytes | None:
        if self._own_store is None:
            return self._own.get(digest)
        return None if self._history.has_blob(digest) else self._own_store.get(digest)


def _find_in_git(history: WorkspaceHistory) -> dict[str, str]:
    """The git objects of the files at the start, by path."""
    if history.commit is None:
        return {}
    return {
        os.fsdecode(path): entry.git
        for path, entry in walk(history.read_tree, history.start.tree)
        if entry.git
    }


def _find_quiet(history: WorkspaceHistory) -> Iterator[int]:
    """The events of the calls that were made while no other calls but their ancestors were open."""
    open_calls: dict[str, str | None] = {}
    for line in history.reader.lines():
        if b'"callId"' not in line:
            continue
        head = read_head(line)
        call = head.data.callId
        if call is None or head.data.derived or head.type == "state_mutation":
            continue
        if call in open_calls:
            del open_calls[call]
        elif head.type not in ("tool_result", "llm_response"):
            if set(open_calls) == set(_ancestors(head.data.parent, open_calls)):
                yield head.seq
            open_calls[call] = head.data.parent


def _ancestors(call: str | None, parents: Mapping[str, str | None]) -> Iterator[str]:
    seen: set[str] = set()
    while call is not None and call in parents and call not in seen:
        seen.add(call)
        yield call
        call = parents[call]

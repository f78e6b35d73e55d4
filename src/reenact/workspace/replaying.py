"""The files of a run that is made again: what calls did to them is done again, the rest is compared."""

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
from reenact.workspace.restore import apply_changes, leads_out
from reenact.workspace.scan import LIMIT_BYTES, Scanner

_PREFIX: Final = "reenact-workspace-"
_SHORT_PREFIX: Final = "re-"
_RANDOM_CHARACTERS: Final = 8
"""Which Python adds to the prefix."""
_LONGEST_NAME: Final = 200
_SHOWN: Final = 5
_MAX_LINES: Final = 60
_MAX_COMPARED_BYTES: Final = 1 << 20
_BEFORE: Final = "the files are not as they were before this call"


class WorkspaceFolder(NamedTuple):
    """The folder in which a command runs again, with the recorded files."""

    root: Path
    cwd: Path | None
    """Where the command begins; ``None`` where the recorded one did not begin among its files."""
    notes: list[str]
    repository: Path
    """Where git is asked for files that the capture only names."""

    def locate(self, words: Sequence[str]) -> list[str]:
        """The command from there: files that are here and not there are named by their whole path."""
        return [self._locate(word.replace("{workspace}", str(self.root))) for word in words]

    def _locate(self, word: str) -> str:
        is_path = os.sep in word or "." in word
        if self.cwd is None or os.path.isabs(word) or not is_path or (self.cwd / word).exists():
            return word
        return os.path.abspath(word) if os.path.exists(word) else word


@contextmanager
def restore_start(reader: EventReader, repository: str | Path | None = None) -> Iterator[WorkspaceFolder]:
    """The files at the start of a recorded run in a folder of their own, for the block."""
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
    """The path of a folder that is not there yet, as long as the recorded one was where that can be.

    What an agent counts of texts that name its folder, such as tokens, is the same then.
    """
    above = len(os.fsencode(os.path.realpath(gettempdir()))) + _RANDOM_CHARACTERS + 2
    wanted = path_bytes or 0
    prefix = _SHORT_PREFIX if above + len(_PREFIX) >= wanted > above + len(_SHORT_PREFIX) else _PREFIX
    left = wanted - above - len(prefix)
    name = "workspace".ljust(left, "_")[:left] if 0 < left <= _LONGEST_NAME else "workspace"
    with TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as scratch:
        yield Path(os.path.realpath(scratch), name)


class WorkspaceReplay:
    """The folder *root* in which a recorded run is made again, which began as the recorded one did."""

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

        What the recorded run had not goes to the blobs of this one, *own*; without such, to memory.
        """
        self._history = history
        self.root = root
        self._places = places
        self._kept = own
        self._own: dict[str, bytes] = {}
        start = history.start
        self.scanner = Scanner(
            root,
            self._keep,
            redactor=redactor,
            limit_bytes=LIMIT_BYTES if start.limit_bytes is None else start.limit_bytes,
            rules=make_rules(start.above),
            in_git=_find_in_git(history),
        )
        self._quiet = frozenset(_find_quiet(history))
        trees = [state.tree for state in history.states]
        self._trees = list(dict.fromkeys([*trees, history.end_tree]))
        self._latest = 0
        """Which of them the files were last."""
        self._open: set[int] = set()
        self._known: set[tuple[bytes, TreeEntry | None]] = set()
        """Differences that were reported."""
        self._lock = RLock()

    def before(self, seq: int, *, is_in_turn: bool = True) -> ReplayDivergence | None:
        """The call recorded at *seq* is made: how the files differ from those it was recorded with.

        Compared only where no other call was under way, in both runs: nobody knows how far such were.
        """
        with self._lock:
            is_known = self._history.is_known_before(seq)
            is_quiet = is_known and is_in_turn and not self._open and seq in self._quiet
            self._open.add(seq)
            if not is_quiet:
                return None
            return self._compare(self._history.tree_before(seq), _BEFORE, seq)

    def difference_before(self, seq: int) -> ReplayDivergence | None:
        """The same of a call that is only about to be made, whatever was reported before."""
        with self._lock:
            if seq not in self._quiet or not self._history.is_known_before(seq):
                return None
            known, self._known = self._known, set()
            try:
                return self._compare(self._history.tree_before(seq), _BEFORE, seq)
            finally:
                self._known = known

    def answered(self, seq: int, outcome_seq: int, *, has_run: bool) -> None:
        """It is answered from the recording: unless it *has_run* here, its changes are made in its place."""
        with self._lock:
            self._open.discard(seq)
            if has_run:
                return
            before, after = self._history.tree_before(seq), self._history.state_at(outcome_seq).tree
            if before != after:
                changes = compare_trees(self._history.read_tree, before, after)
                apply_changes(self.root, changes, self._history.content)

    def find_recorded(self, tree: str) -> str:
        """The recorded tree that *tree* is, up to what is left out there and never restored; else itself.

        Looked for around the one that was found last: a run that is made again takes the same way.
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
        """Whether the run has a file at *place*, a path from where the recorded one began."""
        return not os.path.isabs(place) and (self.root / (self._history.start.cwd or "") / place).is_file()

    def is_same_write(self, seq: int, recorded: Mapping[str, object], live: Mapping[str, object]) -> bool:
        """Whether what the agent wrote is what the event *seq* says, up to where the two have their folders.

        Where the content of then is not known, of a file that was written on, the next look decides, which
        compares the file as a whole; so it must be in the trees.
        """
        path = self._path_in_files(live)
        if path is None:
            return False
        after = next((state.tree for state in self._history.states if state.told_at > seq), None)
        entry = find_entry(self._history.read_tree, after or self._history.end_tree, os.fsencode(path))
        if entry is None or entry.kind != "file":
            return False
        contents = self._written_contents(recorded, live)
        return contents is None or self._is_neutral(*contents)

    def describe_write(self, recorded: Mapping[str, object], live: Mapping[str, object]) -> tuple[str, ...]:
        """How what the agent wrote differs from what was recorded, where both are known."""
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
        """What was written then and now; ``None`` where that is not the whole file, or not known."""
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
        """How the files differ from those at the end of the recorded run, where these are known."""
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
            if (change.path, change.after) not in self._known and not self._is_same(change)
        ]
        if not changes:
            return None
        self._known.update((change.path, change.after) for change in changes)
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
        """Whether all that differs is where the two runs had their folders."""
        before, after = change.before, change.after
        if before is not None and after is None and leads_out(change.path, before):
            return True  # such links are not made for a run
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
            neutral = self._places.neutral(recorded.decode(), live.decode())
        except UnicodeDecodeError:
            return False
        return neutral is not None and neutral.recorded == neutral.live

    def _keep(self, data: bytes) -> str:
        digest = digest_of_bytes(data)
        if digest not in self._own and not self._history.has_blob(digest):
            if self._kept is None:
                self._own[digest] = data
            else:
                self._kept.put(data)
        return digest

    def _read_tree(self, digest: str) -> Tree:
        own = self._own_blob(digest)
        return self._history.read_tree(digest) if own is None else read_tree(own, file=digest)

    def _content(self, entry: TreeEntry) -> bytes:
        own = self._own_blob(entry.digest)
        return self._history.content(entry) if own is None else own

    def _own_blob(self, digest: str) -> bytes | None:
        if self._kept is None:
            return self._own.get(digest)
        return None if self._history.has_blob(digest) else self._kept.get(digest)


def _find_in_git(history: WorkspaceHistory) -> dict[str, str]:
    """The files of the start that git has, with the names of their objects, by path."""
    if history.commit is None:
        return {}
    return {
        os.fsdecode(path): entry.git
        for path, entry in walk(history.read_tree, history.start.tree)
        if entry.git
    }


def _find_quiet(history: WorkspaceHistory) -> Iterator[int]:
    """The calls that were made while no others were under way but those inside which they were."""
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

"""Reads captures in any state, and event logs without the rest of their capture."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, TypeVar

import msgspec

from reenact.canonical import JsonValue, is_digest
from reenact.errors import FormatError, StoreError
from reenact.formats.capture import CaptureManifest, event_codec, read_manifest, read_seed
from reenact.formats.event import EventHead, RunEvent, read_event, read_head
from reenact.formats.record import ABSENT, or_none
from reenact.formats.workspace import WORKSPACE, Tree, TreeEntry, read_tree
from reenact.store.line_file import LineFile
from reenact.store.reader import CaptureReader, References, verify_events
from reenact.store.rundir import (
    MANIFEST,
    RunDir,
    RunState,
)
from reenact.trace.model_calls import DerivedEvents
from reenact.trace.sources.source import Header, RecordedRun, RunKind, RunSource
from reenact.values.tags import strip_tags
from reenact.workspace.compare import compare_trees, describe_change
from reenact.workspace.history import GitObjects, tree_in_event

_SHOWN_FILES: Final = 8
_SHOWN_LINES: Final = 400
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
T = TypeVar("T")


class _Ends(NamedTuple):
    """Facts from the first and the last event of a run."""

    first: RunEvent | None
    last: RunEvent | None
    command: tuple[str, ...] | None
    end: dict[str, Any]
    """The data of ``run_end``; empty if the run has not ended."""
    final_output: Any


class _EventSource(LineFile, ABC):
    """A file of events, with or without the rest of its capture."""

    kind: RunKind

    def __init__(self, path: str, stream: BinaryIO, file: str) -> None:
        super().__init__(stream, file=file, takes_tail=False)
        self.path = path
        self._asked_at: dict[str, int] = {}
        self.resolve = References(self._find_call, self.blob, file=file).resolve

    def read_on(self) -> Iterator[EventHead]:
        for number, text in self.read_lines():
            head = self._decode_line(read_head, text, number)
            if head.seq != number:
                reason = f"expected {number}, found {head.seq}"
                raise FormatError(reason, file=self.file, line=number, json_path="$.seq")
            if (call_id := head.request_call_id) is not None:
                self._asked_at.setdefault(call_id, number)
            yield head

    def find_directly(self, seq: int) -> JsonValue:
        found = self._find_line(seq) if seq > 0 else None
        if found is None:
            return None
        start, text = found
        raw = self._decode_line(msgspec.json.decode, text, seq)
        if not isinstance(raw, dict) or raw.get("seq") != seq:
            stated = raw.get("seq") if isinstance(raw, dict) else None
            reason = f"expected {seq}, found {stated}"
            raise FormatError(reason, file=self.file, line=seq, json_path="$.seq")
        references = References(_EarlierCalls(self, start).find, self.blob, file=self.file)
        return raw | {"data": references.resolve(raw.get("data"))}

    def _find_line(self, seq: int) -> tuple[int, bytes] | None:
        """Search by the numbers in the events, or count lines if these are not in order."""
        try:
            found = self.search(seq, lambda text: read_head(text).seq)
        except _UNREADABLE:
            found = None
        return found or self.find(seq)

    def raw(self, seq: int) -> object:
        return self._decode_line(msgspec.json.decode, self.line(seq), seq)

    def event(self, seq: int, *, has_changes: bool = True) -> RunEvent:
        """With *has_changes*, the event of a workspace tree includes the changed files, if they are known."""
        event: RunEvent = self._decode_line(read_event, self.line(seq), seq)
        if has_changes and event.type == "state_mutation" and event.data.get("type") == WORKSPACE:
            with suppress(FormatError, StoreError):  # reported when the files are read
                return self._with_changed_files(event)
        return event

    @abstractmethod
    def blob(self, digest: object) -> bytes: ...

    def _with_changed_files(self, event: RunEvent) -> RunEvent:
        """The event of a workspace tree with the changes since the tree before, if its blobs exist."""
        return event

    def _decode_line(self, decode: Callable[[bytes], T], text: bytes, number: int) -> T:
        try:
            return decode(text)
        except _UNREADABLE as error:
            raise FormatError(str(error), file=self.file, line=number) from None

    def _find_call(self, call_id: str) -> tuple[int, bytes]:
        seq = self._asked_at[call_id]
        return seq, self.line(seq)

    def _read_ends(self) -> _Ends:
        """Facts from the first and the last event, if they are readable; a full read reports errors."""
        found: list[RunEvent | None] = []
        for text in (self.first_line(), self.last_line()):
            try:
                found.append(read_event(text) if text else None)
            except _UNREADABLE:
                found.append(None)
        first, last = found
        argv = first.data.get("argv") if first else None
        command = tuple(map(str, argv)) if isinstance(argv, list) and argv else None
        end = last.data if last and last.type == "run_end" else {}
        output = None
        if end.get("finalOutput") is not None:
            with suppress(FormatError, StoreError):  # reported when the event is read
                output = strip_tags(self.resolve(end["finalOutput"]))
        return _Ends(first, last, command, end, output)


class _EarlierCalls:
    """Finds calls before the offset *before* of a file, searching backwards, as chats refer to them."""

    def __init__(self, lines: LineFile, before: int) -> None:
        self._lines = lines
        self._start = before
        self._block = b""
        self._end = 0
        """The size of the part of the block before the call that was found last."""

    def find(self, call_id: str) -> tuple[int, bytes]:
        """The number and the line of the event of a call, which must be before the one found last."""
        part = b'"callId":' + msgspec.json.encode(call_id)
        while True:
            while (at := self._block.rfind(part, 0, self._end)) >= 0:
                self._end = self._block.rfind(b"\n", 0, at) + 1
                text = self._block[self._end : self._block.find(b"\n", at)]
                head = read_head(text)
                if head.request_call_id == call_id:
                    return head.seq, text
            if self._start == 0:
                raise KeyError(call_id)
            self._start, self._block = self._lines.block_before(self._start)
            self._end = len(self._block)


class CaptureSource(_EventSource):
    """A capture directory."""

    kind = "capture"

    def __init__(self, directory: Path) -> None:
        self._run = RunDir(directory)
        stream = self._run.open_events()
        super().__init__(str(directory), stream, str(directory / self._run.event_log().event_log_path))

    def header(self) -> Header:
        state = self._run.state
        if state in (RunState.OPEN, RunState.INTERRUPTED):
            return self._seed_header(state)
        manifest = read_manifest(self._run.read_manifest(), file=str(self._run.path / "manifest.json"))
        ends = self._read_ends()
        has_files = ends.first is not None and "workspace" in ends.first.data
        return capture_header(
            self.path, manifest, state, ends.command, ends.final_output, has_files=has_files
        )

    def _seed_header(self, state: RunState) -> Header:
        seed = read_seed(self._run.read_manifest(), file=str(self._run.path / "manifest.open.json"))
        return Header(
            path=self.path,
            kind=self.kind,
            state=state.value,
            capture_id=seed.captureId,
            run_id=seed.runId,
            created_at_ms=seed.createdAt,
            provider=seed.model.provider,
            model=seed.model.model,
            redaction=seed.redaction.profile,
            producer=or_none(seed.producer),
            command=self._read_ends().command,
        )

    def borrow_blobs(self, other: RunSource) -> None:
        """Does nothing: a capture has its own blobs."""

    def verify(self) -> None:
        if self._run.state in (RunState.COMPLETE, RunState.RECOVERED):
            manifest = read_manifest(self._run.read_manifest(), file=str(self._run.path / MANIFEST))
            with self._run.open_events() as stream:
                verify_events(stream, manifest, file=self.file)

    def blob(self, digest: object) -> bytes:
        if not isinstance(digest, str) or not is_digest(digest):
            raise FormatError(f"{digest!r} names no blob", file=self.file)
        return self._run.blobs.get(digest)

    def _with_changed_files(self, event: RunEvent) -> RunEvent:
        """The event of a workspace tree with the changes since the tree before, in words and as a diff."""
        trees = (tree_in_event(self.raw(seq)) for seq in range(event.seq - 1, 0, -1) if self._has_tree(seq))
        before = next((tree for tree in trees if tree is not None), None)
        changes = compare_trees(self._read_tree, before, tree_in_event(self.raw(event.seq)))
        shown = ", ".join(" ".join(str(change).split()) for change in changes[:_SHOWN_FILES])
        more = f" and {len(changes) - _SHOWN_FILES} more" if len(changes) > _SHOWN_FILES else ""
        lines = [line for change in changes for line in describe_change(change, self._file_content)]
        rest = {name: value for name, value in event.data.items() if name != "details"}
        fields = {"path": shown + more, "details": lines[:_SHOWN_LINES]}
        return msgspec.structs.replace(event, data=rest | fields)

    def _has_tree(self, seq: int) -> bool:
        return b'"workspace"' in self.line(seq)

    def _read_tree(self, digest: str) -> Tree:
        return read_tree(self.blob(digest), file=f"{self.path}/blobs: {digest}")

    def _file_content(self, entry: TreeEntry) -> bytes:
        return self._git.content(entry) if entry.git else self.blob(entry.digest)

    @cached_property
    def _git(self) -> GitObjects:
        return GitObjects(self.path)


def capture_header(
    path: str,
    manifest: CaptureManifest,
    state: RunState,
    command: tuple[str, ...] | None,
    final_output: JsonValue,
    *,
    has_files: bool = False,
) -> Header:
    """The header of a finished capture; the arguments after *state* come from its first and last event."""
    return Header(
        path=path,
        kind="capture",
        state=state.value,
        status=manifest.status,
        capture_id=manifest.captureId,
        run_id=manifest.runId,
        created_at_ms=manifest.createdAt,
        completed_at_ms=or_none(manifest.completedAt),
        provider=manifest.model.provider,
        model=manifest.model.model,
        redaction=manifest.redaction.profile,
        producer=or_none(manifest.producer),
        command=command,
        error=or_none(manifest.error),
        exit_status=or_none(manifest.exitStatus),
        final_output=final_output,
        warnings=tuple(manifest.warnings or ()),
        has_files=has_files,
        forked_from=None
        if manifest.fork is ABSENT
        else f"{manifest.fork.parent.path} at event {manifest.fork.at}",
    )


class EventsSource(_EventSource):
    """An ``events.jsonl`` by itself."""

    kind = "events"

    def __init__(self, file: Path) -> None:
        self._lender: RunSource | None = None
        super().__init__(str(file), file.open("rb"), str(file))

    def header(self) -> Header:
        first, last, command, end, final_output = self._read_ends()
        return Header(
            path=self.path,
            kind=self.kind,
            status=end.get("status"),
            created_at_ms=first.ts if first else None,
            completed_at_ms=last.ts if last and end else None,
            command=command,
            error=end.get("error"),
            final_output=final_output,
        )

    def borrow_blobs(self, other: RunSource) -> None:
        self._lender = other

    def blob(self, digest: object) -> bytes:
        if self._lender is None or isinstance(self._lender, EventsSource):
            raise StoreError(f"{self.file}: {digest} is in the capture's blobs; name the capture's directory")
        return self._lender.blob(digest)

    def verify(self) -> None:
        """Does nothing: an event log alone has no digest."""


def read_capture(reader: CaptureReader) -> RecordedRun:
    """The run of a finished capture; an invalid event raises when it is read."""
    manifest = reader.manifest
    completed_at = manifest.createdAt if manifest.completedAt is ABSENT else manifest.completedAt
    return RecordedRun(
        events=_read_with_derived(reader),
        adapter="reenact",
        session_id=manifest.runId,
        status=_STATUSES[manifest.status],
        duration_ms=max(0, completed_at - manifest.createdAt),
        is_whole=True,
        resolve=reader.resolve,
        plain=lambda value: strip_tags(reader.resolve(value)),
    )


_STATUSES: Final = {"ok": "success", "error": "failed"}


def _read_with_derived(reader: CaptureReader) -> Iterator[tuple[str, RunEvent]]:
    derived = DerivedEvents(reader)
    for recorded in reader.events():
        event_id = f"evt-{recorded.seq}"
        numbers = count(1)
        for event in derived.add_to(recorded):
            if event is recorded:
                yield event_id, read_event(reader.line(recorded.seq))
            else:
                value = event_codec.to_json(event)
                tool_event = RunEvent(event.seq, event.ts, value["type"], value["data"])
                yield f"{event_id}.tool{next(numbers)}", tool_event

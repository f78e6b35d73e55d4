"""What publishing and sealing work on: a capture or a log, as a log; and the files of a seal beside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from reenact.check.seals.commitments import root_of
from reenact.cli.terminal import progress_bar, with_progress
from reenact.errors import CheckFailed, StoreError
from reenact.formats.capture import ToolResult
from reenact.formats.dialects import DIALECTS, Event
from reenact.formats.dialects.common import Dialect
from reenact.formats.hashes import trajectory_hash
from reenact.formats.record import ABSENT
from reenact.formats.replay_log import read_replay_log
from reenact.formats.seal import (
    Seal,
    SealedLine,
    payload_of,
    read_envelope,
    read_seal,
    read_sealed_lines,
    read_seed,
)
from reenact.store.reader import CaptureReader
from reenact.trace.to_replay_log import replay_log_of_capture
from reenact.values.tags import plain

_SEAL: Final = ".seal.json"


class RunLog:
    """A capture directory or a REPLAY.jsonl, read as a log as often as needed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.capture = CaptureReader(path) if path.is_dir() else None
        self.dialect: Dialect[Any] = DIALECTS["current"]
        if self.capture is None:
            first = next(self.events(), None)
            self.dialect = next(dialect for dialect in DIALECTS.values() if dialect.owns(first))

    def events(self) -> Iterator[Event]:
        """The log, from its header on; the first bad line raises."""
        return self._log_events() if self.capture is None else self._capture_events(self.capture)

    def outputs(self) -> Iterator[Any]:
        """What the tools of a capture returned; a log has only the hash of it."""
        if self.capture is None:
            return
        for event in self.capture.events():
            if isinstance(event, ToolResult):
                stored = (event.data.result, event.data.pieces)
                yield from (plain(self.capture.resolved(value)) for value in stored if value is not ABSENT)

    def _log_events(self) -> Iterator[Event]:
        with self.path.open("rb") as stream:
            read = read_replay_log(stream, file=str(self.path))
            for _, event in with_progress(read, stream, "reading"):
                yield event

    def _capture_events(self, capture: CaptureReader) -> Iterator[Event]:
        size_bytes = Path(capture.events_file).stat().st_size
        with progress_bar(size_bytes, "reading") as advance:
            for seq, conversion in enumerate(replay_log_of_capture(capture), 1):
                advance(len(capture.line(seq)))
                yield from conversion.events

    def trajectory_hash(self) -> str:
        """The hash of a log that is a file."""
        with self.path.open("rb") as stream:
            return trajectory_hash(stream, file=str(self.path))

    def refuse_foreign(self, seal: Seal, seal_path: Path) -> None:
        """Raise where *seal* is not the seal of this run."""
        if self.capture is None:
            sealed, found = seal.log.trajectoryHash, self.trajectory_hash()
        else:
            sealed = ABSENT if seal.capture is ABSENT else seal.capture.eventsHash
            found = self.capture.manifest.integrity.eventsHash
        if sealed != found:
            raise CheckFailed(
                f"{seal_path}: is not the seal of {self.path}; name the seal that was made for it"
            )


class Secret:
    """The secret that lies beside a seal."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._open() as stream:
            self.seed = read_seed(stream, file=str(path))

    @staticmethod
    def of(seal_path: Path, secret_path: Path | None) -> Secret:
        """The secret in *secret_path*, or else where ``reenact seal`` put it."""
        return Secret(secret_path or default_secret(seal_path))

    def lines(self) -> Iterator[SealedLine]:
        """The log that was sealed."""
        with self._open() as stream:
            yield from read_sealed_lines(stream, file=str(self.path))

    @contextmanager
    def _open(self) -> Iterator[Any]:
        try:
            with self.path.open("rb") as stream:
                yield stream
        except FileNotFoundError:
            raise StoreError(
                f"{self.path}: there is no such file; name the secret of the seal with --secret"
            ) from None


def default_seal(path: Path) -> Path:
    """Where the seal of a run goes: beside it, since nothing else belongs into a capture."""
    named = path if path.name not in ("", "..") else path.resolve()
    return named.parent / f"{named.name}{_SEAL}"


def default_secret(seal_path: Path) -> Path:
    """Where the secret of a seal lies unless somebody moved it."""
    return seal_path.parent / f"{seal_path.name.removesuffix('.json')}.secret"


def seal_in(path: Path) -> Seal:
    """The seal in *path*, not checked: its maker publishes under it and needs no proof."""
    envelope = read_envelope(path.read_bytes(), file=str(path))
    return read_seal(payload_of(envelope), file=str(path))


def verify_leaves(leaves: list[bytes], root: str, secret: Secret) -> list[bytes]:
    """*leaves*, if they are what was sealed."""
    if root_of(leaves).hex() != root:
        raise CheckFailed(f"{secret.path}: is not the secret of this seal, or was changed")
    return leaves

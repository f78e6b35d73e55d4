"""Sealing and publishing a capture or a log, and proving and disclosing its events."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, Final

import msgspec

from reenact import canonical
from reenact._version import __version__
from reenact.canonical import JsonValue
from reenact.check.publishing import PolicyName, Publisher, publish_files
from reenact.check.seals import sealing
from reenact.check.seals.commitments import TreeName, root_of
from reenact.check.seals.keys import key_id, read_private_key
from reenact.check.seals.published_log import WITHHELD_EVENT, published_lines
from reenact.check.seals.sealing import (
    event_fields,
    event_leaves,
    line_fields,
    log_leaves,
    sign_seal,
    tree_of,
)
from reenact.errors import CheckFailed, StoreError, UsageError
from reenact.formats.capture import ToolResult
from reenact.formats.dialects import DIALECTS, Event
from reenact.formats.dialects.common import Dialect
from reenact.formats.hashes import trajectory_hash
from reenact.formats.record import ABSENT, Absent
from reenact.formats.replay_log import LEAVES, PUBLISHED, read_replay_log
from reenact.formats.rfc3339 import rfc3339
from reenact.formats.seal import (
    SEAL_VERSION,
    SEED_BYTES,
    Disclosure,
    Seal,
    SealedCapture,
    SealedLine,
    SealedLog,
    Tree,
    head_to_bytes,
    line_to_bytes,
    payload_of,
    read_envelope,
    read_seal,
    read_sealed_lines,
    read_seed,
)
from reenact.progress import Progress, ProgressBar, no_progress_bar
from reenact.store.objects import ObjectStore, address_in
from reenact.store.outfile import open_output, refuse_without_neighbour
from reenact.store.paths import takes_addresses
from reenact.store.reader import CaptureReader
from reenact.store.remote import is_remote, local_path, local_run, remote_name
from reenact.store.rundir import RunDir
from reenact.trace.to_replay_log import replay_log_of_capture
from reenact.values.tags import strip_tags
from reenact.workspace.history import WorkspaceHistory

_SEAL: Final = ".seal.json"
_PROGRESS_LINES: Final = 1000


class SealReport(msgspec.Struct, frozen=True):
    """What `seal` wrote."""

    seal: str
    """The file of the seal, which may be published."""
    secret: str
    """The file of its secret, which is needed to publish and to disclose; never publish it."""
    events: int | None
    """The number of sealed events of a capture; ``None`` for a log."""
    lines: int
    """The number of sealed lines of the log."""
    key: str
    """The id of the key that signed."""


class PublishReport(msgspec.Struct, frozen=True):
    """What `publish` wrote."""

    output: str
    policy: PolicyName
    seal: str | None
    shown: int
    """The number of published lines."""
    withheld: int
    """The number of withheld lines."""
    files: str | None = None
    """The file with the names and hashes of the run's files, if it has any."""


def seal(
    path: str | Path,
    key: str | Path,
    *,
    out: str | Path | None = None,
    replace: bool = False,
    progress_bar: ProgressBar = no_progress_bar,
) -> SealReport:
    """Sign the run in *path*, a capture or a REPLAY.jsonl, with the private *key*.

    The seal is written to *out*, or beside the run as ``PATH.seal.json``; its secret beside the seal. If that
    is an address, the secret is written to the working folder.
    """
    if is_remote(path) or (out is not None and address_in(out) is not None):
        return _seal_elsewhere(path, key, out, replace, progress_bar)
    signer = read_private_key(Path(key).read_bytes(), file=str(key))
    run = RunLog(Path(path), progress_bar)
    seal_path = Path(out) if out is not None else default_seal(run.path)
    secret_path = default_secret(seal_path)
    refuse_without_neighbour(seal_path, "its secret")
    seed = secrets.token_bytes(SEED_BYTES)
    with (
        open_output(secret_path, replace=replace, private=True) as secret,
        open_output(seal_path, replace=replace) as file,
    ):
        found = _seal_of(run, seed, _write_secret(run, seed, secret))
        file.write(sign_seal(found, signer))
    return SealReport(
        seal=str(seal_path),
        secret=str(secret_path),
        events=None if found.capture is ABSENT else found.capture.events.count,
        lines=found.log.lines.count,
        key=key_id(signer.public_key()),
    )


def _seal_elsewhere(
    path: str | Path, key: str | Path, out: str | Path | None, replace: bool, progress_bar: ProgressBar
) -> SealReport:
    """Seal a run at an address or in a pack, or write the seal to an address; secrets stay here."""
    name = remote_name(path)
    if out is None and address_in(name.partition("#")[0]) is None:
        raise UsageError(f"{name}: a seal cannot be written beside a run in a pack; name a file with -o")
    target = local_path(out if out is not None else f"{name.replace('#', '-')}{_SEAL}")
    address = address_in(target)
    if address is None:
        with local_run(path) as copy:
            return seal(copy, key, out=target, replace=replace, progress_bar=progress_bar)
    folder, _, file = address.rpartition("/")
    store = ObjectStore(folder, is_written=True)
    if not replace and store.size_of(file) is not None:
        raise StoreError(f"{address}: exists already; replace it with --force, or name another")
    secret = default_secret(Path(file))
    with TemporaryDirectory(prefix="reenact-seal-") as temp, local_run(path) as copy:
        made = Path(temp, file)
        report = seal(copy, key, out=made, progress_bar=progress_bar)
        with open_output(secret, replace=replace, private=True) as stream:
            stream.write(Path(report.secret).read_bytes())
        if replace:
            store.put(file, made.read_bytes())
        elif not store.put_new(file, made.read_bytes()):
            raise StoreError(f"{address}: came there meanwhile; name another")
    return msgspec.structs.replace(report, seal=address, secret=str(secret))


@takes_addresses("path", "seal")
def publish(
    path: str | Path,
    out: str | Path,
    *,
    policy: PolicyName = "private",
    seal: str | Path | None = None,
    secret: str | Path | None = None,
    withhold: Collection[int] = (),
    replace: bool = False,
    progress_bar: ProgressBar = no_progress_bar,
) -> PublishReport:
    """Write the log of the run in *path* to *out*, without its private parts.

    Parameters and outputs are never written; *policy* decides about texts, names and hashes. Under a *seal*,
    with its *secret*, every line has its proof. The lines in *withhold* are left out. If files were recorded,
    their names and hashes are written to a file beside *out* under the same policy; their contents never.
    """
    run = RunLog(Path(path), progress_bar)
    seed = secrets.token_bytes(SEED_BYTES)
    lines: Iterator[dict[str, JsonValue] | None] = unsealed_lines(run, policy, withhold)
    if seal is not None:
        seal_secret = Secret.of(Path(seal), None if secret is None else Path(secret))
        lines, seed = _sealed_lines(run, policy, withhold, Path(seal), seal_secret), seal_secret.seed
    elif secret is not None:
        raise UsageError("--secret belongs to a seal; add --seal FILE")
    with open_output(Path(out), replace=replace) as stream:
        counts = _write_lines(lines, stream, run.dialect.tag_field)
        count = counts["shown"] + counts["withheld"]
        if withhold and max(withhold) > count:
            raise UsageError(f"there is no line {max(withhold)} to withhold: the log has {count}")
    seal_file = None if seal is None else str(seal)
    files = _publish_files(run, Path(out), policy, seed, replace=replace)
    return PublishReport(str(out), policy, seal_file, counts["shown"], counts["withheld"], files)


def _publish_files(run: RunLog, out: Path, policy: PolicyName, seed: bytes, *, replace: bool) -> str | None:
    if run.capture is None or not WorkspaceHistory.has_one(run.capture):
        return None
    file = out.with_name(f"{out.stem}.files.json")
    with open_output(file, replace=replace) as stream:
        stream.write(canonical.encode(publish_files(WorkspaceHistory(run.capture), policy, seed)) + b"\n")
    return str(file)


@takes_addresses("path", "seal")
def prove(
    path: str | Path,
    position: int,
    *,
    seal: str | Path,
    secret: str | Path | None = None,
    log: bool = False,
) -> Disclosure:
    """Prove that an event is at *position*, counted from 1, in the sealed run, without revealing its content.

    With *log*, and for a sealed log, the position is that of a line of the log.
    """
    run = _SealedRun(Path(path), Path(seal), None if secret is None else Path(secret), log)
    return sealing.prove(run.leaves(position), run.tree, position)


@takes_addresses("path", "seal")
def disclose(
    path: str | Path,
    position: int,
    fields: Collection[str],
    *,
    seal: str | Path,
    secret: str | Path | None = None,
    log: bool = False,
) -> Disclosure:
    """Reveal the *fields* of a sealed event, with proof; a field includes all fields below it.

    With *log*, and for a sealed log, *position* is that of a line of the log.
    """
    run = _SealedRun(Path(path), Path(seal), None if secret is None else Path(secret), log)
    leaves, committed = run.leaves(position), run.fields(position)
    return sealing.disclose(leaves, run.tree, position, fields=committed, seed=run.secret.seed, names=fields)


class RunLog:
    """A capture directory or a REPLAY.jsonl, which can be read as a log several times."""

    def __init__(self, path: Path, progress_bar: ProgressBar = no_progress_bar) -> None:
        self.path = path
        self._progress_bar = progress_bar
        self.capture = CaptureReader(path) if path.is_dir() else None
        self.dialect: Dialect[Any] = DIALECTS["current"]
        if self.capture is None:
            first = next(self.events(), None)
            self.dialect = next(dialect for dialect in DIALECTS.values() if dialect.owns(first))

    def events(self) -> Iterator[Event]:
        """The events of the log, header included; the first invalid line raises."""
        file = self.path if self.capture is None else Path(self.capture.events_file)
        with self._progress_bar(file.stat().st_size, "reading") as progress:
            if self.capture is None:
                yield from self._log_events(progress)
            else:
                yield from self._capture_events(self.capture, progress)

    def outputs(self) -> Iterator[JsonValue]:
        """The outputs of the tools in a capture; none for a log, which has only their hashes."""
        if self.capture is None:
            return
        for event in self.capture.events():
            if isinstance(event, ToolResult):
                stored = (event.data.result, event.data.pieces)
                yield from (
                    strip_tags(self.capture.resolve(value)) for value in stored if value is not ABSENT
                )

    def _log_events(self, progress: Progress) -> Iterator[Event]:
        done_bytes = 0
        with self.path.open("rb") as stream:
            for number, (_, event) in enumerate(read_replay_log(stream, file=str(self.path))):
                if number % _PROGRESS_LINES == 0 and stream.seekable():
                    progress(stream.tell() - done_bytes)
                    done_bytes = stream.tell()
                yield event

    def _capture_events(self, capture: CaptureReader, progress: Progress) -> Iterator[Event]:
        for seq, conversion in enumerate(replay_log_of_capture(capture), 1):
            progress(len(capture.line(seq)))
            yield from conversion.events

    def trajectory_hash(self) -> str:
        """The hash of a log file."""
        with self.path.open("rb") as stream:
            return trajectory_hash(stream, file=str(self.path))

    def refuse_foreign(self, seal: Seal, seal_path: Path) -> None:
        """Raise unless *seal* is the seal of this run."""
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
    """The secret of a seal."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._open() as stream:
            self.seed = read_seed(stream, file=str(path))

    @staticmethod
    def of(seal_path: Path, secret_path: Path | None) -> Secret:
        """The secret in *secret_path*, or at its default place.

        That is beside the seal, or for a seal at an address the current folder.
        """
        beside = default_secret(seal_path)
        return Secret(secret_path or (beside if beside.exists() else Path(beside.name)))

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
    """The default place of the seal: beside the run, because nothing else belongs in a capture."""
    named = path if path.name not in ("", "..") else path.resolve()
    return named.parent / f"{named.name}{_SEAL}"


def default_secret(seal_path: Path) -> Path:
    """The default place of the secret of a seal."""
    return seal_path.parent / f"{seal_path.name.removesuffix('.json')}.secret"


def unsealed_lines(
    run: RunLog, policy: PolicyName, withhold: Collection[int] = ()
) -> Iterator[dict[str, JsonValue] | None]:
    """The lines of a log published without a seal; ``None`` for each withheld line."""
    seed = secrets.token_bytes(SEED_BYTES)
    publisher = Publisher(run.events(), run.dialect, seed, [policy], run.outputs())
    for position, event in enumerate(run.events(), 1):
        line = None if position in withhold else publisher.publish(event, policy)
        yield {**line, PUBLISHED: policy} if line is not None and position == 1 else line


def _sealed_lines(
    run: RunLog, policy: PolicyName, withhold: Collection[int], seal_path: Path, secret: Secret
) -> Iterator[dict[str, JsonValue]]:
    seal = _read_seal(seal_path)
    run.refuse_foreign(seal, seal_path)
    leaves = _verify_leaves([*log_leaves(secret.lines(), secret.seed)], seal.log.lines.root, secret)
    yield from published_lines(
        secret.lines(), leaves, secret.seed, dialect=run.dialect, policy=policy, withhold=withhold
    )


def _write_lines(lines: Iterator[dict[str, Any] | None], stream: BinaryIO, tag_field: str) -> Counter[str]:
    """Write the lines, and count the shown and the withheld ones."""
    counts = Counter[str]()
    for line in lines:
        name = WITHHELD_EVENT if line is None else line[tag_field]
        counts[{WITHHELD_EVENT: "withheld", LEAVES: "leaves"}.get(name, "shown")] += 1
        if line is not None:
            stream.write(canonical.encode(line) + b"\n")
    return counts


def _write_secret(run: RunLog, seed: bytes, secret: BinaryIO) -> Tree:
    """Write the log in the forms of all policies to *secret*; returns the tree over it."""
    publisher = Publisher(run.events(), run.dialect, seed, outputs=run.outputs())

    def lines() -> Iterator[SealedLine]:
        for event in run.events():
            line = publisher.seal_line(event)
            secret.write(line_to_bytes(line))
            yield line

    secret.write(head_to_bytes(seed))
    return tree_of(log_leaves(lines(), seed))


def _seal_of(run: RunLog, seed: bytes, lines: Tree) -> Seal:
    log_hash = run.trajectory_hash() if run.capture is None else ABSENT
    return Seal(
        version=SEAL_VERSION,
        sealedAt=rfc3339(datetime.now(UTC)),
        producer=f"reenact/{__version__}",
        log=SealedLog(dialect=run.dialect.name, lines=lines, trajectoryHash=log_hash),
        capture=_sealed_capture(run, seed),
    )


def _sealed_capture(run: RunLog, seed: bytes) -> SealedCapture | Absent:
    if run.capture is None:
        return ABSENT
    manifest = run.capture.manifest
    return SealedCapture(
        captureId=manifest.captureId,
        runId=manifest.runId,
        manifestHash=canonical.digest_of_bytes(RunDir(run.path).read_manifest()),
        eventsHash=manifest.integrity.eventsHash,
        events=tree_of(event_leaves(run.capture.lines(), seed)),
    )


def _read_seal(path: Path) -> Seal:
    """The seal in *path*, not verified: its owner publishes under it."""
    envelope = read_envelope(path.read_bytes(), file=str(path))
    return read_seal(payload_of(envelope), file=str(path))


def _verify_leaves(leaves: list[bytes], root: str, secret: Secret) -> list[bytes]:
    """*leaves*; raises unless they are the sealed ones."""
    if root_of(leaves).hex() != root:
        raise CheckFailed(f"{secret.path}: is not the secret of this seal, or was changed")
    return leaves


class _SealedRun:
    """A run with its seal and secret; its leaves are the events of the capture or the lines of the log."""

    def __init__(self, path: Path, seal_path: Path, secret_path: Path | None, log: bool) -> None:
        self._run = RunLog(path)
        self._seal = _read_seal(seal_path)
        self._run.refuse_foreign(self._seal, seal_path)
        self.secret = Secret.of(seal_path, secret_path)
        self.tree: TreeName = "log" if log or self._run.capture is None else "events"

    def leaves(self, position: int) -> list[bytes]:
        """All leaves of the tree, which must have one at *position*."""
        if self.tree == "log":
            tree, leaves = self._seal.log.lines, log_leaves(self.secret.lines(), self.secret.seed)
        else:
            assert self._run.capture is not None
            assert self._seal.capture is not ABSENT
            tree = self._seal.capture.events
            leaves = event_leaves(self._run.capture.lines(), self.secret.seed)
        if not 1 <= position <= tree.count:
            what = "lines" if self.tree == "log" else "events"
            raise UsageError(f"there is no {position}: {tree.count} {what} were sealed")
        return _verify_leaves([*leaves], tree.root, self.secret)

    def fields(self, position: int) -> dict[str, JsonValue]:
        """The fields that the leaf at *position* commits to."""
        if self.tree == "log":
            return line_fields(next(islice(self.secret.lines(), position - 1, None))).committed
        assert self._run.capture is not None
        return event_fields(self._run.capture.line(position))

"""Runs in object storage: put there, brought back and listed, by an address such as ``s3://bucket/runs``.

A run is there when its ``manifest.json`` is: it is written last, and only if there is none yet. What an
upload that was cut off has left is no run for anybody, and the next upload of that run completes it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from reenact.check.artifact import verify
from reenact.check.kinds import find_runs
from reenact.errors import DigestMismatch, FormatError, StoreError, UsageError
from reenact.progress import ProgressBar, no_progress_bar
from reenact.store.rundir import MANIFEST, RunDir, RunState, making_folder

SCHEMES: Final = ("s3", "gs", "az", "file")
_FINISHED: Final = (RunState.COMPLETE, RunState.RECOVERED)
_RETRIES: Final = {"max_retries": 6, "retry_timeout": timedelta(seconds=60)}
_PATIENCE: Final = {"connect_timeout": timedelta(seconds=10), "timeout": timedelta(seconds=120)}


class StoredRun(msgspec.Struct, frozen=True, rename="camel"):
    """A run in object storage."""

    name: str
    """Its place below the address; empty where the address is the run."""
    size_bytes: int
    objects: int
    stored_at: str
    """When its manifest was written, in ISO 8601."""


class PushReport(msgspec.Struct, frozen=True, rename="camel"):
    """What :func:`push` did."""

    address: str
    pushed: list[str]
    already_there: list[str]
    problems: list[str]
    """Runs that were not put there, and why."""
    size_bytes: int


class PullReport(msgspec.Struct, frozen=True, rename="camel"):
    """What :func:`pull` did."""

    folder: str
    pulled: list[str]
    already_here: list[str]
    problems: list[str]
    size_bytes: int


def push(*runs: str | Path, to: str, progress_bar: ProgressBar = no_progress_bar) -> PushReport:
    """Put captures, and the captures in folders, below the address *to*; each whole or not at all.

    A run that is there already is left alone. One of the same name that is another run is a problem of the
    report: nothing is ever replaced.
    """
    store = ObjectStore(to)
    store.check()
    found = [(name, path) for root in runs for name, path in _captures(Path(root))]
    report = PushReport(to, [], [], [], 0)
    sent_bytes = 0
    with progress_bar(len(found), "pushing") as progress:
        for name, path in found:
            try:
                sent = _push_run(store, name, path)
                (report.already_there if sent is None else report.pushed).append(name)
                sent_bytes += sent or 0
            except (FormatError, StoreError) as error:
                report.problems.append(str(error))
            progress(1)
    return msgspec.structs.replace(report, size_bytes=sent_bytes)


def _captures(root: Path) -> Iterator[tuple[str, Path]]:
    """Each capture in *root* with its name below the address: a capture itself by its own name."""
    for path in find_runs([str(root)]):
        if not path.is_dir() or not RunDir(path).is_capture:
            raise UsageError(f"{path}: is no capture; make one of it with: reenact import")
        yield path.absolute().name if path == root else path.relative_to(root).as_posix(), path


def _push_run(store: ObjectStore, name: str, path: Path) -> int | None:
    """Upload the capture in *path*; how many bytes, or ``None`` where it is there already."""
    state = RunDir(path).state
    if state not in _FINISHED:
        raise StoreError(f"{path}: is {state.value}; only finished runs are stored")
    manifest = RunDir(path).read_manifest()
    there = store.find(f"{name}/{MANIFEST}")
    if there is not None:
        if there == manifest:
            return None
        raise StoreError(f"{store.address}/{name}: is another run; give this one another name")
    files = [file for file in sorted(path.rglob("*")) if file.is_file() and not file.is_symlink()]
    sent_bytes = len(manifest)
    for file in files:
        part = file.relative_to(path).as_posix()
        if part != MANIFEST and not any(piece.startswith(".") for piece in PurePosixPath(part).parts):
            content = file.read_bytes()
            store.put(f"{name}/{part}", content)
            sent_bytes += len(content)
    if RunDir(path).read_manifest() != manifest:
        raise StoreError(f"{path}: was recorded again meanwhile; push it again")
    if not store.put_new(f"{name}/{MANIFEST}", manifest) and store.find(f"{name}/{MANIFEST}") != manifest:
        raise StoreError(
            f"{store.address}/{name}: another run came there meanwhile; give this one another name"
        )
    return sent_bytes


def pull(address: str, into: str | Path, *, progress_bar: ProgressBar = no_progress_bar) -> PullReport:
    """Bring the run at *address*, or all runs below it, into the folder *into*; each whole or not at all.

    A run is verified before it appears. One that is here already is left alone, and one of the same name that
    is another run is a problem of the report.
    """
    store = ObjectStore(address)
    found = store.runs()
    if not found:
        raise StoreError(f"{address}: holds no run; reenact ls lists what is stored")
    report = PullReport(str(into), [], [], [], 0)
    pulled_bytes = 0
    with progress_bar(len(found), "pulling") as progress:
        for name, objects in found.items():
            target = Path(into) / (name or PurePosixPath(urlsplit(address).path).name)
            try:
                if _pull_run(store, name, objects, target):
                    report.pulled.append(str(target))
                    pulled_bytes += sum(each.size_bytes for each in objects)
                else:
                    report.already_here.append(str(target))
            except (FormatError, StoreError) as error:
                report.problems.append(str(error))
            progress(1)
    return msgspec.structs.replace(report, size_bytes=pulled_bytes)


def _pull_run(store: ObjectStore, name: str, objects: Iterable[_Object], target: Path) -> bool:
    manifest = store.get(f"{name}/{MANIFEST}".lstrip("/"))
    if target.exists() and RunDir(target).is_capture and RunDir(target).read_manifest() == manifest:
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    with making_folder(target) as folder:
        for each in objects:
            part = each.path[len(name) :].lstrip("/")
            file = folder / _safe(part, store.address)
            file.parent.mkdir(parents=True, exist_ok=True)
            content = store.get(each.path)
            if len(content) != each.size_bytes:
                reason = f"{len(content)} of {each.size_bytes} bytes came; try again"
                raise StoreError(f"{store.address}/{each.path}: {reason}")
            file.write_bytes(content)
        report = verify(folder)
        if not report.is_good:
            bad = next(finding for finding in report.findings if finding.severity == "error")
            raise DigestMismatch(
                f"the stored run is damaged: {bad.describe()}", file=f"{store.address}/{name}"
            )
    return True


def _safe(part: str, address: str) -> str:
    """*part* as a name inside the run; whoever can write to the storage cannot write beside it."""
    pieces = part.split("/")
    if any(piece in ("", ".", "..") or "\0" in piece or "\\" in piece for piece in pieces):
        raise StoreError(f"{address}: {part!r} is no name of a file in a run; it was not pulled")
    return part


def list_runs(address: str) -> list[StoredRun]:
    """The runs at and below *address*, by name; what an upload that was cut off has left is none."""
    runs = ObjectStore(address).runs()
    return [
        StoredRun(
            name,
            sum(each.size_bytes for each in objects),
            len(objects),
            next(each.stored_at for each in objects if PurePosixPath(each.path).name == MANIFEST),
        )
        for name, objects in sorted(runs.items())
    ]


class _Object(NamedTuple):
    path: str
    """Below the address."""
    size_bytes: int
    stored_at: str


def is_address(text: str) -> bool:
    """Whether *text* names a place in object storage and not a path."""
    return text.partition("://")[0] in SCHEMES and "://" in text


class ObjectStore:
    """What is below one address; credentials come by the service's usual chain, never by the address."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        if not is_address(address):
            raise UsageError(
                f"{address}: is no address; write such as s3://BUCKET/FOLDER ({', '.join(SCHEMES)})"
            )
        if "@" in parts.netloc or parts.query or parts.fragment:
            shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
            raise UsageError(f"{shown}: an address holds no credentials; put them where the service looks")
        self.address = address.rstrip("/")
        obstore = _import_obstore()
        self._errors = obstore.exceptions
        self._obstore = obstore
        if parts.scheme == "file":
            Path(parts.path).mkdir(parents=True, exist_ok=True)
        with self._in_one_line():
            # Given options take the place of what the library reads from the environment by itself.
            allow_http = os.environ.get("AWS_ALLOW_HTTP", "").lower() in ("1", "true")
            client = {**_PATIENCE, "allow_http": allow_http}
            options: dict[str, Any] = {"retry_config": _RETRIES, "client_options": client}
            options = {} if parts.scheme == "file" else options
            self._store = obstore.store.from_url(self.address, **options)

    def check(self) -> None:
        """Raise where nothing can be done at the address: no bucket, no credentials, nobody there."""
        with self._in_one_line():
            self._obstore.list_with_delimiter(self._store)

    def put(self, path: str, content: bytes) -> None:
        with self._in_one_line(path):
            self._obstore.put(self._store, path, content)

    def put_new(self, path: str, content: bytes) -> bool:
        """Write an object that is not there yet; whether it was not."""
        with self._in_one_line(path):
            try:
                self._obstore.put(self._store, path, content, mode="create", use_multipart=False)
            except self._errors.AlreadyExistsError:
                return False
        return True

    def find(self, path: str) -> bytes | None:
        """The bytes of an object; ``None`` where there is none."""
        with self._in_one_line(path):
            try:
                return bytes(self._obstore.get(self._store, path).bytes())
            except (self._errors.NotFoundError, FileNotFoundError):
                return None

    def get(self, path: str) -> bytes:
        content = self.find(path)
        if content is None:
            raise StoreError(f"{self.address}/{path}: is gone; it was removed meanwhile")
        return content

    def runs(self) -> dict[str, list[_Object]]:
        """By name, the objects of every whole run."""
        with self._in_one_line():
            found = [
                _Object(str(each["path"]), int(each["size"]), each["last_modified"].isoformat())
                for chunk in self._obstore.list(self._store)
                for each in chunk
            ]
        names = [str(PurePosixPath(each.path).parent) for each in found if _is_manifest(each.path)]
        runs: dict[str, list[_Object]] = {"" if name == "." else name: [] for name in names}
        for each in found:
            above = [str(parent) for parent in PurePosixPath(each.path).parents]
            name = next((p for p in ("" if p == "." else p for p in above) if p in runs), None)
            if name is not None:
                runs[name].append(each)
        return runs

    @contextmanager
    def _in_one_line(self, path: str = "") -> Iterator[None]:
        where = f"{self.address}/{path}".rstrip("/")
        errors = self._errors
        try:
            yield
        except (errors.PermissionDeniedError, errors.UnauthenticatedError):
            raise StoreError(f"{where}: access is denied; are the credentials those for it?") from None
        except errors.NotFoundError:
            raise StoreError(f"{where}: there is no such bucket or object; check the address") from None
        except (errors.BaseError, OSError, ValueError) as error:
            raise StoreError(f"{where}: {_first_words(error)}") from None


def _is_manifest(path: str) -> bool:
    return PurePosixPath(path).name == MANIFEST


def _first_words(error: Exception) -> str:
    """The reason that stands last in a chain of them, without the drawing of the debug form."""
    text = " ".join(str(error).partition("\n\nDebug source:")[0].split())
    if "NoSuchBucket" in text:
        return "there is no such bucket; make it, or check the address"
    if "CredentialsNotLoaded" in str(error) or "169.254.169.254" in str(error):
        return "there are no credentials; set them as the service's own tools take them"
    return text[:300]


def _import_obstore() -> Any:
    try:
        import obstore
        import obstore.store
    except ImportError:
        raise UsageError("obstore is not installed; addresses take: pip install 'reenact[s3]'") from None
    return obstore

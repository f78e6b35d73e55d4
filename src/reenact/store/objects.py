"""Object storage by an address such as ``s3://bucket/runs``: whole objects, parts of objects, lists of them.

A run exists when its ``manifest.json`` does, which is written last and only if there is none yet. The
objects of an interrupted upload are not a run; the next upload of that run completes them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

from reenact.errors import StoreError, UsageError
from reenact.store.rundir import MANIFEST, RunDir, RunState

SCHEMES: Final = ("s3", "gs", "az", "file")
ADDRESS: Final = re.compile(rf"({'|'.join(SCHEMES)}):/+(.*)", re.DOTALL)
"""One slash is enough, because ``pathlib`` makes one of two."""
_FINISHED: Final = (RunState.COMPLETE, RunState.RECOVERED)
_SETTINGS: Final = {"s3": "AWS", "gs": "GOOGLE", "az": "AZURE"}
"""The prefix of each service's environment variables."""
_RETRIES: Final = {"max_retries": 6, "retry_timeout": timedelta(seconds=60)}
_PATIENCE: Final = {"connect_timeout": timedelta(seconds=10), "timeout": timedelta(seconds=120)}
_READ_TRIES: Final = 3
_AT_ONCE: Final = 8
"""Objects of a run that are transferred at the same time, because each costs a round trip."""
_IN_ONE_REQUEST_BYTES: Final = 64 * 1024 * 1024
"""A larger file is sent in parts, and appears when the last part has arrived."""

T = TypeVar("T")
R = TypeVar("R")


def address_in(path: str | Path) -> str | None:
    """*path* as an address in its usual form; ``None`` for a path on this machine."""
    found = ADDRESS.fullmatch(str(path))
    if found is None:
        return None
    scheme, rest = found.groups()
    return f"file:///{rest}" if scheme == "file" else f"{scheme}://{rest}"


class StoredObject(NamedTuple):
    """An object in a list of them."""

    path: str
    """Below the address."""
    size_bytes: int
    mark: str
    """Changes when the object does."""
    modified_s: float
    """When it was written, by the clock of the service."""
    version: str | None = None
    """Where the service counts versions."""


class ObjectStore:
    """The objects below one address; credentials come from the service's usual places, never the address."""

    def __init__(self, address: str, *, is_written: bool = False) -> None:
        found = address_in(address)
        if found is None or "://" not in address:
            raise UsageError(
                f"{address}: is not an address; write for example s3://BUCKET/FOLDER ({', '.join(SCHEMES)})"
            )
        parts = urlsplit(found)
        if "@" in parts.netloc or parts.query or parts.fragment:
            shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
            raise UsageError(
                f"{shown}: an address must not hold credentials; put them where the service's own tools look"
            )
        self.address = found.rstrip("/")
        obstore = _import_obstore()
        self._errors = obstore.exceptions
        self._obstore = obstore
        with self._raise_in_one_line():
            # Options given here replace those that the library would read from the environment.
            setting = f"{_SETTINGS.get(parts.scheme)}_ALLOW_HTTP"
            allow_http = os.environ.get(setting, "").lower() in ("1", "true")
            _check_servers(parts.scheme, "" if allow_http else setting)
            client = {**_PATIENCE, "allow_http": allow_http}
            options: dict[str, object] = {"retry_config": _RETRIES, "client_options": client}
            if parts.scheme == "file":
                folder = Path(parts.path)
                if not is_written and not folder.is_dir():
                    raise StoreError(f"{self.address}: No such file or directory; check the address")
                self._store = obstore.store.LocalStore(folder, mkdir=is_written)
            else:
                self._store = obstore.store.from_url(self.address, **options)

    def check(self) -> None:
        """Raise if the address cannot be used: no bucket, no credentials, no answer."""
        with self._raise_in_one_line():
            self._obstore.list_with_delimiter(self._store)

    def put(self, path: str, content: bytes) -> None:
        with self._raise_in_one_line(path):
            self._obstore.put(self._store, path, content)

    def put_new(self, path: str, content: bytes) -> bool:
        """Write an object if there is none yet; returns whether it was written."""
        with self._raise_in_one_line(path):
            try:
                self._obstore.put(self._store, path, content, mode="create", use_multipart=False)
            except self._errors.AlreadyExistsError:
                return False
        return True

    def replace(self, path: str, content: bytes, before: StoredObject | None) -> bool:
        """Replace the object *before*, or write a new one if it is ``None``; false if another came first."""
        if before is None:
            return self.put_new(path, content)
        with self._raise_in_one_line(path):
            try:
                mode = {"e_tag": before.mark} | ({"version": before.version} if before.version else {})
                self._obstore.put(self._store, path, content, mode=mode, use_multipart=False)
            except (self._errors.PreconditionError, self._errors.NotFoundError):
                return False
        return True

    def delete(self, paths: Sequence[str]) -> None:
        """Delete objects; a missing one is not an error."""
        with self._raise_in_one_line():
            if paths:
                self._obstore.delete(self._store, list(paths))

    def put_new_file(self, path: str, file: Path) -> bool:
        """Write a file of any size as an object if there is none yet; returns whether it was written.

        It appears whole or not at all. If two processes write a large one at the same time, the later wins.
        """
        if file.stat().st_size <= _IN_ONE_REQUEST_BYTES:
            return self.put_new(path, file.read_bytes())
        if self.size_of(path) is not None:
            return False
        with self._raise_in_one_line(path):
            self._obstore.put(self._store, path, file)
        return True

    def find(self, path: str) -> bytes | None:
        """The bytes of an object; ``None`` where there is none."""
        with self._raise_in_one_line(path):
            try:
                return self._try(lambda: bytes(self._obstore.get(self._store, path).bytes()))
            except (self._errors.NotFoundError, FileNotFoundError):
                return None

    def get(self, path: str) -> bytes:
        content = self.find(path)
        if content is None:
            raise StoreError(f"{self.address}/{path}: is gone; it was removed meanwhile")
        return content

    def begin(self, path: str, length: int) -> tuple[int, bytes]:
        """The size of an object and its first *length* bytes, in one request."""

        def read() -> tuple[int, bytes]:
            found = self._obstore.get(self._store, path, options={"range": (0, length)})
            return found.meta["size"], bytes(found.bytes())

        with self._raise_in_one_line(path):
            return self._try(read)

    def get_range(self, path: str, start: int, length: int) -> bytes:
        """A part of an object; only this part is transferred."""
        with self._raise_in_one_line(path):
            found = self._try(
                lambda: bytes(self._obstore.get_range(self._store, path, start=start, length=length))
            )
        if len(found) != length:
            raise StoreError(f"{self.address}/{path}: {len(found)} of {length} bytes came; try again")
        return found

    def look_at(self, path: str) -> StoredObject | None:
        """The metadata of an object; ``None`` if there is no object."""
        with self._raise_in_one_line(path):
            try:
                return _stored_object(self._obstore.head(self._store, path))
            except (self._errors.NotFoundError, FileNotFoundError):
                return None

    def size_of(self, path: str) -> int | None:
        """The size of an object; ``None`` if there is no object."""
        found = self.look_at(path)
        return None if found is None else found.size_bytes

    def objects(self) -> list[StoredObject]:
        """Everything below the address."""
        with self._raise_in_one_line():
            found = self._try(lambda: [each for chunk in self._obstore.list(self._store) for each in chunk])
        return [_stored_object(each) for each in found]

    def runs(self) -> dict[str, list[StoredObject]]:
        """The objects of every complete run, by its name; a run at the address itself has an empty name."""
        found = self.objects()
        names = {_parent(each.path) for each in found if PurePosixPath(each.path).name == MANIFEST}
        runs: dict[str, list[StoredObject]] = {name: [] for name in sorted(names)}
        for each in found:
            above = _parent(each.path)
            while above and above not in runs:
                above = _parent(above)
            if above in runs:
                runs[above].append(each)
        return runs

    def fetch(self, objects: Iterable[StoredObject], below: str, into: Path) -> None:
        """Copy *objects* into the folder *into*, with their names relative to *below*."""

        def fetch_one(each: StoredObject) -> None:
            file = into / safe_name(each.path[len(below) :].lstrip("/"), self.address)
            content = self.get(each.path)
            if len(content) != each.size_bytes:
                reason = f"{len(content)} of {each.size_bytes} bytes came; try again"
                raise StoreError(f"{self.address}/{each.path}: {reason}")
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
                os.utime(file, (each.modified_s, each.modified_s))
            except OSError as error:
                raise StoreError(f"{file}: cannot be written: {error.strerror}; check the disk") from error

        _run_in_threads(fetch_one, objects)

    def push(self, name: str, path: Path) -> int | None:
        """Upload the capture in *path* as *name*; returns the bytes sent, ``None`` if it is there already."""
        state = RunDir(path).state
        if state not in _FINISHED:
            raise StoreError(f"{path}: is {state.value}; only finished runs are stored")
        manifest = RunDir(path).read_manifest()
        where = f"{self.address}/{name}".rstrip("/")
        last = f"{name}/{MANIFEST}".lstrip("/")
        there = self.find(last)
        if there is not None:
            if there == manifest:
                return None
            raise StoreError(f"{where}: is another run; give this one another name")
        files = [file for file in files_of(path) if file != MANIFEST]

        def put_one(file: str) -> int:
            content = (path / file).read_bytes()
            self.put(f"{name}/{file}".lstrip("/"), content)
            return len(content)

        sent_bytes = sum(_run_in_threads(put_one, files)) + len(manifest)
        if RunDir(path).read_manifest() != manifest:
            raise StoreError(f"{path}: was recorded again meanwhile; push it again")
        if not self.put_new(last, manifest) and self.find(last) != manifest:
            raise StoreError(f"{where}: another run came there meanwhile; give this one another name")
        return sent_bytes

    def _try(self, read: Callable[[], T]) -> T:
        """Repeat a read whose answer was cut off; the library only repeats requests without an answer."""
        for _ in range(_READ_TRIES - 1):
            try:
                return read()
            except self._errors.GenericError as error:
                if "body error" not in str(error):
                    raise
        return read()

    @contextmanager
    def _raise_in_one_line(self, path: str = "") -> Iterator[None]:
        where = f"{self.address}/{path}".rstrip("/")
        errors = self._errors
        try:
            yield
        except (errors.BaseError, OSError, ValueError) as error:
            said = str(error)
            # For a failed listing the library reports only the status.
            if isinstance(error, errors.NotFoundError) or "code: 404" in said:
                reason = "there is no such bucket or object; check the address"
            elif isinstance(error, errors.PermissionDeniedError | errors.UnauthenticatedError) or (
                "code: 401" in said or "code: 403" in said
            ):
                reason = "access is denied; check the credentials, and the clock of this machine"
            else:
                reason = _short_reason(error)
            raise StoreError(f"{where}: {reason}") from None


def _stored_object(facts: Any) -> StoredObject:
    modified = facts["last_modified"]
    mark = str(facts["e_tag"] or modified.isoformat())
    version = facts.get("version")
    return StoredObject(str(facts["path"]), int(facts["size"]), mark, modified.timestamp(), version)


def files_of(run: Path) -> list[str]:
    """The files of the capture in *run*, in order, without hidden ones and links."""
    found = (file for file in sorted(run.rglob("*")) if file.is_file() and not file.is_symlink())
    names = (file.relative_to(run) for file in found)
    return [name.as_posix() for name in names if not any(part.startswith(".") for part in name.parts)]


def safe_name(name: str, where: str) -> str:
    """Return *name*, or raise if it leads out of the folder it is put into; its writer is not trusted."""
    pieces = name.split("/")
    if any(piece in ("", ".", "..") or "\0" in piece or "\\" in piece for piece in pieces):
        raise StoreError(f"{where}: {name!r} is not a file name of a run; it was not read")
    return name


def _run_in_threads(work: Callable[[T], R], items: Iterable[T]) -> list[R]:
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(work, items))


def _check_servers(scheme: str, setting: str) -> None:
    """Raise if a server that is set in the environment cannot be one: the library panics, or says less.

    *setting* allows one without TLS.
    """
    for name in _SERVERS.get(scheme, ()):
        server = os.environ.get(name)
        if server is None:
            continue
        parts = urlsplit(server)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{name} is not the address of a server; set it to https://HOST")
        if parts.scheme == "http" and setting:
            raise ValueError(f"{name} names a server without TLS; set {setting}=true to allow that")


_SERVERS: Final = {
    "s3": ("AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"),
    "az": ("AZURE_ENDPOINT", "AZURE_STORAGE_ENDPOINT"),
}


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _short_reason(error: Exception) -> str:
    """The last reason in a chain of errors, without the line art of the debug form."""
    text = " ".join(str(error).partition("\n\nDebug source:")[0].split())
    if "NoSuchBucket" in text:
        return "there is no such bucket; make it, or check the address"
    if "CredentialsNotLoaded" in str(error) or "169.254.169.254" in str(error):
        return "there are no credentials; set them as for the service's own tools"
    if "Account must be specified" in text:
        return "no account is named; set AZURE_STORAGE_ACCOUNT_NAME"
    if "error sending request" in text:
        return "the server cannot be reached; check the connection, and its address if you set one"
    return text[:300]


def _import_obstore() -> Any:
    try:
        import obstore
        import obstore.store
    except ImportError:
        raise UsageError("obstore is not installed; addresses take: pip install 'reenact[s3]'") from None
    return obstore

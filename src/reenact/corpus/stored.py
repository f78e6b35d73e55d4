"""A corpus in object storage: needed files are downloaded, new ones are uploaded.

Files are never overwritten. The manifest is replaced only if it is still the one that was read, so that one
of two concurrent updates fails. Files of the version before stay until the next update, for its readers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from reenact.errors import StoreError
from reenact.store.objects import ObjectStore, StoredObject, address_in
from reenact.store.remote import PACK_SUFFIX
from reenact.store.rundir import INDEX_MANIFEST


def corpus_address(path: str | Path) -> str | None:
    """The address of object storage in *path*; ``None`` for a local path, a run or a pack."""
    address = address_in(path)
    if address is None or address.startswith("file:") or "#" in address or address.endswith(PACK_SUFFIX):
        return None
    return address


class StoredCorpus:
    """A corpus at an address, in its state when this object was created."""

    def __init__(self, address: str, *, is_written: bool = False) -> None:
        self._store = ObjectStore(address, is_written=is_written)
        self.address = self._store.address
        self._before: StoredObject | None = self._store.look_at(INDEX_MANIFEST)
        self._found: dict[str, int] | None = None

    @property
    def is_there(self) -> bool:
        return self._before is not None

    @property
    def files(self) -> Mapping[str, int]:
        """The sizes of all objects below the address, by name."""
        if self._found is None:
            self._found = {each.path: each.size_bytes for each in self._store.objects()}
        return self._found

    def fetch_manifest(self, folder: Path) -> None:
        """Download the manifest; raises :class:`StoreError` if it was replaced meanwhile."""
        content = self._store.get(INDEX_MANIFEST)
        if self._store.look_at(INDEX_MANIFEST) != self._before:
            raise self._busy()
        (folder / INDEX_MANIFEST).write_bytes(content)

    def fetch(self, folder: Path, files: Mapping[str, int]) -> None:
        """Download those of *files* (sizes by name) that are not in *folder*; raises if one is incomplete."""
        missing = [name for name in files if not (folder / name).exists()]
        self._store.fetch([StoredObject(name, files[name], "", 0) for name in missing], "", folder)

    def publish(self, folder: Path, new: Iterable[str], kept: Collection[str]) -> None:
        """Upload the *new* files, then the manifest, and delete all files that are not *kept*."""
        for name in new:
            if not self._store.put_new_file(name, folder / name):
                raise self._busy()
        if not self._store.replace(INDEX_MANIFEST, (folder / INDEX_MANIFEST).read_bytes(), self._before):
            raise self._busy()
        self._store.delete([name for name in self.files if name not in kept and name != INDEX_MANIFEST])

    def _busy(self) -> StoreError:
        return StoreError(f"{self.address}: was brought up to date by somebody else meanwhile; try again")

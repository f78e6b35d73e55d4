"""A corpus at an address: the files that are needed are copied here, and new ones are put there, whole.

Files are never written over. The manifest is replaced only if it is the one that was read, so that of two who
bring a corpus up to date at once one is told. Files of the version before stay until the next update, for
those who read it meanwhile.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Final

from reenact.errors import StoreError
from reenact.store.objects import ObjectStore, StoredObject, address_in
from reenact.store.remote import PACK_SUFFIX

MANIFEST: Final = "corpus.json"


def corpus_address(path: str | Path) -> str | None:
    """The address that *path* is, where a corpus could be; ``None`` for a path on this machine."""
    address = address_in(path)
    if address is None or address.startswith("file:") or "#" in address or address.endswith(PACK_SUFFIX):
        return None
    return address


class StoredCorpus:
    """What is at an address, as it was when this was made."""

    def __init__(self, address: str, *, is_written: bool = False) -> None:
        self._store = ObjectStore(address, is_written=is_written)
        self.address = self._store.address
        self._before: StoredObject | None = self._store.look_at(MANIFEST)
        self._found: dict[str, int] | None = None

    @property
    def is_there(self) -> bool:
        return self._before is not None

    @property
    def files(self) -> Mapping[str, int]:
        """The sizes of all objects below the address, by their names there."""
        if self._found is None:
            self._found = {each.path: each.size_bytes for each in self._store.objects()}
        return self._found

    def fetch_manifest(self, folder: Path) -> None:
        """Copy the manifest; :class:`StoreError` where another one has come since."""
        content = self._store.get(MANIFEST)
        if self._store.look_at(MANIFEST) != self._before:
            raise self._busy()
        (folder / MANIFEST).write_bytes(content)

    def fetch(self, folder: Path, files: Mapping[str, int]) -> None:
        """Copy *files*, named with their sizes, that are not here yet; raises where one is not whole."""
        missing = [name for name in files if not (folder / name).exists()]
        self._store.fetch([StoredObject(name, files[name], "", 0) for name in missing], "", folder)

    def publish(self, folder: Path, new: Iterable[str], kept: Collection[str]) -> None:
        """Put the *new* files there, then the manifest, and take out all that is not *kept*."""
        for name in new:
            if not self._store.put_new_file(name, folder / name):
                raise self._busy()
        if not self._store.replace(MANIFEST, (folder / MANIFEST).read_bytes(), self._before):
            raise self._busy()
        self._store.delete([name for name in self.files if name not in kept and name != MANIFEST])

    def _busy(self) -> StoreError:
        return StoreError(f"{self.address}: was brought up to date by somebody else meanwhile; try again")

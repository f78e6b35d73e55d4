"""Captures of tests in object storage (``--reenact-captures ADDRESS``)."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from reenact.errors import ReenactError
from reenact.pytest_plugin.places import STORED, is_vacant
from reenact.store.objects import ObjectStore
from reenact.store.remote import local_run
from reenact.store.rundir import MANIFEST


class StoredCaptures:
    """Captures at an address, with copies in *folder*."""

    def __init__(self, address: str, folder: Path) -> None:
        self._store = ObjectStore(address, is_written=True)
        self._store.check()
        self.folder = folder

    def address_of(self, place: Path) -> str:
        return f"{self._store.address}/{self._name(place)}"

    def _name(self, place: Path) -> str:
        return place.relative_to(self.folder).as_posix()

    def is_there(self, place: Path) -> bool:
        return self._store.size_of(f"{self._name(place)}/{MANIFEST}") is not None

    def fetch(self, place: Path) -> None:
        """Copy the capture to *place*, if there is one at the address."""
        if is_vacant(place) and self.is_there(place):
            with local_run(self.address_of(place)) as copy:
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copytree(copy, place, dirs_exist_ok=True)

    def push(self, place: Path) -> None:
        """Store the capture in *place*; raises if that fails, or if another one is stored already."""
        self._store.push(self._name(place), place)


def open_stored(config: pytest.Config) -> None:
    """Check that the address of the captures can be used."""
    address = config.getoption("reenact_captures")
    if address is None:
        return
    if config.getoption("reenact_orphans"):
        raise pytest.UsageError("--reenact-orphans looks beside the tests; leave out --reenact-captures")
    folder = TemporaryDirectory(prefix="reenact-captures-")
    config.add_cleanup(folder.cleanup)
    try:
        config.stash[STORED] = StoredCaptures(address, Path(os.path.realpath(folder.name)))
    except ReenactError as error:
        raise pytest.UsageError(f"--reenact-captures: {error}") from None

"""The canonical text and the digest of JSON files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from reenact.canonical import Profile, digest_of_bytes, encode, read_json
from reenact.errors import FormatError, StoreError
from reenact.store.remote import local_files


class FileHash(NamedTuple):
    """The canonical text of one JSON file, or the error of reading it."""

    file: str
    profile: Profile
    text: bytes = b""
    error: FormatError | StoreError | OSError | None = None

    @property
    def digest(self) -> str:
        """The digest of the text; empty if the file could not be read."""
        return digest_of_bytes(self.text, self.profile) if self.error is None else ""


def hash_files(*files: str | Path, profile: Profile = "replay") -> Iterator[FileHash]:
    """Hash each JSON file, also at an address, when the iterator reaches it; ``-`` is standard input.

    A file that cannot be read or is not JSON does not stop the others: its :class:`FileHash` has the error.
    """
    for file in files:
        name = str(file)
        try:
            yield FileHash(name, profile, encode(read_json(_read(file), profile), profile))
        except FormatError as error:
            yield FileHash(name, profile, error=error.at(file=name))
        except (OSError, StoreError) as error:
            yield FileHash(name, profile, error=error)


def _read(file: str | Path) -> bytes:
    if str(file) == "-":
        return sys.stdin.buffer.read()
    with local_files(file) as path:
        return path.read_bytes()

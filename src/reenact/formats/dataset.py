"""The manifest of a dataset: the number of rows in its files, and their order.

It shows rows that are missing, repeated or moved, which the provenance of single rows cannot.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Final, Literal

from reenact.canonical import JsonValue, digest_of_bytes, encode_clean
from reenact.formats.record import Codec, Count, Record

DATASET_MANIFEST_SCHEMA: Final = "reenact.dataset-manifest.v1"
_BESIDE_FILE: Final = ".manifest.json"
_IN_FOLDER: Final = "dataset.manifest.json"


class DatasetFile(Record, frozen=True):
    """One file of rows."""

    name: str
    rows: Count
    digest: str
    """Over the digests of all rows, in order."""


class DatasetManifest(Record, frozen=True):
    """Written with the rows."""

    schema: Literal["reenact.dataset-manifest.v1"]
    to: Literal["sft", "preference", "parquet"]
    producer: str
    exportRedaction: str  # noqa: N815 — the wire's own name
    files: list[DatasetFile]


manifest_codec: Final[Codec[DatasetManifest]] = Codec(DatasetManifest)


def manifest_place(dataset: Path, *, is_folder: bool) -> Path:
    """The path of the manifest of a *dataset*: in the folder, or beside the single file."""
    return dataset / _IN_FOLDER if is_folder else dataset.with_name(dataset.name + _BESIDE_FILE)


class RowsDigest:
    """Counts rows, and computes the digest of all of them in order."""

    def __init__(self) -> None:
        self.count = 0
        self._hash = sha256()

    def add(self, row: dict[str, JsonValue]) -> None:
        self.count += 1
        self._hash.update(digest_of_bytes(encode_clean(row)).encode() + b"\n")

    @property
    def digest(self) -> str:
        return f"sha256:{self._hash.hexdigest()}"

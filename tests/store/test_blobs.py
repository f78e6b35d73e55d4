"""Blobs: kept once, found by their digest, never believed unchecked."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reenact import canonical
from reenact.errors import DigestMismatch, FormatError, StoreError
from reenact.store.blobs import BlobStore
from reenact.store.durable import Durability

from . import child

EMPTY = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def files_below(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file())


@pytest.mark.parametrize("durability", ["process", "disk"])
def test_what_is_put_can_be_got(tmp_path: Path, durability: Durability) -> None:
    """The digest is that of the bytes, and names the file."""
    blobs = BlobStore(tmp_path / "blobs", durability=durability)
    assert blobs.put(b"") == EMPTY
    assert blobs.get(EMPTY) == b""
    assert files_below(tmp_path) == [tmp_path / "blobs" / "sha256" / EMPTY[7:9] / EMPTY[9:]]
    assert blobs.path_of(EMPTY) == files_below(tmp_path)[0]


@settings(deadline=None)
@given(payloads=st.lists(st.binary(max_size=50)))
def test_the_store_holds_each_payload_once(
    payloads: list[bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Iteration gives the digests of exactly what was put, sorted, with their sizes."""
    blobs = BlobStore(tmp_path_factory.mktemp("blobs"))
    for payload in payloads:
        blobs.put(payload)
    kept = {canonical.digest_of_bytes(payload): payload for payload in payloads}
    assert list(blobs) == sorted(kept)
    assert {digest: blobs.get(digest) for digest in blobs} == kept
    assert {digest: blobs.size_bytes(digest) for digest in blobs} == {d: len(p) for d, p in kept.items()}


def test_a_repeated_put_does_not_touch_the_disk(tmp_path: Path) -> None:
    """Neither in the store that wrote the blob nor in another one."""
    digest = BlobStore(tmp_path).put(b"payload")
    before = BlobStore(tmp_path).path_of(digest).stat()
    for blobs in (BlobStore(tmp_path), BlobStore(tmp_path)):
        blobs.put(b"payload")
        blobs.put(b"payload")
    after = BlobStore(tmp_path).path_of(digest).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_blob_cut_short_is_written_again(tmp_path: Path) -> None:
    """A power loss can leave a name without its bytes."""
    digest = BlobStore(tmp_path).put(b"payload")
    BlobStore(tmp_path).path_of(digest).write_bytes(b"")
    BlobStore(tmp_path).put(b"payload")
    assert BlobStore(tmp_path).get(digest) == b"payload"


def test_a_flipped_bit_is_found_and_the_file_named(tmp_path: Path) -> None:
    """A blob is checked each time it is read."""
    blobs = BlobStore(tmp_path)
    digest = blobs.put(b"payload")
    blobs.path_of(digest).write_bytes(b"qayload")
    with pytest.raises(DigestMismatch) as caught:
        blobs.get(digest)
    assert caught.value.file == str(blobs.path_of(digest))


def test_a_missing_blob_is_named(tmp_path: Path) -> None:
    """By get, by size and, for many at once, by missing."""
    blobs = BlobStore(tmp_path)
    kept = blobs.put(b"payload")
    for ask in (blobs.get, blobs.size_bytes):
        with pytest.raises(StoreError, match=f"{EMPTY[9:]}: is missing"):
            ask(EMPTY)
    assert blobs.find_missing([EMPTY, kept, EMPTY]) == [EMPTY]
    assert BlobStore(tmp_path / "nowhere").find_missing([kept]) == [kept]


NOT_DIGESTS = {
    "empty": "",
    "bare hex": EMPTY[7:],
    "upper case": EMPTY.upper(),
    "short": EMPTY[:-1],
    "another algorithm": "sha512:" + EMPTY[7:],
    "traversal": "sha256:" + "../" * 21 + "x",
    "absolute": "sha256:/" + "a" * 63,
    "line end": EMPTY[:-1] + "\n",
    "full-width digit": EMPTY[:-1] + "５",
}


@pytest.mark.parametrize("digest", NOT_DIGESTS.values(), ids=NOT_DIGESTS.keys())
def test_what_is_not_a_digest_never_becomes_a_path(tmp_path: Path, digest: str) -> None:
    """Digests come from files that anybody may have written."""
    blobs = BlobStore(tmp_path)
    for ask in (blobs.get, blobs.path_of, blobs.size_bytes, lambda digest: blobs.find_missing([digest])):
        with pytest.raises(FormatError, match="is not a digest"):
            ask(digest)


def test_threads_may_put_the_same_bytes(tmp_path: Path) -> None:
    """All get the digest, one file is left, no temporary one."""
    stores = [BlobStore(tmp_path) for _ in range(8)]
    payloads = [bytes([number]) * 20_000 for number in range(20)]
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda blobs: [blobs.put(payload) for payload in payloads], stores))
    assert results == [[canonical.digest_of_bytes(payload) for payload in payloads]] * 8
    assert len(files_below(tmp_path)) == 20


PUT_FOR_EVER = """
import sys
from pathlib import Path
from reenact.store.blobs import BlobStore
blobs = BlobStore(Path(sys.argv[1]))
for number in range(10**9):
    print(blobs.put(b"%d" % number * 20_000), flush=True)
"""


def test_processes_killed_while_putting_leave_only_whole_blobs(tmp_path: Path) -> None:
    """Two at once on the same bytes: every acknowledged blob is there, every blob there is whole."""
    writers = [child.start(PUT_FOR_EVER, tmp_path) for _ in range(2)]
    acknowledged = []
    for writer in writers:
        assert writer.stdout is not None
        acknowledged += [writer.stdout.readline().decode().strip() for _ in range(30)]
        writer.kill()
    for writer in writers:
        writer.communicate()
    blobs = BlobStore(tmp_path)
    assert set(acknowledged) <= set(blobs)
    assert all(len(blobs.get(digest)) >= 20_000 for digest in blobs)


FILL_THE_DISK = """
import resource, signal, sys
from pathlib import Path
from reenact.errors import StoreError
from reenact.store.blobs import BlobStore
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
try:
    BlobStore(Path(sys.argv[1])).put(b"x" * 20_000)
except StoreError as error:
    print(error)
"""


def test_a_blob_that_does_not_fit_leaves_no_file(tmp_path: Path) -> None:
    """Neither a blob nor a temporary file."""
    assert "File too large" in child.run(FILL_THE_DISK, tmp_path)
    assert files_below(tmp_path) == []


def test_files_with_other_names_are_not_blobs(tmp_path: Path) -> None:
    """Whatever else lies in the directory is not listed."""
    blobs = BlobStore(tmp_path)
    digest = blobs.put(b"payload")
    (tmp_path / ".tmp-1-1").write_bytes(b"half")
    (tmp_path / "sha256" / digest[7:9] / "note.txt").write_bytes(b"")
    (tmp_path / "sha256" / "no folder").write_bytes(b"")
    (tmp_path / "sha256" / "ff").write_bytes(b"a file where a folder should be")
    assert list(blobs) == [digest]


def test_a_linked_folder_is_refused_on_every_way(tmp_path: Path) -> None:
    """A planted link must neither be read through nor written through."""
    outside, root = tmp_path / "outside", tmp_path / "blobs"
    digest = BlobStore(outside).put(b"payload")
    root.mkdir()
    os.symlink(outside / "sha256", root / "sha256")
    blobs = BlobStore(root)
    for use in (lambda: blobs.get(digest), lambda: blobs.put(b"other"), lambda: list(blobs)):
        with pytest.raises(StoreError, match="link"):
            use()
    assert len(files_below(outside)) == 1

"""Names inside an artifact never lead out of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.errors import StoreError
from reenact.store.paths import inside, open_inside

GOOD = {
    "a file": "events.jsonl",
    "a file in a folder": "blobs/sha256/ab/cdef",
    "a hidden file": ".tmp-1-2",
    "dots in a name": "a..b/...",
    "a space": "my events.jsonl",
    "not ASCII": "événements.jsonl",
    "a colon further on": "run:1",
}

BAD = {
    "empty": "",
    "absolute": "/etc/passwd",
    "two slashes": "//server/share",
    "parent": "..",
    "parent first": "../events.jsonl",
    "parent in the middle": "blobs/../../events.jsonl",
    "parent last": "blobs/..",
    "itself": ".",
    "itself first": "./events.jsonl",
    "empty part": "blobs//x",
    "slash last": "blobs/",
    "backslash": "blobs\\x",
    "backslash parent": "..\\events.jsonl",
    "drive": "C:/events.jsonl",
    "drive without slash": "c:events.jsonl",
    "NUL": "events.jsonl\0.png",
    "lone surrogate": "\ud800",
    "too long": "x" * 5000,
}


@pytest.mark.parametrize("name", GOOD.values(), ids=GOOD.keys())
def test_a_plain_relative_name_is_a_path_below_the_root(tmp_path: Path, name: str) -> None:
    """It need not exist."""
    assert inside(tmp_path, name) == tmp_path / name


@pytest.mark.parametrize("name", BAD.values(), ids=BAD.keys())
def test_any_other_name_is_refused(tmp_path: Path, name: str) -> None:
    """The message starts with the root; reading is refused like naming."""
    for use in (inside, open_inside):
        with pytest.raises(StoreError) as caught:
            use(tmp_path, name)
        assert str(caught.value).startswith(str(tmp_path))
        assert "\n" not in str(caught.value)


@given(name=st.text(alphabet="./\\ab:\0~", max_size=12))
def test_a_name_that_passes_stays_inside(name: str) -> None:
    """Whatever a name is made of, normalising its path keeps it below the root."""
    root = Path("/nonexistent/root")
    try:
        path = inside(root, name)
    except StoreError:
        return
    assert Path(os.path.normpath(path)) == path
    assert root in path.parents


def test_a_regular_file_is_opened(tmp_path: Path) -> None:
    """Also several folders down."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c").write_bytes(b"text")
    with open_inside(tmp_path, "a/b/c") as stream:
        assert stream.read() == b"text"


def test_the_root_itself_may_be_a_link(tmp_path: Path) -> None:
    """The user named it; only what the artifact names is distrusted."""
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "events.jsonl").write_bytes(b"text")
    (tmp_path / "root").symlink_to(tmp_path / "real")
    with open_inside(tmp_path / "root", "events.jsonl") as stream:
        assert stream.read() == b"text"


LINKS = {
    "to a file outside": ("events.jsonl", "/etc/passwd", "events.jsonl"),
    "to a folder outside": ("blobs", "/etc", "blobs/passwd"),
    "to a parent": ("blobs", "..", "blobs/x"),
    "in a folder further down": ("real/link", "/etc", "real/link/passwd"),
    "to nothing": ("events.jsonl", "/nonexistent", "events.jsonl"),
    "to itself": ("loop", "loop", "loop"),
    "to a file inside": ("events.jsonl", "real/file", "events.jsonl"),
}


@pytest.mark.parametrize(("link", "target", "name"), LINKS.values(), ids=LINKS.keys())
def test_a_planted_link_is_refused(tmp_path: Path, link: str, target: str, name: str) -> None:
    """At any part of the path and wherever it leads."""
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_bytes(b"")
    os.symlink(target, tmp_path / link)
    for use in (inside, open_inside):
        with pytest.raises(StoreError, match="leads through the link"):
            use(tmp_path, name)


def test_what_is_not_a_regular_file_is_not_opened(tmp_path: Path) -> None:
    """Opening a pipe would wait for ever; a folder has no bytes."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(StoreError, match="not a regular file"):
            open_inside(tmp_path, name)


def test_a_link_swapped_in_after_the_check_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The open itself refuses links, not only the check before it."""
    for folder in ("real", "root"):
        (tmp_path / folder).mkdir()
    (tmp_path / "real" / "file").write_bytes(b"secret")
    os.symlink(tmp_path / "real", tmp_path / "root" / "folder")
    os.symlink(tmp_path / "real" / "file", tmp_path / "root" / "file")
    monkeypatch.setattr("reenact.store.paths.inside", lambda root, name: root / name)
    for name in ("folder/file", "file"):
        with pytest.raises(StoreError, match="cannot be read"):
            open_inside(tmp_path / "root", name)

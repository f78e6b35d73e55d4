"""The fingerprint is taken at the end of every replay, so it must be quick and must not be stale."""

from __future__ import annotations

import os
import sys
from hashlib import sha256
from importlib.metadata import distributions
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from reenact.replayer import fingerprint as room
from reenact.replayer.fingerprint import fingerprint


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a loaded module of the agent's."""
    path = tmp_path / "fingerprinted_agent.py"
    path.write_text("ANSWER = 1\n")
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    monkeypatch.setitem(sys.modules, path.stem, module)
    return path


def overwritten(path: Path, text: str) -> None:
    """Change the content, and nothing else that can be kept."""
    before = path.stat()
    path.write_text(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)


def test_a_file_that_looks_unchanged_is_read_again(source: Path) -> None:
    """Neither size nor time of an edit in the same moment need differ; the code does."""
    codes = []
    for answer in range(9):
        overwritten(source, f"ANSWER = {answer}\n")
        codes.append(fingerprint().code)
    assert len(set(codes)) == len(codes)


def test_a_file_that_takes_the_place_of_another_is_read(source: Path, tmp_path: Path) -> None:
    """As editors save."""
    before = fingerprint().code
    (tmp_path / "new").write_text("ANSWER = 2\n")
    os.replace(tmp_path / "new", source)
    assert fingerprint().code != before


def test_a_file_that_is_gone_counts(source: Path) -> None:
    """It is not taken for the one it was."""
    before = fingerprint().code
    source.unlink()
    assert fingerprint().code != before


def test_a_module_loaded_later_counts(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is not so for a library's."""
    before = fingerprint().code
    module = ModuleType("fingerprinted_later")
    module.__file__ = os.__file__
    monkeypatch.setitem(sys.modules, "fingerprinted_later", module)
    assert fingerprint().code == before
    module = ModuleType("fingerprinted_later")
    module.__file__ = str(source)
    monkeypatch.setitem(sys.modules, "fingerprinted_later", module)
    assert fingerprint().code != before


def test_an_old_file_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A suite has hundreds of replays and hundreds of files."""
    hashed: list[bytes] = []

    def counted(data: bytes) -> Any:
        hashed.append(data)
        return sha256(data)

    monkeypatch.setattr(room, "_SETTLED_NS", -1)
    first = fingerprint()
    monkeypatch.setattr(room, "sha256", counted)
    assert fingerprint() == first
    assert hashed == []


def test_every_package_is_known_by_name_and_version() -> None:
    """As the packaging library reads them."""
    for found in distributions():
        assert room._name_and_version(found) == (found.metadata["Name"], found.version)

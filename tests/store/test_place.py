"""Directories that take the place of others."""

from __future__ import annotations

import threading
from pathlib import Path
from shutil import rmtree

import pytest

from reenact.errors import StoreError
from reenact.store import place as places
from reenact.store.place import put_in_place


def folder(path: Path, content: str) -> Path:
    path.mkdir()
    for name in "abc":
        (path / name).write_text(content)
    return path


def content(path: Path) -> set[str]:
    return {file.read_text() for file in path.iterdir()}


@pytest.mark.parametrize("old", ["none", "empty", "full"])
@pytest.mark.parametrize("can_exchange", [True, False])
def test_a_new_capture_takes_the_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, can_exchange: bool
) -> None:
    """Whatever was there, and whether or not the system can exchange two folders at once."""
    if not can_exchange:
        monkeypatch.setattr(places, "_exchange_at_once", lambda one, other: False)
    place = tmp_path / "place"
    if old != "none":
        place.mkdir()
    if old == "full":
        (place / "old").write_text("old")
    put_in_place(folder(tmp_path / "new", "new"), place)
    assert content(place) == {"new"}
    assert list(tmp_path.iterdir()) == [place]


def test_a_file_is_not_replaced(tmp_path: Path) -> None:
    """It is nothing of ours."""
    place = tmp_path / "place"
    place.write_text("mine")
    with pytest.raises(StoreError, match="place: cannot be replaced: Not a directory; move it away"):
        put_in_place(folder(tmp_path / "new", "new"), place)
    assert place.read_text() == "mine"


def test_a_reader_always_finds_a_whole_capture(tmp_path: Path) -> None:
    """While others replace it, over and over."""
    place, other = folder(tmp_path / "place", "first"), folder(tmp_path / "other", "first")
    if not places._exchange_at_once(place, other):
        pytest.skip("this system exchanges folders in steps")
    rmtree(other)

    def replace(worker: int) -> None:
        for round_number in range(30):
            mark = f"{worker}-{round_number}"
            put_in_place(folder(tmp_path / f"new-{mark}", mark), place)

    workers = [threading.Thread(target=replace, args=(worker,)) for worker in range(4)]
    for worker in workers:
        worker.start()
    looks = 0
    while any(worker.is_alive() for worker in workers):
        assert place.is_dir()
        looks += 1
    for worker in workers:
        worker.join()
    assert looks > 0
    assert len(content(place)) == 1
    assert list(tmp_path.iterdir()) == [place]

"""Files recorded with a run: a look at them beside ``git status``, restoring them beside ``cp -r``."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

from bench.figure import Figure, TimesAsLong
from reenact.formats.workspace import TreeEntry, read_tree
from reenact.store.blobs import BlobStore
from reenact.workspace.restore import restore_tree
from reenact.workspace.scan import Scanner

FOLDERS = 200
FILES_EACH = 50
ROUNDS = 7
COPIES = 3
CHANGED = 10
CHANGE_S = 0.020
"""So much longer a look may take that finds ten changed files."""


def figures() -> Iterator[Figure]:
    """A tree of 10,000 small files, as it is in a repository."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        root = folder / "tree"
        _make_tree(root)
        blobs = BlobStore(folder / "blobs")
        scanner = Scanner(root, blobs.put)
        scanner.take()
        time.sleep(0.1)
        digest = scanner.take()
        status = ["git", "-C", str(root), "status", "--short"]

        def ask_git() -> None:
            subprocess.run(status, check=True, stdout=subprocess.DEVNULL)

        look_s, git_s = _fastest(scanner.take, ask_git, ROUNDS)
        yield Figure("look at 10,000 files, unchanged", look_s, "git status", git_s, TimesAsLong(1.5))
        changed_s, rested_s = _fastest_changed(scanner, root)
        yield Figure(
            "look at 10,000 files, ten changed",
            changed_s,
            "unchanged and 20 ms",
            rested_s + CHANGE_S,
            TimesAsLong(1),
        )
        restored, copied = count(), count()

        def read(tree: str) -> tuple[TreeEntry, ...]:
            return read_tree(blobs.get(tree), file=tree)

        def restore() -> None:
            target = folder / f"restored{next(restored)}"
            with blobs.open_reader() as blob:
                restore_tree(read, lambda entry: blob(entry.digest), digest, target)

        def copy() -> None:
            subprocess.run(
                ["cp", "-r", str(folder / "plain"), str(folder / f"copied{next(copied)}")], check=True
            )

        restore_tree(read, lambda entry: blobs.get(entry.digest), digest, folder / "plain")
        restore_s, copy_s = _fastest(restore, copy, COPIES)
        yield Figure("restore 10,000 files", restore_s, "cp -r", copy_s, TimesAsLong(2))


def _make_tree(root: Path) -> None:
    for number in range(FOLDERS):
        folder = root / f"package{number % 20}" / f"module{number}"
        folder.mkdir(parents=True)
        for file in range(FILES_EACH):
            (folder / f"file{file}.py").write_text(f"value = {number} * {file}\n" * 10)
    git = ["git", "-C", str(root), "-c", "user.email=a@b", "-c", "user.name=n", "-c", "gc.auto=0"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "files"]):
        subprocess.run([*git, *words], check=True)


def _change(root: Path, number: int) -> Callable[[], None]:
    def change() -> None:
        for place in range(CHANGED):
            folder = root / f"package{place % 20}" / f"module{place}"
            (folder / "file0.py").write_text(f"changed = {number}, {place}\n")

    return change


def _fastest_changed(scanner: Scanner, root: Path) -> tuple[float, float]:
    """A look that finds ten changed files, and one that finds none, in turns."""
    times = []
    for number in range(ROUNDS):
        changed_s = _time(scanner.take, _change(root, number))
        time.sleep(0.1)  # what is younger than the clock's grain is read twice
        scanner.take()
        times.append((changed_s, _time(scanner.take)))
    return min(one for one, _ in times), min(other for _, other in times)


def _time(act: Callable[[], object], prepare: Callable[[], None] = lambda: None) -> float:
    prepare()
    began_s = time.perf_counter()
    act()
    return time.perf_counter() - began_s


def _fastest(ours: Callable[[], object], theirs: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Both in turns, so that what else the machine does meets both."""
    times = [(_time(ours), _time(theirs)) for _ in range(rounds)]
    return min(one for one, _ in times), min(other for _, other in times)

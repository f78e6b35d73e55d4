"""``capture(workspace=…)`` and ``replay(workspace=…)`` around blocks of Python, with threads and tasks."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import reenact
from reenact.testing import RunFiles


@reenact.tool
def save(folder: str, name: str, text: str) -> str:
    """Write a file, and say where it is."""
    Path(folder, name).write_text(text)
    return f"{folder}/{name}"


@reenact.tool
async def save_later(folder: str, name: str, text: str) -> str:
    await asyncio.sleep(0.001)
    Path(folder, name).write_text(text)
    return f"{folder}/{name}"


def one_by_one(folder):
    return [save(folder, f"{number}.txt", f"in {folder}") for number in range(3)]


def in_threads(folder):
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(lambda number: save(folder, f"{number}.txt", str(number)), range(12)))


def in_tasks(folder):
    async def main():
        return await asyncio.gather(*(save_later(folder, f"{n}.txt", str(n)) for n in range(12)))

    return asyncio.run(main())


def after_each_other_in_tasks(folder):
    async def chain(name):
        first = await save_later(folder, f"{name}.1", "1")
        return await save_later(folder, f"{name}.2", first)

    async def main():
        return await asyncio.gather(*(chain(name) for name in "abc"))

    return asyncio.run(main())


@pytest.mark.parametrize("agent", [one_by_one, in_threads, in_tasks, after_each_other_in_tasks])
def test_a_block_works_again_in_another_folder(agent, tmp_path):
    """Answers name this folder, what tools wrote is there, and nothing differs at the end."""
    work, again = tmp_path / "work", tmp_path / "elsewhere" / "again"
    work.mkdir()
    with reenact.capture(tmp_path / "run", workspace=work):
        recorded = agent(str(work))
    assert reenact.verify(tmp_path / "run").findings == []
    reenact.checkout(tmp_path / "run", again, at=1)
    with reenact.replay(tmp_path / "run", workspace=again) as run:
        replayed = agent(str(again))
    assert run.receipt.verdict == "reproduced"
    assert replayed == [path.replace(str(work), str(again)) for path in recorded]
    written = {path.name: path.read_text() for path in again.iterdir()}
    assert written.keys() == {path.name for path in work.iterdir()}
    for path in work.iterdir():
        assert written[path.name] in (path.read_text(), path.read_text().replace(str(work), str(again)))


def test_recorded_files_are_asserted_on_from_any_test(tmp_path):
    """At the end, and at each step."""
    work = tmp_path / "work"
    work.mkdir()
    with reenact.capture(tmp_path / "run", workspace=work):
        one_by_one(str(work))
    files = RunFiles.of_capture(tmp_path / "run")
    files.file_exists("0.txt")
    files.files_changed_only("*.txt")
    with pytest.raises(AssertionError, match=r"expected 1.txt never to change, it was another at event \d+"):
        files.file_unchanged("1.txt")
    with reenact.capture(tmp_path / "bare"):
        save(str(work), "x", "x")
    with pytest.raises(reenact.UsageError, match="has no files; record with --workspace"):
        RunFiles.of_capture(tmp_path / "bare")

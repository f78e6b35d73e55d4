"""A run that has differed ends, also where a thread died of it for whose result another one waits."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import reenact


@reenact.tool
def find(what: str) -> str:
    return f"found {what}"


def wait_for_queue(what: str) -> str:
    done: queue.Queue[str] = queue.Queue()
    threading.Thread(target=lambda: done.put(find(what))).start()
    return done.get()


def wait_for_event(what: str) -> str:
    found, done = [], threading.Event()

    def work() -> None:
        found.append(find(what))
        done.set()

    threading.Thread(target=work).start()
    done.wait()
    return found[0]


def wait_on_loop(what: str) -> str:
    async def main() -> str:
        done: asyncio.Queue[str] = asyncio.Queue()

        async def work() -> None:
            await done.put(find(what))

        task = asyncio.create_task(work())
        task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        found = await done.get()
        await task
        return found

    return asyncio.run(main())


AGENTS: list[Callable[[str], str]] = [wait_for_queue, wait_for_event, wait_on_loop]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("agent", AGENTS)
def test_a_wait_for_what_a_difference_has_stopped_is_interrupted(
    agent: Callable[[str], str], tmp_path: Path
) -> None:
    """The difference is raised, and a note says that the agent had stood still."""
    with reenact.capture(tmp_path / "run"):
        agent("a")
    with (
        pytest.raises(reenact.Diverged, match='expected "a", observed "b"'),
        reenact.replay(tmp_path / "run", stall_s=0.1) as run,
    ):
        agent("b")
    assert "the agent did not go on after the first difference, and was interrupted" in run.notes


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_fork_that_misses_a_call_is_interrupted_too(tmp_path: Path) -> None:
    """Nothing is left of it."""

    def agent() -> str:
        return wait_for_queue(find("start"))

    with reenact.capture(tmp_path / "run"):
        agent()
    with (
        pytest.raises(reenact.Diverged, match="does not have this call"),
        reenact.fork(
            tmp_path / "run", at=2, change={"replace": "else"}, output=tmp_path / "fork", stall_s=0.1
        ),
    ):
        agent()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]


def test_who_goes_on_is_not_interrupted(tmp_path: Path) -> None:
    """However slowly: it may end by itself."""

    async def agent(what: str) -> None:
        for _ in range(4):
            try:
                find(what)
            except reenact.Diverged:
                await asyncio.sleep(0.1)

    with reenact.capture(tmp_path / "run"):
        asyncio.run(agent("a"))
    with pytest.raises(reenact.Diverged), reenact.replay(tmp_path / "run", stall_s=2) as run:
        asyncio.run(agent("b"))
    assert not any("interrupted" in note for note in run.notes)

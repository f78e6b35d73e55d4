"""What races in a fork races the same way when it is replayed, and nobody waits for ever for what is gone."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import reenact
from reenact.check.integrity.capture import check_capture
from reenact.recorder.context import CaptureContext
from reenact.replayer.source import ReplaySource

DAY_NS = 86_400 * 10**9


@reenact.tool
def find(what: Any) -> str:
    return f"found {what}"


PAUSES_S: dict[str, float] = {}


@reenact.tool
async def look_up(what: str) -> str:
    await asyncio.sleep(PAUSES_S.get(what, 0))
    return f"[{what}]"


@contextmanager
def yesterday(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is recorded here was recorded a day ago."""
    defaults = CaptureContext.__init__.__kwdefaults__
    now_ns = defaults["now_ns"]
    with monkeypatch.context() as patch:
        patch.setattr(
            CaptureContext.__init__, "__kwdefaults__", defaults | {"now_ns": lambda: now_ns() - DAY_NS}
        )
        yield


def two_threads(started: tuple[str, ...]) -> None:
    """Each asks once, in this order; who is not *started* does not ask."""
    find("first")
    for name in started:
        thread = threading.Thread(target=find, args=(name,))
        thread.start()
        thread.join()


def test_a_call_that_is_gone_is_not_waited_for_as_long_as_lies_between_the_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fork's first own event came a day after the one before it, which is no time that a task took."""
    with yesterday(monkeypatch), reenact.capture(tmp_path / "run"):
        two_threads(("a", "b"))
    with reenact.fork(
        tmp_path / "run", at=2, change={"replace": "else"}, output=tmp_path / "fork", on_miss="live"
    ):
        two_threads(("a", "b"))
    with (
        pytest.raises(reenact.Diverged, match="tool find"),
        reenact.replay(tmp_path / "fork", stall_s=0.2),
    ):
        two_threads(("b",))


def test_tasks_end_in_a_replay_in_the_order_in_which_they_ended_in_the_fork(tmp_path: Path) -> None:
    """What is recorded comes at once in a fork, what is live takes its time: the order is the fork's own."""

    async def agent() -> list[str]:
        start = await look_up("start")
        found = [await each for each in asyncio.as_completed([look_up(start), look_up("other")])]
        return [*found, await look_up(" ".join(found))]

    PAUSES_S.update({"other": 0.02, "else": 0.1})
    with reenact.capture(tmp_path / "run"):
        assert asyncio.run(agent())[:2] == ["[[start]]", "[other]"]
    with reenact.fork(
        tmp_path / "run", at=2, change={"replace": "else"}, output=tmp_path / "fork", on_miss="live"
    ):
        forked = asyncio.run(agent())
    assert forked[:2] == ["[other]", "[else]"]
    for _ in range(3):
        with reenact.replay(tmp_path / "fork"):
            assert asyncio.run(agent()) == forked


def test_threads_put_in_a_replay_in_the_order_in_which_they_put_in_the_fork(tmp_path: Path) -> None:
    """Without a call between, only the fork's own order tells who was first."""

    def agent(pauses_s: tuple[float, float]) -> list[Any]:
        find("start")
        done: queue.Queue[Any] = queue.Queue()

        def work(name: str, pause_s: float) -> None:
            found = find(name)
            threading.Event().wait(pause_s)
            done.put(found)

        threads = [
            threading.Thread(target=work, args=pair) for pair in zip(("a", "b"), pauses_s, strict=True)
        ]
        for thread in threads:
            thread.start()
        found = [done.get() for _ in threads]
        for thread in threads:
            thread.join()
        return [find(found), *found]

    with reenact.capture(tmp_path / "run"):
        recorded = agent((0, 0.5))
    options: dict[str, Any] = {"at": 2, "change": {"replace": "else"}, "on_miss": "live"}
    with reenact.fork(tmp_path / "run", output=tmp_path / "fork", **options):
        forked = agent((0.5, 0))
    assert recorded[1:] == forked[:0:-1] == ["found a", "found b"]
    with reenact.replay(tmp_path / "fork"):
        assert agent((0, 0.05)) == forked
    with reenact.fork(tmp_path / "fork", output=tmp_path / "again", **options | {"on_miss": "fail"}) as again:
        assert agent((0.05, 0)) == forked
    assert again.shares.live == 0


def test_a_task_draws_its_own_recorded_chance_behind_the_point(tmp_path: Path) -> None:
    """Another task's number is not taken because it equals what is asked: it is the other one's to draw."""

    def agent(run: Any) -> list[Any]:
        found = [find("start")]

        def work() -> None:
            found.append(find([found[0], "more"]))
            found.append(run.rng.random())

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        other = threading.Thread(target=lambda: found.append(run.rng.random()))
        other.start()
        other.join()
        return found

    with reenact.capture(tmp_path / "run") as run:
        recorded = agent(run)
    with reenact.fork(
        tmp_path / "run", at=2, change={"replace": "else"}, output=tmp_path / "fork", on_miss="live"
    ) as fork:
        forked = agent(fork)
    assert forked[2:] == recorded[2:]
    with reenact.replay(tmp_path / "fork") as replay:
        assert agent(replay) == forked


def test_what_a_task_does_only_behind_the_point_is_told_there(tmp_path: Path) -> None:
    """Shared events tell it earlier: where that is not what happened, they are the fork's own."""

    def agent(is_late: bool) -> list[str]:
        done: queue.Queue[str] = queue.Queue()
        gate = threading.Event()

        def work(name: str) -> None:
            found = find(name)
            if name == "a":
                gate.wait()
            done.put(found)

        threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
        if not is_late:
            gate.set()
        for thread in threads:
            thread.start()
            if not is_late or thread is threads[1]:
                thread.join()
        find("point")
        gate.set()
        found = [done.get() for _ in threads]
        threads[0].join()
        return [find(found), *found]

    with reenact.capture(tmp_path / "run"):
        assert agent(is_late=False)[1:] == ["found a", "found b"]
    source = ReplaySource(tmp_path / "run")
    at = next(call.seq for call in source.calls if source.request(call) == {"what": "point"})
    with reenact.fork(
        tmp_path / "run", at=at, change={"replace": "else"}, output=tmp_path / "fork", on_miss="live"
    ) as fork:
        forked = agent(is_late=True)
    assert forked[1:] == ["found b", "found a"]
    assert fork.manifest.fork.parent.events < at
    assert check_capture(tmp_path / "fork").findings == []
    with reenact.replay(tmp_path / "fork"):
        assert agent(is_late=True) == forked

"""Pauses between attempts are recorded and skipped; other sleeping is left alone."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tenacity
import urllib3

import reenact
from tests.seams.http.site import Site
from tests.seams.http.test_clients import events_in

PAUSE_S = 0.3


def timed(path: Path, work: Callable[[], Any]) -> tuple[float, float]:
    """How long *work* took when recorded, and in the quickest of some replays: machines have busy moments."""
    # Without the stand-ins, of which one leaves out the agent's own pauses in replay.
    recorded_s = _took_s(reenact.capture(path, sources=()), work)
    return recorded_s, min(_took_s(reenact.replay(path), work) for _ in range(3))


def _took_s(run: reenact.Run, work: Callable[[], Any]) -> float:
    began_s = time.monotonic()
    with run:
        work()
    return time.monotonic() - began_s


def pauses_in(path: Path) -> list[float]:
    return [event["data"]["value"] for event in events_in(path) if event["data"].get("key") == "retry pause"]


class Flaky:
    """Works the second time."""

    def __init__(self) -> None:
        self.calls = 0

    @reenact.tool
    def work(self) -> str:
        self.calls += 1
        if self.calls == 1:
            raise ConnectionError("not yet")
        return "done"


def test_tenacity_does_not_wait_again(tmp_path: Path) -> None:
    flaky = Flaky()
    retrying = tenacity.Retrying(wait=tenacity.wait_fixed(PAUSE_S))
    recorded_s, replayed_s = timed(tmp_path / "run", lambda: retrying(flaky.work))
    assert recorded_s >= PAUSE_S > replayed_s
    assert pauses_in(tmp_path / "run") == [PAUSE_S]
    assert flaky.calls == 2


def test_tenacity_does_not_wait_again_on_an_event_loop(tmp_path: Path) -> None:
    flaky = Flaky()

    async def work() -> None:
        async for attempt in tenacity.AsyncRetrying(wait=tenacity.wait_fixed(PAUSE_S)):
            with attempt:
                flaky.work()

    recorded_s, replayed_s = timed(tmp_path / "run", lambda: asyncio.run(work()))
    assert recorded_s >= PAUSE_S > replayed_s
    assert pauses_in(tmp_path / "run") == [PAUSE_S]


def test_urllib3_does_not_wait_again(tmp_path: Path, web: Site) -> None:
    """Its own retries lie above the seam: three attempts, two of them after a pause of chance length."""

    def work() -> None:
        retries = urllib3.Retry(2, status_forcelist=[503], backoff_factor=PAUSE_S, raise_on_status=False)
        with urllib3.PoolManager(retries=retries) as pool:
            assert pool.request("GET", f"{web.url}/status/503").status == 503

    recorded_s, replayed_s = timed(tmp_path / "run", work)
    assert recorded_s >= PAUSE_S > replayed_s


def test_the_agents_own_sleeping_is_no_call(tmp_path: Path) -> None:
    """With or without an event loop; it is not recorded as what clients wait between their tries is."""

    async def nap() -> None:
        await asyncio.sleep(0.05)

    def work() -> None:
        time.sleep(0.05)
        asyncio.run(nap())

    recorded_s, _ = timed(tmp_path / "run", work)
    assert recorded_s >= 0.1
    assert pauses_in(tmp_path / "run") == []


def _retry(order: list[int], worker: int) -> str:
    """What one worker does in an attempt: its first one fails, after which it pauses."""
    order.append(worker)
    ask([worker, order.count(worker)])
    if order.count(worker) == 1:
        raise ConnectionError("not yet")
    return "done"


@reenact.tool
def ask(what: Any) -> str:
    return f"answer to {what}"


def tasks_that_retry(pauses_s: list[float]) -> list[int]:
    order: list[int] = []

    async def work(worker: int) -> None:
        async for attempt in tenacity.AsyncRetrying(wait=tenacity.wait_fixed(pauses_s[worker])):
            with attempt:
                _retry(order, worker)

    async def main() -> None:
        await asyncio.gather(*(work(worker) for worker in range(len(pauses_s))))

    asyncio.run(main())
    return order


def threads_that_retry(pauses_s: list[float]) -> list[int]:
    order: list[int] = []

    def work(worker: int) -> None:
        tenacity.Retrying(wait=tenacity.wait_fixed(pauses_s[worker]))(_retry, order, worker)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(len(pauses_s))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return order


@pytest.mark.parametrize("agent", [tasks_that_retry, threads_that_retry])
def test_who_tried_again_first_does_so_again(
    agent: Callable[[list[float]], list[int]], tmp_path: Path
) -> None:
    """However long the pauses would be this time: often chance decides that."""
    with reenact.capture(tmp_path / "run"):
        recorded = agent([0.15, 0.1, 0.05])
        ask(recorded)
    assert (sorted(recorded[:3]), recorded[3:]) == ([0, 1, 2], [2, 1, 0])
    with reenact.replay(tmp_path / "run"):
        replayed = agent([0.05, 0.1, 0.15])
        ask(replayed)
    assert replayed == recorded

"""Streams: what came before a break comes before it again, and streams begin in the order they began in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

import reenact


@reenact.tool
def counting() -> Iterator[int]:
    yield 1
    yield 2
    raise ValueError("no three")


def read_all() -> list[object]:
    found: list[object] = []
    with pytest.raises(ValueError, match="no three"):
        found.extend(counting())
    return found


def test_a_stream_that_failed_hands_out_its_pieces_first(tmp_path: Path) -> None:
    """Also where nothing else happened between its beginning and its end."""
    with reenact.capture(tmp_path / "run"):
        recorded = read_all()
    with reenact.replay(tmp_path / "run"):
        assert read_all() == recorded == [1, 2]


def test_a_stream_left_open_ends_with_the_run(tmp_path: Path) -> None:
    """It has an outcome: abandoned."""
    with reenact.capture(tmp_path / "run"):
        open_stream = counting()
        assert next(open_stream) == 1
    assert '"cancelled":true' in (tmp_path / "run" / "events.jsonl").read_text()
    open_stream.close()


@reenact.tool
async def slowly(name: str, delay_s: float) -> AsyncIterator[str]:
    await asyncio.sleep(delay_s)
    yield name
    yield f"{name}!"


async def in_order_of_beginning() -> list[str]:
    found: list[str] = []

    async def read(name: str, delay_s: float) -> None:
        async for piece in slowly(name, delay_s):
            found.append(piece)
            await done.wait() if len(found) < 3 else done.set()

    done = asyncio.Event()
    await asyncio.gather(read("late", 0.06), read("later", 0.09), read("early", 0.01))
    return found


def test_streams_that_ran_side_by_side_begin_in_the_same_order(tmp_path: Path) -> None:
    """Although no event was written between their beginnings."""
    with reenact.capture(tmp_path / "run"):
        recorded = asyncio.run(in_order_of_beginning())
    assert recorded[:3] == ["early", "late", "later"]
    with reenact.replay(tmp_path / "run") as run:
        assert asyncio.run(in_order_of_beginning()) == recorded
    assert run.notes == []

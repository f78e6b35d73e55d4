"""Record a program, replay it, compare: what most tests of the running side do."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

import reenact
from reenact.store.reader import CaptureReader

Agent = Callable[[reenact.Run], Any]


def captured(path: Path, agent: Agent, **options: Any) -> Any:
    """What *agent* comes to while it is recorded; the recording must be whole.

    The tests read the clock inside their runs, so it is not recorded unless asked for.
    """
    options.setdefault("sources", ())
    with reenact.capture(path, **options) as run:
        result = _run(agent, run)
    assert run.manifest is not None
    assert (run.manifest.status, run.warnings) == ("ok", [])
    return result


def replayed(path: Path, agent: Agent, **options: Any) -> Any:
    """What *agent* comes to in a strict replay without a divergence."""
    options.setdefault("stall_s", 2.0)
    with reenact.replay(path, **options) as run:
        result = _run(agent, run)
    assert run.divergences == []
    return result


def twice(path: Path, agent: Agent, **options: Any) -> Any:
    """What *agent* comes to, in both runs the same."""
    first = captured(path, agent)
    second = replayed(path, agent, **options)
    assert second == first
    assert type(second) is type(first)
    return first


def events(path: Path) -> list[tuple[str, Any]]:
    """Type and resolved data of every event but the first and the last."""
    reader = CaptureReader(path)
    lines = [(event.__struct_config__.tag, event) for event in reader.events()]
    return [(str(tag), reader.resolve(_data(reader, event.seq))) for tag, event in lines[1:-1]]


def _data(reader: CaptureReader, seq: int) -> Any:
    return msgspec.json.decode(reader.line(seq))["data"]


def _run(agent: Agent, run: reenact.Run) -> Any:
    result = agent(run)
    return asyncio.run(_awaited(result)) if inspect.isawaitable(result) else result


async def _awaited(result: Any) -> Any:
    return await result

"""The Python processes of a recorded run, as its capture tells of them."""

from __future__ import annotations

from reenact.formats.capture import ProcessData, RunStart, RunStartData
from reenact.formats.record import ABSENT
from reenact.lane_name import ROOT
from reenact.store.reader import EventReader


def beginning(log: EventReader) -> RunStartData:
    """What the capture says of who recorded it: Python processes, the gateway or both."""
    first = log.event(1) if len(log) else None
    return first.data if isinstance(first, RunStart) else RunStartData()


def recorded_processes(began: RunStartData) -> dict[str, ProcessData]:
    """By their first lane, in the order of their first calls; children behind those that started them."""
    beside = began.processes if began.processes is not ABSENT else {}
    if began.python is ABSENT and not beside:
        return {}
    first = {} if ROOT in beside else {ROOT: ProcessData(ended=True, argv=began.argv)}
    return {**first, **{root: beside[root] for root in sorted(beside, key=_order)}}


def _order(root: str) -> tuple[int, str]:
    number = root[: len(root) - len(root.lstrip("0123456789"))]
    return int(number), root

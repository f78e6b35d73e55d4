"""What a spawned child of a recorded process runs; a module, because a child imports it by name."""

from __future__ import annotations

from typing import Any

import reenact


@reenact.tool
def work(number: int) -> int:
    return number * 2


def child(path: str, results: Any) -> None:
    """Work without a run, then try to record into the parent's."""
    assert work(2) == 4
    try:
        with reenact.capture(path):
            results.put("recorded")
    except reenact.StoreError as error:
        results.put(str(error))

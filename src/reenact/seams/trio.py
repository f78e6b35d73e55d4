"""trio: its tasks are not told apart, so all they ask is matched by content, in whichever order it comes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from reenact.boundary import current_lane, running_in
from reenact.seams.imports import Libraries
from reenact.seams.patches import Patch


def _patches(module: ModuleType) -> list[Patch]:
    return [Patch(module, "run", _in_loose_lane)]


def _in_loose_lane(original: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any, **options: Any) -> Any:
        lane = current_lane()
        if lane is None:
            return original(*args, **options)
        loose = lane.loose()
        loose.owner = threading.get_ident()
        with running_in(loose):
            return original(*args, **options)

    return run


LIBRARIES: Final[Libraries] = {"trio": _patches}

"""``requests``: its calls cross at ``urllib3``; here it only says whether the agent reads the body itself."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from reenact.seams.http.urllib3 import is_streamed
from reenact.seams.patches import Patch


def patches(requests: ModuleType) -> list[Patch]:
    """What to replace in *requests*."""
    return [Patch(requests.adapters.HTTPAdapter, "send", _send)]


def _send(original: Callable[..., object]) -> Callable[..., object]:
    def send(self: object, request: object, stream: bool = False, *args: object, **options: object) -> Any:
        before = is_streamed.get()
        is_streamed.set(stream)
        try:
            return original(self, request, stream, *args, **options)
        finally:
            is_streamed.set(before)

    return send

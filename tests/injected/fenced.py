"""Whether this kernel lets us build fences; containers may forbid it."""

from __future__ import annotations

import os
from functools import cache

import pytest

from reenact.injected.fence import Fence
from reenact.injected.launch import run


@cache
def fences_stand() -> bool:
    fence = Fence({})
    run(["true"], os.environ, fence=fence)
    return fence.stands


needs_fences = pytest.mark.skipif(not fences_stand(), reason="this kernel holds no system calls up")

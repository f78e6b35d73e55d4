"""Noticing the end of the program, however it leaves: by itself, by an error, or at once."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable
from typing import NoReturn


def at_the_end(end_run: Callable[[BaseException | None], None]) -> None:
    """Have *end_run* called with the error nobody caught.

    Registered before the program could register anything, so it comes after all of that.
    """
    home_pid = os.getpid()
    is_over = False

    def end() -> None:
        nonlocal is_over
        if os.getpid() == home_pid and not is_over:
            is_over = True
            # Where the interpreter has put the exception that it prints; none for sys.exit.
            end_run(getattr(sys, "last_value", None))

    atexit.register(end)
    os._exit = _ending_first(end, os._exit)  # type: ignore[assignment]  # mypy wants the very function


def _ending_first(end: Callable[[], None], leave: Callable[[int], NoReturn]) -> Callable[[int], NoReturn]:
    def _exit(status: int) -> NoReturn:
        try:
            end()
        finally:
            leave(status)

    return _exit

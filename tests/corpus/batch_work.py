"""Work for workers; in a module of its own, because every worker imports it."""

import os
import signal


def square(mark, number):
    """Squares, but the first worker at 3 is killed, and every one at -1."""
    if number < 0 or (number == 3 and not mark.exists()):
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def refuse(number):
    """Raises what is to be raised where the work was asked for."""
    from reenact.errors import UsageError

    raise UsageError(f"not {number}")

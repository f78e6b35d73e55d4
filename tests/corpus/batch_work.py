"""Work for workers; in a module of its own, because every worker imports it."""

import os
import signal
import time
from pathlib import Path


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


def refuse_some(number):
    """The number and who did the work, for numbers below 30; each takes a moment."""
    time.sleep(0.01)
    if number == 30:
        refuse(number)
    return number, os.getpid()


def _kill_once(what):
    """Kill this worker unless one was killed at *what*; the file that tells is named by the environment."""
    mark = Path(os.environ["REENACT_TEST_MARK"] + what)
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)


def import_and_die_once(sources, stage, redact):
    """As the importing worker does, but the first is killed when it has made its captures."""
    from reenact.importers import importing

    done = importing.import_batch(sources, stage, redact)
    _kill_once("-import")
    return done


def read_rows_and_die_once(paths, plan):
    """The same of exporting."""
    from reenact.exporters import exporting

    made = exporting.row_batch(paths, plan)
    _kill_once("-export")
    return made


def fork_and_die_once(job):
    """The same of a shadow run: the fork is made when the worker is killed."""
    from reenact.shadowing import running

    made = running.try_job(job)
    _kill_once("-shadow")
    return made

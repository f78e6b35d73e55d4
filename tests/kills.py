"""Killing a piece of work at each of the moments at which it is about to change something on the disk."""

import os
import signal
import sys

_CHANGES = ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.truncate", "fcntl.flock")


def killed_at(moment, work):
    """Do *work* in a forked process that is killed just before its change number *moment*.

    Returns whether it was killed, not whether it would have ended well.
    """
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            _count_down(moment)
            work()
            status = 0
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status in (0, -signal.SIGKILL), f"the work failed with {status} before moment {moment}"
    return status != 0


def _count_down(moment):
    left = [moment]

    def hook(event, _):
        if event in _CHANGES:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)

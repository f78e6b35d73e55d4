"""Processes: a program's input and output are recorded; in replay it is not run."""

from __future__ import annotations

import asyncio
import os
import subprocess
from functools import update_wrapper
from types import ModuleType
from typing import Final

from reenact.seams.patches import Patch
from reenact.seams.stdlib.process import asynchronous, piped, spawned, transport, whole
from reenact.seams.stdlib.process.command import (
    Environment,
    end_programs,
    run_again,
    set_environment_change,
    watch_programs,
)
from reenact.seams.stdlib.process.piped import Popen

__all__ = [
    "PATCHES",
    "STAND_INS",
    "Environment",
    "end_programs",
    "run_again",
    "set_environment_change",
    "watch_programs",
]

PATCHES: Final[list[Patch]] = [*piped.PATCHES, *spawned.PATCHES, *transport.PATCHES, *whole.PATCHES]
"""Patches of the functions through which all libraries start processes."""

STAND_INS: Final[dict[ModuleType, dict[str, object]]] = {
    subprocess: {
        "Popen": Popen,
        "call": update_wrapper(whole.call, subprocess.call),
        "check_call": update_wrapper(whole.check_call, subprocess.check_call),
        "check_output": update_wrapper(whole.check_output, subprocess.check_output),
        "getoutput": update_wrapper(whole.getoutput, subprocess.getoutput),
        "getstatusoutput": update_wrapper(whole.getstatusoutput, subprocess.getstatusoutput),
        "run": update_wrapper(whole.run, subprocess.run),
    },
    os: {
        "popen": update_wrapper(whole.popen, os.popen),
        "system": update_wrapper(whole.system, os.system),
    },
    asyncio: {
        "create_subprocess_exec": update_wrapper(asynchronous.execute, asyncio.create_subprocess_exec),
        "create_subprocess_shell": update_wrapper(asynchronous.shell, asyncio.create_subprocess_shell),
    },
}

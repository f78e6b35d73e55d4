"""Child processes for what can only be shown by a process of its own: kills, forks, limits, signals."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

_SOURCE = Path(__file__).parents[2] / "src"
_PATH = f"{_SOURCE}:{sysconfig.get_path('purelib')}:{sysconfig.get_path('platlib')}"


def start(program: str, *arguments: object, **options: Any) -> subprocess.Popen[bytes]:
    """Start *program* without the site module, which is most of the time a start takes."""
    command = [sys.executable, "-S", "-c", program, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, env={"PYTHONPATH": _PATH}, **options)


def run(program: str, *arguments: object, **options: Any) -> str:
    """Run *program* to its end and return what it printed; a failed one fails the test."""
    with start(program, *arguments, **options) as child:
        try:
            output, _ = child.communicate(timeout=60)
        finally:
            child.kill()
    assert child.returncode == 0, output.decode()
    return output.decode()

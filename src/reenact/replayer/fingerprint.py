"""What ran: the agent's own code and the packages around it, as digests."""

from __future__ import annotations

import platform
import sys
from functools import cache
from hashlib import sha256
from importlib.metadata import distributions
from pathlib import Path

from reenact._version import __version__
from reenact.canonical import digest
from reenact.formats.replay_receipt import Fingerprint
from reenact.library import is_library


def fingerprint() -> Fingerprint:
    """The fingerprint of this process as it is now: modules loaded later do not count."""
    return Fingerprint(
        code=digest(_agent_files()),
        packages=_packages(),
        python=platform.python_version(),
        platform=sys.platform,
        reenact=__version__,
    )


def _agent_files() -> dict[str, str]:
    """The loaded source files that are neither library nor reenact, by module name."""
    files: dict[str, str] = {}
    for name, module in sorted(sys.modules.items()):
        # A script that has ended has lost its __file__, but not its loader.
        file = getattr(module, "__file__", None) or getattr(getattr(module, "__loader__", None), "path", None)
        if isinstance(file, str) and file.endswith(".py") and not is_library(file):
            files[name] = _file_digest(file)
    return files


def _file_digest(file: str) -> str:
    try:
        return sha256(Path(file).read_bytes()).hexdigest()
    except OSError:
        return "unreadable"


@cache
def _packages() -> str:
    """Over the name and version of every installed distribution."""
    return digest(sorted(f"{found.metadata['Name']}=={found.version}" for found in distributions()))

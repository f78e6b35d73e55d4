"""A fingerprint of what runs: digests of the agent's own code and of the installed packages."""

from __future__ import annotations

import os
import platform
import re
import sys
from functools import cache
from hashlib import sha256
from importlib.metadata import Distribution, distributions
from pathlib import Path
from time import time_ns
from typing import Final

from reenact._version import __version__
from reenact.canonical import digest
from reenact.formats.replay_receipt import Fingerprint
from reenact.library import is_library, possible_agents
from reenact.process_state import file_digests

_SETTLED_NS: Final = 2_000_000_000
"""Longer than one tick of a file system's clock."""
_FIELD: Final = re.compile(r"^(Name|Version):[ \t]*(\S+)", re.MULTILINE)


def fingerprint() -> Fingerprint:
    """The fingerprint of this process now; modules that are loaded later do not count."""
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
    for name, namespace in possible_agents():
        # A script that has ended has no __file__ any more, but still its loader.
        file = namespace.get("__file__") or getattr(namespace.get("__loader__"), "path", None)
        if isinstance(file, str) and file.endswith(".py") and not is_library(file):
            files[name] = _file_digest(file)
    return files


def _file_digest(file: str) -> str:
    """The digest of *file*, which is read only if it has changed since the last time."""
    try:
        state = _state_of(file)
        known = file_digests.get(file)
        if known is not None and known[0] == state:
            return known[1]
        found = sha256(Path(file).read_bytes()).hexdigest()
    except OSError:
        return "unreadable"
    # A file that was written just now may be written again within the same tick of its clock.
    if time_ns() - max(state[-2:]) > _SETTLED_NS:
        file_digests[file] = state, found
    return found


def _state_of(file: str) -> tuple[int, ...]:
    found = os.stat(file)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


@cache
def _packages() -> str:
    """A digest over the name and version of every installed distribution."""
    return digest(sorted("==".join(_name_and_version(found)) for found in distributions()))


def _name_and_version(found: Distribution) -> tuple[str, str]:
    """Read only these fields: parsing all metadata takes half a second for some hundred packages."""
    text = found.read_text("METADATA") or found.read_text("PKG-INFO") or ""
    fields = dict(_FIELD.findall(text.partition("\n\n")[0]))
    return fields.get("Name", ""), fields.get("Version", "")

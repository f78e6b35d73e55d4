"""Files that people ask for: never in the place of another unasked."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from reenact.errors import UsageError
from reenact.store.durable import writing_whole


@contextmanager
def new_file(target: Path, *, replace: bool = False, private: bool = False) -> Iterator[BinaryIO]:
    """A stream whose bytes become *target* when the block ends well; a *private* one only its owner reads."""
    if target.is_dir() or (os.path.lexists(target) and not replace):
        remedy = "name a file in it" if target.is_dir() else "name another, or add --force"
        raise UsageError(f"{target}: exists already; {remedy}")
    with writing_whole(target) as stream:
        if private:
            os.fchmod(stream.fileno(), 0o600)
        yield stream

"""Every error reenact raises on purpose.

    ReenactError
    ├── FormatError            a file or value is not what its format says
    │   ├── UnknownVersion     written by a newer major version
    │   └── DigestMismatch     the bytes are not the bytes that were recorded
    ├── StoreError             a capture directory cannot be used (busy, unwritable, outside path)
    ├── Diverged               a replay is not the recorded run
    │   └── LiveCallBlocked    something tried to go live in replay
    ├── CheckFailed            a verification, validation or test found problems
    └── UsageError             reenact was asked something it cannot do

A message starts with the place and ends with the remedy, and fits on one line.
What the agent's own tools raised during a run is a recorded value, not one of these.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class ReenactError(Exception):
    """Base of all errors raised on purpose."""


class FormatError(ReenactError):
    """A file or value does not follow its format."""

    def __init__(
        self,
        reason: str,
        *,
        file: str | None = None,
        line: int | None = None,
        json_path: str | None = None,
    ) -> None:
        self.reason = reason
        self.file = file
        self.line = line
        """1-based; ``None`` where the format is not line-based or the place is the whole file."""
        self.json_path = json_path
        super().__init__(reason)

    def __str__(self) -> str:
        place = self.file or ""
        if self.line is not None:
            place = f"{place}:{self.line}" if place else f"line {self.line}"
        return ": ".join(part for part in (place, self.json_path, self.reason) if part)

    def at(self, *, file: str | None = None, line: int | None = None) -> FormatError:
        """This error with the place filled in where it was still unknown."""
        self.file = self.file or file
        self.line = self.line if self.line is not None else line
        return self


class UnknownVersion(FormatError):
    """The artifact was written by a newer major version of its format."""


class DigestMismatch(FormatError):
    """The bytes do not have the digest under which they were recorded."""


class StoreError(ReenactError):
    """A capture directory cannot be used as asked."""


class Diverged(ReenactError):
    """A replay is not the recorded run; *divergence* is the value that says where."""

    def __init__(self, message: str, divergence: Any = None) -> None:
        self.divergence = divergence
        super().__init__(message)


class LiveCallBlocked(Diverged):
    """Something bypassed the seams and tried to go live during a replay."""


class CheckFailed(ReenactError):
    """A verification, validation or test found problems."""


class UsageError(ReenactError):
    """reenact was asked something it cannot do; the message says what to do instead."""


@contextmanager
def relabel_errors(copy: str, label: str) -> Iterator[None]:
    """Errors that name *copy* name *label* instead."""
    try:
        yield
    except FormatError as error:
        error.file = error.file and error.file.replace(copy, label)
        error.reason = error.reason.replace(copy, label)
        raise
    except ReenactError as error:
        message, *rest = error.args
        error.args = str(message).replace(copy, label), *rest
        raise
    except OSError as error:
        if error.filename is not None:
            error.filename = os.fsdecode(error.filename).replace(copy, label)
        raise

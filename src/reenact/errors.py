"""Every error reenact raises on purpose.

    ReenactError
    ├── FormatError            a file or value is not what its format says
    │   ├── UnknownVersion     written by a newer major version
    │   └── DigestMismatch     the bytes differ from the recorded ones
    ├── StoreError             a file or folder cannot be used (missing, busy, not permitted, outside path)
    ├── Diverged               a replay differs from the recorded run
    │   └── LiveCallBlocked    something tried to go live in replay
    ├── CheckFailed            a verification, validation or test found problems
    └── UsageError             wrong arguments or settings

A message starts with the place and ends with the remedy, and fits on one line.
Errors of the agent's tools during a run are recorded values, not these.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")


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
        """1-based; ``None`` if the format has no lines or the error is about the whole file."""
        self.json_path = json_path
        super().__init__(reason)

    def __str__(self) -> str:
        place = self.file or ""
        if self.line is not None:
            place = f"{place}:{self.line}" if place else f"line {self.line}"
        return ": ".join(part for part in (place, self.json_path, self.reason) if part)

    def at(self, *, file: str | None = None, line: int | None = None) -> FormatError:
        """Fill in the place, as far as it is unknown, and return this error."""
        self.file = self.file or file
        self.line = self.line if self.line is not None else line
        return self


class UnknownVersion(FormatError):
    """The artifact was written by a newer major version of its format."""


class DigestMismatch(FormatError):
    """The bytes differ from the recorded ones."""


class StoreError(ReenactError):
    """A file or folder cannot be used as asked."""


class Diverged(ReenactError):
    """A replay differs from the recorded run; *divergence* says where."""

    def __init__(self, message: str, divergence: object = None) -> None:
        self.divergence = divergence
        super().__init__(message)


class LiveCallBlocked(Diverged):
    """Something bypassed the seams and tried to go live during a replay."""


class CheckFailed(ReenactError):
    """A verification, validation or test found problems."""


class UsageError(ReenactError):
    """Wrong arguments or settings; the message says what to do instead."""


def describe_os_error(error: OSError) -> str:
    """The path, where there is one, and the system's words."""
    return str(error) if error.filename is None else f"{os.fsdecode(error.filename)}: {error.strerror}"


def raises_own_errors(function: Callable[P, T]) -> Callable[P, T]:
    """*function*, which raises one of the errors above where the system refuses a path."""

    @wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        arguments = (*args, *kwargs.values())
        with _own_errors(arguments):
            found = function(*args, **kwargs)
        return cast("T", _iterate(found, arguments)) if isinstance(found, Generator) else found

    return wrapper


def _iterate(found: Iterable[object], arguments: tuple[object, ...]) -> Iterator[object]:
    with _own_errors(arguments):
        yield from found


@contextmanager
def _own_errors(arguments: tuple[object, ...]) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StoreError(describe_os_error(error)) from error
    except ValueError as error:
        if "embedded null" not in str(error):
            raise
        paths = (str(value) for value in arguments if "\0" in str(value))
        raise UsageError(f"{next(paths, '')!r}: a path has no null characters") from error


@contextmanager
def relabel_errors(copy: str, label: str) -> Iterator[None]:
    """Replace *copy* by *label* in the messages of errors that the block raises."""
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

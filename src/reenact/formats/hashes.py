"""The hashes of a replay log; each covers the full value, never a preview."""

from __future__ import annotations

from hashlib import sha256
from typing import BinaryIO, Final

from reenact import canonical
from reenact.formats.lines import read_lines

BLINDED: Final = "hmac-"
"""The prefix of a hash in a published log that can be computed only with the publisher's key."""


def params_hash(params: object) -> str:
    """The hash of a tool call's parameters."""
    return canonical.digest(params)


def output_hash(*, success: bool, content: str, error: str | None) -> str:
    """The hash of a tool's output: of the object of these three, with ``error`` null without an error."""
    return canonical.digest({"content": content, "error": error, "success": success})


def plan_hash(plan: object) -> str:
    """The hash of a plan object."""
    return canonical.digest(plan)


def trajectory_hash(stream: BinaryIO, *, file: str) -> str:
    """The hash of a whole log, header included, in constant memory.

    It covers each line as written, followed by one LF. So it is the hash of the file's bytes unless the file
    has a byte order mark, CR LF, blank lines or no last line end, which are ignored.
    """
    running = sha256()
    for line in read_lines(stream, file=file):
        running.update(line.text)
        running.update(b"\n")
    return f"sha256:{running.hexdigest()}"

"""What a command is about, in a word without its arguments, which may hold secrets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def subject(words: Sequence[str]) -> str:
    """For ``python -m triage.agent -v`` it is ``triage.agent``, for ``./run.sh now`` it is ``run``."""
    program = Path(words[0]).name
    if not program.startswith("python"):
        return Path(program).stem
    rest = list(words[1:])
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option == "-m" and rest:
            return rest[0]
        if option == "-c":
            return program
        if option in ("-W", "-X"):
            rest = rest[1:]
    return Path(rest[0]).stem if rest else program

"""Two logs side by side, as shadow mode needs it: the same tool calls, with the same outputs?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from reenact.check.entries import Entry, entry_of, match_entries
from reenact.check.findings import Finding
from reenact.formats.dialects import Event
from reenact.formats.lines import Line
from reenact.formats.session import Session

_COMPARED: Final = ("tool", "params_hash", "output_hash")

Lines = Iterable[tuple[Line, Event]]


def check_against(ours: Lines, theirs: Lines, *, file: str, other_file: str) -> list[Finding]:
    """Where the tool calls of two logs differ, by hash alone; ids, times and latencies do not count.

    What is kept in memory is the list of the other log's calls.
    """
    findings: list[Finding] = []
    latest = 0
    others = _entries(theirs)
    for match in match_entries(_entries(ours), others, by_id=False, compared=_COMPARED):
        entry, other = match.ours, match.theirs
        if entry is None:
            assert other is not None
            message = f"{other.tool} is called at {other_file}:{other.line}, and not here"
            findings.append(Finding("call_missing", message, file))
        elif other is None:
            message = f"{entry.tool} is called here, and not in {other_file}"
            findings.append(Finding("call_added", message, file, line=entry.line))
        elif match.differing:
            findings.append(_differing(entry, other, match.differing, file, other_file))
        elif other.line < latest:
            message = f"{entry.tool} comes earlier in {other_file}, at line {other.line}"
            findings.append(Finding("call_order", message, file, "warning", entry.line))
        else:
            latest = other.line
    return findings


def _entries(lines: Lines) -> list[Entry]:
    return [entry_of(use) for use in Session().tool_uses(lines)]


def _differing(entry: Entry, other: Entry, differing: tuple[str, ...], file: str, other_file: str) -> Finding:
    names = " and ".join(name.removesuffix("_hash") for name in differing)
    code = "output_differs" if differing == ("output_hash",) else "call_differs"
    message = f"{entry.tool}: other {names} than at {other_file}:{other.line}"
    return Finding(code, message, file, line=entry.line)

"""Whether a published log is the sealed one: every line one of its lines, in order, none missing.

The log lists the leaves of all lines. The list is good if its root is the one that was signed; then each
line is held against it, and a line that was changed, moved, dropped or added is named.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, BinaryIO, Final

from reenact.check.findings import Finding
from reenact.check.proof_scan import ProofScan, ProvedLine, lists_leaves
from reenact.check.seal import SealCheck
from reenact.check.sealing import tree_of
from reenact.check.segments import Progress, scan_segments
from reenact.errors import FormatError
from reenact.formats.dialects import DIALECTS
from reenact.formats.json_text import read_json
from reenact.formats.lines import read_lines
from reenact.formats.replay_log import LEAVES
from reenact.formats.seal import HASH_BYTES, Seal, base64_bytes

_LEAVES_MARK: Final = f'"{LEAVES}"'.encode()

_FIRST_LEAVES: Final = (1, 2)
"""The lines on which they may begin; where that is the first, the header is missing."""
_OpenStream = Callable[[], BinaryIO]
_Leaves = Generator[bytes, None, None]


def check_published_log(
    open_stream: _OpenStream,
    seal: Seal,
    *,
    file: str,
    processes: int = 1,
    progress: Progress | None = None,
) -> SealCheck:
    """Hold a published log against *seal*; memory for one byte per line, as long as all are in order."""
    tag_field = DIALECTS[seal.log.dialect].tag_field
    problem = _leaves_problem(open_stream, seal, file, tag_field)
    if problem is not None:
        return SealCheck([problem], {})
    check = _PublishedCheck(lambda: _leaves(open_stream, tag_field), seal.log.lines.count, file)
    with open_stream() as stream:
        scan = ProofScan(file, tag_field)
        for block, segment in scan_segments(stream, scan, processes=processes):
            check.findings += segment.findings
            for line in segment.lines:
                check.take(line)
            if progress is not None:
                progress(len(block.text))
    check.close()
    return SealCheck(check.findings, check.facts())


def _leaves_problem(open_stream: _OpenStream, seal: Seal, file: str, tag_field: str) -> Finding | None:
    try:
        tree = tree_of(_leaves(open_stream, tag_field))
    except FormatError as error:
        return Finding.of("seal_leaves", error, file=file)
    if not tree.count:
        message = "lists no leaves: they were cut out; publish the log again under the seal"
        return Finding("seal_leaves", message, file)
    if tree != seal.log.lines:
        message = "the leaves it lists are not those of the seal: the seal of another run, or a changed list"
        return Finding("seal_leaves", message, file)
    return None


def _leaves(open_stream: _OpenStream, tag_field: str) -> _Leaves:
    """The leaves that a log lists, one by one."""
    count, expected = 0, 0
    with open_stream() as stream:
        for line in read_lines(stream, file="", on_error=lambda _: None):
            if _LEAVES_MARK not in line.text:
                continue
            try:
                value = read_json(line.text)
                if not lists_leaves(value, tag_field):
                    continue
                block = _leaves_in(value, count + 1)
                if line.number not in ((expected,) if expected else _FIRST_LEAVES):
                    raise FormatError(f"leaves follow the header, not line {line.number - 1}")
            except FormatError as error:
                raise error.at(line=line.number) from None
            expected = line.number + 1
            count += len(block) // HASH_BYTES
            for start in range(0, len(block), HASH_BYTES):
                yield block[start : start + HASH_BYTES]


def _leaves_in(value: dict[str, Any], first: int) -> bytes:
    if value["from"] != first:
        raise FormatError(f"leaves from {first} on are expected here", json_path="$.from")
    block = base64_bytes(str(value["leaves"]), "$.leaves")
    if len(block) % HASH_BYTES:
        raise FormatError("holds half a hash; copy the file again", json_path="$.leaves")
    return block


class _PublishedCheck:
    """Walks along the listed leaves; only a line that is out of order makes it look them all up."""

    def __init__(self, open_leaves: Callable[[], _Leaves], count: int, file: str) -> None:
        self._open_leaves = open_leaves
        self._count = count
        self._file = file
        self._ahead = open_leaves()
        self._next: bytes | None = next(self._ahead)
        self._last = 0
        self._places: dict[bytes, int] = {}
        self._seen = bytearray(count + 1)
        self._withheld: list[int] = []
        self.findings: list[Finding] = []

    def facts(self) -> dict[str, Any]:
        return {"sealedLines": self._count, "withheldLines": self._withheld}

    def take(self, line: ProvedLine) -> None:
        position = self._position(line.leaf)
        if position is None:
            self._find("seal_line", "is no line of the sealed log: changed, or from another run", line.number)
        elif line.at != position:
            message = f"says that it is line {line.at} of the sealed log, and is line {position}"
            self._find("seal_proof", message, line.number, "$.seal.at")
        else:
            self._place(position, line.number)
            if line.is_withheld:
                self._withheld.append(position)

    def _position(self, leaf: bytes) -> int | None:
        if leaf == self._next:
            return self._last + 1
        if not self._places:
            self._places = {known: position for position, known in enumerate(self._open_leaves(), 1)}
        return self._places.get(leaf)

    def _place(self, position: int, number: int) -> None:
        if self._seen[position]:
            self._find("seal_repeated", f"is line {position} of the sealed log again", number)
        elif position < self._last:
            message = f"is line {position} of the sealed log and stands behind line {self._last}"
            self._find("seal_order", message, number)
        self._seen[position] = 1
        while self._last < position:
            self._last += 1
            self._next = next(self._ahead) if self._last < self._count else None

    def close(self) -> None:
        """Name the lines of the sealed log that are nowhere, and bring all findings into order."""
        self._ahead.close()
        self.findings.sort(key=lambda finding: finding.line or 0)
        start = None
        for position in range(1, self._count + 2):
            is_missing = position <= self._count and not self._seen[position]
            if is_missing and start is None:
                start = position
            elif not is_missing and start is not None:
                self._missing(start, position - 1)
                start = None

    def _missing(self, first: int, last: int) -> None:
        which = f"line {first}" if first == last else f"lines {first} to {last}"
        where = " (the end was cut off)" if last == self._count else ""
        verb = "is" if first == last else "are"
        message = f"{which} of the sealed log {verb} missing{where}"
        self.findings.append(Finding("seal_missing", message, self._file))

    def _find(self, code: str, message: str, number: int, path: str | None = None) -> None:
        self.findings.append(Finding(code, message, self._file, line=number, json_path=path))

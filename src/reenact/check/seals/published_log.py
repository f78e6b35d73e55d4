"""A log published under a seal: writing the proof of every line, and checking that none was changed.

The log lists the leaves of all lines. The list is valid if its root is the signed one; then each line is
compared with its leaf, and every line that was changed, moved, removed or added is reported. Segments are
scanned by several processes.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Container, Generator, Iterable, Iterator, Sequence
from typing import Any, BinaryIO, Final, NamedTuple

import msgspec

from reenact.canonical import JsonValue, child_path, read_json
from reenact.check.findings import Finding, SealCheck
from reenact.check.integrity.segments import scan_segments
from reenact.check.publishing import POLICIES, PolicyName, fields_of
from reenact.check.seals.commitments import Salts, commitment, leaf_of
from reenact.check.seals.sealing import line_fields, tree_of
from reenact.errors import FormatError
from reenact.formats.dialects import DIALECTS
from reenact.formats.dialects.common import Dialect
from reenact.formats.lines import TextBlock, lines_of, read_lines
from reenact.formats.record import ABSENT
from reenact.formats.replay_log import LEAVES, PROOF
from reenact.formats.seal import (
    HASH_BYTES,
    SALT_BYTES,
    LineProof,
    Seal,
    SealedLine,
    base64_bytes,
    hex_bytes,
    line_proof_codec,
)
from reenact.progress import Progress

WITHHELD_EVENT: Final = "Withheld"
"""The type of the line that replaces a withheld line."""

_LEAVES_PER_LINE: Final = 4096


def published_lines(
    lines: Iterable[SealedLine],
    leaves: Sequence[bytes],
    seed: bytes,
    *,
    dialect: Dialect[Any],
    policy: PolicyName,
    withhold: Container[int] = (),
) -> Iterator[dict[str, JsonValue]]:
    """The lines of the published log: each sealed line under *policy*, with its proof."""
    for position, line in enumerate(lines, 1):
        form = getattr(line, policy)
        if position in withhold or not isinstance(form, dict):
            proof = LineProof(at=position, leaf=leaves[position - 1].hex())
            yield {dialect.tag_field: WITHHELD_EVENT, PROOF: line_proof_codec.to_json(proof)}
        else:
            yield {**form, PROOF: _proof(line, position, seed, policy)}
        if position == 1:
            yield from _leaf_lines(leaves, dialect)


def _leaf_lines(leaves: Sequence[bytes], dialect: Dialect[Any]) -> Iterator[dict[str, JsonValue]]:
    for start in range(0, len(leaves), _LEAVES_PER_LINE):
        block = b64encode(b"".join(leaves[start : start + _LEAVES_PER_LINE])).decode()
        yield {dialect.tag_field: LEAVES, "from": start + 1, "leaves": block}


def _proof(line: SealedLine, position: int, seed: bytes, policy: PolicyName) -> dict[str, JsonValue]:
    fields, shown = line_fields(line)
    salts = Salts(seed, "log", position)
    opened = {name: salts.of(name).hex() for name in shown[policy]}
    entries: list[str | tuple[str, str]] = [
        (name, opened[name]) if name in opened else commitment(name, fields[name], salts.of(name)).hex()
        for name in sorted(fields)
    ]
    return line_proof_codec.to_json(LineProof(at=position, fields=entries))


class ProvedLine(NamedTuple):
    """A line with a readable proof, which may still be wrong."""

    number: int
    at: int
    """The position in the sealed log that it claims."""
    leaf: bytes
    is_withheld: bool


class ProvedSegment(msgspec.Struct):
    lines: list[ProvedLine] = msgspec.field(default_factory=list)
    findings: list[Finding] = msgspec.field(default_factory=list)


class ProofScan:
    """Reads the proofs in the segments of a log."""

    def __init__(self, file: str, tag_field: str) -> None:
        self._file = file
        self._tag_field = tag_field

    def __call__(self, block: TextBlock) -> ProvedSegment:
        segment = ProvedSegment()
        for line in lines_of(block, file=self._file, report=lambda _: None):
            try:
                value = read_json(line.text)
                if not lists_leaves(value, self._tag_field):
                    segment.lines.append(self._read_proved_line(value, line.number, segment.findings))
            except FormatError as error:
                error = error.at(line=line.number)
                segment.findings.append(Finding.of("seal_proof", error, file=self._file))
        return segment

    def _read_proved_line(self, value: Any, number: int, findings: list[Finding]) -> ProvedLine:
        proof = _read_proof(value)
        shown = {name: value[name] for name in value if name != PROOF}
        if proof.fields is not ABSENT:
            leaf, unproven = _open_commitments(proof.fields, fields_of(shown))
            message = "nothing proves this member"
            findings += [
                Finding("seal_unproven", message, self._file, line=number, json_path=path)
                for path in unproven
            ]
            return ProvedLine(number, proof.at, leaf, is_withheld=False)
        if shown != {self._tag_field: WITHHELD_EVENT}:
            raise FormatError("shows members without their salts", json_path="$.seal")
        leaf = hex_bytes(str(proof.leaf), HASH_BYTES, "$.seal.leaf")
        return ProvedLine(number, proof.at, leaf, is_withheld=True)


def lists_leaves(value: Any, tag_field: str) -> bool:
    """Whether *value* is a list of leaves and has no other members, which nothing would prove."""
    is_list = isinstance(value, dict) and value.keys() == {tag_field, "from", "leaves"}
    return is_list and value[tag_field] == LEAVES and type(value["from"]) is int


def _open_commitments(
    entries: list[str | tuple[str, str]], shown: dict[str, JsonValue]
) -> tuple[bytes, list[str]]:
    """The leaf of a line's commitments, and the members of the line that none of them covers."""
    commitments: list[bytes] = []
    proved: set[str] = set()
    for index, entry in enumerate(entries):
        place = child_path("$.seal.fields", index)
        if isinstance(entry, str):
            commitments.append(hex_bytes(entry, HASH_BYTES, place))
            continue
        name, salt = entry
        path = _path_of(name)
        if path not in shown:
            raise FormatError(f"opens {path[:80]}, which the line does not have", json_path=place)
        proved.add(path)
        commitments.append(commitment(name, shown[path], hex_bytes(salt, SALT_BYTES, place)))
    return leaf_of(commitments), sorted(shown.keys() - proved)


def _read_proof(line: object) -> LineProof:
    if not isinstance(line, dict) or PROOF not in line:
        raise FormatError("has no proof; every line of a log published under a seal has one", json_path="$")
    try:
        proof = line_proof_codec.from_json(line[PROOF])
    except FormatError as error:
        error.json_path = f"$.{PROOF}{(error.json_path or '$')[1:]}"
        raise
    if (proof.fields is ABSENT) == (proof.leaf is ABSENT) or proof.extra:
        raise FormatError("a proof has `at`, and either `fields` or `leaf`", json_path="$.seal")
    return proof


def _path_of(name: str) -> str:
    """The member whose value the field *name* commits to; some names begin with a policy."""
    policy, _, path = name.partition(":")
    return path if policy in POLICIES else name


_LEAVES_MARK: Final = f'"{LEAVES}"'.encode()

_FIRST_LEAVES: Final = (1, 2)
"""The lines on which the leaves may begin; if it is the first, the header is missing."""
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
    """Compare a published log with *seal*; takes one byte of memory per line if the lines are in order."""
    tag_field = DIALECTS[seal.log.dialect].tag_field
    problem = _leaves_problem(open_stream, seal, file, tag_field)
    if problem is not None:
        return SealCheck([problem], {})
    check = _PublishedCheck(lambda: _leaves(open_stream, tag_field), seal.log.lines.count, file)
    with open_stream() as stream:
        scan = ProofScan(file, tag_field)
        for size_bytes, segment in scan_segments(stream, scan, processes=processes):
            check.findings += segment.findings
            for line in segment.lines:
                check.take(line)
            if progress is not None:
                progress(size_bytes)
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
    """The leaves in a log, one by one."""
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


def _leaves_in(value: dict[str, JsonValue], first: int) -> bytes:
    if value["from"] != first:
        raise FormatError(f"leaves from {first} on are expected here", json_path="$.from")
    block = base64_bytes(str(value["leaves"]), "$.leaves")
    if len(block) % HASH_BYTES:
        raise FormatError("holds half a hash; copy the file again", json_path="$.leaves")
    return block


class _PublishedCheck:
    """Compares lines with the leaves in order; all leaves are loaded only for a line out of order."""

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

    def facts(self) -> dict[str, JsonValue]:
        return {"sealedLines": self._count, "withheldLines": [*self._withheld]}

    def take(self, line: ProvedLine) -> None:
        position = self._position(line.leaf)
        if position is None:
            self._find(
                "seal_line",
                "is not a line of the sealed log: it was changed, or is from another run",
                line.number,
            )
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
            message = f"is line {position} of the sealed log but comes after line {self._last}"
            self._find("seal_order", message, number)
        self._seen[position] = 1
        while self._last < position:
            self._last += 1
            self._next = next(self._ahead) if self._last < self._count else None

    def close(self) -> None:
        """Report the missing lines of the sealed log, and sort all findings."""
        self._ahead.close()
        self.findings.sort(key=lambda finding: finding.line or 0)
        start = None
        for position in range(1, self._count + 2):
            is_missing = position <= self._count and not self._seen[position]
            if is_missing and start is None:
                start = position
            elif not is_missing and start is not None:
                self._report_missing(start, position - 1)
                start = None

    def _report_missing(self, first: int, last: int) -> None:
        which = f"line {first}" if first == last else f"lines {first} to {last}"
        where = " (the end was cut off)" if last == self._count else ""
        verb = "is" if first == last else "are"
        message = f"{which} of the sealed log {verb} missing{where}"
        self.findings.append(Finding("seal_missing", message, self._file))

    def _find(self, code: str, message: str, number: int, path: str | None = None) -> None:
        self.findings.append(Finding(code, message, self._file, line=number, json_path=path))

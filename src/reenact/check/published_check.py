"""Whether a published log is the sealed one: every line one of its lines, in order, none missing.

The log lists the leaves of all lines. The list is good if its root is the one that was signed; then each
line is held against it, and a line that was changed, moved, dropped or added is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Final

from reenact.canonical import child_path
from reenact.check.commitment import commitment, fields_of, leaf_of
from reenact.check.findings import Finding
from reenact.check.layer_c import POLICIES
from reenact.check.merkle import root_of
from reenact.check.published import LEAVES, PROOF, WITHHELD_EVENT
from reenact.check.seal import SealCheck
from reenact.errors import FormatError
from reenact.formats.dialects import DIALECTS
from reenact.formats.disclosure import LineProof, line_proof_codec
from reenact.formats.json_text import read_json
from reenact.formats.lines import Line, read_lines
from reenact.formats.record import ABSENT
from reenact.formats.seal import HASH_BYTES, SALT_BYTES, Seal, base64_bytes, hex_bytes

_LEAVES_MARK: Final = f'"{LEAVES}"'.encode()


def check_published_log(open_stream: Callable[[], BinaryIO], seal: Seal, *, file: str) -> SealCheck:
    """Hold a published log against *seal*; two passes, and memory for one hash per line."""
    tag_field = DIALECTS[seal.log.dialect].tag_field
    try:
        with open_stream() as stream:
            leaves = _listed_leaves(read_lines(stream, file=file, on_error=lambda _: None), tag_field)
    except FormatError as error:
        return SealCheck([Finding.of("seal_leaves", error, file=file)], {})
    if not leaves:
        message = "lists no leaves: they were cut out; publish the log again under the seal"
        return SealCheck([Finding("seal_leaves", message, file)], {})
    if len(leaves) != seal.log.lines.count or root_of(leaves).hex() != seal.log.lines.root:
        message = "the leaves it lists are not those of the seal: the seal of another run, or a changed list"
        return SealCheck([Finding("seal_leaves", message, file)], {})
    check = _PublishedCheck(leaves, file, tag_field)
    with open_stream() as stream:
        for line in read_lines(stream, file=file, on_error=lambda _: None):
            check.take(line)
    check.close()
    return SealCheck(check.findings, check.facts())


def is_published(open_stream: Callable[[], BinaryIO], *, file: str) -> bool:
    """Whether a log was published under a seal: its header carries a proof, or leaves follow it."""
    with open_stream() as stream:
        lines = read_lines(stream, file=file, on_error=lambda _: None)
        marks = (f'"{PROOF}"'.encode(), _LEAVES_MARK)
        return any(mark in line.text for line, _ in zip(lines, range(2), strict=False) for mark in marks)


def _listed_leaves(lines: Iterator[Line], tag_field: str) -> list[bytes]:
    leaves: list[bytes] = []
    for line in lines:
        if _LEAVES_MARK not in line.text:
            continue
        try:
            value = read_json(line.text)
            if _lists_leaves(value, tag_field):
                leaves += _leaves_in(value, len(leaves) + 1)
        except FormatError as error:
            raise error.at(line=line.number) from None
    return leaves


def _leaves_in(value: dict[str, Any], first: int) -> Iterator[bytes]:
    if value["from"] != first:
        raise FormatError(f"leaves from {first} on are expected here", json_path="$.from")
    block = base64_bytes(str(value["leaves"]), "$.leaves")
    if len(block) % HASH_BYTES:
        raise FormatError("holds half a hash; copy the file again", json_path="$.leaves")
    for start in range(0, len(block), HASH_BYTES):
        yield block[start : start + HASH_BYTES]


def _lists_leaves(value: Any, tag_field: str) -> bool:
    """Exactly that: another member could say what nobody signed."""
    is_list = isinstance(value, dict) and value.keys() == {tag_field, "from", "leaves"}
    return is_list and value[tag_field] == LEAVES and type(value["from"]) is int


class _PublishedCheck:
    def __init__(self, leaves: list[bytes], file: str, tag_field: str) -> None:
        self._leaves = leaves
        self._tag_field = tag_field
        self._file = file
        self._places: dict[bytes, int] = {}
        self._seen = bytearray(len(leaves) + 1)
        self._last = 0
        self._withheld: list[int] = []
        self.findings: list[Finding] = []

    def facts(self) -> dict[str, Any]:
        return {"sealedLines": len(self._leaves), "withheldLines": self._withheld}

    def take(self, line: Line) -> None:
        try:
            value = read_json(line.text)
            if _lists_leaves(value, self._tag_field):
                return
            proof = _read_proof(value)
            leaf = self._leaf(proof, {name: value[name] for name in value if name != PROOF}, line.number)
            position = self._position(leaf)
            if position is not None and proof.at != position:
                reason = f"says that it is line {proof.at} of the sealed log, and is line {position}"
                raise FormatError(reason, json_path="$.seal.at")
        except FormatError as error:
            self.findings.append(Finding.of("seal_proof", error.at(line=line.number), file=self._file))
            return
        if position is None:
            self._find("seal_line", "is no line of the sealed log: changed, or from another run", line.number)
            return
        self._place(position, line.number)
        if proof.fields is ABSENT:
            self._withheld.append(position)

    def _leaf(self, proof: LineProof, shown: dict[str, Any], number: int) -> bytes:
        if proof.fields is not ABSENT:
            return self._opened(proof.fields, fields_of(shown), number)
        if shown != {self._tag_field: WITHHELD_EVENT}:
            raise FormatError("shows members without their salts", json_path="$.seal")
        return hex_bytes(str(proof.leaf), HASH_BYTES, "$.seal.leaf")

    def _opened(self, fields: list[str | tuple[str, str]], shown: dict[str, Any], number: int) -> bytes:
        commitments: list[bytes] = []
        proved: set[str] = set()
        for index, entry in enumerate(fields):
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
        for path in sorted(shown.keys() - proved):
            self._find("seal_unproven", "nothing proves this member", number, path)
        return leaf_of(commitments)

    def _position(self, leaf: bytes) -> int | None:
        if self._last < len(self._leaves) and self._leaves[self._last] == leaf:
            return self._last + 1
        if not self._places:
            self._places = {known: position for position, known in enumerate(self._leaves, 1)}
        return self._places.get(leaf)

    def _place(self, position: int, number: int) -> None:
        if self._seen[position]:
            self._find("seal_repeated", f"is line {position} of the sealed log again", number)
        elif position < self._last:
            message = f"is line {position} of the sealed log and stands behind line {self._last}"
            self._find("seal_order", message, number)
        self._seen[position] = 1
        self._last = max(self._last, position)

    def close(self) -> None:
        """Name the lines of the sealed log that are nowhere."""
        start = None
        for position in range(1, len(self._seen) + 1):
            is_missing = position < len(self._seen) and not self._seen[position]
            if is_missing and start is None:
                start = position
            elif not is_missing and start is not None:
                self._missing(start, position - 1)
                start = None

    def _missing(self, first: int, last: int) -> None:
        which = f"line {first}" if first == last else f"lines {first} to {last}"
        where = " (the end was cut off)" if last == len(self._leaves) else ""
        verb = "is" if first == last else "are"
        message = f"{which} of the sealed log {verb} missing{where}"
        self.findings.append(Finding("seal_missing", message, self._file))

    def _find(self, code: str, message: str, number: int, path: str | None = None) -> None:
        self.findings.append(Finding(code, message, self._file, line=number, json_path=path))


def _read_proof(line: Any) -> LineProof:
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
    """The member whose value the field *name* commits to; some are named after a policy's wording."""
    policy, _, path = name.partition(":")
    return path if policy in POLICIES else name

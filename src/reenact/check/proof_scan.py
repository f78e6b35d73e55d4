"""The leaves that the lines of a published log lead to; segments are scanned apart, on several cores."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from reenact.canonical import child_path
from reenact.check.commitment import commitment, fields_of, leaf_of
from reenact.check.findings import Finding
from reenact.check.layer_c import POLICIES
from reenact.check.published import WITHHELD_EVENT
from reenact.errors import FormatError
from reenact.formats.blocks import TextBlock, lines_of
from reenact.formats.disclosure import LineProof, line_proof_codec
from reenact.formats.json_text import read_json
from reenact.formats.record import ABSENT
from reenact.formats.replay_log import LEAVES, PROOF
from reenact.formats.seal import HASH_BYTES, SALT_BYTES, hex_bytes


class ProvedLine(NamedTuple):
    """A line with a proof that can be followed, wherever it leads."""

    number: int
    at: int
    """The place that it claims in the sealed log."""
    leaf: bytes
    is_withheld: bool


class ProvedSegment(msgspec.Struct):
    lines: list[ProvedLine] = msgspec.field(default_factory=list)
    findings: list[Finding] = msgspec.field(default_factory=list)


class ProofScan:
    """Follows the proofs in the segments of a log."""

    def __init__(self, file: str, tag_field: str) -> None:
        self._file = file
        self._tag_field = tag_field

    def __call__(self, block: TextBlock) -> ProvedSegment:
        segment = ProvedSegment()
        for line in lines_of(block, file=self._file, report=lambda _: None):
            try:
                value = read_json(line.text)
                if not lists_leaves(value, self._tag_field):
                    segment.lines.append(self._proved(value, line.number, segment.findings))
            except FormatError as error:
                error = error.at(line=line.number)
                segment.findings.append(Finding.of("seal_proof", error, file=self._file))
        return segment

    def _proved(self, value: Any, number: int, findings: list[Finding]) -> ProvedLine:
        proof = _read_proof(value)
        shown = {name: value[name] for name in value if name != PROOF}
        if proof.fields is not ABSENT:
            leaf, unproven = _opened(proof.fields, fields_of(shown))
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
    """Exactly that: another member could say what nobody signed."""
    is_list = isinstance(value, dict) and value.keys() == {tag_field, "from", "leaves"}
    return is_list and value[tag_field] == LEAVES and type(value["from"]) is int


def _opened(entries: list[str | tuple[str, str]], shown: dict[str, Any]) -> tuple[bytes, list[str]]:
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

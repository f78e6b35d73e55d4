"""A log published under a seal: every line proves itself, and the list of leaves says what is missing."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any, Final

from reenact.check.commitment import Salts, commitment
from reenact.check.layer_c import PolicyName
from reenact.check.sealing import line_fields
from reenact.formats.dialects.common import Dialect
from reenact.formats.disclosure import LineProof, line_proof_codec
from reenact.formats.replay_log import LEAVES, PROOF
from reenact.formats.seal_secret import SealedLine

WITHHELD_EVENT: Final = "Withheld"
"""The event that stands for a line of which nothing is shown."""

_LEAVES_PER_LINE: Final = 4096


def published_lines(
    lines: Iterable[SealedLine],
    leaves: Sequence[bytes],
    seed: bytes,
    *,
    dialect: Dialect[Any],
    policy: PolicyName,
    withhold: Container[int] = (),
) -> Iterator[dict[str, Any]]:
    """The published log, line by line: what *policy* shows of each sealed line, with its proof."""
    for position, line in enumerate(lines, 1):
        form = getattr(line, policy)
        if position in withhold or not isinstance(form, dict):
            proof = LineProof(at=position, leaf=leaves[position - 1].hex())
            yield {dialect.tag_field: WITHHELD_EVENT, PROOF: line_proof_codec.to_json(proof)}
        else:
            yield {**form, PROOF: _proof(line, position, seed, policy)}
        if position == 1:
            yield from _leaf_lines(leaves, dialect)


def _leaf_lines(leaves: Sequence[bytes], dialect: Dialect[Any]) -> Iterator[dict[str, Any]]:
    for start in range(0, len(leaves), _LEAVES_PER_LINE):
        block = b64encode(b"".join(leaves[start : start + _LEAVES_PER_LINE])).decode()
        yield {dialect.tag_field: LEAVES, "from": start + 1, "leaves": block}


def _proof(line: SealedLine, position: int, seed: bytes, policy: PolicyName) -> dict[str, Any]:
    fields, shown = line_fields(line)
    salts = Salts(seed, "log", position)
    opened = {name: salts.of(name).hex() for name in shown[policy]}
    entries: list[str | tuple[str, str]] = [
        (name, opened[name]) if name in opened else commitment(name, fields[name], salts.of(name)).hex()
        for name in sorted(fields)
    ]
    return line_proof_codec.to_json(LineProof(at=position, fields=entries))

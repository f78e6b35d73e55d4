"""Building seals and disclosures: the leaves of events, the signature, the proof for one event."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from reenact import canonical
from reenact.canonical import JsonField, JsonValue, read_json
from reenact.check.publishing import POLICIES, PolicyName, fields_of
from reenact.check.seals.commitments import Salts, TreeName, commitments_of, leaf_of, path_of, root_of
from reenact.check.seals.keys import key_id
from reenact.errors import UsageError
from reenact.formats.record import ABSENT
from reenact.formats.seal import (
    DISCLOSURE_VERSION,
    PAYLOAD_TYPE,
    Disclosure,
    Seal,
    SealedLine,
    Tree,
    seal_to_bytes,
    to_be_signed,
    write_envelope,
)


class LineFields(NamedTuple):
    """The fields that a leaf of the log commits to."""

    committed: dict[str, JsonField]
    """The fields of the line, and under ``policy:path`` those that a policy publishes in another form."""
    shown: dict[PolicyName, list[str]]
    """The fields that are published under each policy."""


def line_fields(line: SealedLine) -> LineFields:
    """The fields of a sealed line; a form that equals an earlier one is not committed to again."""
    committed = fields_of(line.original)
    # Compared as JSON texts, because 1, 1.0 and True are equal in Python.
    texts = {name: canonical.encode(value) for name, value in committed.items()}
    shown: dict[PolicyName, list[str]] = {}
    for policy, form in zip(POLICIES, (line.open, line.private, line.paranoid), strict=True):
        if form is ABSENT:
            continue  # the event must not be published
        shown[policy] = []
        for path, value in fields_of(form).items():
            text = canonical.encode(value)
            names = (path, *(f"{earlier}:{path}" for earlier in POLICIES))
            name = next((name for name in names if texts.get(name) == text), f"{policy}:{path}")
            committed[name], texts[name] = value, text
            shown[policy].append(name)
    return LineFields(committed, shown)


def event_fields(line: bytes) -> dict[str, JsonValue]:
    """The fields that a leaf of a capture commits to: those of the event as written."""
    return fields_of(read_json(line))


def log_leaves(lines: Iterable[SealedLine], seed: bytes) -> Iterator[bytes]:
    """The leaves over a log."""
    return _leaves((line_fields(line).committed for line in lines), seed, "log")


def event_leaves(lines: Iterable[bytes], seed: bytes) -> Iterator[bytes]:
    """The leaves over the lines of an event log."""
    return _leaves(map(event_fields, lines), seed, "events")


def _leaves(events: Iterable[dict[str, JsonValue]], seed: bytes, tree: TreeName) -> Iterator[bytes]:
    for position, fields in enumerate(events, 1):
        yield leaf_of(commitments_of(fields, Salts(seed, tree, position)).values())


def tree_of(leaves: Iterable[bytes]) -> Tree:
    """The tree over *leaves* in the form of a seal."""
    count = 0

    def count_leaves() -> Iterator[bytes]:
        nonlocal count
        for leaf in leaves:
            count += 1
            yield leaf

    root = root_of(count_leaves()).hex()
    return Tree(count=count, root=root)


def sign_seal(seal: Seal, key: Ed25519PrivateKey) -> bytes:
    """The content of a seal file: the signed envelope of *seal*."""
    payload = seal_to_bytes(seal)
    signature = key.sign(to_be_signed(PAYLOAD_TYPE, payload))
    return write_envelope(payload, key_id(key.public_key()), signature)


def prove(leaves: Sequence[bytes], tree: TreeName, position: int) -> Disclosure:
    """Proof that an event is at *position*, 1-based; nothing of its content is disclosed."""
    path = [node.hex() for node in path_of(leaves, position - 1)]
    return Disclosure(
        disclosure=DISCLOSURE_VERSION,
        tree=tree,
        position=position,
        path=path,
        leaf=leaves[position - 1].hex(),
    )


def disclose(
    leaves: Sequence[bytes],
    tree: TreeName,
    position: int,
    *,
    fields: dict[str, JsonValue],
    seed: bytes,
    names: Collection[str],
) -> Disclosure:
    """The same with the values of the fields *names*; a name includes all fields below it."""
    chosen = {field for name in names for field in _match_fields(fields, name)}
    salts = Salts(seed, tree, position)
    entries: list[str | tuple[str, str, JsonValue]] = [
        (name, salts.of(name).hex(), fields[name]) if name in chosen else commitment.hex()
        for name, commitment in commitments_of(fields, salts).items()
    ]
    path = [node.hex() for node in path_of(leaves, position - 1)]
    return Disclosure(disclosure=DISCLOSURE_VERSION, tree=tree, position=position, path=path, fields=entries)


def _match_fields(fields: dict[str, JsonValue], name: str) -> list[str]:
    found = [field for field in fields if field == name or field.startswith((f"{name}.", f"{name}["))]
    if not found:
        known = ", ".join(sorted(field for field in fields if field.startswith("$")))
        raise UsageError(f"the event has no field {name!r}; it has {known}")
    return found

"""Logs published under a seal, and disclosures; every file is made from one log, one key and one seed."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator
from io import BytesIO
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from conformance.make.case import (
    Case,
    Change,
    Event,
    Found,
    as_it_is,
    changed,
    document,
    lines_of,
    set_fields,
)
from conformance.make.replay_log import LOG
from reenact import canonical
from reenact.check.publishing import PolicyName, Publisher
from reenact.check.seals.keys import public_pem
from reenact.check.seals.published_log import published_lines
from reenact.check.seals.sealing import disclose, line_fields, log_leaves, prove, sign_seal, tree_of
from reenact.formats.dialects import DIALECTS
from reenact.formats.replay_log import read_replay_log
from reenact.formats.seal import SealedLine, disclosure_codec, read_seal

KEY: Final = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER_KEY: Final = Ed25519PrivateKey.from_private_bytes(bytes(32))
SEED: Final = bytes(range(32))
DIALECT: Final = DIALECTS["current"]
OPTIONS: Final = {"seal": "SEAL.json", "key": "signer.pub"}


def _sealed(seed: bytes) -> list[SealedLine]:
    events = [event for _, event in read_replay_log(BytesIO(lines_of(LOG)), file="LOG")]
    publisher = Publisher(events, DIALECT, seed)
    return [publisher.seal_line(event) for event in events]


def _published(
    policy: PolicyName = "private", withhold: tuple[int, ...] = (), seed: bytes = SEED
) -> list[Event]:
    lines = _sealed(seed)
    leaves = [*log_leaves(lines, seed)]
    return [*published_lines(lines, leaves, seed, dialect=DIALECT, policy=policy, withhold=withhold)]


def seal_of_log(trajectory: str | None = None) -> Event:
    """What is signed of the log; *trajectory* where it was sealed alone."""
    tree = tree_of(log_leaves(_sealed(SEED), SEED))
    whole = {} if trajectory is None else {"trajectoryHash": trajectory}
    log = {"dialect": "current", "lines": {"count": tree.count, "root": tree.root}, **whole}
    return {"version": 1, "sealedAt": "2026-02-15T01:00:00Z", "producer": "conformance", "log": log}


def _seal(key: Ed25519PrivateKey = KEY) -> bytes:
    return sign_seal(read_seal(canonical.encode(seal_of_log()), file="SEAL"), key)


def _changed_seal() -> bytes:
    envelope = json.loads(_seal())
    payload = b64decode(envelope["payload"]).replace(b"2026-02-15", b"2026-02-14")
    return document(envelope | {"payload": b64encode(payload).decode()})


def _files(artifact: dict[str, bytes], seal: bytes | None = None) -> dict[str, bytes]:
    return {**artifact, "SEAL.json": seal or _seal(), "signer.pub": public_pem(KEY.public_key())}


LINES: Final = _published()
OTHER_LINES: Final = _published(seed=SEED[::-1])


def published_case(
    name: str,
    about: str,
    change: Change = as_it_is,
    *found: Found,
    lines: list[Event] = LINES,
    seal: bytes | None = None,
) -> Case:
    files = _files({"PUBLISHED.jsonl": lines_of(changed(lines, change))}, seal)
    return Case(name, about, "PUBLISHED.jsonl", files, found, options=OPTIONS)


def published_cases() -> Iterator[Case]:
    yield published_case("good", "Published under the policy private.")
    yield published_case("good-open", "Published with its texts.", lines=_published("open"))
    yield published_case("good-paranoid", "Names and hashes are blinded.", lines=_published("paranoid"))
    yield published_case(
        "good-withheld",
        "Of a call and its result nothing is shown; totals cannot be checked then.",
        as_it_is,
        Found("total_tool_calls", 9, severity="warning"),
        Found("total_latency_ms", 9, severity="warning"),
        lines=_published(withhold=(3, 4)),
    )
    yield published_case(
        "truncated",
        "The last line was cut off.",
        lambda lines: lines.pop(),
        Found("seal_missing"),
        Found("no_end", 8, severity="warning"),
    )
    yield published_case(
        "deleted",
        "The verification was deleted.",
        lambda lines: lines.pop(7),
        Found("seal_missing"),
    )
    yield published_case(
        "reordered",
        "Two lines have changed places.",
        lambda lines: lines.insert(4, lines.pop(5)),
        Found("seal_order", 6),
    )
    yield published_case(
        "substituted",
        "The name of a tool was changed.",
        set_fields(3, tool="delete_everything"),
        Found("seal_line", 4),
        Found("seal_missing"),
    )
    yield published_case(
        "mixed",
        "A line was taken from the publication of another run.",
        lambda lines: lines.__setitem__(4, OTHER_LINES[4]),
        Found("seal_line", 5),
        Found("seal_missing"),
    )
    yield published_case(
        "member-added",
        "A line says something that nobody signed.",
        set_fields(3, note="approved"),
        Found("seal_unproven", 4, "$.note"),
    )
    yield published_case(
        "hidden-behind-a-leaf",
        "A line shows members and proves another line.",
        lambda lines: lines[3].update(seal={"at": 3, "leaf": _published(withhold=(3,))[3]["seal"]["leaf"]}),
        Found("seal_proof", 4, "$.seal"),
        Found("seal_missing"),
    )
    yield published_case(
        "repeated",
        "A line stands there twice.",
        lambda lines: lines.insert(8, lines[7]),
        Found("seal_repeated", 9),
    )
    yield published_case(
        "place-wrong",
        "A line claims another place than its leaf has.",
        lambda lines: lines[3]["seal"].update(at=4),
        Found("seal_proof", 4, "$.seal.at"),
        Found("seal_missing"),
    )
    yield published_case(
        "proof-removed",
        "A line has no proof.",
        lambda lines: lines[7].pop("seal"),
        Found("seal_proof", 8, "$"),
        Found("seal_missing"),
    )
    yield published_case(
        "leaves-removed", "The leaves were cut out.", lambda lines: lines.pop(1), Found("seal_leaves")
    )
    yield published_case(
        "leaves-moved",
        "The list of leaves was moved.",
        lambda lines: lines.insert(3, lines.pop(1)),
        Found("seal_leaves", 4),
    )
    yield published_case(
        "leaves-of-another-run",
        "The list of leaves is that of another run.",
        lambda lines: lines.__setitem__(1, OTHER_LINES[1]),
        Found("seal_leaves"),
    )
    yield published_case(
        "another-run", "The seal is that of another run.", as_it_is, Found("seal_leaves"), lines=OTHER_LINES
    )
    yield published_case(
        "another-key",
        "The seal was signed with another key.",
        as_it_is,
        Found("seal_signature"),
        seal=_seal(OTHER_KEY),
    )
    yield published_case(
        "seal-changed",
        "The payload was changed after it was signed.",
        as_it_is,
        Found("seal_signature"),
        seal=_changed_seal(),
    )


def _disclosed(*names: str) -> Event:
    lines = _sealed(SEED)
    leaves = [*log_leaves(lines, SEED)]
    if not names:
        return disclosure_codec.to_json(prove(leaves, "log", 3))
    fields = line_fields(lines[2]).committed
    return disclosure_codec.to_json(disclose(leaves, "log", 3, fields=fields, seed=SEED, names=names))


def _opened(fields: list[Any]) -> int:
    return next(index for index, entry in enumerate(fields) if isinstance(entry, list))


def disclosure_case(name: str, about: str, base: Event, change: Change = as_it_is, *found: Found) -> Case:
    files = _files({"DISCLOSURE.json": lines_of([changed(base, change)])})
    return Case(name, about, "DISCLOSURE.json", files, found, options=OPTIONS)


def disclosure_cases() -> Iterator[Case]:
    params, wrong = _disclosed("$.params"), Found("seal_disclosure")
    yield disclosure_case("good", "The parameters of one call.", params)
    yield disclosure_case("good-proof", "That there is such a line, and nothing else.", _disclosed())
    yield disclosure_case(
        "value-changed",
        "A value was changed.",
        params,
        lambda value: value["fields"][_opened(value["fields"])].__setitem__(2, "else"),
        wrong,
    )
    yield disclosure_case(
        "moved", "It claims another place.", params, lambda value: value.update(position=4), wrong
    )
    yield disclosure_case(
        "path-cut", "Its path is too short.", params, lambda value: value["path"].pop(), wrong
    )
    yield disclosure_case(
        "no-proof",
        "It has neither a leaf nor fields.",
        params,
        lambda value: value.pop("fields"),
        Found("invalid", path="$"),
    )
    for name, about, fields, path in (
        ("version-newer", "A newer version.", {"disclosure": 2}, "$.disclosure"),
        ("tree-unknown", "There is no such tree.", {"tree": "leaves"}, "$.tree"),
        ("position-no-number", "A position is a number.", {"position": "3"}, "$.position"),
    ):
        case = disclosure_case(name, about, params | fields, as_it_is, Found("invalid", path=path))
        yield case._replace(options={})

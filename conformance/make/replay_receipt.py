"""Receipts of replays, alone and beside a capture."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformance.make.capture import EVENTS, capture_cases
from conformance.make.case import (
    OK,
    OTHER,
    Case,
    Change,
    Event,
    Found,
    changed,
    document,
    document_case,
    lines_of,
)
from reenact import canonical

REPLAY_RECEIPT: Event = {
    "schema": "reenact.replay-receipt.v1",
    "capture": {
        "captureId": "cap_1",
        "eventsHash": canonical.digest_of_bytes(lines_of(EVENTS)),
        "eventCount": 6,
    },
    "fingerprint": {"code": OK, "packages": OK, "python": "3.11.7", "platform": "linux", "reenact": "0.1.0"},
    "matching": {"policy": "strict", "redaction": "default", "passthroughTools": [], "volatile": []},
    "divergences": [],
    "liveCallsRefused": [],
    "notes": [],
    "finalOutputHash": None,
    "verdict": "reproduced",
}

REFUSED: Event = {"kind": "connect", "target": "127.0.0.1:443", "frame": None}


def _diverge(receipt: Event) -> None:
    receipt["divergences"].append({"code": "event_missing", "detail": "x"})
    receipt.update(verdict="diverged", liveCallsRefused=[REFUSED], replayedAt=1794729709959)


def _add(receipt: Event) -> None:
    receipt["fingerprint"].update(mood="calm")


BROKEN: tuple[tuple[str, str, Change, str, str], ...] = (
    (
        "version-newer",
        "A schema of another version.",
        lambda r: r.update(schema="reenact.replay-receipt.v2"),
        "invalid",
        "$.schema",
    ),
    ("field-missing", "A required field is missing.", lambda r: r.pop("notes"), "invalid", "$.notes"),
    (
        "hash-cut",
        "What should be a hash is none.",
        lambda r: r["capture"].update(eventsHash="sha256:12"),
        "eventsHash",
        "$.capture.eventsHash",
    ),
    (
        "fingerprint-cut",
        "What ran is named by hashes.",
        lambda r: r["fingerprint"].update(packages="sha256:12"),
        "packages",
        "$.fingerprint.packages",
    ),
    (
        "output-cut",
        "So is the final output.",
        lambda r: r.update(finalOutputHash="sha256:12"),
        "finalOutputHash",
        "$.finalOutputHash",
    ),
    (
        "policy-unknown",
        "No such policy.",
        lambda r: r["matching"].update(policy="mild"),
        "invalid",
        "$.matching.policy",
    ),
    (
        "count-negative",
        "A count is 0 or more.",
        lambda r: r["capture"].update(eventCount=-1),
        "invalid",
        "$.capture.eventCount",
    ),
    (
        "refusal-ignored",
        "A replay in which something tried to go live is called reproduced.",
        lambda r: r["liveCallsRefused"].append(REFUSED),
        "verdict",
        "$.verdict",
    ),
    (
        "diverged-for-nothing",
        "Nothing diverged.",
        lambda r: r.update(verdict="diverged"),
        "verdict",
        "$.verdict",
    ),
    ("verdict-unknown", "No such verdict.", lambda r: r.update(verdict="maybe"), "invalid", "$.verdict"),
)


def replay_receipt_cases() -> Iterator[Case]:
    yield document_case("receipt.json", REPLAY_RECEIPT, "good", "The receipt of a replay.")
    yield document_case(
        "receipt.json",
        REPLAY_RECEIPT,
        "verdict-wrong",
        "A replay that diverged is called reproduced.",
        lambda receipt: receipt["divergences"].append({"code": "event_missing", "detail": "x"}),
        Found("verdict", path="$.verdict"),
    )
    for name, about, change, code, path in BROKEN:
        yield document_case("receipt.json", REPLAY_RECEIPT, name, about, change, Found(code, path=path))
    yield document_case("receipt.json", REPLAY_RECEIPT, "good-diverged", "A replay that diverged.", _diverge)
    yield document_case(
        "receipt.json",
        REPLAY_RECEIPT,
        "good-unknown",
        "Other members are kept.",
        _add,
        Found("unknown_member", path="$.fingerprint.mood", severity="warning"),
    )
    yield held_case("held-good", "A capture and the receipt of its replay.")
    yield held_case("held-another-capture", "The receipt is of another recording.", eventsHash=OTHER)
    yield held_case("held-another-id", "The receipt names another recording.", captureId="cap_2")
    yield held_case("held-another-length", "The receipt is of a longer recording.", eventCount=7)


def held_case(name: str, about: str, **fields: Any) -> Case:
    """A capture beside a receipt that says other things of it."""
    receipt = changed(REPLAY_RECEIPT, lambda receipt: receipt["capture"].update(fields))
    files = {**next(capture_cases()).files, "receipt.json": document(receipt)}
    found = (Found("receipt_differs"),) if fields else ()
    return Case(name, about, "capture", files, found, {"receipt": "receipt.json"})

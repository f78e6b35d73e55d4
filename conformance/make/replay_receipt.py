"""Receipts of replays, alone and beside a capture."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.make.capture import EVENTS, capture_cases
from conformance.make.case import (
    OK,
    OTHER,
    Case,
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
    files = {
        **next(capture_cases()).files,
        "receipt.json": document(
            changed(REPLAY_RECEIPT, lambda receipt: receipt["capture"].update(eventsHash=OTHER))
        ),
    }
    yield Case(
        "held-another-capture",
        "The receipt is of another recording.",
        "capture",
        files,
        (Found("receipt_differs"),),
        {"receipt": "receipt.json"},
    )

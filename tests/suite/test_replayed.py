"""The agent, executed again, did what it had done."""

import pytest

from reenact.formats.replay_receipt import receipt_codec
from reenact.trace.replayed import with_receipt
from tests.suite.runs import call, check, table, trace_of

TRACE = trace_of(call("search"))
DIVERGED = {
    "code": "event_payload_mismatch",
    "detail": "search differs",
    "eventSeq": 1,
    "jsonPath": "$.data.args.q",
}
REFUSED = {"kind": "connect", "target": "api.example:443", "frame": None}


def replayed(divergences=(), refused=()):
    digest = "sha256:" + "0" * 64
    receipt = {
        "schema": "reenact.replay-receipt.v1",
        "capture": {"captureId": "c", "eventsHash": digest, "eventCount": 1},
        "fingerprint": {"code": digest, "packages": digest, "python": "3", "platform": "x", "reenact": "0"},
        "matching": {"policy": "lenient", "redaction": "none", "passthroughTools": [], "volatile": []},
        "divergences": list(divergences),
        "liveCallsRefused": list(refused),
        "notes": [],
        "finalOutputHash": None,
        "verdict": "diverged" if divergences or refused else "reproduced",
    }
    return with_receipt(TRACE, receipt_codec.from_json(receipt))


CASES = {
    "reproduced": (replayed(), {}, "pass", [], "expected no divergences, found none"),
    "diverged": (
        *(replayed([DIVERGED]), {}, "fail", ["replay-1"]),
        "event_payload_mismatch at event 1, $.data.args.q: search differs",
    ),
    "tolerated": (replayed([DIVERGED]), {"max_divergences": 1}, "pass", ["replay-1"], ""),
    "of an allowed kind": (
        replayed([DIVERGED]),
        {"allowed_codes": ["event_payload_mismatch"]},
        "pass",
        [],
        "",
    ),
    "went live": (
        replayed(refused=[REFUSED]),
        {"max_divergences": 9},
        "fail",
        ["replay-1"],
        "connect api.example:443",
    ),
    "not replayed": (TRACE, {}, "fail", [], "nothing was replayed; give adapter_input a command"),
}


@pytest.mark.parametrize(("trace", "params", "status", "refs", "said"), **table(CASES))
def test_divergences_are_counted(trace, params, status, refs, said):
    """A run that was not replayed proves nothing."""
    check("divergence_free", params, trace, status, refs, said)


def test_divergences_become_events_behind_the_run():
    """Each points to the recorded event it is about."""
    trace = replayed([DIVERGED, {**DIVERGED, "eventSeq": 99}], [REFUSED])
    found = [(event.event_id, event.type, event.seq, event.parent_event_id) for event in trace.events[1:]]
    assert found == [
        ("replay-1", "divergence", 2, "evt-1"),
        ("replay-2", "divergence", 3, None),
        ("replay-3", "live_call_refused", 4, None),
    ]

"""Two logs of what should be one behaviour: where they differ, by hash alone."""

from __future__ import annotations

import io
from typing import Any

import pytest

from reenact.check.receipts import check_against
from reenact.formats.replay_log import read_replay_log
from tests.check.test_verify_log import call, log_of, result

OTHER = "sha256:" + "1" * 64
BASE = [call("a"), result("a"), call("b"), result("b")]

PAIRS: dict[str, tuple[list[dict[str, Any]], list[tuple[str, int | None]]]] = {
    "the same": (BASE, []),
    "other ids, times and latencies": (
        [
            call("x", 30, params={"path": "a"}, params_hash=BASE[0]["params_hash"]),
            result("x", 31, latency_ms=900),
            *BASE[2:],
        ],
        [],
    ),
    "another output": ([*BASE[:3], result("b", output_hash=OTHER)], [("output_differs", 6)]),
    "other parameters": ([call("c"), result("c"), *BASE[2:]], [("call_differs", 4)]),
    "one call less": (BASE[2:], [("call_missing", None)]),
    "one call more": ([*BASE, call("c", tool="write"), result("c")], [("call_added", 8)]),
    "another order": ([*BASE[2:], *BASE[:2]], [("call_order", 6)]),
    "no result": (BASE[:3], [("output_differs", 5)]),
}


@pytest.mark.parametrize("name", PAIRS)
def test_two_logs_differ_where_their_calls_or_outputs_do(name: str) -> None:
    """Each difference has its code and the line in the first log."""
    events, expected = PAIRS[name]
    ours, theirs = (read_replay_log(io.BytesIO(log_of(*log)), file="log") for log in (events, BASE))
    findings = check_against(ours, theirs, file="A", other_file="B")
    assert [(finding.code, finding.line) for finding in findings] == expected

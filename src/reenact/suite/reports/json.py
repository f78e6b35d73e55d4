"""For programs: the suite's summary, and every result in full."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from reenact import canonical
from reenact.formats.result import RESULT_CODEC, SUMMARY_CODEC, SuiteSummary, TestResult


def report(summary: SuiteSummary, results: Iterable[TestResult]) -> bytes:
    """A suite summary with one member more, ``results``: readers of summaries take it too."""
    value = SUMMARY_CODEC.to_json(summary)
    value["results"] = [RESULT_CODEC.to_json(result) for result in results]
    return msgspec.json.format(canonical.encode(value), indent=2) + b"\n"

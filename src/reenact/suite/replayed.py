"""The assertion that an agent, executed again, did what it had done."""

from __future__ import annotations

from reenact.errors import UsageError
from reenact.formats.record import Count
from reenact.formats.trace import Trace, TraceEvent
from reenact.suite.events import of_type
from reenact.suite.params import Params
from reenact.suite.verdict import Verdict, counted, verdict
from reenact.trace.with_receipt import REPLAYED


class DivergenceFree(Params, frozen=True, kw_only=True):
    allowed_codes: tuple[str, ...] = ()
    max_divergences: Count = 0


def divergence_free(trace: Trace, params: DivergenceFree) -> Verdict:
    """The replay reproduced the recorded run, and nothing tried to go live."""
    if not trace.capabilities.get(REPLAYED):
        raise UsageError("nothing was replayed; give adapter_input a command beside its capture")
    refused = of_type(trace, "live_call_refused")
    found = [
        event for event in of_type(trace, "divergence") if event.data.get("code") not in params.allowed_codes
    ]
    problems = [*map(_headline, found), *(f"a live call: {_live(event)}" for event in refused)]
    passed = len(found) <= params.max_divergences and not refused
    message = (
        f"expected {counted(params.max_divergences, 'divergence')}, found {'; '.join(problems[:5]) or 'none'}"
    )
    observed = {"divergences": len(found), "live_calls_refused": len(refused)}
    return verdict(passed, message, observed=observed, events=[*found, *refused])


def _headline(event: TraceEvent) -> str:
    place = f" at event {event.data['eventSeq']}" if "eventSeq" in event.data else ""
    path = f", {event.data['jsonPath']}" if event.data.get("jsonPath") else ""
    return f"{event.data.get('code')}{place}{path}: {event.data.get('detail', '')}"


def _live(event: TraceEvent) -> str:
    return f"{event.data.get('kind')} {event.data.get('target')}"

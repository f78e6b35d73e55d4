"""Assertions on failures, and on how the agent handled them."""

from __future__ import annotations

from typing import Final

from reenact.formats.record import Count
from reenact.formats.trace import Trace, TraceEvent
from reenact.suite.events import calls, errors_of, of_type
from reenact.suite.params import Params
from reenact.suite.patterns import Searcher
from reenact.suite.verdict import Verdict, at, count_of, quote, verdict

SUCCESS_PHRASES: Final = ("sent successfully", "completed successfully", "successfully sent", "all set")


class RetryPolicy(Params, frozen=True, kw_only=True):
    tool: str
    max_retries: Count | None
    """Null means 0."""
    retry_on_error_types: tuple[str, ...] = ()


def retry_policy_respected(trace: Trace, params: RetryPolicy) -> Verdict:
    """The tool failed with a retryable error and was not retried too often."""
    made = calls(trace, params.tool)
    errors = [event for event in of_type(trace, "error") if event.data.get("tool") == params.tool]
    retries, allowed = max(0, len(made) - 1), params.max_retries or 0
    types = [str(event.data.get("error_type")) for event in errors]
    foreign = [
        kind for kind in types if params.retry_on_error_types and kind not in params.retry_on_error_types
    ]
    passed = bool(errors) and not foreign and retries <= allowed
    wanted = f"expected {params.tool} to fail and be retried at most {count_of(allowed, 'time')}"
    if params.retry_on_error_types:
        wanted += f" on {', '.join(params.retry_on_error_types)}"
    found = f"{count_of(len(made), 'call')}{at(made)} and "
    found += f"{count_of(len(errors), 'error')} ({', '.join(types)}){at(errors)}" if errors else "no error"
    observed = {"calls": len(made), "retries": retries, "error_types": types}
    events = errors if foreign or not errors else [*made, *errors]  # a foreign error alone decides
    return verdict(passed, f"{wanted}, found {found}", observed=observed, events=events)


class GracefulFailure(Params, frozen=True, kw_only=True):
    allowed_failure_phrases: list[str]
    must_not_claim_success: bool = True
    forbidden_success_phrases: tuple[str, ...] = SUCCESS_PHRASES


def graceful_failure_output(trace: Trace, params: GracefulFailure) -> Verdict:
    """Something failed, and the output says so instead of claiming success."""
    errors = of_type(trace, "error")
    output, searcher = trace.final_output.content, Searcher()
    phrases = [phrase for phrase in params.allowed_failure_phrases if searcher.contains(output, phrase)]
    claimed = [
        phrase
        for phrase in params.forbidden_success_phrases or SUCCESS_PHRASES
        if params.must_not_claim_success and searcher.contains(output, phrase)
    ]
    problems = [] if errors else ["no error event"]
    if not phrases:
        problems.append(f"none of {', '.join(map(quote, params.allowed_failure_phrases))}")
    problems += [f"the claim {quote(phrase)}" for phrase in claimed]
    wanted = "expected an error and an output that admits it"
    message = f"{wanted}, found {'; '.join(problems) or quote(phrases[0]) + at(errors)} in {quote(output)}"
    observed = {"errors": len(errors), "failure_phrases": phrases, "success_phrases": claimed}
    return verdict(not problems, message, observed=observed, events=errors)


class NoErrors(Params, frozen=True, kw_only=True):
    tool: str | None = None
    allowed_error_types: tuple[str, ...] = ()
    max_errors: Count = 0


def no_errors(trace: Trace, params: NoErrors) -> Verdict:
    """Nothing failed: no error event, no unsuccessful result."""
    found = [
        event
        for event in _failures(trace, params.tool)
        if event.data.get("error_type") not in params.allowed_error_types
    ]
    listed = "; ".join(
        f"{event.data.get('tool') or event.data.get('scope') or event.type}: "
        f"{event.data.get('error_type', 'failed')} {event.data.get('message', '')}".rstrip()
        for event in found[:5]
    )
    wanted = f"at most {count_of(params.max_errors, 'error')}" if params.max_errors else "no error"
    message = f"expected {wanted}, found {len(found) or 'none'}{at(found)}"
    message += f" ({listed})" if listed else ""
    return verdict(len(found) <= params.max_errors, message, observed={"errors": len(found)}, events=found)


def _failures(trace: Trace, tool: str | None) -> list[TraceEvent]:
    """Error events, and failed results without an error event."""
    errors = of_type(trace, "error") if tool is None else errors_of(trace, tool)
    reported = {event.parent_event_id for event in errors if event.parent_event_id}
    results = [
        event
        for event in of_type(trace, "tool_result")
        if event.data.get("success") is False
        and event.parent_event_id not in reported
        and tool in (None, event.data.get("tool"))
    ]
    return sorted([*errors, *results], key=lambda event: event.seq)

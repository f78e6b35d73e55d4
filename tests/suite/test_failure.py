"""What went wrong, and how the agent took it."""

import pytest

from tests.suite.runs import call, check, error, result, table, trace_of

RETRIED = (call("fetch"), error("fetch", "c1"), call("fetch", "c2"), error("fetch"), call("send", "c3"))

RETRY = {
    "within": (
        {"max_retries": 1},
        "pass",
        ["evt-1", "evt-3", "evt-2", "evt-4"],
        "2 errors (timeout, timeout)",
    ),
    "beyond": ({"max_retries": 0}, "fail", ["evt-1", "evt-3", "evt-2", "evt-4"], "2 calls at evt-1, evt-3"),
    "right errors": (
        *(
            {"max_retries": 1, "retry_on_error_types": ["timeout"]},
            "pass",
            ["evt-1", "evt-3", "evt-2", "evt-4"],
            "",
        ),
    ),
    "wrong errors": (
        *(
            {"max_retries": 1, "retry_on_error_types": ["http_503"]},
            "fail",
            ["evt-2", "evt-4"],
        ),
        ("on http_503", "timeout"),
    ),
    "no error": ({"tool": "send", "max_retries": 1}, "fail", [], "no error"),
}


@pytest.mark.parametrize(("params", "status", "refs", "said"), **table(RETRY))
def test_retries_keep_to_the_policy(params, status, refs, said):
    """Evidence: the calls, then the errors that name the tool; these alone where their type decides."""
    params = {"tool": "fetch", **params}
    check("retry_policy_respected", params, trace_of(*RETRIED), status, refs, said)


ADMITTED = {"allowed_failure_phrases": ["could not"]}
GRACE = {
    "admitted": ([error()], "I COULD NOT send it.", ADMITTED, "pass", ["evt-1"], "'could not' at evt-1"),
    "no error": ([], "I could not send it.", ADMITTED, "fail", [], "no error event"),
    "not admitted": ([error()], "Hm.", ADMITTED, "fail", ["evt-1"], "none of 'could not'"),
    "claimed all the same": (
        [error()],
        "All set! I could not.",
        ADMITTED,
        "fail",
        ["evt-1"],
        "the claim 'all set'",
    ),
    "may be claimed": (
        *(
            [error()],
            "All set! I could not.",
            {**ADMITTED, "must_not_claim_success": False},
            "pass",
            ["evt-1"],
            "",
        ),
    ),
    "other claims": (
        *(
            [error()],
            "Done! I could not.",
            {**ADMITTED, "forbidden_success_phrases": ["done"]},
            "fail",
            ["evt-1"],
        ),
        "the claim 'done'",
    ),
    "the default claims are replaced": (
        *(
            [error()],
            "All set, could not.",
            {**ADMITTED, "forbidden_success_phrases": ["done"]},
            "pass",
            ["evt-1"],
        ),
        "",
    ),
}


@pytest.mark.parametrize(("script", "output", "params", "status", "refs", "said"), **table(GRACE))
def test_failure_is_admitted(script, output, params, status, refs, said):
    """An error, a phrase that says so, and no claim of success."""
    check("graceful_failure_output", params, trace_of(*script, output=output), status, refs, said)


@pytest.mark.parametrize(
    "phrase", ["sent successfully", "completed successfully", "successfully sent", "all set"]
)
def test_the_usual_claims_of_success_are_known(phrase):
    """Those of the published format."""
    trace = trace_of(error(), output=f"could not, {phrase}")
    check("graceful_failure_output", ADMITTED, trace, "fail", ["evt-1"], phrase)


FAILED = (call("fetch"), result("fetch", success=False))
ERRORS = {
    "none": ([call("fetch"), result("fetch")], {}, "pass", [], "found none"),
    "an error": (
        [error(message="no answer")],
        {},
        "fail",
        ["evt-1"],
        "found 1 at evt-1 (error: timeout no answer)",
    ),
    "a failed result": (FAILED, {}, "fail", ["evt-2"], "fetch: failed"),
    "both tell of one failure": ([*FAILED, error("fetch", "c1")], {}, "fail", ["evt-3"], "found 1"),
    "allowed": ([error()], {"allowed_error_types": ["timeout"]}, "pass", [], ""),
    "up to a number": ([error(), error()], {"max_errors": 2}, "pass", ["evt-1", "evt-2"], ""),
    "of another tool": ([call("x"), error("x", "c1")], {"tool": "fetch"}, "pass", [], ""),
    "of the tool": (
        [call("fetch"), error("fetch", "c1")],
        {"tool": "fetch"},
        "fail",
        ["evt-2"],
        "fetch: timeout",
    ),
}


@pytest.mark.parametrize(("script", "params", "status", "refs", "said"), **table(ERRORS))
def test_nothing_failed(script, params, status, refs, said):
    """Errors and failed results, each failure once."""
    check("no_errors", params, trace_of(*script), status, refs, said)

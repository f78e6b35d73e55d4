"""A policy in front of a tool: the call is decided about before the function runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from reenact.boundary import Call
from reenact.formats.decision import CallGate, CallRefused, Decision

Approve: TypeAlias = Callable[[Call, Decision], bool]
"""Asked about calls up for review; only ``True`` lets the call through, so that a coroutine does not."""


def gated(
    fn: Callable[..., Any], call: Callable[..., Call], policy: CallGate, approve: Approve | None
) -> Callable[..., Any]:
    """*fn*, but it runs only when *policy* allows the call, or leaves it to *approve* and that says yes.

    It serves all kinds of functions: a coroutine or generator is made, but not begun, after the decision.
    """

    def decided(*args: Any, **kwargs: Any) -> Any:
        made = call(args, kwargs)
        decision = policy.decide_call(made.name, made.request)
        if not decision.is_allowed and not _is_approved(made, decision, approve):
            raise CallRefused(decision)
        return fn(*args, **kwargs)

    return decided


def _is_approved(call: Call, decision: Decision, approve: Approve | None) -> bool:
    return decision.verdict == "review" and approve is not None and approve(call, decision) is True

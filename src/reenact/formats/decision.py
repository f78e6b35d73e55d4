"""The decision of a policy about an action or a tool call."""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

import msgspec

from reenact.errors import CheckFailed

PolicyVerdict: TypeAlias = Literal["allow", "review", "deny"]


class Decision(msgspec.Struct, frozen=True):
    verdict: PolicyVerdict
    rule: str
    """The id of the rule, or the place in the policy, that decided."""
    reason: str

    @property
    def is_allowed(self) -> bool:
        return self.verdict == "allow"


class CallGate(Protocol):
    """Decides about a tool call before it is made."""

    def decide_call(self, name: str, arguments: object) -> Decision: ...


class CallRefused(CheckFailed):
    """A policy did not allow a tool call, and nobody approved it; *decision* has the reason."""

    def __init__(self, decision: Decision) -> None:
        self.decision = decision
        what = "denied" if decision.verdict == "deny" else "not approved"
        super().__init__(f"{decision.reason}: {what} by the policy's rule {decision.rule!r}")

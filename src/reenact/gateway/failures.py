"""The gateway's own error answers, for calls without an answer from upstream.

They depend on the failure only, so that a replayed one is the same.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import httpx2
import msgspec

from reenact.errors import Diverged
from reenact.values.objects import message_of

_NO_RETRY: Final = ("x-should-retry", "false")
"""Understood by the SDKs of OpenAI and Anthropic."""


class GatewayRefusal(NamedTuple):
    """An error answer made by the gateway."""

    status: int
    kind: str
    message: str

    @property
    def body(self) -> bytes:
        """JSON in the form in which the providers' SDKs look for a message."""
        return msgspec.json.encode(
            {"type": "error", "error": {"type": self.kind, "message": f"reenact: {self.message}"}}
        )

    @property
    def headers(self) -> list[tuple[str, str]]:
        pairs = [("content-type", "application/json"), ("content-length", str(len(self.body)))]
        return pairs if self.status >= 500 else [*pairs, _NO_RETRY]


def unknown_upstream(name: str, known: list[str]) -> GatewayRefusal:
    names = ", ".join(sorted(known))
    reason = f"/{name}: no upstream has this name, there are {names}; add it with --upstream {name}=URL"
    return GatewayRefusal(404, "unknown_upstream", reason)


def refused_client(reason: str) -> GatewayRefusal:
    return GatewayRefusal(403, "refused_client", reason)


def outside_base(name: str) -> GatewayRefusal:
    return GatewayRefusal(400, "outside_base", f"/{name}: the path leads out of the upstream's base URL")


def refusal_for(error: Exception) -> GatewayRefusal:
    """The answer for *error*, which came from the upstream or from the replay.

    A divergence has status 400, which no SDK retries.
    """
    if isinstance(error, Diverged):
        return GatewayRefusal(400, "diverged", str(error))
    reason = f"{type(error).__name__}: {message_of(error)}".removesuffix(": ")
    if isinstance(error, httpx2.TimeoutException):
        return GatewayRefusal(504, "upstream_timeout", f"the upstream did not answer in time: {reason}")
    return GatewayRefusal(502, "upstream_failed", f"the upstream could not be reached: {reason}")

"""What a client is told where there is no answer to pass on.

Such answers are made of the failure alone, so that a replayed one is the same.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import httpx2
import msgspec

from reenact.errors import Diverged
from reenact.values.objects import message_of

_NOT_AGAIN: Final = ("x-should-retry", "false")
"""Understood by the SDKs of OpenAI and Anthropic."""


class GatewayRefusal(NamedTuple):
    """An answer of the gateway's own."""

    status: int
    kind: str
    message: str

    @property
    def body(self) -> bytes:
        """In the shape in which the providers' SDKs look for a message."""
        return msgspec.json.encode(
            {"type": "error", "error": {"type": self.kind, "message": f"reenact: {self.message}"}}
        )

    @property
    def headers(self) -> list[tuple[str, str]]:
        told = [("content-type", "application/json"), ("content-length", str(len(self.body)))]
        return told if self.status >= 500 else [*told, _NOT_AGAIN]


def unknown_upstream(name: str, known: list[str]) -> GatewayRefusal:
    names = ", ".join(sorted(known))
    reason = f"/{name}: no upstream has this name, there are {names}; add it with --upstream {name}=URL"
    return GatewayRefusal(404, "unknown_upstream", reason)


def refused_client(reason: str) -> GatewayRefusal:
    return GatewayRefusal(403, "refused_client", reason)


def outside_base(name: str) -> GatewayRefusal:
    return GatewayRefusal(400, "outside_base", f"/{name}: the path leads out of the upstream's base URL")


def refusal_for(error: Exception) -> GatewayRefusal:
    """What *error*, of the upstream or of the replay, is to the client.

    A divergence must not be tried again, and 400 is a status that no SDK retries.
    """
    if isinstance(error, Diverged):
        return GatewayRefusal(400, "diverged", str(error))
    reason = f"{type(error).__name__}: {message_of(error)}".removesuffix(": ")
    if isinstance(error, httpx2.TimeoutException):
        return GatewayRefusal(504, "upstream_timeout", f"the upstream did not answer in time: {reason}")
    return GatewayRefusal(502, "upstream_failed", f"the upstream could not be reached: {reason}")

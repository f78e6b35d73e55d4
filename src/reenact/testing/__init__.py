"""For users' tests: a scripted provider, assertions on files, and an identity for equal captures."""

from __future__ import annotations

from reenact.run.capturing import Identity
from reenact.suite.files import RunFiles
from reenact.testing.provider import ScriptedProvider
from reenact.testing.request import Message, Request, ToolResult
from reenact.testing.script import Script, echo
from reenact.testing.turns import Disconnect, Fail, Raw, Reply, Timeout, ToolCall, Turn

FIXED = Identity(
    capture_id="cap_0000000000000000",
    run_id="run_0000000000000000",
    salt=bytes(16),
    started_at_ms=1_767_225_600_000,
    surroundings={"argv": ["agent"], "cwd": "/", "python": "3", "utcOffsetS": 0},
)
"""Fixed ids, times and salt: equal runs give equal captures, byte for byte, on any machine."""

__all__ = [
    "FIXED",
    "Disconnect",
    "Fail",
    "Message",
    "Raw",
    "Reply",
    "Request",
    "RunFiles",
    "Script",
    "ScriptedProvider",
    "Timeout",
    "ToolCall",
    "ToolResult",
    "Turn",
    "echo",
]

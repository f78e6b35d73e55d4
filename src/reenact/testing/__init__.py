"""For users' tests: a model provider that really listens and says what the test tells it to."""

from __future__ import annotations

from reenact.testing.provider import ScriptedProvider
from reenact.testing.request import Message, Request, ToolResult
from reenact.testing.script import Script, echo
from reenact.testing.turns import Disconnect, Fail, Raw, Reply, Timeout, ToolCall, Turn

__all__ = [
    "Disconnect",
    "Fail",
    "Message",
    "Raw",
    "Reply",
    "Request",
    "Script",
    "ScriptedProvider",
    "Timeout",
    "ToolCall",
    "ToolResult",
    "Turn",
    "echo",
]

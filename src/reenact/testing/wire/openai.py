"""What OpenAI's two wire formats share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from reenact.testing.wire.wire import Json, Service

_KINDS: Final = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_exceeded"}


def _error(status: int, message: str) -> Json:
    kind = _KINDS.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


def _models(names: Sequence[str], created_at: int) -> Json:
    facts = {"object": "model", "created": created_at, "owned_by": "reenact"}
    return {"object": "list", "data": [{"id": name, **facts} for name in names]}


OPENAI: Final = Service("openai", "/v1", "application/json", "x-request-id", _error, _models)

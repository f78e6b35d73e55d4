"""Checking that the models which a fork really asked have answered."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from reenact.errors import CheckFailed
from reenact.values.codec import rebuild

_decode: Final = msgspec.json.Decoder().decode
_REFUSALS: Final = (401, 403, 407)
"""HTTP statuses of missing or wrong credentials."""


def check_live_answers(lines: Iterable[str]) -> None:
    """Raise :class:`CheckFailed` if models were asked and none answered; *lines* are events of live calls."""
    asked: dict[str, str] = {}
    why = ""
    for line in lines:
        if '"llm_request"' not in line and '"llm_response"' not in line:
            continue
        event = _decode(line)
        data = event["data"]
        if event["type"] == "llm_request" and isinstance(data["request"], dict):
            asked[data["callId"]] = str(data["request"].get("url", "the model"))
        elif event["type"] == "llm_response" and data["callId"] in asked:
            unanswered = _explain_no_answer(data)
            if not unanswered:
                return
            why = why or f"{asked[data['callId']]}: {unanswered}"
    if why:
        raise CheckFailed(f"{why}, or choose --on-miss nearest; no fork was made")


def _explain_no_answer(data: dict[str, object]) -> str:
    answer, error = data.get("response"), data.get("error")
    if isinstance(answer, dict) and answer.get("status") in _REFUSALS:
        return f"refused with {answer['status']}; set its key in the command's environment"
    if answer is not None or not isinstance(error, dict) or data.get("cancelled"):
        return ""
    if isinstance(rebuild(error), Exception):  # otherwise the caller gave up on the answer
        return f"could not be reached ({error.get('message')}); look at the address and the network"
    return ""

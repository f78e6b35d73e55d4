"""What only Responses has."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reenact.providers import (
    ModelResponse,
    Other,
    Refusal,
    Text,
    Thinking,
    ToolResultPart,
    derive_tool_results,
    read_request,
    read_response,
)

from .samples import RESPONSE_BODY, RESPONSE_END, RESPONSE_EVENTS, RESPONSES, TEXT, THOUGHT, sse


def read(*events: dict[str, Any]) -> ModelResponse:
    return read_response("openai_responses", 200, {}, sse(*events, named=True))


def whole(**members: Any) -> ModelResponse:
    return read_response("openai_responses", 200, {}, json.dumps(RESPONSE_BODY | members).encode())


def test_reasoning_keeps_id_and_seal() -> None:
    """A reasoning item can be handed back exactly."""
    assert whole().thinking == (
        Thinking(text=THOUGHT, id="rs_68af4030baa48193b0b43b4c2a176a1a", sealed="gAAAAABoISQ24OyVRYbk"),
    )


def test_final_event_without_output() -> None:
    """Some servers send the output in its items only."""
    bare = {"type": "response.completed", "response": RESPONSE_BODY | {"output": []}}
    assert read(*RESPONSE_EVENTS, bare) == read(*RESPONSE_EVENTS, RESPONSE_END)


def test_deltas_alone() -> None:
    """Before the final events, items grow from their deltas to the same content."""
    deltas = [event for event in RESPONSE_EVENTS if not event["type"].endswith(".done")]
    response = read(*deltas)
    assert (response.text, response.thinking[0].text) == (TEXT, THOUGHT)
    assert response.tool_calls[0].arguments == {"city": "Zürich"}
    assert not response.complete


def test_refusal_deltas() -> None:
    """A refusal grows too."""
    item = {"id": "m", "type": "message", "role": "assistant", "content": []}
    response = read(
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        *(
            {"type": "response.refusal.delta", "output_index": 0, "content_index": 0, "delta": delta}
            for delta in ("I can", "not.")
        ),
    )
    assert response.parts == (Refusal(text="I cannot."),)


STOPS: dict[str, tuple[dict[str, Any], str | None, bool]] = {
    "completed": ({}, "completed", True),
    "length": (
        {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
        "max_output_tokens",
        True,
    ),
    "queued": ({"status": "queued"}, None, False),
    "cancelled": ({"status": "cancelled"}, "cancelled", True),
}


@pytest.mark.parametrize(("members", "stop_reason", "complete"), STOPS.values(), ids=STOPS.keys())
def test_stop_reason(members: dict[str, Any], stop_reason: str | None, complete: bool) -> None:
    """The status once it is final, or why the response is incomplete."""
    response = whole(**members)
    assert (response.stop_reason, response.complete) == (stop_reason, complete)


FAILURES: dict[str, dict[str, Any]] = {
    "failed response": {
        "type": "response.failed",
        "response": RESPONSE_BODY
        | {"status": "failed", "error": {"code": "server_error", "message": "gone"}, "output": []},
    },
    "error event": {"type": "error", "code": "server_error", "message": "gone", "param": None},
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES.keys())
def test_failure_in_stream(failure: dict[str, Any]) -> None:
    """Both kinds of failure are an error that keeps what was said."""
    response = read(*RESPONSE_EVENTS, failure)
    assert response.error is not None
    assert (response.error.type, response.error.message) == ("server_error", "gone")
    assert (response.text, response.complete) == (TEXT, False)


CALLS: dict[str, tuple[dict[str, Any], tuple[str, Any, str | None]]] = {
    "function": ({"type": "function_call", "name": "f", "arguments": "[1]"}, ("f", [1], None)),
    "custom": (
        {"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin Patch"},
        ("apply_patch", None, "*** Begin Patch"),
    ),
    "local shell": (
        {"type": "local_shell_call", "action": {"type": "exec", "command": ["ls"]}},
        ("local_shell", {"type": "exec", "command": ["ls"]}, None),
    ),
    "patch": (
        {"type": "apply_patch_call", "operation": {"type": "delete_file", "path": "a"}},
        ("apply_patch", {"type": "delete_file", "path": "a"}, None),
    ),
}


@pytest.mark.parametrize(("item", "expected"), CALLS.values(), ids=CALLS.keys())
def test_kinds_of_calls(item: dict[str, Any], expected: tuple[str, Any, str | None]) -> None:
    """Every item with a call id is a call that the agent runs."""
    call = whole(output=[item | {"call_id": "call_1", "id": "x_1"}]).tool_calls[0]
    assert call.id == "call_1"
    assert (call.name, call.arguments, call.arguments_text) == expected


def test_server_tools_are_not_the_agents() -> None:
    """What OpenAI ran itself has no call id."""
    item = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    assert whole(output=[item]).parts == (Other(type="web_search_call", value=item),)


def test_request_parts() -> None:
    """Items become messages; instructions and leading system messages the system text."""
    request = read_request(RESPONSES.path, RESPONSES.request)
    assert request is not None
    assert request.system == "Be brief.\n\nUse °C."
    assert [message.role for message in request.messages] == ["user", "assistant", "assistant", "tool"]
    assert request.messages[1].parts == (Thinking(text="", id="rs_0", sealed="gAAAA"),)
    assert derive_tool_results(request) == [ToolResultPart(call_id="call_0", content="5 °C")]
    assert [tool.name for tool in request.tools] == ["weather", "web_search"]
    assert request.params == {"max_tokens": 512, "store": False}


def test_plain_input() -> None:
    """A string is a user's message."""
    request = read_request("/responses", {"model": "m", "input": "hi"})
    assert request is not None
    assert request.messages[0].parts == (Text(text="hi"),)
    assert request.messages[0].role == "user"

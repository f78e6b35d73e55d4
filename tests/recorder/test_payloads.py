"""Payloads on their way into events: in one go or piece by piece, the same bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.boundary import Call
from reenact.canonical import digest_of_bytes, encode_clean
from reenact.recorder.payloads import Payloads
from reenact.recorder.sink import FileCaptureSink
from reenact.redaction import Redactor
from reenact.values.codec import object_text
from tests.recorder.recording import SALT

KEY = "sk-proj-" + "Zk3v9QmT7xLw2RbN5cYh" * 2
REGISTERED = "correct horse battery"

ANSWERS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner)
        | st.dictionaries(st.text(max_size=5) | st.sampled_from(["$py", "$ref"]), inner, max_size=4)
    ),
    max_leaves=12,
)


class KeptBlobs(FileCaptureSink):
    """A sink that has no directory; what is put into it is only named."""

    def __init__(self) -> None:
        super().__init__("unused")
        self.put_blob = digest_of_bytes


def json_of(value: Any) -> Any:
    """*value* written as JSON and read again; something else where that cannot be done."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError):
        return object()


def payloads(threshold_bytes: int = 16 * 1024) -> Payloads:
    redactor = Redactor("default", secrets=[REGISTERED], salt=SALT)
    return Payloads(redactor, KeptBlobs(), threshold_bytes=threshold_bytes)


def model_call(request: Any, facts: dict[str, Any] | None = None, *, is_json: bool = True) -> Call:
    return Call("llm", "POST /", request, facts or {}, is_json=is_json)


@given(st.dictionaries(st.sampled_from(["model", "usage", "stopReason"]), ANSWERS), ANSWERS)
def test_a_whole_event_is_the_same_as_its_parts(facts: dict[str, Any], answer: Any):
    """Whatever can be written in one go is written as it would have been piece by piece."""
    ours = payloads()
    whole = ours.encode_if_plain({"callId": "c1", **facts, "response": answer}, "response")
    if whole is not None:
        parts = {"callId": "c1", **ours.redact_members(facts), "response": ours.answer(answer).stored}
        assert whole == encode_clean(parts)


@given(st.dictionaries(st.sampled_from(["model", "usage", "value"]), ANSWERS), st.integers(0, 200))
def test_members_are_written_as_their_object_would_be(data: dict[str, Any], threshold_bytes: int):
    """Whether a member is handed on as a value or as its text, the bytes are the same."""
    members = payloads(threshold_bytes).redact_members(data)
    assert members is not data
    if len(object_text(data)) <= threshold_bytes:
        assert encode_clean(members) == object_text(data)


@given(ANSWERS)
def test_what_was_asked_says_what_its_text_says(value: Any):
    """Read from JSON or not, the value to share parts of is the one that the text holds."""
    is_json = value == json_of(value)
    asked = payloads().redact_model_call(model_call(value, is_json=is_json))
    assert encode_clean(asked.request) == asked.text


def test_what_was_asked_is_shared_without_its_secrets():
    """The request itself is handed on only where nothing in it had to be hidden."""
    clean, telling = {"body": {"messages": ["hello"]}}, {"body": {"messages": [KEY, REGISTERED]}}
    assert payloads().redact_model_call(model_call(clean)).request is clean
    request: Any = payloads().redact_model_call(model_call(telling)).request
    assert [message.startswith("<secret:") for message in request["body"]["messages"]] == [True, True]
    assert telling["body"]["messages"] == [KEY, REGISTERED]


FACTS = [
    {"provider": "openai_chat", "model": "large-1"},
    {
        "provider": "openai_chat",
        "model": "large-1",
        "headers": {"authorization": f"Bearer {KEY}", "accept": "*/*"},
    },
    {"provider": "openai_chat", "model": KEY, "headers": {}},
    {"provider": "openai_chat", "model": "a\ud800b"},
    {"provider": "openai_chat", "model": "$py", "headers": {"x-odd": "a\ud800b"}},
    {"provider": "openai_chat", "model": "m", "headers": ["not", "an", "object"]},
]


@pytest.mark.parametrize("facts", FACTS, ids=str)
@pytest.mark.parametrize("request_", [{"body": "hello"}, {"body": KEY}, {"body": {"$py": "odd"}}], ids=str)
def test_a_model_call_is_redacted_as_its_parts_are(facts: dict[str, Any], request_: Any):
    """Looked through together, request and facts are written as each would be by itself."""
    call = model_call(request_, facts)
    asked = payloads().redact_model_call(call)
    assert encode_clean(asked.facts) == encode_clean(payloads().redact_facts(call))
    assert asked.text == bytes(payloads().redact_request(request_, is_json=True))
    assert call.facts == facts


def test_a_member_with_a_secret_is_written_without_it():
    """By its shape, by its name, and because it was registered."""
    members = payloads().redact_members(
        {"model": KEY, "value": {"password": "hunter2hunter2"}, "usage": REGISTERED}
    )
    text = encode_clean(members).decode()
    assert text.count("<secret:") == 3
    assert not any(secret in text for secret in (KEY, "hunter2", REGISTERED))


def test_nearly_every_answer_is_written_whole():
    """Small, in order, nothing to hide: an answer as a seam tells it."""
    answer = {"body": '{"b":1,"a":2}', "headers": [{"date": "today"}, {"age": "1"}], "status": 200}
    assert payloads().encode_if_plain({"response": answer, "model": "large-1"}, "response") == encode_clean(
        {"model": "large-1", "response": answer}
    )


NOT_WHOLE: dict[str, dict[str, Any]] = {
    "a key in the answer": {"response": {"body": f'{{"text":"use {KEY}"}}'}},
    "a key among the facts": {"response": {}, "model": KEY},
    "a secret by its name": {"response": {"headers": [{"authorization": "Bearer abcdefghijklmnop"}]}},
    "a registered secret": {"response": {"body": REGISTERED}},
    "members out of order": {"response": {"b": 1, "a": 2}},
    "members out of order deep inside": {"response": [{"a": {"z": 1, "y": 2}}]},
    "what JSON does not know": {"response": {"body": b"\xff"}},
    "a name of ours": {"response": {"$ref": 1}},
    "too large": {"response": {"body": "x" * 16 * 1024}},
}


@pytest.mark.parametrize("name", NOT_WHOLE)
def test_what_needs_a_second_look_is_not_written_whole(name: str):
    """Secrets, odd values, order that must be kept and large payloads go the long way."""
    assert payloads().encode_if_plain(NOT_WHOLE[name], "response") is None

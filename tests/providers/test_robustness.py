"""Whatever the other side sends, nothing raises."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reenact.providers import (
    ModelResponse,
    Provider,
    derive_tool_results,
    pair_tool_results,
    read_request,
    read_response,
    recognise,
    request_fields,
    response_fields,
)

from .samples import EXCHANGES, Exchange, ndjson, sse

PROVIDERS = st.sampled_from(get_args(Provider))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
PATHS = st.sampled_from([exchange.path for exchange in EXCHANGES.values()]) | st.text(max_size=30)


def _strings(value: Any) -> set[str]:
    """All keys and texts of the samples: the words in which hostile JSON is most likely to be understood."""
    if isinstance(value, dict):
        return set(value) | set().union(*map(_strings, value.values()))
    if isinstance(value, list):
        return set().union(*map(_strings, value))
    return {value} if isinstance(value, str) else set()


def _events(exchange: Exchange) -> list[dict[str, Any]]:
    lines = (line.removeprefix("data: ") for line in exchange.stream.decode().splitlines())
    return [json.loads(line) for line in lines if line.startswith("{")]


WORDS = st.sampled_from(
    sorted(
        set().union(
            *(
                _strings([exchange.request, exchange.body, _events(exchange)])
                for exchange in EXCHANGES.values()
            )
        )
    )
)
JSON = st.recursive(
    SCALARS | WORDS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(WORDS | st.text(max_size=4), inner, max_size=6)
    ),
    max_leaves=30,
)
# A busy machine is no finding.
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
OBJECTS = st.dictionaries(WORDS, JSON, max_size=8)


def use(response: ModelResponse) -> None:
    """Whatever was read can be written."""
    json.dumps(response.to_json())
    json.dumps(response_fields(response))
    assert response.text is not None
    assert not (response.complete and response.error)


@patient
@given(st.text(max_size=5), PATHS, JSON)
def test_any_request(method: str, path: str, body: Any) -> None:
    """Any JSON under any path is a request or is none."""
    recognise(method, path, body)
    request = read_request(path, body)
    if request is not None:
        json.dumps([request.to_json(), request_fields(request.provider, path, body)])


@patient
@given(st.data())
def test_any_recognised_request(data: st.DataObject) -> None:
    """A recognised request is read whatever its members hold."""
    exchange = data.draw(st.sampled_from(list(EXCHANGES.values())))
    keys = st.sampled_from(sorted(exchange.request))
    body = exchange.request | data.draw(st.dictionaries(keys, JSON | st.lists(OBJECTS, max_size=3)))
    request = read_request(exchange.path, body)
    if request is not None:
        results = derive_tool_results(request)
        pair_tool_results([], results)
        json.dumps([request.to_json(), request_fields(request.provider, exchange.path, body)])


@patient
@given(PROVIDERS, st.sampled_from([200, 400, 529]), st.dictionaries(st.text(), st.text()), st.binary())
def test_any_bytes(provider: Provider, status: int, headers: dict[str, str], body: bytes) -> None:
    """Any bytes are a response, incomplete if need be."""
    use(read_response(provider, status, headers, body))


@patient
@given(PROVIDERS, st.sampled_from([200, 500]), JSON)
def test_any_body(provider: Provider, status: int, body: Any) -> None:
    """Any JSON is a response."""
    use(read_response(provider, status, {}, json.dumps(body).encode()))


@patient
@given(PROVIDERS, st.lists(OBJECTS, max_size=5), st.booleans())
def test_any_stream(provider: Provider, events: list[dict[str, Any]], lines: bool) -> None:
    """Any stream of JSON objects is a response."""
    use(read_response(provider, 200, {}, ndjson(*events) if lines else sse(*events)))


@patient
@given(st.data())
def test_damaged_stream(data: st.DataObject) -> None:
    """A real stream whose events are lost, repeated, out of order or changed is still read."""
    exchange = data.draw(st.sampled_from(list(EXCHANGES.values())))
    events = data.draw(st.lists(st.sampled_from(_events(exchange)), max_size=12))
    changes = data.draw(st.lists(st.tuples(st.integers(0, 11), OBJECTS), max_size=3))
    damaged = [dict(event) for event in events]
    for place, change in changes:
        if place < len(damaged):
            damaged[place] |= change
    use(read_response(exchange.provider, 200, {}, sse(*damaged)))


@pytest.mark.parametrize("provider", get_args(Provider))
def test_foreign_answers(provider: Provider) -> None:
    """The answer of another provider is incomplete or says what it can, and never fails."""
    for exchange in EXCHANGES.values():
        for body in (exchange.whole, exchange.stream):
            response = read_response(provider, 200, {}, body)
            use(response)
            assert response.provider == provider


@pytest.mark.parametrize("provider", get_args(Provider))
def test_web_page(provider: Provider) -> None:
    """A proxy's error page is an HTTP error with its text."""
    error = read_response(provider, 502, {}, b"<html>Bad Gateway</html>").error
    assert error is not None
    assert (error.type, error.message, error.status) == ("http_error", "<html>Bad Gateway</html>", 502)


FLAT_ERRORS = {
    "vllm": {"object": "error", "message": "too long", "type": "BadRequestError", "code": 400},
    "web framework": {"detail": "too long"},
    "aws": {"Message": "too long"},
}


@pytest.mark.parametrize("body", FLAT_ERRORS.values(), ids=FLAT_ERRORS.keys())
def test_flat_error(body: dict[str, Any]) -> None:
    """Servers that speak a wire format do not always speak its errors."""
    error = read_response("openai_chat", 400, {}, json.dumps(body).encode()).error
    assert error is not None
    assert error.message == "too long"

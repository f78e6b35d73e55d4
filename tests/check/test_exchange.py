"""Model exchanges as actions: accepted by construction."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.check.actions.action import ACTION, action_from_exchange
from reenact.errors import UsageError
from reenact.providers import (
    Media,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    Other,
    Refusal,
    Text,
    Thinking,
    TokenUsage,
    Tool,
    ToolCallPart,
    ToolResultPart,
    read_request,
    read_response,
)
from tests.formats import json_values, law, texts
from tests.providers.samples import EXCHANGES, TEXT

IDS = {"agent_id": "agent", "action_id": "act-1", "occurred_at_unix_ms": 1779177600000}


def request(**fields):
    question = ModelMessage(role="user", parts=(Text(text="Hello?"),))
    defaults = {
        "provider": "anthropic",
        "model": "m",
        "stream": False,
        "input_hash": "x",
        "messages": (question,),
    }
    return ModelRequest(**defaults | fields)


def response(*parts, **fields):
    return ModelResponse(
        **{"provider": "anthropic", "status": 200, "complete": True, "parts": parts} | fields
    )


def action_of(asked, answered, **fields):
    action = action_from_exchange(asked, answered, **IDS | fields)
    assert action is None or ACTION.execute(action).problems == ()
    return action


@pytest.mark.parametrize("exchange", EXCHANGES.values(), ids=EXCHANGES.keys())
def test_an_exchange_of_every_wire_format_is_an_accepted_action(exchange):
    """With its text, its two tool calls and its tokens."""
    asked = read_request(exchange.path, exchange.request)
    action = action_of(asked, read_response(exchange.provider, 200, {}, exchange.whole))
    assert action["output"]["content"] == TEXT
    assert len(action["output"]["tool_calls"]) == 2
    assert action["output"]["usage"]["output_tokens"] > 0
    assert action["model"]["provider"] == exchange.provider.partition("_")[0]
    json.dumps(action)


def test_the_whole_of_a_small_exchange():
    """Nothing is there that was not said."""
    asked = request(system="Be brief.", params={"temperature": 0.5, "top_k": 3}, tools=(Tool(name="look"),))
    answered = response(
        Text(text="Hi."), stop_reason="end_turn", usage=TokenUsage(input_tokens=3, output_tokens=1)
    )
    assert action_of(asked, answered, context={"trace_id": "t"}) == {
        "agent_id": "agent",
        "action_id": "act-1",
        "occurred_at_unix_ms": "1779177600000",
        "model": {"provider": "anthropic", "name": "m"},
        "params": {"temperature": 0.5, "top_k": 3},
        "input": {
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello?"}],
            "tools": [{"name": "look"}],
        },
        "output": {
            "content": "Hi.",
            "finish_reason": "end_turn",
            "usage": {"input_tokens": 3, "output_tokens": 1},
        },
        "context": {"trace_id": "t"},
    }


MODELS = {
    "as asked": ("gpt-5", "gpt-5", {"name": "gpt-5"}),
    "the answer adds a version": ("gpt-5", "gpt-5-2025-08-07", {"name": "gpt-5", "version": "2025-08-07"}),
    "the answer names another": ("alias", "gpt-5", {"name": "alias"}),
    "only the answer names one": (None, "gpt-5", {"name": "gpt-5"}),
    "only the question names one": ("gpt-5", None, {"name": "gpt-5"}),
    "nobody names one": (None, None, {"name": "unknown"}),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_model_is_named_as_asked_for(name):
    """What the answer's own name adds is the version."""
    asked, answered, expected = MODELS[name]
    action = action_of(request(model=asked), response(Text(text="x"), model=answered))
    assert action["model"] == {"provider": "anthropic", **expected}


def test_the_provider_can_be_named():
    """A wire format is spoken by many."""
    action = action_of(request(provider="openai_chat"), response(Text(text="x")), provider="local")
    assert action["model"]["provider"] == "local"


PARAMS = {
    "null is not set": ({"seed": None}, {}),
    "a single stop": ({"stop": "END"}, {"stop": ["END"]}),
    "beyond a bound": ({"max_tokens": -1, "seed": 1}, {"seed": 1, "sent": {"max_tokens": -1}}),
    "of the wrong type": ({"temperature": "hot"}, {"sent": {"temperature": "hot"}}),
}


@pytest.mark.parametrize("name", PARAMS)
def test_params_the_format_cannot_hold_stand_aside(name):
    """They are kept as sent, where anything may stand."""
    sent, expected = PARAMS[name]
    assert action_of(request(params=sent), response(Text(text="x"))).get("params", {}) == expected


def test_messages_keep_parts_that_are_no_text():
    """The text is there for readers, the parts for everyone else."""
    parts = (Text(text="See"), ToolResultPart(content={"a": 1}, call_id="1"), Media(url="u"))
    action = action_of(request(messages=(ModelMessage(role="user", parts=parts),)), response(Text(text="x")))
    (message,) = action["input"]["messages"]
    assert message["content"] == 'See\n{"a":1}'
    assert message["parts"] == [part.to_json() for part in parts]


def test_tool_calls_have_a_name_and_arguments():
    """Arguments that were no JSON stand as they were sent."""
    calls = (
        ToolCallPart(name="a", arguments={"x": 1}, id="1"),
        ToolCallPart(name="b", arguments=None, arguments_text="{x"),
    )
    assert action_of(request(), response(*calls))["output"] == {
        "tool_calls": [{"id": "1", "name": "a", "arguments": {"x": 1}}, {"name": "b", "arguments": "{x"}]
    }


def test_a_refusal_is_an_answer():
    """The model did say something."""
    assert action_of(request(), response(Refusal(text="No.")))["output"]["content"] == "No."


NO_ACTION = {
    "no answer": (request(), response()),
    "thinking alone": (request(), response(Thinking(text="hm"))),
    "empty text": (request(), response(Text(text=""))),
    "no question": (request(messages=()), response(Text(text="x"))),
}


@pytest.mark.parametrize("name", NO_ACTION)
def test_where_nothing_was_asked_or_answered_there_is_no_action(name):
    """Nothing is made up to fill the gap."""
    assert action_of(*NO_ACTION[name]) is None


@pytest.mark.parametrize("name", ["agent_id", "action_id"])
def test_an_empty_id_is_refused(name):
    """It would be rejected."""
    with pytest.raises(UsageError, match=f"{name} is empty"):
        action_of(request(), response(Text(text="x")), **{name: ""})


names = texts.filter(bool)
part_values = (
    st.builds(Text, text=texts)
    | st.builds(Thinking, text=texts)
    | st.builds(Refusal, text=texts)
    | st.builds(Media, url=texts)
    | st.builds(ToolCallPart, name=texts, arguments=json_values)
    | st.builds(ToolCallPart, name=texts, arguments=st.none(), arguments_text=texts)
    | st.builds(ToolResultPart, content=json_values)
    | st.builds(Other, type=texts, value=st.just({}))
)
many_parts = st.lists(part_values, max_size=3).map(tuple)
params = st.dictionaries(
    st.sampled_from(["temperature", "top_p", "max_tokens", "seed", "stop", "top_k"]), json_values, max_size=4
)
counts = st.none() | st.integers(-5, 5)


@law
@given(
    st.builds(
        ModelRequest,
        provider=st.sampled_from(["anthropic", "openai_chat", "gemini"]),
        model=st.none() | names,
        stream=st.booleans(),
        input_hash=texts,
        system=st.none() | texts,
        messages=st.lists(st.builds(ModelMessage, role=texts, parts=many_parts), max_size=2).map(tuple),
        tools=st.lists(st.builds(Tool, name=texts, schema=json_values), max_size=2).map(tuple),
        params=params,
    ),
    st.builds(
        ModelResponse,
        provider=st.just("anthropic"),
        status=st.just(200),
        complete=st.booleans(),
        parts=many_parts,
        model=st.none() | names,
        stop_reason=st.none() | texts,
        usage=st.none() | st.builds(TokenUsage, input_tokens=counts, output_tokens=counts),
    ),
    json_values,
)
def test_every_exchange_gives_an_accepted_action_or_none(asked, answered, context):
    """By construction, whatever was sent."""
    action_of(asked, answered, context=context)

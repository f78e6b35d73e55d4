"""The real SDKs, newest releases, against the running provider."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import aiohttp
import anthropic
import httpx
import httpx2
import ollama
import openai
import pytest
from google.genai.errors import ClientError, ServerError

from reenact.testing import Disconnect, Fail, Reply, ScriptedProvider, Timeout, ToolCall, ToolResult
from tests.testing import asking
from tests.testing.asking import MODEL, STREAM, WHOLE, Ask

FULL = Reply(
    "Grüße, 世界! 🌍 I'll look it up.",
    thinking="The user wants the weather.\nTwo cities.",
    tool_calls=[ToolCall("weather", {"city": "Köln", "days": [1, 2]}), ToolCall("weather", {"city": "Oslo"})],
    usage=(41, 17),
)
STOPS = {
    "anthropic": {"end": "end_turn", "tool": "tool_use", "length": "max_tokens"},
    "openai_chat": {"end": "stop", "tool": "tool_calls", "length": "length"},
    "openai_responses": {"end": "completed", "tool": "completed", "length": "incomplete"},
    "gemini": {"end": "STOP", "tool": "STOP", "length": "MAX_TOKENS"},
    "ollama": {"end": "stop", "tool": "stop", "length": "length"},
}


def called(value: Any) -> str | None:
    return getattr(value, "__name__", None)


def wire_of(ask: Ask) -> str:
    return next(name for name in STOPS if ask.__name__.startswith(name))


@pytest.mark.parametrize("ask", WHOLE + STREAM, ids=called)
async def test_every_sdk_hears_the_whole_reply(ask: Ask) -> None:
    """Text, thinking, tool calls, usage and stop reason arrive however the SDK asks."""
    with ScriptedProvider([FULL]) as provider:
        heard = await ask(provider, "Weather?")
    assert heard.text == FULL.text
    assert heard.thinking == FULL.thinking
    assert heard.calls == [(call.name, call.arguments) for call in FULL.tool_calls]
    assert heard.usage == (41, 17)
    assert heard.stop == STOPS[wire_of(ask)]["tool"]
    [request] = provider.requests
    assert (request.wire, request.model, request.user_text) == (wire_of(ask), MODEL, "Weather?")
    assert request.stream is (ask in STREAM)


@pytest.mark.parametrize("stop", ["end", "length"])
@pytest.mark.parametrize("ask", WHOLE + STREAM, ids=called)
async def test_a_stop_reason_is_told_in_each_formats_word(ask: Ask, stop: str) -> None:
    """A reply without a tool call ends its turn; a neutral stop reason is translated."""
    with ScriptedProvider([Reply("Hm", stop_reason=None if stop == "end" else stop)]) as provider:
        heard = await ask(provider, "Go on")
    assert heard.stop == STOPS[wire_of(ask)][stop]


@pytest.mark.parametrize("ask", WHOLE + STREAM, ids=called)
async def test_an_empty_reply_is_heard_as_nothing(ask: Ask) -> None:
    """A model may say nothing at all."""
    with ScriptedProvider([Reply()]) as provider:
        heard = await ask(provider, "Silence?")
    assert (heard.text, heard.thinking, heard.calls) == ("", "", [])


RETRYING = [ask for ask in WHOLE + STREAM if wire_of(ask) not in ("ollama", "gemini")]


@pytest.mark.parametrize("ask", RETRYING, ids=called)
async def test_a_retrying_sdk_gets_through(ask: Ask) -> None:
    """A 429 is retried at once and the retry is the next turn."""
    with ScriptedProvider([Fail(429), Fail(529), Reply("At last")]) as provider:
        assert (await ask(provider, "Now?")).text == "At last"
    assert len(provider.requests) == 3
    provider.assert_finished()


@pytest.mark.parametrize("ask", [asking.gemini_whole, asking.gemini_async_stream], ids=called)
async def test_gemini_retries_when_asked_to(ask: Any) -> None:
    """Its SDK retries only with retry options, and by its own schedule."""
    schedule = {"attempts": 2, "initial_delay": 0.01, "jitter": 0}
    with ScriptedProvider([Fail(429), Reply("At last")]) as provider:
        heard = await ask(provider, "Now?", retry_options=schedule)
    assert heard.text == "At last"


REFUSALS = [
    (asking.anthropic_whole, {"max_retries": 0}, anthropic.RateLimitError),
    (asking.openai_chat_stream, {"max_retries": 0}, openai.RateLimitError),
    (asking.openai_responses_whole, {"max_retries": 0}, openai.RateLimitError),
    (asking.gemini_stream, {}, ClientError),
    (asking.ollama_whole, {}, ollama.ResponseError),
]


@pytest.mark.parametrize(("ask", "options", "kind"), REFUSALS, ids=called)
async def test_a_failure_is_the_sdks_own_error(
    ask: Any, options: dict[str, Any], kind: type[Exception]
) -> None:
    """The error body has the provider's shape, so that the SDK finds the message in it."""
    with ScriptedProvider([Fail(429)]) as provider, pytest.raises(kind, match="Too Many Requests"):
        await ask(provider, "Now?", **options)


GEMINI_CLIENT = httpx2 if version("google-genai") >= "3" else httpx
OPENAI_STREAM = httpx2.RemoteProtocolError if version("openai") == "3.0.0" else openai.APIConnectionError
BROKEN = {
    # The anthropic SDK does not wrap what breaks a stream that has begun; nor did the oldest of openai.
    "anthropic": (anthropic.APIConnectionError, httpx2.RemoteProtocolError),
    "openai_chat": (openai.APIConnectionError, OPENAI_STREAM),
    "openai_responses": (openai.APIConnectionError, OPENAI_STREAM),
    "gemini": (GEMINI_CLIENT.RemoteProtocolError, GEMINI_CLIENT.RemoteProtocolError),
    "ollama": (httpx.RemoteProtocolError, httpx.RemoteProtocolError),
}
# Where aiohttp is installed, google-genai's asynchronous client uses it, and asks once more by itself.
BROKEN_ASYNC_GEMINI = (aiohttp.ClientError, ServerError)


def broken(ask: Any, place: int) -> Any:
    """What the SDK behind *ask* raises when an answer, or a stream, breaks off."""
    return BROKEN_ASYNC_GEMINI if str(called(ask)).startswith("gemini_async") else BROKEN[wire_of(ask)][place]


ONCE: dict[str, dict[str, Any]] = {
    "anthropic": {"max_retries": 0},
    "openai_chat": {"max_retries": 0},
    "openai_responses": {"max_retries": 0},
}


@pytest.mark.parametrize("ask", STREAM, ids=called)
async def test_a_stream_breaks_in_the_middle(ask: Any) -> None:
    """The SDK reports a stream cut off after its third part."""
    with ScriptedProvider([Disconnect(3)]) as provider, pytest.raises(broken(ask, 1)):
        await ask(provider, "Go on", **ONCE.get(wire_of(ask), {}))


@pytest.mark.parametrize("after_chunks", [0, 1])
@pytest.mark.parametrize("ask", WHOLE, ids=called)
async def test_an_answer_breaks_off(ask: Any, after_chunks: int) -> None:
    """The SDK reports a response that never came, or only half of it."""
    with ScriptedProvider([Disconnect(after_chunks)]) as provider, pytest.raises(broken(ask, 0)):
        await ask(provider, "Go on", **ONCE.get(wire_of(ask), {}))


SILENT = [
    (asking.anthropic_whole, {"max_retries": 0, "timeout": 0.1}, anthropic.APITimeoutError),
    (asking.anthropic_async_stream, {"max_retries": 0, "timeout": 0.1}, anthropic.APITimeoutError),
    (asking.openai_chat_stream, {"max_retries": 0, "timeout": 0.1}, openai.APITimeoutError),
    (asking.openai_responses_async_whole, {"max_retries": 0, "timeout": 0.1}, openai.APITimeoutError),
    (asking.gemini_whole, {"timeout": 100}, GEMINI_CLIENT.ReadTimeout),
    (asking.ollama_async_stream, {"timeout": 0.1}, httpx.ReadTimeout),
]


@pytest.mark.parametrize(("ask", "options", "kind"), SILENT, ids=called)
async def test_silence_is_a_timeout(ask: Any, options: dict[str, Any], kind: type[Exception]) -> None:
    """A provider that never answers runs into the client's own timeout."""
    with ScriptedProvider([Timeout(60)]) as provider, pytest.raises(kind):
        await ask(provider, "Hello?", **options)


EXHAUSTED = [
    (asking.anthropic_whole, anthropic.InternalServerError),
    (asking.openai_chat_async_stream, openai.InternalServerError),
    (asking.openai_responses_stream, openai.InternalServerError),
    (asking.gemini_async_whole, ServerError),
    (asking.ollama_stream, ollama.ResponseError),
]


@pytest.mark.parametrize(("ask", "kind"), EXHAUSTED, ids=called)
async def test_a_script_that_ran_out_says_so_once(ask: Ask, kind: type[Exception]) -> None:
    """The error names the request, and the SDK does not retry it away."""
    with ScriptedProvider([]) as provider, pytest.raises(kind, match="no turn is left for request 0"):
        await ask(provider, "One too many")
    assert len(provider.requests) == 1


def test_anthropic_sends_the_tools_result_back() -> None:
    """A tool loop: the call's id comes back with the result, and the script sees turn and result."""
    with (
        ScriptedProvider([Reply(tool_calls=[ToolCall("add")]), Reply("3")]) as provider,
        asking.anthropic_client(provider) as client,
    ):
        messages: list[Any] = asking.said("1 + 2?")
        first = client.messages.create(model=MODEL, max_tokens=9, messages=messages)
        [call] = first.content
        result = {
            "type": "tool_result",
            "tool_use_id": call.id,
            "content": [{"type": "text", "text": "three"}],
        }
        messages += [
            {"role": "assistant", "content": first.content},
            {"role": "user", "content": [result]},
        ]
        client.messages.create(model=MODEL, max_tokens=9, messages=messages)
    assert call.id.startswith("toolu_")
    assert_came_back(provider, call.id)


def test_openai_chat_sends_the_tools_result_back() -> None:
    """The same over Chat Completions."""
    with (
        ScriptedProvider([Reply(tool_calls=[ToolCall("add")]), Reply("3")]) as provider,
        asking.openai_client(provider) as client,
    ):
        messages: list[Any] = asking.said("1 + 2?")
        message = client.chat.completions.create(model=MODEL, messages=messages).choices[0].message
        [call] = message.tool_calls
        messages += [message, {"role": "tool", "tool_call_id": call.id, "content": "three"}]
        client.chat.completions.create(model=MODEL, messages=messages)
    assert call.id.startswith("call_")
    assert_came_back(provider, call.id)


@pytest.mark.parametrize("stateful", [False, True])
def test_openai_responses_sends_the_tools_result_back(stateful: bool) -> None:
    """The same over Responses, repeating the conversation or naming the response it continues."""
    with (
        ScriptedProvider(
            [Reply("Hm.", thinking="Add.", tool_calls=[ToolCall("add")]), Reply("3")]
        ) as provider,
        asking.openai_client(provider) as client,
    ):
        said: list[Any] = asking.said("1 + 2?")
        first = client.responses.create(model=MODEL, input=said)
        call = first.output[-1]
        output = {"type": "function_call_output", "call_id": call.call_id, "output": "three"}
        if stateful:
            client.responses.create(model=MODEL, input=[output], previous_response_id=first.id)
        else:
            client.responses.create(model=MODEL, input=[*said, *first.output, output])
    assert_came_back(provider, call.call_id)


def test_gemini_sends_the_tools_result_back() -> None:
    """The same over generateContent; its SDK runs the tool itself and sends the name without the id."""

    def add() -> str:
        return "three"

    with (
        ScriptedProvider([Reply(tool_calls=[ToolCall("add")]), Reply("3")]) as provider,
        asking.gemini_client(provider) as client,
    ):
        answer = client.models.generate_content(model=MODEL, contents="1 + 2?", config={"tools": [add]})
    assert answer.text == "3"
    assert_came_back(provider, "add")


def test_ollama_sends_the_tools_result_back() -> None:
    """The same over Ollama, which ties results to calls by the tool's name."""
    with (
        ScriptedProvider([Reply(tool_calls=[ToolCall("add")]), Reply("3")]) as provider,
        asking.ollama_client(provider) as client,
    ):
        messages: list[Any] = asking.said("1 + 2?")
        message = client.chat(MODEL, messages).message
        messages += [message, {"role": "tool", "tool_name": "add", "content": "three"}]
        client.chat(MODEL, messages)
    # Older clients do not send it.
    assert_came_back(provider, "add" if "tool_name" in ollama.Message.model_fields else "")


def assert_came_back(provider: ScriptedProvider, call_id: str) -> None:
    first, second = provider.requests
    assert (first.turn, first.tool_results) == (0, ())
    assert (second.turn, second.tool_results) == (1, (ToolResult(call_id, "three"),))
    assert second.user_text == "1 + 2?"


def test_the_models_are_listed_in_each_shape() -> None:
    """Every SDK's model list names the models given."""
    names = ["small", "large"]
    with ScriptedProvider([], models=names) as provider:
        with asking.anthropic_client(provider) as claude:
            assert [model.id for model in claude.models.list()] == names
        with asking.openai_client(provider) as gpt:
            assert [model.id for model in gpt.models.list()] == names
        with asking.gemini_client(provider) as gemini:
            assert [model.name for model in gemini.models.list()] == [f"models/{name}" for name in names]
        with asking.ollama_client(provider) as llama:
            assert [model.model for model in llama.list().models] == names


def test_an_unknown_path_is_not_found_in_each_shape() -> None:
    """What is not served fails as the SDK's own not-found error."""
    with ScriptedProvider([]) as provider:
        with asking.openai_client(provider) as gpt, pytest.raises(openai.NotFoundError, match="embeddings"):
            gpt.embeddings.create(model=MODEL, input="x")
        with (
            asking.anthropic_client(provider) as claude,
            pytest.raises(anthropic.NotFoundError, match="batches"),
        ):
            claude.messages.batches.list()
        with asking.gemini_client(provider) as gemini, pytest.raises(ClientError, match="NOT_FOUND"):
            gemini.models.count_tokens(model=MODEL, contents="x")
        with asking.ollama_client(provider) as llama, pytest.raises(ollama.ResponseError, match="/api/embed"):
            llama.embed(MODEL, "x")
    assert [request.wire for request in provider.requests] == [None] * 4

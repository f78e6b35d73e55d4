"""Each SDK asked in each way: sync or async, whole or streaming, heard in one shape."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import anthropic
import ollama
import openai
from google import genai

from reenact.testing import ScriptedProvider

MODEL = "any-model"


@dataclass(frozen=True)
class Heard:
    """What a user of the SDK gets to see."""

    text: str
    thinking: str
    calls: list[tuple[str, dict[str, Any]]]
    usage: tuple[int, int]
    stop: str


Ask = Callable[[ScriptedProvider, str], Awaitable[Heard]]


def anthropic_client(provider: ScriptedProvider, **options: Any) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=provider.base_url("anthropic"), api_key="k", **options)


def async_anthropic_client(provider: ScriptedProvider, **options: Any) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(base_url=provider.base_url("anthropic"), api_key="k", **options)


def openai_client(provider: ScriptedProvider, **options: Any) -> openai.OpenAI:
    return openai.OpenAI(base_url=provider.base_url("openai"), api_key="k", **options)


def async_openai_client(provider: ScriptedProvider, **options: Any) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=provider.base_url("openai"), api_key="k", **options)


@contextmanager
def gemini_client(provider: ScriptedProvider, **http_options: Any) -> Iterator[genai.Client]:
    client = genai.Client(api_key="k", http_options={"base_url": provider.base_url("gemini"), **http_options})
    try:
        yield client
    finally:
        client.close()


@asynccontextmanager
async def async_gemini_client(provider: ScriptedProvider, **http_options: Any) -> AsyncIterator[Any]:
    with gemini_client(provider, **http_options) as client:
        async with client.aio as aio:
            yield aio


@contextmanager
def ollama_client(provider: ScriptedProvider, **options: Any) -> Iterator[ollama.Client]:
    client = ollama.Client(host=provider.base_url("ollama"), **options)
    with client._client:  # older versions cannot be closed otherwise
        yield client


@asynccontextmanager
async def async_ollama_client(
    provider: ScriptedProvider, **options: Any
) -> AsyncIterator[ollama.AsyncClient]:
    client = ollama.AsyncClient(host=provider.base_url("ollama"), **options)
    async with client._client:
        yield client


def said(text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text}]


def claude(text: str) -> dict[str, Any]:
    return {"model": MODEL, "max_tokens": 500, "messages": said(text)}


def chat(text: str) -> dict[str, Any]:
    return {"model": MODEL, "messages": said(text)}


def from_claude(message: Any) -> Heard:
    of = {
        kind: [block for block in message.content if block.type == kind]
        for kind in ("text", "thinking", "tool_use")
    }
    if of["thinking"]:
        assert of["thinking"][0].signature
    return Heard(
        "".join(block.text for block in of["text"]),
        "".join(block.thinking for block in of["thinking"]),
        [(block.name, block.input) for block in of["tool_use"]],
        (message.usage.input_tokens, message.usage.output_tokens),
        message.stop_reason,
    )


def from_chat(completion: Any) -> Heard:
    [choice] = completion.choices
    message = choice.message
    return Heard(
        message.content or "",
        getattr(message, "reasoning_content", ""),
        [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or []],
        (completion.usage.prompt_tokens, completion.usage.completion_tokens),
        choice.finish_reason,
    )


def from_response(response: Any) -> Heard:
    reasoning = [item for item in response.output if item.type == "reasoning"]
    calls = [item for item in response.output if item.type == "function_call"]
    return Heard(
        response.output_text,
        "".join(part.text for item in reasoning for part in item.summary),
        [(item.name, json.loads(item.arguments)) for item in calls],
        (response.usage.input_tokens, response.usage.output_tokens),
        response.status,
    )


def from_events(events: list[Any]) -> Heard:
    heard = from_response(events[-1].response)
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas) == heard.text
    return heard


def from_gemini(chunks: list[Any]) -> Heard:
    parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts]
    usage = chunks[-1].usage_metadata
    return Heard(
        "".join(part.text for part in parts if part.text and not part.thought),
        "".join(part.text for part in parts if part.text and part.thought),
        [(part.function_call.name, part.function_call.args) for part in parts if part.function_call],
        (usage.prompt_token_count, usage.candidates_token_count + (usage.thoughts_token_count or 0)),
        chunks[-1].candidates[0].finish_reason.value,
    )


def from_ollama(chunks: list[Any]) -> Heard:
    messages = [chunk.message for chunk in chunks]
    return Heard(
        "".join(message.content or "" for message in messages),
        "".join(message.thinking or "" for message in messages),
        [
            (call.function.name, dict(call.function.arguments))
            for message in messages
            for call in message.tool_calls or []
        ],
        (chunks[-1].prompt_eval_count, chunks[-1].eval_count),
        chunks[-1].done_reason,
    )


async def anthropic_whole(provider: ScriptedProvider, text: str, **options: Any) -> Heard:
    with anthropic_client(provider, **options) as client:
        return from_claude(client.messages.create(**claude(text)))


async def anthropic_stream(provider: ScriptedProvider, text: str, **options: Any) -> Heard:
    with anthropic_client(provider, **options) as client, client.messages.stream(**claude(text)) as stream:
        return from_claude(stream.get_final_message())


async def anthropic_async_whole(provider: ScriptedProvider, text: str, **options: Any) -> Heard:
    async with async_anthropic_client(provider, **options) as client:
        return from_claude(await client.messages.create(**claude(text)))


async def anthropic_async_stream(provider: ScriptedProvider, text: str, **options: Any) -> Heard:
    async with (
        async_anthropic_client(provider, **options) as client,
        client.messages.stream(**claude(text)) as stream,
    ):
        return from_claude(await stream.get_final_message())


async def openai_chat_whole(provider: ScriptedProvider, text: str, **options: Any) -> Heard:
    with openai_client(provider, **options) as client:
        return from_chat(client.chat.completions.create(**chat(text)))


async def openai_chat_stream(provider: ScriptedProvider, text: str, **options: Any) -> Heard:
    usage = {"include_usage": True}
    with (
        openai_client(provider, **options) as client,
        client.chat.completions.stream(**chat(text), stream_options=usage) as stream,
    ):
        return from_chat(stream.until_done().current_completion_snapshot)


async def openai_chat_async_whole(provider: ScriptedProvider, text: str, **options: Any) -> Heard:
    async with async_openai_client(provider, **options) as client:
        return from_chat(await client.chat.completions.create(**chat(text)))


async def openai_chat_async_stream(provider: ScriptedProvider, text: str, **options: Any) -> Heard:
    usage = {"include_usage": True}
    async with (
        async_openai_client(provider, **options) as client,
        client.chat.completions.stream(**chat(text), stream_options=usage) as stream,
    ):
        return from_chat((await stream.until_done()).current_completion_snapshot)


async def openai_responses_whole(provider: ScriptedProvider, text: str, **options: Any) -> Heard:
    with openai_client(provider, **options) as client:
        return from_response(client.responses.create(model=MODEL, input=text))


async def openai_responses_stream(provider: ScriptedProvider, text: str, **options: Any) -> Heard:
    with (
        openai_client(provider, **options) as client,
        client.responses.stream(model=MODEL, input=text) as stream,
    ):
        return from_events(list(stream))


async def openai_responses_async_whole(provider: ScriptedProvider, text: str, **options: Any) -> Heard:
    async with async_openai_client(provider, **options) as client:
        return from_response(await client.responses.create(model=MODEL, input=said(text)))


async def openai_responses_async_stream(provider: ScriptedProvider, text: str, **options: Any) -> Heard:
    async with (
        async_openai_client(provider, **options) as client,
        client.responses.stream(model=MODEL, input=said(text)) as stream,
    ):
        return from_events([event async for event in stream])


async def gemini_whole(provider: ScriptedProvider, text: str, **options: Any) -> Heard:
    with gemini_client(provider, **options) as client:
        return from_gemini([client.models.generate_content(model=MODEL, contents=text)])


async def gemini_stream(provider: ScriptedProvider, text: str, **options: Any) -> Heard:
    with gemini_client(provider, **options) as client:
        return from_gemini(list(client.models.generate_content_stream(model=MODEL, contents=text)))


async def gemini_async_whole(provider: ScriptedProvider, text: str, **options: Any) -> Heard:
    async with async_gemini_client(provider, **options) as client:
        return from_gemini([await client.models.generate_content(model=MODEL, contents=text)])


async def gemini_async_stream(provider: ScriptedProvider, text: str, **options: Any) -> Heard:
    async with async_gemini_client(provider, **options) as client:
        stream = await client.models.generate_content_stream(model=MODEL, contents=text)
        return from_gemini([chunk async for chunk in stream])


async def ollama_whole(provider: ScriptedProvider, text: str, **options: Any) -> Heard:
    with ollama_client(provider, **options) as client:
        return from_ollama([client.chat(**chat(text))])


async def ollama_stream(provider: ScriptedProvider, text: str, **options: Any) -> Heard:
    with ollama_client(provider, **options) as client:
        return from_ollama(list(client.chat(**chat(text), stream=True)))


async def ollama_async_whole(provider: ScriptedProvider, text: str, **options: Any) -> Heard:
    async with async_ollama_client(provider, **options) as client:
        return from_ollama([await client.chat(**chat(text))])


async def ollama_async_stream(provider: ScriptedProvider, text: str, **options: Any) -> Heard:
    async with async_ollama_client(provider, **options) as client:
        return from_ollama([chunk async for chunk in await client.chat(**chat(text), stream=True)])


WHOLE: list[Ask] = [
    anthropic_whole,
    anthropic_async_whole,
    openai_chat_whole,
    openai_chat_async_whole,
    openai_responses_whole,
    openai_responses_async_whole,
    gemini_whole,
    gemini_async_whole,
    ollama_whole,
    ollama_async_whole,
]
STREAM: list[Ask] = [
    anthropic_stream,
    anthropic_async_stream,
    openai_chat_stream,
    openai_chat_async_stream,
    openai_responses_stream,
    openai_responses_async_stream,
    gemini_stream,
    gemini_async_stream,
    ollama_stream,
    ollama_async_stream,
]

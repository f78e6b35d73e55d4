"""One exchange per wire format, byte for byte: request, answer in one piece, the same answer as a stream.

Each answer thinks, speaks with characters of two to four bytes, and calls two tools at once.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from reenact.providers import Provider

TEXT = "Zürich: 7 °C, 日本: 晴れ ☀️ – let me check both."
THOUGHT = "The user wants two cities … 🤔"
SIGNATURE = "EqQBCkYIBxgCKkDm9vY="


@dataclass(frozen=True)
class Exchange:
    provider: Provider
    path: str
    request: dict[str, Any]
    body: dict[str, Any]
    stream: bytes

    @property
    def whole(self) -> bytes:
        return json.dumps(self.body, ensure_ascii=False).encode()


def sse(
    *events: dict[str, Any], named: bool = False, end: str = "\n", done: bool = False, comment: bool = True
) -> bytes:
    """The events as a server sends them, mostly with a keep-alive comment in front."""
    lines = [": keep-alive", ""] if comment else []
    for event in events:
        lines += [f"event: {event['type']}"] if named else []
        lines += [f"data: {json.dumps(event, ensure_ascii=False)}", ""]
    lines += ["data: [DONE]", ""] if done else []
    return (end.join(lines) + end).encode()


def ndjson(*lines: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in lines)


WEATHER_SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


# Anthropic


def _block(index: int, block: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


ANTHROPIC_USAGE = {
    "input_tokens": 412,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 2048,
    "output_tokens": 96,
    "service_tier": "standard",
}
ANTHROPIC_BODY = {
    "id": "msg_01XFDUDYJgAACzvnptvVoYEL",
    "type": "message",
    "role": "assistant",
    "model": "claude-test-1",
    "content": [
        {"type": "thinking", "thinking": THOUGHT, "signature": SIGNATURE},
        {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix"},
        {"type": "text", "text": TEXT},
        {"type": "tool_use", "id": "toolu_01A", "name": "weather", "input": {"city": "Zürich"}},
        {"type": "tool_use", "id": "toolu_01B", "name": "now", "input": {}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": ANTHROPIC_USAGE,
}
ANTHROPIC_EVENTS: list[dict[str, Any]] = [
    {
        "type": "message_start",
        "message": ANTHROPIC_BODY
        | {"content": [], "stop_reason": None, "usage": ANTHROPIC_USAGE | {"output_tokens": 1}},
    },
    {"type": "ping"},
    *_block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": THOUGHT[:9]},
        {"type": "thinking_delta", "thinking": THOUGHT[9:]},
        {"type": "signature_delta", "signature": SIGNATURE},
    ),
    *_block(1, {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix"}),
    *_block(
        2,
        {"type": "text", "text": ""},
        *({"type": "text_delta", "text": TEXT[at : at + 5]} for at in range(0, len(TEXT), 5)),
    ),
    *_block(
        3,
        {"type": "tool_use", "id": "toolu_01A", "name": "weather", "input": {}},
        {"type": "input_json_delta", "partial_json": ""},
        {"type": "input_json_delta", "partial_json": '{"city": "Z'},
        {"type": "input_json_delta", "partial_json": 'ürich"}'},
    ),
    *_block(4, {"type": "tool_use", "id": "toolu_01B", "name": "now", "input": {}}),
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": None},
        "usage": {"output_tokens": 96, "cache_read_input_tokens": None},
    },
    {"type": "message_stop"},
]
ANTHROPIC = Exchange(
    provider="anthropic",
    path="/v1/messages",
    request={
        "model": "claude-test",
        "max_tokens": 1024,
        "metadata": {"user_id": "u"},
        "stop_sequences": ["END"],
        "system": [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Use °C."}],
        "messages": [
            {"role": "user", "content": "Weather?"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Ask the tool.", "signature": SIGNATURE},
                    {"type": "tool_use", "id": "toolu_00", "name": "weather", "input": {"city": "Bern"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "toolu_00",
                        "content": [{"type": "text", "text": "no such city"}],
                        "is_error": True,
                    },
                    {"type": "text", "text": "And in Zürich?"},
                ],
            },
        ],
        "tools": [
            {"name": "weather", "description": "Weather of a city", "input_schema": WEATHER_SCHEMA},
            {"type": "web_search_20250305", "name": "web_search"},
        ],
        "stream": True,
    },
    body=ANTHROPIC_BODY,
    stream=sse(*ANTHROPIC_EVENTS, named=True),
)


# OpenAI Chat Completions

CHAT_USAGE = {
    "prompt_tokens": 82,
    "completion_tokens": 40,
    "total_tokens": 122,
    "prompt_tokens_details": {"cached_tokens": 64, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 16, "audio_tokens": 0},
}
_CHAT_HEAD = {
    "id": "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT",
    "created": 1741569952,
    "model": "gpt-4.1-2025-04-14",
    "service_tier": "default",
    "system_fingerprint": "fp_44709d6fcb",
}


def chat_chunk(delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return _CHAT_HEAD | {"object": "chat.completion.chunk", "choices": [choice], "usage": None}


def _call_delta(index: int, **call: Any) -> dict[str, Any]:
    return chat_chunk({"tool_calls": [{"index": index, **call}]})


CHAT_CHUNKS: list[dict[str, Any]] = [
    chat_chunk({"role": "assistant", "content": None, "refusal": None}),
    chat_chunk({"reasoning_content": THOUGHT[:4]}),
    chat_chunk({"reasoning_content": THOUGHT[4:]}),
    *(chat_chunk({"content": TEXT[at : at + 4]}) for at in range(0, len(TEXT), 4)),
    _call_delta(0, id="call_A", type="function", function={"name": "weather", "arguments": ""}),
    _call_delta(0, function={"arguments": '{"city":'}),
    _call_delta(1, id="call_B", type="function", function={"name": "now", "arguments": ""}),
    _call_delta(1, function={"arguments": "{}"}),
    _call_delta(0, function={"arguments": '"Zürich"}'}),
    chat_chunk({}, finish_reason="tool_calls"),
    _CHAT_HEAD | {"object": "chat.completion.chunk", "choices": [], "usage": CHAT_USAGE},
]
CHAT = Exchange(
    provider="openai_chat",
    path="/v1/chat/completions",
    request={
        "model": "gpt-4.1",
        "messages": [
            {"role": "developer", "content": "Be brief."},
            {"role": "system", "content": [{"type": "text", "text": "Use °C."}]},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Weather?"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
                ],
            },
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "call_0",
                        "type": "function",
                        "function": {"name": "weather", "arguments": '{"city":"Bern"}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "call_0", "content": "5 °C"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "weather",
                    "description": "Weather of a city",
                    "parameters": WEATHER_SCHEMA,
                },
            }
        ],
        "temperature": 0,
        "seed": 7,
        "max_completion_tokens": 256,
        "stop": ["END"],
        "stream": True,
        "stream_options": {"include_usage": True},
    },
    body=_CHAT_HEAD
    | {
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": TEXT,
                    "refusal": None,
                    "reasoning_content": THOUGHT,
                    "tool_calls": [
                        {
                            "id": "call_A",
                            "type": "function",
                            "function": {"name": "weather", "arguments": '{"city":"Zürich"}'},
                        },
                        {"id": "call_B", "type": "function", "function": {"name": "now", "arguments": "{}"}},
                    ],
                },
                "logprobs": None,
                "finish_reason": "tool_calls",
            }
        ],
        "usage": CHAT_USAGE,
    },
    stream=sse(*CHAT_CHUNKS, done=True),
)


# OpenAI Responses

_REASONING = {
    "id": "rs_68af4030baa48193b0b43b4c2a176a1a",
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": THOUGHT}],
    "encrypted_content": "gAAAAABoISQ24OyVRYbk",
}
_OUTPUT_TEXT = {"type": "output_text", "text": TEXT, "annotations": [], "logprobs": []}
_MESSAGE = {
    "id": "msg_68af40337e58",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [_OUTPUT_TEXT],
}


def _function_call(name: str, call_id: str, arguments: str) -> dict[str, Any]:
    return {
        "id": f"fc_{call_id}",
        "type": "function_call",
        "status": "completed",
        "name": name,
        "call_id": call_id,
        "arguments": arguments,
    }


_WEATHER_CALL = _function_call("weather", "call_A", '{"city":"Zürich"}')
_NOW_CALL = _function_call("now", "call_B", "{}")
_RESPONSE_HEAD = {
    "id": "resp_67ccd3a9da748190baa7f1570fe91ac6",
    "object": "response",
    "created_at": 1741476777,
    "status": "in_progress",
    "error": None,
    "incomplete_details": None,
    "instructions": None,
    "metadata": {},
    "model": "gpt-5-2025-08-07",
    "output": [],
    "parallel_tool_calls": True,
    "temperature": 1.0,
    "tool_choice": "auto",
    "tools": [],
    "top_p": 1.0,
    "usage": None,
}
RESPONSE_BODY = _RESPONSE_HEAD | {
    "status": "completed",
    "output": [_REASONING, _MESSAGE, _WEATHER_CALL, _NOW_CALL],
    "usage": {
        "input_tokens": 328,
        "input_tokens_details": {"cached_tokens": 128, "cache_write_tokens": 0},
        "output_tokens": 52,
        "output_tokens_details": {"reasoning_tokens": 20},
        "total_tokens": 380,
    },
}


def _item(index: int, begun: dict[str, Any], ended: dict[str, Any], *between: dict[str, Any]) -> list[Any]:
    return [
        {"type": "response.output_item.added", "output_index": index, "item": begun},
        *({"output_index": index, "item_id": begun["id"], **event} for event in between),
        {"type": "response.output_item.done", "output_index": index, "item": ended},
    ]


RESPONSE_EVENTS: list[dict[str, Any]] = [
    {"type": "response.created", "response": _RESPONSE_HEAD},
    {"type": "response.in_progress", "response": _RESPONSE_HEAD},
    *_item(
        0,
        _REASONING | {"summary": []},
        _REASONING,
        {
            "type": "response.reasoning_summary_part.added",
            "summary_index": 0,
            "part": {"type": "summary_text", "text": ""},
        },
        {"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": THOUGHT[:5]},
        {"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": THOUGHT[5:]},
        {"type": "response.reasoning_summary_text.done", "summary_index": 0, "text": THOUGHT},
    ),
    *_item(
        1,
        _MESSAGE | {"status": "in_progress", "content": []},
        _MESSAGE,
        {"type": "response.content_part.added", "content_index": 0, "part": _OUTPUT_TEXT | {"text": ""}},
        *(
            {"type": "response.output_text.delta", "content_index": 0, "delta": TEXT[at : at + 6]}
            for at in range(0, len(TEXT), 6)
        ),
        {"type": "response.output_text.done", "content_index": 0, "text": TEXT},
        {"type": "response.content_part.done", "content_index": 0, "part": _OUTPUT_TEXT},
    ),
    *_item(
        2,
        _WEATHER_CALL | {"status": "in_progress", "arguments": ""},
        _WEATHER_CALL,
        {"type": "response.function_call_arguments.delta", "delta": '{"city":'},
        {"type": "response.function_call_arguments.delta", "delta": '"Zürich"}'},
        {"type": "response.function_call_arguments.done", "arguments": '{"city":"Zürich"}'},
    ),
    *_item(3, _NOW_CALL | {"status": "in_progress", "arguments": ""}, _NOW_CALL),
]
RESPONSE_END = {"type": "response.completed", "response": RESPONSE_BODY}
RESPONSES = Exchange(
    provider="openai_responses",
    path="/v1/responses",
    request={
        "model": "gpt-5",
        "instructions": "Be brief.",
        "input": [
            {"role": "developer", "content": "Use °C."},
            {"role": "user", "content": [{"type": "input_text", "text": "Weather?"}]},
            {"type": "reasoning", "id": "rs_0", "summary": [], "encrypted_content": "gAAAA"},
            _function_call("weather", "call_0", '{"city":"Bern"}'),
            {"type": "function_call_output", "call_id": "call_0", "output": "5 °C"},
        ],
        "tools": [
            {
                "type": "function",
                "name": "weather",
                "description": "Weather of a city",
                "parameters": WEATHER_SCHEMA,
                "strict": True,
            },
            {"type": "web_search"},
        ],
        "max_output_tokens": 512,
        "store": False,
        "stream": True,
    },
    body=RESPONSE_BODY,
    stream=sse(*RESPONSE_EVENTS, RESPONSE_END, named=True),
)


# Gemini

GEMINI_USAGE = {
    "promptTokenCount": 30,
    "candidatesTokenCount": 22,
    "totalTokenCount": 70,
    "thoughtsTokenCount": 18,
    "cachedContentTokenCount": 8,
}
_GEMINI_HEAD = {"modelVersion": "gemini-2.5-pro", "responseId": "ZsDHaPvVCo-qnsEPxYmm2A0"}


def gemini_chunk(*parts: dict[str, Any], **candidate: Any) -> dict[str, Any]:
    content = {"role": "model", "parts": list(parts)}
    return _GEMINI_HEAD | {
        "candidates": [{"content": content, "index": 0, **candidate}],
        "usageMetadata": {"promptTokenCount": 30, "totalTokenCount": 30},
    }


_WEATHER_PART = {
    "functionCall": {"name": "weather", "args": {"city": "Zürich"}},
    "thoughtSignature": SIGNATURE,
}
GEMINI_CHUNKS: list[dict[str, Any]] = [
    gemini_chunk({"text": THOUGHT[:7], "thought": True}),
    gemini_chunk({"text": THOUGHT[7:], "thought": True}),
    gemini_chunk({"text": TEXT[:10]}),
    gemini_chunk({"text": TEXT[10:]}),
    gemini_chunk(_WEATHER_PART, {"functionCall": {"name": "now", "args": {}}}),
    gemini_chunk(finishReason="STOP") | {"usageMetadata": GEMINI_USAGE},
]
GEMINI = Exchange(
    provider="gemini",
    path="/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
    request={
        "systemInstruction": {"parts": [{"text": "Be brief."}, {"text": "Use °C."}]},
        "contents": [
            {
                "role": "user",
                "parts": [
                    {"text": "Weather?"},
                    {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}},
                ],
            },
            {"role": "model", "parts": [{"functionCall": {"name": "weather", "args": {"city": "Bern"}}}]},
            {
                "role": "user",
                "parts": [{"functionResponse": {"name": "weather", "response": {"output": "5 °C"}}}],
            },
        ],
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "weather", "description": "Weather of a city", "parameters": WEATHER_SCHEMA}
                ]
            },
            {"googleSearch": {}},
        ],
        "generationConfig": {
            "temperature": 0.5,
            "topP": 0.9,
            "maxOutputTokens": 512,
            "stopSequences": ["END"],
            "seed": 7,
        },
    },
    body=gemini_chunk(
        {"text": THOUGHT, "thought": True},
        {"text": TEXT},
        _WEATHER_PART,
        {"functionCall": {"name": "now", "args": {}}},
        finishReason="STOP",
    )
    | {"usageMetadata": GEMINI_USAGE},
    stream=sse(*GEMINI_CHUNKS, end="\r\n", comment=False),  # a comment breaks Google's own SDK
)


# Ollama

_OLLAMA_HEAD = {"model": "qwen3:8b", "created_at": "2025-11-02T09:12:07.3Z"}
_OLLAMA_COUNTS = {
    "total_duration": 4883583458,
    "load_duration": 1334875,
    "prompt_eval_count": 26,
    "prompt_eval_duration": 342546000,
    "eval_count": 282,
    "eval_duration": 4535599000,
}
_OLLAMA_CALLS = [
    {"function": {"name": "weather", "arguments": {"city": "Zürich"}}},
    {"function": {"name": "now", "arguments": {}}},
]


def ollama_line(**message: Any) -> dict[str, Any]:
    return _OLLAMA_HEAD | {"message": {"role": "assistant", "content": "", **message}, "done": False}


_OLLAMA_END = {"done": True, "done_reason": "stop", **_OLLAMA_COUNTS}
OLLAMA_LINES: list[dict[str, Any]] = [
    ollama_line(thinking=THOUGHT[:6]),
    ollama_line(thinking=THOUGHT[6:]),
    *(ollama_line(content=TEXT[at : at + 4]) for at in range(0, len(TEXT), 4)),
    ollama_line(tool_calls=_OLLAMA_CALLS[:1]),
    ollama_line(tool_calls=_OLLAMA_CALLS[1:]),
    ollama_line() | _OLLAMA_END,
]
OLLAMA = Exchange(
    provider="ollama",
    path="/api/chat",
    request={
        "model": "qwen3:8b",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Weather?", "images": ["iVBORw0KGgo="]},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"function": {"name": "weather", "arguments": {"city": "Bern"}}}],
            },
            {"role": "tool", "tool_name": "weather", "content": "5 °C"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "weather",
                    "description": "Weather of a city",
                    "parameters": WEATHER_SCHEMA,
                },
            }
        ],
        "options": {"temperature": 0.2, "num_predict": 128, "seed": 7, "stop": ["END"]},
        "think": True,
    },
    body=ollama_line(thinking=THOUGHT, content=TEXT, tool_calls=_OLLAMA_CALLS) | _OLLAMA_END,
    stream=ndjson(*OLLAMA_LINES),
)

EXCHANGES: dict[str, Exchange] = {
    exchange.provider: exchange for exchange in (ANTHROPIC, CHAT, RESPONSES, GEMINI, OLLAMA)
}

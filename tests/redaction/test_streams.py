"""Secrets that a stream cuts: over chunks, and over the deltas of several events."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from reenact.redaction import PLACEHOLDER, Redactor

from . import redaction_cases as cases

SALT = b"salt of one capture"
PLACEHOLDER_OF_KEY = Redactor("default", salt=SALT).redact_text(cases.ANTHROPIC)


@pytest.fixture(scope="module")
def redactor() -> Redactor:
    return Redactor("default", secrets=["my own value"], salt=SALT)


def cut(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


@pytest.mark.parametrize("size", [1, 3, 7, 20, 60])
def test_a_secret_cut_over_chunks_is_placed_where_it_began(redactor: Redactor, size: int) -> None:
    """What is not secret stays in its chunk; the other pieces of the secret leave theirs."""
    before, after = "The key is ", " and it works."
    chunks = cut(before + cases.ANTHROPIC + after, size)
    redacted = redactor.redact_chunks([chunk.encode() for chunk in chunks])
    start = len(before) // size
    assert len(redacted) == len(chunks)
    assert b"".join(redacted).decode() == before + PLACEHOLDER_OF_KEY + after
    assert PLACEHOLDER_OF_KEY.encode() in redacted[start]
    assert [chunk.decode() for chunk in redacted[:start]] == chunks[:start]


def test_clean_chunks_are_left_as_they_are(redactor: Redactor) -> None:
    """Also where a chunk ends inside a character."""
    data = "naïve — 日本語".encode()
    chunks = [data[start:end] for start, end in pairwise(range(len(data) + 1))]
    assert redactor.redact_chunks(chunks) == chunks


def test_empty_chunks_and_empty_streams_stay(redactor: Redactor) -> None:
    """Their number is part of the recording."""
    key = cases.ANTHROPIC.encode()
    assert redactor.redact_chunks([]) == []
    assert redactor.redact_chunks([b"", b""]) == [b"", b""]
    assert redactor.redact_chunks([b"", key[:9], b"", key[9:], b""]) == [
        b"",
        PLACEHOLDER_OF_KEY.encode(),
        b"",
        b"",
        b"",
    ]


def test_binary_data_around_a_secret_is_kept(redactor: Redactor) -> None:
    """Bytes that are no text pass through."""
    data = b"\xff\xfe\x00" + cases.ANTHROPIC.encode() + b"\x80 \xc3"
    assert redactor.redact_bytes(data) == b"\xff\xfe\x00" + PLACEHOLDER_OF_KEY.encode() + b"\x80 \xc3"


@pytest.mark.parametrize("mark", ["\ufeff", ""])
@pytest.mark.parametrize("coding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_texts_of_wide_characters_are_looked_into(redactor: Redactor, coding: str, mark: str) -> None:
    """As files of other systems are; what is no secret stays as it was, half a character at the end too."""
    text = f"{mark}name = 日本\nkey = {cases.ANTHROPIC}\nown = my own value\n"
    redacted = redactor.redact_bytes(text.encode(coding) + b"\x01").decode(coding, "replace")
    assert PLACEHOLDER_OF_KEY in redacted
    assert "my own value" not in redacted
    plain = f"{mark}name = 日本\n".encode(coding) + b"\x01"
    assert redactor.redact_bytes(plain) == plain


def openai_chat(piece: str) -> Any:
    return {"id": "chatcmpl-1", "choices": [{"index": 0, "delta": {"content": piece}, "logprobs": None}]}


def openai_arguments(piece: str) -> Any:
    call = {"index": 0, "function": {"arguments": piece}}
    return {"id": "chatcmpl-1", "choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}


def openai_response(piece: str) -> Any:
    return {"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "delta": piece}


def anthropic_text(piece: str) -> Any:
    return {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": piece}}


def anthropic_arguments(piece: str) -> Any:
    return {
        "type": "content_block_delta",
        "index": 1,
        "delta": {"type": "input_json_delta", "partial_json": piece},
    }


def anthropic_thinking(piece: str) -> Any:
    return {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": piece}}


def gemini(piece: str) -> Any:
    return {"candidates": [{"content": {"parts": [{"text": piece}], "role": "model"}, "index": 0}]}


def ollama(piece: str) -> Any:
    return {"model": "llama", "message": {"role": "assistant", "content": piece}, "done": False}


EVENTS = [
    openai_chat,
    openai_arguments,
    openai_response,
    anthropic_text,
    anthropic_arguments,
    anthropic_thinking,
    gemini,
    ollama,
]


def stream(events: list[Any], *, separators: tuple[str, str] | None = None) -> bytes:
    return "".join(f"data: {json.dumps(event, separators=separators)}\n\n" for event in events).encode()


def read(data: bytes) -> list[Any]:
    return [json.loads(line.removeprefix("data: ")) for line in data.decode().splitlines() if line]


@pytest.mark.parametrize("separators", [None, (",", ":")], ids=["spaced", "compact"])
@pytest.mark.parametrize("size", [1, 4, 11])
@pytest.mark.parametrize("event", EVENTS)
def test_a_secret_cut_over_deltas_is_found(
    redactor: Redactor, event: Any, size: int, separators: tuple[str, str] | None
) -> None:
    """Its placeholder stands in the delta in which it began, the other deltas lose their pieces."""
    pieces = cut(f"It is {cases.ANTHROPIC}, yes.", size)
    redacted = redactor.redact_bytes(stream([event(piece) for piece in pieces], separators=separators))
    start = len("It is ") // size
    kept = "".join(pieces)[: start * size]
    assert read(redacted)[:start] == [event(piece) for piece in cut(kept, size)]
    assert len(read(redacted)) == len(pieces)
    assert PLACEHOLDER_OF_KEY in json.dumps(read(redacted)[start])
    assert not any(piece in redacted.decode() for piece in cut(cases.ANTHROPIC, 6))


def test_newline_delimited_json_is_a_stream_too(redactor: Redactor) -> None:
    """As Ollama writes it."""
    lines = [json.dumps(ollama(piece)) for piece in cut(cases.GITHUB, 5)]
    redacted = redactor.redact_bytes("\n".join(lines).encode())
    assert [json.loads(line)["message"]["content"] for line in redacted.splitlines()][1:] == [""] * (
        len(lines) - 1
    )


def test_a_registered_secret_cut_over_deltas_is_found(redactor: Redactor) -> None:
    """It has no shape, only a value."""
    redacted = redactor.redact_bytes(
        stream([openai_chat(piece) for piece in ("It is my o", "wn val", "ue.")])
    )
    contents = [event["choices"][0]["delta"]["content"] for event in read(redacted)]
    assert PLACEHOLDER.fullmatch(contents[0].removeprefix("It is "))
    assert contents[1:] == ["", "."]


def test_a_password_in_streamed_arguments_is_found_by_its_name(redactor: Redactor) -> None:
    """The arguments are JSON only when their pieces are joined."""
    pieces = cut('{"user": "bob", "password": "two words", "n": 1}', 5)
    redacted = redactor.redact_bytes(stream([anthropic_arguments(piece) for piece in pieces]))
    joined = json.loads("".join(event["delta"]["partial_json"] for event in read(redacted)))
    assert PLACEHOLDER.fullmatch(joined.pop("password"))
    assert joined == {"user": "bob", "n": 1}


def test_outputs_that_take_turns_are_read_apart(redactor: Redactor) -> None:
    """Two choices stream at once; a secret in one is cut by the text of the other."""
    events = []
    for number, piece in enumerate(cut(cases.ANTHROPIC, 9)):
        for index, text in enumerate((piece, f"word{number} ")):
            event = openai_chat(text)
            event["choices"][0]["index"] = index
            events.append(event)
    redacted = redactor.redact_bytes(stream(events))
    contents = [event["choices"][0]["delta"]["content"] for event in read(redacted)]
    assert "".join(contents[0::2]) == PLACEHOLDER_OF_KEY
    assert contents[1::2] == [event["choices"][0]["delta"]["content"] for event in events[1::2]]


def test_chunks_may_cut_events_and_events_may_cut_secrets(redactor: Redactor) -> None:
    """Both at once: the boundaries of chunks have nothing to do with those of events."""
    data = stream([openai_chat(piece) for piece in cut(f"It is {cases.ANTHROPIC}, yes.", 4)])
    chunks = [data[at : at + 100] for at in range(0, len(data), 100)]
    redacted = redactor.redact_chunks(chunks)
    assert len(redacted) == len(chunks)
    assert b"".join(redacted) == redactor.redact_bytes(data)
    assert PLACEHOLDER_OF_KEY.encode() in b"".join(redacted)


def test_an_ordinary_stream_is_left_as_it_is(redactor: Redactor) -> None:
    """Counts of tokens, log probabilities and comments included."""
    logprobs = {"content": [{"token": "Hello", "logprob": -0.1, "bytes": [72], "top_logprobs": []}]}
    event = openai_chat("Hello")
    event["choices"][0]["logprobs"] = logprobs
    data = b": ping\n\n" + stream([event, event, {"usage": {"total_tokens": 9}}]) + b"data: [DONE]\n\n"
    assert redactor.redact_bytes(data) == data

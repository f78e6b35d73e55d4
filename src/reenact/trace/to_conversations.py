"""Converts a capture to conversations, for rows of datasets.

A conversation is the messages of a model call and its answer. If a later call continues it, it is part of the
later one. So a chat of any length is one conversation, and two if its history was rewritten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any, Final, NamedTuple, TypeAlias

from reenact import canonical
from reenact.canonical import JsonValue
from reenact.errors import FormatError
from reenact.formats import capture
from reenact.formats.capture import LlmRequest, LlmResponse, number_marks
from reenact.formats.dialects.losses import Loss
from reenact.formats.record import ABSENT
from reenact.providers import Media, ModelRequest, ModelResponse, Other, Refusal, Text, Thinking, ToolCallPart
from reenact.providers.meaning import ModelMessage, Part, ToolResultPart
from reenact.store.reader import CaptureReader
from reenact.trace.model_calls import as_text, request_of, response_of
from reenact.trace.to_rows import RowOptions, redact_payload
from reenact.values.tags import strip_tags

ChatMessage: TypeAlias = dict[str, Any]
_GUESSED: Final = ("judgeable", "viewable")
"""Imports of this fidelity do not have the messages of each model call."""
_MEDIA: Final = frozenset({
    "image", "document", "audio", "file", "resource", "image_url", "input_image", "input_audio", "input_file",
})  # fmt: skip


class Chat(NamedTuple):
    """Messages in the form of chat templates; the last one is an answer of the model."""

    messages: list[ChatMessage]
    tools: list[dict[str, Any]]
    first_event: int
    last_event: int


def conversations(
    reader: CaptureReader, options: RowOptions, note_loss: Callable[[Loss], None]
) -> list[Chat]:
    """The conversations of a run that no later call continues, in the order of their last answers."""
    imported = reader.manifest.imported
    if imported is not ABSENT and imported.fidelity in _GUESSED:
        reason = f"the import is {imported.fidelity}: what each call was given is not known"
        note_loss(Loss(None, "llm_request", None, reason))
        return []
    reading = _Reading(reader, note_loss)
    for event in reader.events():
        reading.event(event)
    found = []
    for exchange in sorted(reading.leaves(), key=lambda each: each.last_event):
        messages, tools = redact_payload(reader, options, [exchange.messages, exchange.tools])
        if options.reasoning == "drop":
            messages = [_without_reasoning(message) for message in messages]
        found.append(Chat(messages, tools, exchange.first_event, exchange.last_event))
    return found


class ReportedQuestion(NamedTuple):
    """A model call of a transcript: the conversation before the answer, and the answer."""

    provider: str
    model: str
    messages: list[ChatMessage]
    answer: ChatMessage


def reported_questions(reader: CaptureReader) -> dict[str, ReportedQuestion]:
    """The model calls of a run that was imported from a transcript, by call id.

    Conversations that chat messages cannot represent are left out; so are all calls if the import does not
    say what each call was given.
    """
    imported = reader.manifest.imported
    if imported is ABSENT or imported.fidelity != "tools":
        return {}
    reading = _Reading(reader, lambda _: None)
    found: dict[str, ReportedQuestion] = {}
    for event in reader.events():
        reading.event(event)
        if isinstance(event, LlmResponse):
            messages = reading.read_reported(event.data.callId)
            if messages and messages[-1]["role"] == "assistant":
                *said, answer = messages
                named = str(event.data.provider), str(event.data.model)
                found[event.data.callId] = ReportedQuestion(*named, said, answer)
    return {call_id: question for call_id, question in found.items() if question.messages}


def _without_reasoning(message: ChatMessage) -> ChatMessage:
    return {key: value for key, value in message.items() if key != "reasoning_content"}


def message_digests(messages: list[ChatMessage], *, among_runs: bool = False) -> list[bytes]:
    """One digest for each prefix of a conversation; equal prefixes have equal digests.

    Reasoning is ignored, and ids of tool calls count only by their order, because they are random.
    Compared *among_runs*, so do the marks of hidden secrets, because every run has a salt of its own.
    """
    ids: dict[str, str] = {}
    marks: dict[str, int] = {}
    chain, found = b"", []
    for message in messages:
        text = canonical.encode(_simplify(message, ids))
        if among_runs:
            text = number_marks(text.decode(), marks).encode()
        chain = sha256(chain + text).digest()
        found.append(chain)
    return found


def _simplify(message: ChatMessage, ids: dict[str, str]) -> ChatMessage:
    compared = _without_reasoning(message)
    if "tool_calls" in compared:
        compared["tool_calls"] = [
            call | {"id": ids.setdefault(str(call["id"]), str(len(ids)))} for call in compared["tool_calls"]
        ]
    if "tool_call_id" in compared:
        compared["tool_call_id"] = ids.setdefault(str(compared["tool_call_id"]), str(len(ids)))
    compared.pop("name", None)  # of a tool's result; only some wire formats repeat it
    return compared


class _Unfit(Exception):
    """A conversation cannot be written as messages of chat templates."""


class _Reading:
    """Collects the conversations of a run, event by event."""

    def __init__(self, reader: CaptureReader, note_loss: Callable[[Loss], None]) -> None:
        self._reader = reader
        self._note_loss = note_loss
        self._requests: dict[str, LlmRequest] = {}
        self._by_digest: dict[bytes, Chat] = {}
        """Conversations by the digest of all their messages."""
        self._continued: set[bytes] = set()
        """The digests of those that a later call continues."""
        self._reported: dict[str, list[ChatMessage]] = {}
        """By call id: the messages of a conversation that a framework reported, up to its answer."""
        self._first: dict[str, int] = {}
        """By call id: the first event of its conversation."""
        self._expected: dict[str, list[ToolCallPart]] = {}
        """By lane: calls that the latest reported answer requests and that were not made yet."""
        self._latest: dict[str, str] = {}
        """By lane: the latest reported call."""
        self._unfit: set[str] = set()
        """Reported calls whose conversation cannot be a row, nor can what continues it."""
        self._waiting: dict[str, tuple[str, ToolCallPart]] = {}
        """By id of a reported tool call: the model call that requested it, and the request."""

    def leaves(self) -> Iterator[Chat]:
        return (found for digest, found in self._by_digest.items() if digest not in self._continued)

    def read_reported(self, call_id: str) -> list[ChatMessage]:
        """The conversation up to the answer of a reported call, which is the last message."""
        return self._reported.get(call_id, [])

    def event(self, event: capture.CaptureEvent) -> None:
        if isinstance(event, LlmRequest):
            self._requests[event.data.callId] = event
        elif isinstance(event, LlmResponse):
            request_event = self._requests.pop(event.data.callId, None)
            if request_event is not None:
                self._exchange(request_event, event)
        elif isinstance(event, capture.ToolCall) and event.data.derived is True:
            self._match_reported_call(event)
        elif isinstance(event, capture.ToolResult) and event.data.callId in self._waiting:
            self._add_reported_result(event)

    def _exchange(self, request_event: LlmRequest, response_event: LlmResponse) -> None:
        request, response = request_of(self._reader, request_event), response_of(self._reader, response_event)
        if request is None:
            self._note_loss(
                Loss(request_event.seq, "llm_request", "request", "it is of no known wire format")
            )
            return
        if response is None or not response.complete or response.error is not None:
            self._note_loss(Loss(response_event.seq, "llm_response", None, "there is no complete answer"))
            return
        try:
            self._put(request_event, response_event, request, response)
        except _Unfit as unfit:
            self._unfit.add(request_event.data.callId)
            self._note_loss(Loss(request_event.seq, "llm_request", None, str(unfit)))
        except FormatError as error:
            self._note_loss(
                Loss(request_event.seq, "llm_request", None, f"it cannot be a row: {error.reason}")
            )

    def _put(
        self,
        request_event: LlmRequest,
        response_event: LlmResponse,
        request: ModelRequest,
        response: ModelResponse,
    ) -> None:
        stored = (
            None if request_event.data.request is ABSENT else self._reader.resolve(request_event.data.request)
        )
        is_reported = isinstance(stored, dict) and "url" not in stored
        after = str(stored.get("after")) if isinstance(stored, dict) and is_reported else ""
        if after in self._unfit:
            raise _Unfit("it continues a conversation that cannot be a row")
        before = self._reported.get(after)
        new = _chat_messages(request)
        answer = _assistant(response.parts)
        if is_reported:
            self._expect(request_event, response)
        said = new if before is None else _continue_messages(before, new)
        if answer is None:
            if is_reported:
                self._reported[request_event.data.callId] = said
            self._note_loss(Loss(response_event.seq, "llm_response", None, "the answer is empty"))
            return
        digests = message_digests(said)
        parent, length = self._parent_of(said, digests)
        if parent is not None:  # its answers have the reasoning, which histories do not repeat
            said = [*parent.messages, *said[length:]]
            self._continued.add(digests[length - 1])
        first = request_event.seq if parent is None else parent.first_event
        messages = [*said, answer]
        if is_reported:
            self._reported[request_event.data.callId] = messages
        tools = [_function(tool.name, tool.description, tool.schema) for tool in request.tools]
        self._by_digest[message_digests(messages)[-1]] = Chat(messages, tools, first, response_event.seq)

    def _parent_of(self, said: list[ChatMessage], digests: list[bytes]) -> tuple[Chat | None, int]:
        for length in range(len(said), 0, -1):
            if said[length - 1]["role"] == "assistant":
                found = self._by_digest.get(digests[length - 1])
                if found is not None:
                    return found, length
        return None, 0

    def _expect(self, request_event: LlmRequest, response: ModelResponse) -> None:
        lane = request_event.data.lane or "0"
        self._latest[lane] = request_event.data.callId
        self._expected[lane] = list(response.tool_calls)

    def _match_reported_call(self, event: capture.ToolCall) -> None:
        """Match a reported tool call with the next one that the model requested in this lane."""
        lane = event.data.lane or "0"
        expected = self._expected.get(lane, [])
        for place, call in enumerate(expected):
            if call.name == event.data.tool:
                del expected[place]
                self._waiting[event.data.callId] = self._latest[lane], call
                return

    def _add_reported_result(self, event: capture.ToolResult) -> None:
        data = event.data
        model_call, call = self._waiting.pop(data.callId)
        stored = data.result if data.ok else data.error
        content = None if stored is ABSENT else strip_tags(self._reader.resolve(stored))
        if not data.ok and isinstance(content, dict) and isinstance(content.get("message"), str):
            content = content["message"]
        try:
            message = _tool_message(content, call.id, call.name)
        except _Unfit as unfit:
            self._unfit.add(model_call)
            self._note_loss(Loss(event.seq, "tool_result", "result", str(unfit)))
            return
        if model_call in self._reported:
            self._reported[model_call] = [*self._reported[model_call], message]


def _continue_messages(before: list[ChatMessage], new: list[ChatMessage]) -> list[ChatMessage]:
    """The messages of a reported call: the earlier ones and *new*, which may repeat some of them."""
    known_ids = {str(message.get("tool_call_id")) for message in before if message["role"] == "tool"}
    said = [
        message
        for message in new
        if not (message["role"] == "tool" and str(message.get("tool_call_id")) in known_ids)
    ]
    answers = [_simplify(message, {}) for message in before if message["role"] == "assistant"]
    if answers and said and said[0]["role"] == "assistant" and _simplify(said[0], {}) == answers[-1]:
        said = said[1:]
    return [*before, *said]


def _chat_messages(request: ModelRequest) -> list[ChatMessage]:
    found: list[ChatMessage] = [{"role": "system", "content": request.system}] if request.system else []
    for message in request.messages:
        found += _chat_message(message)
    return found


def _chat_message(message: ModelMessage) -> Iterator[ChatMessage]:
    if message.role in ("assistant", "model"):
        answer = _assistant(message.parts)
        if answer is not None:
            yield answer
        return
    texts = []
    for part in message.parts:
        if isinstance(part, ToolResultPart):
            yield _tool_message(part.content, part.call_id, part.name)
        elif isinstance(part, Text):
            texts.append(part.text)
        else:
            raise _unfit_error(part)
    if texts:
        role = "system" if message.role in ("system", "developer") else "user"
        yield {"role": role, "content": "\n".join(texts)}


def _assistant(parts: tuple[Part, ...]) -> ChatMessage | None:
    """The message of an answer; ``None`` if it is empty."""
    texts, thoughts, calls = [], [], []
    for part in parts:
        if isinstance(part, Text | Refusal):
            texts.append(part.text)
        elif isinstance(part, Thinking):
            thoughts.append(part.text)
        elif isinstance(part, ToolCallPart):
            arguments = part.arguments_text if part.arguments_text is not None else part.arguments
            function: dict[str, object] = {
                "name": part.name,
                "arguments": {} if arguments is None else arguments,
            }
            calls.append({"id": part.id or "", "type": "function", "function": function})
        else:
            raise _unfit_error(part)
    message: ChatMessage = {"role": "assistant", "content": "".join(texts)}
    if thought := "\n".join(filter(None, thoughts)):
        message["reasoning_content"] = thought
    if calls:
        message["tool_calls"] = calls
    return message if message["content"] or calls or thoughts else None


def _unfit_error(part: Part) -> _Unfit:
    if isinstance(part, Media):
        return _Unfit("it holds an image, a sound or a document, whose bytes chat messages do not carry")
    kind = part.type if isinstance(part, Other) else type(part).__name__
    return _Unfit(f"it holds a part of the kind {kind!r}, for which chat messages have no place")


def _tool_message(content: object, call_id: str | None, name: str | None) -> ChatMessage:
    message: ChatMessage = {"role": "tool", "content": _result_text(content)}
    if call_id is not None:
        message["tool_call_id"] = call_id
    if name is not None:
        message["name"] = name
    return message


def _result_text(content: object) -> str:
    """The result of a tool as text; a list of texts is joined."""
    if content is None:
        return ""
    if isinstance(content, list):
        texts = [
            part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"
        ]
        if len(texts) == len(content) and all(isinstance(text, str) for text in texts):
            return "\n".join(map(str, texts))
        if any(isinstance(part, dict) and str(part.get("type")) in _MEDIA for part in content):
            raise _Unfit("a tool gave an image or a document, whose bytes chat messages do not carry")
    return as_text(content)


def _function(name: str, description: str | None, schema: JsonValue) -> dict[str, object]:
    parameters = schema if isinstance(schema, dict) else {"type": "object", "properties": {}}
    function = {"name": name, "description": description or "", "parameters": parameters}
    return {"type": "function", "function": function}

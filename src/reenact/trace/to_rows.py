"""A capture as rows of datasets: its conversations, its calls, and where each of them comes from.

A conversation is what a model call was asked and answered. One that a later call goes on with is part of that
one's, so that a chat of any length is one conversation, and two where its history was rewritten.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec

from reenact import canonical
from reenact.canonical import JsonValue
from reenact.errors import FormatError
from reenact.formats import capture
from reenact.formats.capture import LlmRequest, LlmResponse, RedactionProfile
from reenact.formats.dialects.turn import Loss
from reenact.formats.record import ABSENT
from reenact.providers import Media, ModelRequest, ModelResponse, Other, Refusal, Text, Thinking, ToolCallPart
from reenact.providers.meaning import ModelMessage, Part, ToolResultPart
from reenact.redaction import Redactor
from reenact.store.reader import CaptureReader
from reenact.store.remote import is_remote
from reenact.trace.model_calls import as_text, request_of, response_of, usage_of
from reenact.values.tags import plain

SEAL_SUFFIX: Final = ".seal.json"
Reasoning: TypeAlias = Literal["keep", "drop"]
ChatMessage: TypeAlias = dict[str, Any]
_GUESSED: Final = ("judgeable", "viewable")
"""Imports of this fidelity do not say which messages a model call was given."""
_MEDIA: Final = frozenset({
    "image", "document", "audio", "file", "resource", "image_url", "input_image", "input_audio", "input_file",
})  # fmt: skip


class RowOptions(msgspec.Struct, frozen=True):
    """What else than the run a row depends on; every row states it."""

    reasoning: Reasoning = "drop"
    redact: RedactionProfile = "none"
    """Hides more than the capture does already."""


class RowSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a row, or one of its continuations, comes from."""

    capture_id: str
    run: str
    """Where the run is, as seen from the folder of the dataset; or its address."""
    events_hash: str
    first_event: int
    last_event: int
    seal: str
    """Digest of the file with the run's seal; empty where it is not sealed."""
    redaction: str
    """The profile under which the run was recorded."""
    fidelity: str
    """``recorded``, or how faithful the import was."""


class RowPlace(NamedTuple):
    """Where a row and its run are."""

    folder: str
    run: str
    """A path, or an address."""


class Chat(NamedTuple):
    """Messages in the form of chat templates, the last of them an answer of the model."""

    messages: list[ChatMessage]
    tools: list[dict[str, Any]]
    first_event: int
    last_event: int


def find_seal(run: Path) -> str:
    """The digest of the seal beside *run*; empty where there is none."""
    home = run.absolute()
    seal = home.parent / f"{home.name}{SEAL_SUFFIX}"
    return f"sha256:{sha256(seal.read_bytes()).hexdigest()}" if seal.is_file() else ""


def row_source(reader: CaptureReader, first: int, last: int, place: RowPlace) -> RowSource:
    """What a row says of the run it was made of."""
    manifest = reader.manifest
    try:
        run = Path(os.path.relpath(reader.path, Path(place.folder).absolute())).as_posix()
    except ValueError:  # on another drive
        run = reader.path.as_posix()
    if is_remote(place.run):
        run = place.run
    return RowSource(
        capture_id=manifest.captureId,
        run=run,
        events_hash=manifest.integrity.eventsHash,
        first_event=first,
        last_event=last,
        seal=find_seal(reader.path),
        redaction=manifest.redaction.profile,
        fidelity=fidelity_of(manifest),
    )


def fidelity_of(manifest: capture.CaptureManifest) -> str:
    """How faithful a run is to what happened."""
    return "recorded" if manifest.imported is ABSENT else manifest.imported.fidelity


def redactor_of(reader: CaptureReader, profile: RedactionProfile) -> Redactor:
    """Hides what *profile* asks for, the same on every machine: with the capture's own salt."""
    salt, capture_id = reader.manifest.redaction.salt, reader.manifest.captureId
    known = sha256(capture_id.encode()).digest() if salt is ABSENT else bytes.fromhex(salt)
    return Redactor(profile, secrets=(), salt=known)


def redact_payload(reader: CaptureReader, options: RowOptions, value: object) -> Any:
    """*value*, of a row, without what *options* hide."""
    if options.redact == "none":
        return value
    redact = redactor_of(reader, options.redact).redact_ordered_json
    return msgspec.json.decode(redact(msgspec.json.encode(value)))


class RunVerdict(msgspec.Struct, frozen=True):
    """What is known of how good a run was; numbers are 0 where nothing was rated or verified."""

    status: str
    tests: str = ""
    """``passed`` or ``failed``; empty where no test was asked."""
    verification_delta: int = 0
    verifications: int = 0
    utility: float = 0.0
    """The mean over the steps that were rated."""
    rated_steps: int = 0

    @property
    def rank(self) -> tuple[bool, bool, int, float]:
        """The better run is higher: by tests, then status, then what it verified, then its steps."""
        return self.tests == "passed", self.status == "ok", self.verification_delta, self.utility


def run_verdict(reader: CaptureReader) -> RunVerdict:
    """What the run says of itself."""
    deltas: list[int] = []
    utilities: list[float] = []
    for line in reader.lines():
        if b'"type":"step_utility"' not in line and b'"type":"verification"' not in line:
            continue
        event = capture.event_codec.from_bytes(line)
        if not isinstance(event, capture.StateMutation) or not isinstance(event.data.details, dict):
            continue
        delta, utility = (event.data.details.get(name) for name in ("verification_delta", "step_utility"))
        if event.data.type == "verification" and isinstance(delta, int):
            deltas.append(delta)
        elif event.data.type == "step_utility" and isinstance(utility, int | float):
            utilities.append(float(utility))
    return RunVerdict(
        status=reader.manifest.status,
        verification_delta=sum(deltas),
        verifications=len(deltas),
        utility=round(sum(utilities) / len(utilities), 6) if utilities else 0.0,
        rated_steps=len(utilities),
    )


# Conversations


def conversations(reader: CaptureReader, options: RowOptions, lose: Callable[[Loss], None]) -> list[Chat]:
    """The conversations of a run that no later call goes on with, in the order of their last answers."""
    imported = reader.manifest.imported
    if imported is not ABSENT and imported.fidelity in _GUESSED:
        reason = f"the import is {imported.fidelity}: what each call was given is not known"
        lose(Loss(None, "llm_request", None, reason))
        return []
    reading = _Reading(reader, lose)
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
    """What a model was told before an answer, as a transcript tells it."""

    provider: str
    model: str
    messages: list[ChatMessage]
    answer: ChatMessage


def reported_questions(reader: CaptureReader) -> dict[str, ReportedQuestion]:
    """By call id: the model calls of a run that was imported from a transcript.

    Those whose conversation messages of chat templates cannot hold are left out; there are none where the
    import does not say what each call was given.
    """
    imported = reader.manifest.imported
    if imported is ABSENT or imported.fidelity != "tools":
        return {}
    reading = _Reading(reader, lambda _: None)
    found: dict[str, ReportedQuestion] = {}
    for event in reader.events():
        reading.event(event)
        if isinstance(event, LlmResponse):
            messages = reading.reported(event.data.callId)
            if messages and messages[-1]["role"] == "assistant":
                *said, answer = messages
                named = str(event.data.provider), str(event.data.model)
                found[event.data.callId] = ReportedQuestion(*named, said, answer)
    return {call_id: question for call_id, question in found.items() if question.messages}


def _without_reasoning(message: ChatMessage) -> ChatMessage:
    return {key: value for key, value in message.items() if key != "reasoning_content"}


def message_digests(messages: list[ChatMessage]) -> list[bytes]:
    """One for each beginning of a conversation: equal where the model was told and said the same up to there.

    Reasoning does not count, and ids of tool calls count by their order alone, because chance draws them.
    """
    ids: dict[str, str] = {}
    chain, found = b"", []
    for message in messages:
        chain = sha256(chain + canonical.encode(_comparable(message, ids))).digest()
        found.append(chain)
    return found


def _comparable(message: ChatMessage, ids: dict[str, str]) -> ChatMessage:
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
    """A conversation holds what messages of chat templates cannot."""


class _Reading:
    """Puts conversations together while the events pass by."""

    def __init__(self, reader: CaptureReader, lose: Callable[[Loss], None]) -> None:
        self._reader = reader
        self._lose = lose
        self._asked: dict[str, LlmRequest] = {}
        self._by_digest: dict[bytes, Chat] = {}
        """By the digest of all that was said."""
        self._continued: set[bytes] = set()
        """Those that a later call goes on with."""
        self._reported: dict[str, list[ChatMessage]] = {}
        """By call id: what was said in a conversation that a source tells of, up to its answer."""
        self._first: dict[str, int] = {}
        """By call id: where its conversation began."""
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

    def reported(self, call_id: str) -> list[ChatMessage]:
        """What was said up to the answer of a reported call, which is the last message."""
        return self._reported.get(call_id, [])

    def event(self, event: capture.CaptureEvent) -> None:
        if isinstance(event, LlmRequest):
            self._asked[event.data.callId] = event
        elif isinstance(event, LlmResponse):
            asked = self._asked.pop(event.data.callId, None)
            if asked is not None:
                self._exchange(asked, event)
        elif isinstance(event, capture.ToolCall) and event.data.derived is True:
            self._match_reported_call(event)
        elif isinstance(event, capture.ToolResult) and event.data.callId in self._waiting:
            self._add_reported_result(event)

    def _exchange(self, asked: LlmRequest, answered: LlmResponse) -> None:
        request, response = request_of(self._reader, asked), response_of(self._reader, answered)
        if request is None:
            self._lose(Loss(asked.seq, "llm_request", "request", "it is of no known wire format"))
            return
        if response is None or not response.complete or response.error is not None:
            self._lose(Loss(answered.seq, "llm_response", None, "there is no complete answer"))
            return
        try:
            self._put(asked, answered, request, response)
        except _Unfit as unfit:
            self._unfit.add(asked.data.callId)
            self._lose(Loss(asked.seq, "llm_request", None, str(unfit)))
        except FormatError as error:
            self._lose(Loss(asked.seq, "llm_request", None, f"it cannot be a row: {error.reason}"))

    def _put(
        self, asked: LlmRequest, answered: LlmResponse, request: ModelRequest, response: ModelResponse
    ) -> None:
        stored = None if asked.data.request is ABSENT else self._reader.resolve(asked.data.request)
        is_reported = isinstance(stored, dict) and "url" not in stored
        after = str(stored.get("after")) if isinstance(stored, dict) and is_reported else ""
        if after in self._unfit:
            raise _Unfit("it continues a conversation that cannot be a row")
        before = self._reported.get(after)
        new = _chat_messages(request)
        answer = _assistant(response.parts)
        if is_reported:
            self._expect(asked, response)
        said = new if before is None else _continue_messages(before, new)
        if answer is None:
            if is_reported:
                self._reported[asked.data.callId] = said
            self._lose(Loss(answered.seq, "llm_response", None, "the answer is empty"))
            return
        digests = message_digests(said)
        parent, length = self._parent_of(said, digests)
        if parent is not None:  # with the reasoning that answers had and histories do not repeat
            said = [*parent.messages, *said[length:]]
            self._continued.add(digests[length - 1])
        first = asked.seq if parent is None else parent.first_event
        messages = [*said, answer]
        if is_reported:
            self._reported[asked.data.callId] = messages
        tools = [_function(tool.name, tool.description, tool.schema) for tool in request.tools]
        self._by_digest[message_digests(messages)[-1]] = Chat(messages, tools, first, answered.seq)

    def _parent_of(self, said: list[ChatMessage], digests: list[bytes]) -> tuple[Chat | None, int]:
        for length in range(len(said), 0, -1):
            if said[length - 1]["role"] == "assistant":
                found = self._by_digest.get(digests[length - 1])
                if found is not None:
                    return found, length
        return None, 0

    def _expect(self, asked: LlmRequest, response: ModelResponse) -> None:
        lane = asked.data.lane or "0"
        self._latest[lane] = asked.data.callId
        self._expected[lane] = list(response.tool_calls)

    def _match_reported_call(self, event: capture.ToolCall) -> None:
        """What a source tells of tools stands beside the model calls, in the order in which they asked."""
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
        content = None if stored is ABSENT else plain(self._reader.resolve(stored))
        if not data.ok and isinstance(content, dict) and isinstance(content.get("message"), str):
            content = content["message"]
        try:
            message = _tool_message(content, call.id, call.name)
        except _Unfit as unfit:
            self._unfit.add(model_call)
            self._lose(Loss(event.seq, "tool_result", "result", str(unfit)))
            return
        if model_call in self._reported:
            self._reported[model_call] = [*self._reported[model_call], message]


def _continue_messages(before: list[ChatMessage], new: list[ChatMessage]) -> list[ChatMessage]:
    """What a reported call was given: all before it, and what is new; a part may be reported again."""
    known_ids = {str(message.get("tool_call_id")) for message in before if message["role"] == "tool"}
    said = [
        message
        for message in new
        if not (message["role"] == "tool" and str(message.get("tool_call_id")) in known_ids)
    ]
    answers = [_comparable(message, {}) for message in before if message["role"] == "assistant"]
    if answers and said and said[0]["role"] == "assistant" and _comparable(said[0], {}) == answers[-1]:
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
    """An answer; ``None`` where nothing was said."""
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
    """A tool's result as a model reads it: its text; a list that holds nothing else is its texts."""
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


# Calls


class CallRow(msgspec.Struct, frozen=True):
    """One call of a run; what it was given and what came of it are JSON texts."""

    kind: str
    """``model``, ``tool``, ``state``, or the source of a value: ``clock``, ``network``, …"""
    name: str
    lane: str
    at_ms: float
    """Since the epoch."""
    latency_ms: float | None
    ok: bool | None
    """``None`` where it was never answered."""
    input: str
    output: str | None
    error: str | None
    input_tokens: int | None
    output_tokens: int | None
    first_event: int
    last_event: int


def call_rows(reader: CaptureReader, options: RowOptions) -> Iterator[CallRow]:
    """The calls of a run in the order in which they ended; those without an end come last."""
    waiting: dict[str, capture.CaptureEvent] = {}
    for event in reader.events():
        if isinstance(event, capture.RunStart | capture.RunEnd):
            continue
        call_id = event.data.callId
        is_outcome = isinstance(call_id, str) and call_id in waiting
        if is_outcome:
            yield _call_row(reader, options, waiting.pop(str(call_id)), event)
        elif isinstance(event, LlmRequest | capture.ToolCall) or (
            isinstance(event, capture.Nondeterministic)
            and event.data.request is not ABSENT
            and event.data.value is ABSENT
            and event.data.error is ABSENT
        ):
            waiting[str(call_id)] = event
        elif not isinstance(event, LlmResponse | capture.ToolResult):
            yield _call_row(reader, options, event, event)
    for asked in waiting.values():
        yield _call_row(reader, options, asked, None)


def _call_row(
    reader: CaptureReader, options: RowOptions, asked: capture.CaptureEvent, came: capture.CaptureEvent | None
) -> CallRow:
    given, result, error = _stored_payloads(asked, came)
    given, result, error = redact_payload(
        reader, options, [plain(reader.resolve(each)) for each in (given, result, error)]
    )
    usage = usage_of(came.data.usage) if isinstance(came, LlmResponse) else None
    latency = getattr(came.data, "latencyMs", ABSENT) if came is not None else ABSENT
    if latency is ABSENT:
        latency = None if came is None else came.ts - asked.ts
    lane = getattr(asked.data, "lane", ABSENT)
    return CallRow(
        kind=_kind(asked),
        name=_name(asked),
        lane="0" if lane is ABSENT else str(lane),
        at_ms=float(asked.ts),
        latency_ms=None if latency is None else float(latency),
        ok=None if came is None else error is None,
        input=msgspec.json.encode(given).decode(),
        output=None if came is None or error is not None else msgspec.json.encode(result).decode(),
        error=None if error is None else msgspec.json.encode(error).decode(),
        input_tokens=(usage or {}).get("input_tokens"),
        output_tokens=(usage or {}).get("output_tokens"),
        first_event=asked.seq,
        last_event=asked.seq if came is None else came.seq,
    )


def _kind(event: capture.CaptureEvent) -> str:
    if isinstance(event, LlmRequest):
        return "model"
    if isinstance(event, capture.ToolCall):
        return "tool"
    if isinstance(event, capture.Nondeterministic):
        return event.data.source
    return "state"


def _name(event: capture.CaptureEvent) -> str:
    if isinstance(event, LlmRequest):
        return event.data.model
    if isinstance(event, capture.ToolCall):
        return event.data.tool
    if isinstance(event, capture.StateMutation):
        return event.data.type
    key = getattr(event.data, "key", None)
    return key if isinstance(key, str) else _kind(event)


def _stored_payloads(
    asked: capture.CaptureEvent, came: capture.CaptureEvent | None
) -> tuple[object, object, object]:
    """What a call was given, its result and its failure, as they are stored; ``None`` for what is not."""
    data: Any = asked.data
    if isinstance(asked, capture.StateMutation):
        given: object = {
            name: getattr(data, name)
            for name in ("group_id", "source", "path", "content", "details")
            if getattr(data, name) is not ABSENT
        }
    else:
        given = data.args if isinstance(asked, capture.ToolCall) else data.request
    outcome: Any = None if came is None else came.data
    result: object = ABSENT
    if isinstance(came, LlmResponse):
        result = outcome.pieces if outcome.pieces is not ABSENT else outcome.response
    elif isinstance(came, capture.ToolResult):
        result = outcome.result
    elif outcome is not None:
        result = outcome.value
    failure = getattr(outcome, "error", ABSENT)
    return tuple(None if each is ABSENT else each for each in (given, result, failure))  # type: ignore[return-value]

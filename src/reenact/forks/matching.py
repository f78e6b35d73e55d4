"""The calls that an imported transcript tells, found again by their content.

A transcript has no request as it was sent. It has what was said: texts of users, answers, tool calls and
their results. A request is found by exactly that. All that the transcript tells must be in the request, in
its order and place. What the request has beside it (instructions, tools, settings) is counted as not
compared.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from reenact.canonical import JsonValue, encode_clean
from reenact.formats.pattern import Pattern
from reenact.formats.record import ABSENT
from reenact.formats.volatile import VolatileRule
from reenact.providers import (
    Media,
    ModelMessage,
    ModelRequest,
    Refusal,
    Text,
    ToolCallPart,
    ToolResultPart,
    read_neutral_request,
    read_neutral_response,
)
from reenact.store.reader import CaptureReader
from reenact.values.codec import from_json
from reenact.values.tags import strip_tags
from reenact.volatile.masking import DEFAULTS

EventData: TypeAlias = dict[str, Any]
_decode: Final = msgspec.json.Decoder().decode
_SYSTEM: Final = ("system", "developer")
_SHOWN: Final = 60
_TAGGED: Final = re.compile(r"<([\w-]+)[^>]*>.*</\1>", re.DOTALL)
"""A text that a program, not the user, puts beside what the user says."""
_MOST_UNWRAPPED: Final = 3
"""How often a result may be written as JSON inside JSON."""


class TextMasks:
    """Removes what differs from run to run from texts, by the masks of the *rules* for model calls."""

    def __init__(self, rules: Iterable[VolatileRule] = ()) -> None:
        kinds = (ABSENT, "llm")
        self._patterns = [
            Pattern(rule.mask) for rule in rules if rule.mask is not ABSENT and rule.call in kinds
        ]

    def mask_out(self, text: str) -> str:
        """Remove everything that the masks match from *text*."""
        for pattern in self._patterns:
            text = pattern.replace(text, "")
        return text.strip()


class TranscriptCall:
    """A model call or tool call of a transcript."""

    __slots__ = (
        "asks_for",
        "call_id",
        "dialogue",
        "is_substitute",
        "is_used",
        "lane",
        "name",
        "outcome_seq",
        "seq",
        "type",
        "value",
    )

    def __init__(self, seq: int, event_type: str, data: EventData) -> None:
        self.seq = seq
        self.type = event_type
        self.call_id: str = data["callId"]
        self.lane: str = data.get("lane") or "0"
        self.name: str = data.get("tool") or ""
        """The tool's name; empty for a model call."""
        self.outcome_seq = 0
        """0 if the transcript does not have the outcome."""
        self.is_used = False
        """Whether a call of the fork got its outcome."""
        self.is_substitute = False
        """Whether a call that the transcript lacks got its outcome; the call itself may still come."""
        self.asks_for: frozenset[str] = frozenset()
        """For a model call: the tools that its answer calls."""
        self.dialogue: Dialogue | None = None
        """For a model call: the conversation before the answer."""
        self.value: dict[str, JsonValue] = {}
        """For a tool call: the arguments."""

    def describe(self) -> str:
        """The call as a person would name it."""
        return f"tool {self.name}" if self.type == "tool_call" else "a model call"


class _UserText(NamedTuple):
    """A text of the user, or an instruction, and its place in the conversation."""

    turn: int
    """The number of answers of the model before it."""
    message: int
    """The number of its message."""
    text: str
    is_system: bool


class _Turn(msgspec.Struct):
    """An answer of the model, with the results of the tools that it calls."""

    text: str = ""
    calls: list[ToolCallPart] = []
    results: dict[int, str] = {}
    """By position of the call; results without a call come last."""

    def copy(self) -> _Turn:
        return _Turn(self.text, [*self.calls], {**self.results})

    def place_of(self, result: ToolResultPart) -> int:
        """The position of the call with this *result*: by id, else the first of its name without one."""
        for place, call in enumerate(self.calls):
            if result.call_id is not None and call.id is not None:
                if call.id == result.call_id:
                    return place
            elif place not in self.results and result.name in (None, call.name):
                return place
        return len(self.calls) + len(self.results)

    def comparable_text(self) -> bytes:
        """The compared content as bytes, without white space around answers and without ids of calls."""
        calls = [[call.name, _arguments(call)] for call in self.calls]
        results = [self.results[place] for place in sorted(self.results)]
        return encode_clean(["".join(self.text.split()), calls, results])


class Dialogue:
    """A conversation, read message by message: its answers as one digest, the users' texts as they are."""

    def __init__(self, masks: TextMasks, before: Dialogue | None = None) -> None:
        """*before* is the conversation that this one continues."""
        self.masks = masks
        self.chain: bytes = b"" if before is None else before.chain
        """The digest of the answers before the latest one."""
        self.turns: int = 0 if before is None else before.turns
        """The number of answers of the model."""
        self.turn: _Turn | None = None if before is None or before.turn is None else before.turn.copy()
        self.messages: int = 0 if before is None else before.messages
        self.is_answering: bool = before is not None and before.is_answering
        """Whether it ends with an answer."""
        self.before = before
        self.own: list[_UserText] = []
        """The texts that the conversation before does not have."""
        self.anchored: set[int] = set()
        """The messages that have a result of a tool."""
        self.media = 0

    def add(self, message: ModelMessage) -> None:
        """Read the next message."""
        if message.role in ("assistant", "model"):
            self.answer(message.parts)
            return
        self.messages += 1
        self.is_answering = False
        for part in message.parts:
            if isinstance(part, ToolResultPart):
                self.result(part)
                self.anchored.add(self.messages)
            elif isinstance(part, Media):
                self.media += 1
            elif isinstance(part, Text) and (text := self.masks.mask_out(part.text)):
                self.own.append(_UserText(self.turns, self.messages, text, message.role in _SYSTEM))

    def read_instructions(self, system: str | None) -> None:
        """Read the instructions that stand before the messages."""
        if system and (text := self.masks.mask_out(system)):
            self.own.append(_UserText(self.turns, 0, text, is_system=True))

    def answer(self, parts: Iterable[object]) -> None:
        """Read an answer of the model; several in a row are one."""
        if self.turn is None or not self.is_answering:
            self._end_turn()
            self.turns += 1
            self.turn = _Turn()
        self.is_answering = True
        for part in parts:
            if isinstance(part, Text | Refusal):
                self.turn.text += part.text
            elif isinstance(part, ToolCallPart):
                self.turn.calls.append(part)

    def result(self, result: ToolResultPart) -> None:
        """Read the result of a tool; the same one again changes nothing."""
        self.is_answering = False
        if self.turn is None:
            self.turn = _Turn()
        self.turn.results[self.turn.place_of(result)] = comparable_result(result.content, self.masks)

    def _end_turn(self) -> None:
        if self.turn is not None:
            self.chain = self.digest
            self.turn = None

    @property
    def digest(self) -> bytes:
        """The digest of all answers, tool calls and results."""
        if self.turn is None:
            return self.chain
        return sha256(self.chain + self.turn.comparable_text()).digest()

    @property
    def texts(self) -> list[_UserText]:
        """The users' texts and instructions, in order."""
        found: list[list[_UserText]] = []
        here: Dialogue | None = self
        while here is not None:
            found.append(here.own)
            here = here.before
        return [text for own in reversed(found) for text in own]


def read_dialogue(request: ModelRequest, masks: TextMasks, before: Dialogue | None = None) -> Dialogue:
    """The conversation in *request*, which continues *before*."""
    dialogue = Dialogue(masks, before)
    dialogue.read_instructions(request.system)
    for message in request.messages:
        dialogue.add(message)
    return dialogue


def comparable_result(content: object, masks: TextMasks) -> str:
    """The result of a tool as text; JSON in it, also JSON written as JSON, is the same in any spelling."""
    value = _joined_texts(strip_tags(content))
    for _ in range(_MOST_UNWRAPPED):
        if not isinstance(value, str):
            break
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            break
    return masks.mask_out(value if isinstance(value, str) else encode_clean(value).decode())


def _joined_texts(content: object) -> object:
    """Join a list of texts; parts without a text, such as images, are left out beside texts."""
    if not isinstance(content, list):
        return "" if content is None else content
    texts = [part.get("text") for part in content if isinstance(part, dict)]
    known = [text for text in texts if isinstance(text, str)]
    return "\n".join(known) if known and len(texts) == len(content) else content


def _arguments(call: ToolCallPart) -> JsonValue:
    """The arguments of a call as a value, also if they are written as JSON text."""
    given: JsonValue = call.arguments if call.arguments_text is None else call.arguments_text
    if isinstance(given, str):
        try:
            value: JsonValue = json.loads(given)
        except (ValueError, RecursionError):
            return given
        return value
    return {} if given is None else given


class TranscriptMatch(NamedTuple):
    """The call of the transcript that a call equals, and what of it was not compared."""

    call: TranscriptCall
    beside: Counter[str]


class TranscriptCalls:
    """The calls of a transcript; each is found once.

    *claim* says whether the call at an event may still be taken: another process may have taken it.
    """

    def __init__(
        self,
        reader: CaptureReader,
        rules: Iterable[VolatileRule] = (),
        claim: Callable[[int], bool] = lambda _: True,
    ) -> None:
        self.reader = reader
        self._masks = TextMasks((*DEFAULTS, *rules))
        self._claim = claim
        self.calls: list[TranscriptCall] = []
        """In recorded order."""
        self.by_seq: dict[int, TranscriptCall] = {}
        """By the number of an event: the call of which it is the call event or the outcome."""
        self._by_digest: dict[bytes, list[TranscriptCall]] = {}
        self._by_tool: dict[str, list[TranscriptCall]] = {}
        self._read()

    def _read(self) -> None:
        transcript = _TranscriptReader(self.reader, self._masks)
        for number, line in enumerate(self.reader.lines(), 1):
            event = _decode(line)
            call = transcript.read_event(number, event["type"], event["data"])
            if call is not None:
                self.by_seq[number] = call
                if call.seq == number:
                    self.calls.append(call)
        for call in self.calls:
            if call.dialogue is not None:
                self._by_digest.setdefault(call.dialogue.digest, []).append(call)
            else:
                self._by_tool.setdefault(call.name, []).append(call)

    def find_model_call(self, request: ModelRequest) -> TranscriptMatch | None:
        """Use the first unused call whose conversation *request* has."""
        dialogue = read_dialogue(request, self._masks)
        for call in self._by_digest.get(dialogue.digest, ()):
            if (
                call.is_used
                or not call.outcome_seq
                or not call.asks_for <= {tool.name for tool in request.tools}
            ):
                continue
            beside = _compare_texts(call.dialogue, dialogue)
            if beside is None or not self._use(call):
                continue
            if request.tools:
                beside["tools offered to the model"] += 1
            if request.params:
                beside["settings of the request"] += 1
            asked_model, recorded_model = request.model, self.data(call.seq).get("model")
            if asked_model and recorded_model not in (None, "unknown", asked_model):
                beside[f"model {asked_model} instead of {recorded_model}"] += 1
            return TranscriptMatch(call, beside)
        return None

    def find_tool_call(self, name: str, arguments: object) -> TranscriptMatch | None:
        """Use the first unused call of this tool with these arguments.

        Arguments that the transcript does not name may be there, because functions fill in defaults.
        """
        given = arguments if isinstance(arguments, dict) else {}
        left = [call for call in self._tool_calls(name) if call.outcome_seq and not call.is_used]
        for is_exact in (True, False):
            for call in left:
                more = given.keys() - call.value.keys()
                if _has_arguments(call, given) and is_exact is not bool(more) and self._use(call):
                    beside = Counter(f"argument {key} of {call.name}" for key in sorted(more))
                    return TranscriptMatch(call, beside)
        return None

    def _tool_calls(self, name: str) -> Iterator[TranscriptCall]:
        """The calls of the tool *name*; a transcript may name a function without its module or class."""
        for one in dict.fromkeys((name, name.rpartition(".")[2])):
            yield from self._by_tool.get(one, ())

    def explain_tool_miss(self, name: str, arguments: object) -> str:
        """Why no call of the transcript answers this one."""
        given = arguments if isinstance(arguments, dict) else {}
        alike = next((call for call in self._tool_calls(name) if _has_arguments(call, given)), None)
        if alike is None:
            return f"tool {name} was called in a way that the transcript does not tell"
        why = "its result is given already" if alike.outcome_seq else "not its result"
        return f"event {alike.seq} tells such a call of the tool {name}, but {why}"

    def nearest_model_call(self, request: ModelRequest) -> TranscriptCall | None:
        """The first unused call in a conversation with as many answers, or else the first unused one."""
        turns = read_dialogue(request, self._masks).turns
        left = [call for call in self.calls if call.dialogue is not None and _is_open(call)]
        alike = [call for call in left if call.dialogue is not None and call.dialogue.turns == turns]
        return _substitute_first(alike or left)

    def nearest_tool_call(self, name: str) -> TranscriptCall | None:
        """The first unused call of the tool *name*."""
        return _substitute_first(call for call in self._tool_calls(name) if _is_open(call))

    def explain_model_miss(self, request: ModelRequest) -> str:
        """Where *request* differs from the calls of the transcript that come nearest."""
        dialogue = read_dialogue(request, self._masks)
        same = self._by_digest.get(dialogue.digest, ())
        if same and all(call.is_used for call in same):
            return f"event {same[0].seq} tells such a call, but its answer is given already"
        for call in same:
            if not call.is_used and call.dialogue is not None:
                missing = sorted(call.asks_for - {tool.name for tool in request.tools})
                why = f"its answer calls {missing[0]}, which is not offered here" if missing else ""
                return f"event {call.seq}: {why or _first_difference(call.dialogue, dialogue)}"
        recorded = [
            call for call in self.calls if call.dialogue is not None and call.dialogue.turns == dialogue.turns
        ]
        if not recorded:
            most = max((call.dialogue.turns for call in self.calls if call.dialogue is not None), default=0)
            return f"it goes on after {dialogue.turns} answers, the source tells at most {most}"
        return f"event {recorded[0].seq}: an answer, a tool call or a result before it is another one"

    def _use(self, call: TranscriptCall) -> bool:
        call.is_used = True  # even if another process has used it: then nobody else uses it
        return self._claim(call.seq)

    def data(self, seq: int) -> EventData:
        """The data of an event, with its payloads."""
        data: EventData = _decode(self.reader.line(seq))["data"]
        return {name: self.reader.resolve(value) for name, value in data.items()}


def _has_arguments(call: TranscriptCall, given: Mapping[str, JsonValue]) -> bool:
    """Whether all arguments that the transcript names are *given*."""
    return all(_equals(given.get(key, _MISSING), recorded) for key, recorded in call.value.items())


def _is_open(call: TranscriptCall) -> bool:
    return bool(call.outcome_seq) and not call.is_used and not call.is_substitute


def _substitute_first(calls: Iterable[TranscriptCall]) -> TranscriptCall | None:
    found = next(iter(calls), None)
    if found is not None:
        found.is_substitute = True
    return found


class _Missing:
    pass


_MISSING: Final = _Missing()


def _equals(given: object, recorded: object) -> bool:
    """Whether two arguments are the same, also if one is written as JSON text."""
    if isinstance(given, _Missing):
        return recorded is None  # a model may name what it leaves out
    if given == recorded and isinstance(given, bool) == isinstance(recorded, bool):
        return True
    try:
        return encode_clean(given) == encode_clean(recorded)
    except Exception:  # arguments of any type
        return False


class _TranscriptReader:
    """Reads the events of a transcript: which model calls continue which, and whose result is whose."""

    def __init__(self, reader: CaptureReader, masks: TextMasks) -> None:
        self._reader = reader
        self._masks = masks
        self._open: dict[str, TranscriptCall] = {}
        self._after: dict[str, Dialogue] = {}
        """By id of a model call: the conversation with its answer and the results so far."""
        self._latest: dict[str, str] = {}
        """By lane: the latest model call."""
        self._expected: dict[str, list[ToolCallPart]] = {}
        """By lane: the calls that its answer asks for and that were not made yet."""
        self._asked_by: dict[str, tuple[str, ToolCallPart]] = {}
        """By id of a tool call: the model call that asked for it, and how."""

    def read_event(self, number: int, kind: str, data: EventData) -> TranscriptCall | None:
        """The call to which an event belongs; ``None`` for all other events."""
        if data.get("derived") is not True or kind not in _READERS:
            return None
        return _READERS[kind](self, number, data)

    def read_request(self, number: int, data: EventData) -> TranscriptCall | None:
        stored = self._reader.resolve(data.get("request"))
        request = read_neutral_request(stored)
        if request is None or not isinstance(stored, dict):
            return None
        call = TranscriptCall(number, "llm_request", data)
        call.dialogue = read_dialogue(request, self._masks, self._after.get(str(stored.get("after"))))
        self._open[call.call_id] = call
        return call

    def read_answer(self, number: int, data: EventData) -> TranscriptCall | None:
        call = self._open.pop(data["callId"], None)
        if call is None or call.dialogue is None:
            return None
        response = read_neutral_response(data["provider"], self._reader.resolve(data.get("response")))
        dialogue = self._after[call.call_id] = Dialogue(self._masks, call.dialogue)
        if response is not None:
            call.outcome_seq = 0 if "modelError" in data and not response.parts else number
            dialogue.answer(response.parts)
            call.asks_for = frozenset(part.name for part in response.tool_calls)
            self._latest[call.lane] = call.call_id
            self._expected[call.lane] = list(response.tool_calls)
        return call

    def read_tool_call(self, number: int, data: EventData) -> TranscriptCall:
        call = TranscriptCall(number, "tool_call", data)
        args = from_json(self._reader.resolve(data.get("args")))
        call.value = args if isinstance(args, dict) else {}
        self._open[call.call_id] = call
        expected = self._expected.get(call.lane, [])
        alike = [part for part in expected if part.name == call.name]
        part = next((part for part in alike if _arguments(part) == args), alike[0] if alike else None)
        if part is not None:
            expected.remove(part)
            self._asked_by[call.call_id] = self._latest[call.lane], part
        return call

    def read_result(self, number: int, data: EventData) -> TranscriptCall | None:
        call = self._open.pop(data["callId"], None)
        if call is None:
            return None
        call.outcome_seq = number
        asked_by, part = self._asked_by.pop(call.call_id, ("", None))
        if part is not None and asked_by in self._after:
            content = outcome_text(data, self._reader.resolve)
            self._after[asked_by].result(ToolResultPart(call_id=part.id, name=part.name, content=content))
        return call


_READERS: Final[dict[str, Callable[[_TranscriptReader, int, EventData], TranscriptCall | None]]] = {
    "llm_request": _TranscriptReader.read_request,
    "llm_response": _TranscriptReader.read_answer,
    "tool_call": _TranscriptReader.read_tool_call,
    "tool_result": _TranscriptReader.read_result,
}


def outcome_text(data: EventData, resolve: Callable[[object], Any]) -> Any:
    """What the model was told of a tool's outcome: its result, or the message of its failure."""
    if data.get("ok") is not False:
        return resolve(data.get("result"))
    error = resolve(data.get("error"))
    return error.get("message") if isinstance(error, dict) else error


def _compare_texts(recorded: Dialogue | None, here: Dialogue) -> Counter[str] | None:
    """What *here* has beside all texts of *recorded*; ``None`` if one of these is missing."""
    if recorded is None:
        return None
    beside: Counter[str] = Counter()
    expected, found = recorded.texts, here.texts
    system = [text.text for text in expected if text.is_system]
    instructions = [text.text for text in found if text.is_system]
    if not _holds(instructions, system):
        return None
    if len(_words(instructions)) > len(_words(system)):
        beside["instructions of the model"] += 1
    left = [text for text in found if not text.is_system]
    anchored = {*here.anchored}
    place = 0
    extra: list[_UserText] = []
    for one in expected:
        if one.is_system:
            continue
        start, end = _find_text(one, left, place)
        if end == 0:
            return None
        extra += left[place:start]
        anchored |= {text.message for text in left[start:end]}
        place = end
    extra += left[place:]
    if any(text.message not in anchored or not _TAGGED.fullmatch(text.text) for text in extra):
        return None
    if extra:
        beside["texts in tags beside what was said"] += len(extra)
    if here.media:
        beside["images and documents"] += here.media
    return beside


def _find_text(recorded: _UserText, texts: Sequence[_UserText], begin: int) -> tuple[int, int]:
    """From where to where *texts* have the text *recorded*, which may be several joined; else (0, 0)."""
    for start in range(begin, len(texts)):
        if texts[start].turn != recorded.turn or not recorded.text.startswith(texts[start].text):
            continue
        joined = ""
        for end in range(start, len(texts)):
            if texts[end].turn != recorded.turn:
                break
            joined = f"{joined}\n{texts[end].text}" if joined else texts[end].text
            if _words([joined]) == _words([recorded.text]):
                return start, end + 1
            if len(joined) > len(recorded.text):
                break
    return 0, 0


def _holds(texts: Sequence[str], parts: Sequence[str]) -> bool:
    """Whether *texts* have all of *parts*, each as a whole."""
    whole = f" {' '.join(_words(texts))} "
    return all(f" {' '.join(_words([part]))} " in whole for part in parts)


def _words(texts: Sequence[str]) -> list[str]:
    return [word for text in texts for word in text.split()]


def _first_difference(recorded: Dialogue, here: Dialogue) -> str:
    expected = [text for text in recorded.texts if not text.is_system]
    found = [text for text in here.texts if not text.is_system]
    system = [text.text for text in recorded.texts if text.is_system]
    if not _holds([text.text for text in here.texts if text.is_system], system):
        return "the instructions of the model are others"
    missing = next((text for text in expected if _find_text(text, found, 0)[1] == 0), None)
    if missing is not None:
        near = next((text.text for text in found if text.turn == missing.turn), "nothing")
        return f"the user said {_shorten(missing.text)} there, and {_shorten(near)} here"
    more = next((text.text for text in found if all(text.text != one.text for one in expected)), "")
    return f"here the user also said {_shorten(more)}" if more else "texts of the user come in another order"


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return json.dumps(line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…", ensure_ascii=False)

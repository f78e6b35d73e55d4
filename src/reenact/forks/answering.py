"""Recording a run whose calls are answered from an imported transcript, as far as it tells them.

A fork of a transcript cannot share its events, which have no request as it was sent. So it is a recording
of its own: each call is recorded as the agent makes it, and gets the outcome that the transcript tells for
it, the changed one at the point of the fork. Any other call is a miss.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from threading import RLock
from typing import Any, Final, NoReturn, cast
from urllib.parse import urlsplit

import msgspec

from reenact.boundary import A, Call, Lane, Step, UnrecordedStep
from reenact.errors import Diverged, UsageError
from reenact.forks.change import FROM_START, ChangeFunction, ForkPlan, change_model_call, change_outcome
from reenact.forks.matching import EventData, TranscriptCall, TranscriptCalls
from reenact.formats.divergence import Observed, ReplayDivergence
from reenact.providers import (
    ModelReply,
    ModelRequest,
    TokenUsage,
    read_neutral_response,
    read_request,
    read_response,
    response_fields,
)
from reenact.providers.answers import write_answer
from reenact.recorder.context import CaptureContext
from reenact.recorder.derived import DerivingContext
from reenact.redaction import Redactor
from reenact.replayer import report
from reenact.replayer.beside import EmptyStep
from reenact.replayer.loops import give_way
from reenact.replayer.step import diverged
from reenact.values.codec import from_json, rebuild, to_text

_decode: Final = msgspec.json.Decoder().decode
_TYPES: Final = {"tool": "tool_call", "llm": "llm_request"}
_OTHERS: Final = {"network": "requests to other servers", "process": "programs that it starts"}
_PROBES: Final = ("HEAD ", "OPTIONS ")
_FORM: Final = (
    'the outcome of a model call in a transcript is {"text": …, "tool_calls": [{"id", "name", "arguments"}]}'
)


class AnswersResult(msgspec.Struct, kw_only=True):
    """How the calls of one process of the fork were answered."""

    prefix: int = 0
    """From the transcript, before the change."""
    recording: int = 0
    """From the transcript, after it."""
    nearest: int = 0
    live: int = 0
    live_models: list[str] = []
    """The ids of the model calls among the live ones."""
    is_reached: bool = False
    not_compared: dict[str, int] = {}
    """What calls had beside what the transcript tells, with counts."""
    problem: str = ""
    """Why there is no fork."""
    is_usage: bool = False
    """Whether the change could not be made at all."""


class Answers:
    """Finds the outcome for each call of one process; see the module's docstring."""

    def __init__(
        self,
        calls: TranscriptCalls,
        plan: ForkPlan,
        redactor: Redactor,
        *,
        function: ChangeFunction | None = None,
        on_reached: Callable[[], None] = lambda: None,
        is_reached_elsewhere: Callable[[], bool] = lambda: False,
        on_missed: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._calls = calls
        self._plan = plan
        self._redactor = redactor
        self._function = function
        self._on_reached = on_reached
        self._is_reached_elsewhere = is_reached_elsewhere
        self._on_missed = on_missed
        self._lock = RLock()
        self._counted = AnswersResult(is_reached=plan.at == FROM_START)
        self._not_compared: Counter[str] = Counter()
        self.missed: ReplayDivergence | None = None
        """The miss that ended the fork."""
        self.unchanged: UsageError | None = None
        """Why the change could not be applied."""

    @property
    def is_reached(self) -> bool:
        """Whether the change has been made, here or in another process."""
        return self._counted.is_reached or self._is_reached_elsewhere()

    def result(self) -> AnswersResult:
        """The counts, at the end of the process."""
        problem = self.problem()
        return msgspec.structs.replace(
            self._counted,
            not_compared=dict(self._not_compared),
            problem="" if problem is None else str(problem),
            is_usage=isinstance(problem, UsageError),
        )

    def _miss_as_error(self) -> Diverged | None:
        if self.missed is None:
            return None
        before = (
            "" if self.is_reached else "the run differs from its transcript before the point of the fork: "
        )
        remedy = "choose --on-miss nearest or live to go on"
        return Diverged(f"{before}{self.missed.headline}; {remedy}", self.missed)

    def problem(self) -> Exception | None:
        """Why there is no valid fork; ``None`` if there is one."""
        return self.unchanged or self._miss_as_error()

    def step(self, call: Call[A], lane: Lane, record: Callable[[Call[A], Lane], Step[A]]) -> Step[A]:
        # It is not sent, or only after this has been decided.
        call = msgspec.structs.replace(call, may_leave_first=None)
        with self._lock:
            self._redactor.learn(call.headers)
            if self.missed is not None:
                raise diverged(self.missed)
            if call.beside:
                return record(call, lane) if self._plan.on_miss == "live" else EmptyStep(call)
            if _is_probe(call) and self._plan.on_miss != "live":
                self._not_compared["requests without content (HEAD)"] += 1
                return AnsweredStep(call, record(call, lane), call.empty and call.empty(), None, {})
            request = self._read(call)
            found = None if self._is_new_question(call) else self._find(call, request)
            if found is None:
                return self._answer_miss(call, lane, request, record)
            return self._answer(call, lane, found, request, record)

    # Finding

    def _read(self, call: Call) -> object:
        """The request of a model call, or the arguments of a tool, without secrets, as in the transcript."""
        if call.kind not in _TYPES:
            return None
        request = _decode(self._redactor.redact_request(to_text(call.request, is_json=call.is_json)))
        if call.kind == "tool":
            return request
        return read_request(urlsplit(request["url"]).path, request.get("body"))

    def _is_new_question(self, call: Call) -> bool:
        """Whether this model request is changed, because the point is behind it."""
        return self.is_reached and self._with_changed_request(call) is not call

    def _find(self, call: Call, request: object) -> TranscriptCall | None:
        if call.kind == "llm" and isinstance(request, ModelRequest):
            found = self._calls.find_model_call(request)
        elif call.kind == "tool":
            found = self._calls.find_tool_call(call.name, request)
        else:
            return None
        if found is None:
            return None
        self._not_compared.update({self._redactor.redact_text(what): n for what, n in found.beside.items()})
        self._refuse_point_behind(found.call)
        return found.call

    def _refuse_point_behind(self, found: TranscriptCall) -> None:
        """Stop if the run has gone past the point: its tool did not pass here."""
        at = self._calls.by_seq.get(self._plan.at)
        if self.is_reached or at is None or at.type != "tool_call" or found.type != "llm_request":
            return
        if found.seq > at.seq and found.lane == at.lane and not at.is_used:
            models = [one.seq for one in self._calls.calls if one.type == "llm_request" and one.seq < at.seq]
            hint = f", or fork at event {models[-1]}, where the model asks for it" if models else ""
            detail = (
                f"event {at.seq}: the agent runs the tool {at.name} itself; mark it with @reenact.tool{hint}"
            )
            self.unchanged = UsageError(detail)
            raise self.unchanged

    # Answering

    def _answer(
        self,
        call: Call[A],
        lane: Lane,
        found: TranscriptCall,
        request: object,
        record: Callable[[Call[A], Lane], Step[A]],
    ) -> Step[A]:
        is_point = self._plan.at in (found.seq, found.outcome_seq)
        if is_point:
            self._reach()
            if not self._plan.change.changes_outcome and self._with_changed_request(call) is not call:
                return self._answer_miss(call, lane, request, record)
        data = self._calls.data(found.outcome_seq)
        raised = None
        if is_point and self._plan.change.changes_outcome:
            data, raised = self._change_outcome(found, data)
        elif self.is_reached and not is_point:
            self._counted.recording += 1
        else:
            self._counted.prefix += 1
        return self._make_step(call, lane, found, data, raised, request, record, {})

    def _reach(self) -> None:
        self._counted.is_reached = True
        self._on_reached()

    def _change_outcome(
        self, found: TranscriptCall, data: EventData
    ) -> tuple[EventData, BaseException | None]:
        try:
            return change_transcript_outcome(self._plan, self._function, found, data)
        except UsageError as error:
            self.unchanged = error
            raise

    def _make_step(
        self,
        call: Call[A],
        lane: Lane,
        found: TranscriptCall,
        data: EventData,
        raised: BaseException | None,
        request: object,
        record: Callable[[Call[A], Lane], Step[A]],
        facts: dict[str, object],
    ) -> AnsweredStep[A]:
        error = raised if raised is not None or "error" not in data else rebuild(data["error"])
        answer: object = None
        if error is None and call.kind == "tool":
            answer = from_json(data.get("result"))
        elif error is None and isinstance(request, ModelRequest):
            answer, known = _model_answer(call, request, found, data)
            facts = known | facts
        return AnsweredStep(call, record(call, lane), answer, error, facts)

    # What the transcript does not tell

    def _answer_miss(
        self, call: Call[A], lane: Lane, request: object, record: Callable[[Call[A], Lane], Step[A]]
    ) -> Step[A]:
        if self._plan.on_miss == "live":
            self._counted.live += 1
            made = record(self._with_changed_request(call) if self.is_reached else call, lane)
            if call.kind == "llm":
                self._counted.live_models.append(made.call_id)
            return made
        nearest = self._nearest(call, request) if self._plan.on_miss == "nearest" else None
        if nearest is None:
            self._stop(call, lane, request)
        self._counted.nearest += 1
        data = self._calls.data(nearest.outcome_seq)
        known: dict[str, object] = {"answeredAs": nearest.call_id}
        return self._make_step(call, lane, nearest, data, None, request, record, known)

    def _nearest(self, call: Call, request: object) -> TranscriptCall | None:
        if call.kind == "llm" and isinstance(request, ModelRequest):
            return self._calls.nearest_model_call(request)
        return self._calls.nearest_tool_call(call.name) if call.kind == "tool" else None

    def _stop(self, call: Call, lane: Lane, request: object) -> NoReturn:
        kind = _TYPES.get(call.kind, "nondeterministic")
        name = self._redactor.redact_text(call.name)
        self.missed = ReplayDivergence(
            code="event_unexpected",
            detail=self._redactor.redact_text(self._explain(call, request)),
            observed=Observed(kind, {"tool": name} if call.kind == "tool" else {"name": name}),
            lane=lane.name,
            **report.called_from(lane),
        )
        self._on_missed(self.missed.headline)
        raise diverged(self.missed)

    def _explain(self, call: Call, request: object) -> str:
        if call.kind == "tool":
            return self._calls.explain_tool_miss(call.name, request)
        if call.kind != "llm":
            why = f"a transcript tells nothing of {_OTHERS[call.kind]}"
            return f"{call.kind} {call.name}: {why}; mark the function that needs it with @reenact.tool"
        if not isinstance(request, ModelRequest):
            return "a model was asked in a format that is not known"
        return (
            f"a model was asked what the transcript does not tell: {self._calls.explain_model_miss(request)}"
        )

    def _with_changed_request(self, call: Call[A]) -> Call[A]:
        return change_model_call(call, self._plan.change.request, self._redactor.redact_json)


def _is_probe(call: Call) -> bool:
    """Whether it only asks whether a server is there: programs do that before they ask their model."""
    return call.kind == "network" and call.empty is not None and call.name.startswith(_PROBES)


def _model_answer(
    call: Call, request: ModelRequest, found: TranscriptCall, data: EventData
) -> tuple[EventData, dict[str, object]]:
    """The answer in the wire format of the request, in recorded form, and the facts about it."""
    asked: Any = call.request
    response = data.get("response")
    if isinstance(response, dict) and "status" in response:  # a change to an HTTP error
        answer = response
        body = str(answer["body"]).encode()
    else:
        said = read_neutral_response(request.provider, response)
        if said is None:
            raise UsageError(_FORM)
        reply = ModelReply(
            id=f"told{found.outcome_seq}",
            parts=said.parts,
            stop_reason=data.get("stopReason"),
            usage=_usage_of(data.get("usage")),
        )
        written = write_answer(request.provider, asked["url"], asked["body"], reply)
        if written is None:
            raise UsageError(f"{call.name}: answers of this framing cannot be written")
        content_type, body = written
        headers = [{"content-type": content_type}, {"content-length": str(len(body))}]
        answer = {"body": body.decode(), "bytes": len(body), "headers": headers}
        answer |= {"httpVersion": "HTTP/1.1", "reason": "OK", "status": 200}
    fields: dict[str, object] = {
        **response_fields(read_response(request.provider, answer["status"], {}, body))
    }
    if "error" in fields:
        fields["modelError"] = fields.pop("error")
    fields["model"] = fields["model"] or request.model or ""
    return dict(sorted(answer.items())), fields


def _usage_of(counts: object) -> TokenUsage | None:
    if not isinstance(counts, dict):
        return None
    names = {
        "input_tokens": "inputTokens",
        "output_tokens": "outputTokens",
        "cached_input_tokens": "cachedInputTokens",
        "reasoning_tokens": "reasoningTokens",
    }
    known = {ours: counts[name] for ours, name in names.items() if isinstance(counts.get(name), int)}
    return TokenUsage(**known)


def change_transcript_outcome(
    plan: ForkPlan, function: ChangeFunction | None, found: TranscriptCall, data: EventData
) -> tuple[EventData, BaseException | None]:
    """Change the outcome at the point; :class:`UsageError` if that is impossible.

    The paths of a tool's result lead into it also if it is JSON written as text.
    """
    is_model = found.type == "llm_request"
    event_type = "llm_response" if is_model else "tool_result"
    text = None if is_model else data.get("result")
    inner = _json_in(text) if plan.change.set else None
    event = {"type": event_type, "seq": found.outcome_seq, "data": data}
    if inner is not None:
        event["data"] = data | {"result": inner}
    changed, raised = change_outcome(plan.change, function, event, lambda value: value)
    if inner is not None:
        changed["result"] = msgspec.json.encode(changed["result"]).decode()
    if is_model and raised is None and isinstance(changed.get("response"), str):
        changed["response"] = {"text": changed["response"]}
    response = changed.get("response")
    is_http = isinstance(response, dict) and "status" in response
    is_answer = is_model and raised is None and "error" not in changed and not is_http
    if is_answer and read_neutral_response("unknown", response) is None:
        raise UsageError(f"event {found.outcome_seq}: {_FORM}")
    return changed, raised


def _json_in(text: object) -> object:
    """The object or list that *text* is, as JSON; ``None`` for anything else."""
    if not isinstance(text, str):
        return None
    try:
        value = _decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


class AnsweredStep(UnrecordedStep[A]):
    """A call that is recorded like a live one, and gets a known outcome."""

    leaves_first = False
    live = False

    def __init__(
        self,
        call: Call[A],
        made: Step[A],
        answer: object,
        error: BaseException | None,
        facts: dict[str, object],
    ) -> None:
        self._made = made
        self._call = call
        self._outcome = cast("A", answer)
        self._error = error
        self.call_id = made.call_id
        self.facts = facts
        self.answer = cast("A", None)
        self.exact: object = None

    def give_up(self, error: Exception) -> None:
        self._made.give_up(error)

    def wait(self) -> None:
        if self._error is not None:
            self._made.facts = self.facts
            self._made.close(self._error)
            raise self._error
        self.answer = self._outcome
        if self._call.kind != "tool":  # clients need not say when they have read a whole answer
            self.close(None)

    async def async_wait(self) -> None:
        await self._made.async_wait()
        await give_way()
        self.wait()

    def pieces(self) -> Iterator[object]:
        """The items of a tool that is a generator."""
        for item in self._outcome if isinstance(self._outcome, list) else [self._outcome]:
            self._made.piece(item)
            yield item

    async def async_pieces(self) -> AsyncIterator[object]:
        for item in self.pieces():
            await give_way()
            yield item

    def close(self, error: BaseException | None) -> None:
        self._made.answer, self._made.facts = self.answer, self.facts
        self._made.close(error)


class AnsweringContext(CaptureContext):
    """The context of a fork of a transcript."""

    sends_in_pieces = False
    answers: Answers
    """Set before the run begins."""

    def step(self, call: Call[A], lane: Lane) -> Step[A]:
        return self.answers.step(call, lane, super().step)


class AnsweringDerivingContext(AnsweringContext, DerivingContext):
    """The same for the gateway, which also derives tool calls from the model traffic."""

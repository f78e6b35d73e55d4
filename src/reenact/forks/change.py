"""The plan and the change of a fork: the outcome of a call, and the model requests from there on.

An outcome is a tool's result, a value that was read, or the body of an HTTP answer. Paths are those of its
JSON, as ``$.orders[0].due``.
"""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Callable, Mapping
from http import HTTPStatus
from importlib import import_module
from typing import Any, Final, Literal, TypeAlias, get_args

import msgspec

from reenact import canonical
from reenact.boundary import A, Call
from reenact.canonical import JsonValue, digest_of_bytes
from reenact.errors import FormatError, UsageError
from reenact.providers import (
    Provider,
    RequestChange,
    read_response,
    read_stream,
    response_fields,
    write_stream,
)
from reenact.values.codec import from_json, to_ordered_text, to_text

OnMiss: TypeAlias = Literal["fail", "nearest", "live"]
"""How a call is answered that was not recorded."""
FROM_START: Final = 0
"""Instead of an event number: no point, everything may differ from the beginning."""
ChangeFunction: TypeAlias = Callable[[Any], Any]
"""Takes the recorded outcome and returns the new one, or raises."""

_STEP: Final = re.compile(
    r"\.([A-Za-z_][\w-]*)|\[(-?\d+)\]|\[(\"(?:[^\"\\]|\\.)*\")\]|\['((?:[^'\\]|\\['\\])*)'\]"
)
ANSWERS: Final = {"tool_result": "result", "llm_response": "response"}
"""By the type of an outcome: the member that holds the answer; ``value`` for all others."""
_ANSWER_MEMBERS: Final = frozenset(
    ("cancelled", "closed", "error", "exact", "modelError", "opened", "opening", "pieces", "valueHash")
)
"""Members that describe an HTTP answer and do not fit a new one."""
_NO_ANSWER: Final = {"bytes": 0, "headers": [], "httpVersion": "HTTP/1.1", "reason": "OK", "status": 200}
"""What a call without an answer is changed from."""
_VALUE_MEMBERS: Final = frozenset(("cancelled", "closed", "error", "exact", "pieces", "valueHash"))
"""The same for any other outcome; the beginning of a stream is kept."""


class ForkChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """Changes one outcome in one way, and model requests in several; an empty one changes nothing."""

    set: dict[str, Any] = {}
    """New values by path."""
    replace: tuple[object, ...] = ()
    """The new outcome in a tuple of one; empty for none."""
    error: str = ""
    """The exception to raise, or an HTTP status; a message may follow after a colon."""
    function: str = ""
    """The name of the Python function that changed the outcome."""
    model: str = ""
    """The model to ask from the point on."""
    system: str | None = None
    """The system prompt, likewise."""
    temperature: float | None = None

    @property
    def is_any(self) -> bool:
        return self.changes_outcome or self.request.is_any

    @property
    def changes_outcome(self) -> bool:
        return bool(self.set or self.replace or self.error or self.function)

    @property
    def request(self) -> RequestChange:
        return RequestChange(self.model, self.system, self.temperature)

    def with_request(self, request: RequestChange) -> ForkChange:
        """The same change with this change of model requests."""
        members = msgspec.structs.asdict(request)
        return msgspec.structs.replace(self, **members)

    def check(self) -> None:
        """Raise :class:`UsageError` for a contradictory or invalid change."""
        kinds = (self.set, self.replace, self.error, self.function)
        if sum(map(bool, kinds)) > 1:
            raise UsageError("an outcome is changed in one way: choose one of set, replace and error")
        for path in self.set:
            read_path(path)
        try:
            canonical.refuse_unholdable([*self.set.values(), *self.replace])
        except FormatError as error:
            raise UsageError(f"change: a new value is not JSON: {error.reason}") from None
        if self.error:
            error_type(self.error)
        self.request.check()


class ForkPlan(msgspec.Struct, frozen=True):
    """The point, the change and the handling of misses."""

    at: int
    """The event number of the call at its point, or FROM_START."""
    shared: int
    """The number of events before the point."""
    change: ForkChange = ForkChange()
    on_miss: OnMiss = "fail"
    is_inherited: bool = False
    """The model requests are those of the parent, itself a fork, so its recorded answers may be used."""

    @property
    def changes_requests(self) -> bool:
        """Whether model requests differ from those of the parent."""
        return self.change.request.is_any and not self.is_inherited


def read_change(
    given: Mapping[str, Any] | ForkChange | ChangeFunction | None,
) -> tuple[ForkChange, ChangeFunction | None]:
    """Read a change that Python code gives; the second value is the function, if it is one."""
    if given is None:
        return ForkChange(), None
    if isinstance(given, ForkChange):
        change = given
    elif isinstance(given, Mapping):
        members = dict(given)
        if "replace" in members:
            members["replace"] = (members["replace"],)
        if type(members.get("temperature")) is int:
            members["temperature"] = float(members["temperature"])
        try:
            change = msgspec.convert(members, ForkChange, strict=True)
            unknown = sorted(
                members.keys() - set(ForkChange.__struct_fields__) | {"function"} & members.keys()
            )
        except msgspec.ValidationError as error:
            raise UsageError(f"change: {error}; see docs/howto/fork.md") from None
        if "error" in members:
            error_type(change.error)
        if unknown:
            known = ", ".join(name for name in ForkChange.__struct_fields__ if name != "function")
            raise UsageError(f"change: {unknown[0]!r} is unknown; choose from {known}, or give a function")
    elif callable(given):
        name = getattr(given, "__qualname__", type(given).__name__)
        return ForkChange(function=f"{getattr(given, '__module__', '?')}.{name}"), given
    else:
        raise UsageError(
            f"change: {given!r} is not a change; give a mapping such as {{'set': {{'$.due': 'Friday'}}}}"
        )
    change.check()
    return change, None


def read_path(path: str) -> list[str | int]:
    """The steps of a path; :class:`UsageError` for an invalid one."""
    if not path:
        raise UsageError("a path is missing; write one as $.orders[0].due, or $ for the whole outcome")
    rest = path.removeprefix("$")
    if rest and rest[0] not in ".[":
        rest = f".{rest}"
    steps: list[str | int] = []
    position = 0
    while position < len(rest):
        found = _STEP.match(rest, position)
        if found is None:
            raise UsageError(f"{path}: is not a path; write one as $.orders[0].due")
        steps.append(_read_step(path, *found.groups()))
        position = found.end()
    return steps


def _read_step(
    path: str, name: str | None, index: str | None, quoted: str | None, single_quoted: str | None
) -> str | int:
    if index is not None:
        return int(index)
    if quoted is None:
        return name if name is not None else re.sub(r"\\(.)", r"\1", single_quoted or "")
    try:
        return msgspec.json.decode(quoted, type=str)
    except msgspec.DecodeError:
        raise UsageError(f'{path}: {quoted} is not a JSON text; write one as ["a key"]') from None


def set_at(value: object, path: str, new: object) -> object:
    """A copy of *value* with *new* at *path*, which must exist."""
    return _set(value, read_path(path), new, path, "$")


def _set(value: object, steps: list[str | int], new: object, path: str, here: str) -> object:
    if not steps:
        return new
    step, rest = steps[0], steps[1:]
    there = f"{here}[{step}]" if isinstance(step, int) else f"{here}.{step}"
    if isinstance(step, str) and isinstance(value, dict):
        if step not in value:
            known = ", ".join(map(str, value)) or "nothing"
            raise UsageError(f"{path}: there is no {there}; {here} has {known[:200]}")
        return {
            key: _set(child, rest, new, path, there) if key == step else child for key, child in value.items()
        }
    if isinstance(step, int) and isinstance(value, list):
        if not -len(value) <= step < len(value):
            raise UsageError(f"{path}: there is no {there}; {here} has {len(value)} items")
        place = step % len(value)
        return [*value[:place], _set(value[place], rest, new, path, there), *value[place + 1 :]]
    kind = (
        "an object" if isinstance(value, dict) else "a list" if isinstance(value, list) else "a plain value"
    )
    raise UsageError(f"{path}: there is no {there}; {here} is {kind}")


def _refuse_no_exception(name: str, module: str, short: str) -> None:
    """Refuse a name that is no exception of a standard module; other modules may not be loaded here."""
    try:
        kind = getattr(import_module(module), short, None)
    except ImportError:
        kind = None
    if not (isinstance(kind, type) and issubclass(kind, Exception)):
        raise UsageError(f"{name}: is not an exception; write TimeoutError, a module's as pkg.Error, or 429")


def error_type(error: str) -> tuple[str | int, str]:
    """The exception's name as recorded, or the HTTP status, and the message."""
    name, _, message = (part.strip() for part in error.partition(":"))
    if name.isdecimal():
        status = int(name)
        if not 400 <= status <= 599:
            raise UsageError(f"{name}: is not an HTTP error status; choose 400 to 599")
        return status, message or _phrase(status)
    if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", name):
        raise UsageError(
            f"{error!r}: names no exception; write TimeoutError, a module's as pkg.Error, or 429"
        )
    module, _, short = name.rpartition(".")
    if module.partition(".")[0] in sys.stdlib_module_names:
        _refuse_no_exception(name, module, short)
    if not module:
        kind = getattr(builtins, short, None)
        if not (isinstance(kind, type) and issubclass(kind, Exception)):
            raise UsageError(f"{name}: is not a built-in exception; add its module, as pkg.{name}")
    return f"{module or 'builtins'}:{short}", message or "changed by a fork"


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "error"


def change_outcome(
    change: ForkChange,
    function: ChangeFunction | None,
    event: dict[str, Any],
    resolve: Callable[[object], object],
) -> tuple[dict[str, object], BaseException | None]:
    """Apply *change* to the data of the outcome *event*; the second value is what *function* raised.

    The new answer in the data is plain, not in its stored form.
    """
    data: dict[str, Any] = {**event["data"]}
    member = ANSWERS.get(event["type"], "value")
    answer = resolve(data.get(member))
    may_be_http = event["type"] == "llm_response" or data.get("source") == "network"
    is_http = may_be_http and (answer is None or (isinstance(answer, dict) and "status" in answer))
    if change.error:
        # A transcript tells a model's answer without the exchange that it came in.
        may_have_status = is_http or event["type"] == "llm_response"
        return _with_failure(change.error, event, data, member, is_http=may_have_status)
    if "error" in data and not change.replace:
        raise UsageError(
            f"event {event['seq']} is a failure, which has no path; change it with replace or error"
        )
    if is_http:
        answer = from_json(answer) or dict(_NO_ANSWER)
        if "body" not in answer:
            # The gateway records every answer in pieces, also a single JSON text.
            answer["body"] = _join_pieces(from_json(resolve(data.get("pieces"))) or [])
        return _change_http_answer(change, function, event, member, answer)
    is_stream = "pieces" in data
    value, raised = _new_value(change, function, resolve(data["pieces"]) if is_stream else answer)
    if is_stream and raised is None and not isinstance(value, list):
        raise UsageError(f"event {event['seq']} is a stream; its outcome is a list of its items")
    data = {name: kept for name, kept in data.items() if name not in _VALUE_MEMBERS}
    data |= {"pieces": value, member: answer} if is_stream else {member: value}
    if event["type"] == "tool_result":
        data["ok"] = True
    return data, raised


def _change_http_answer(
    change: ForkChange,
    function: ChangeFunction | None,
    event: dict[str, Any],
    member: str,
    answer: dict[str, Any],
) -> tuple[dict[str, object], BaseException | None]:
    """Change the body of *answer*; a stream of a known model is changed as the message it makes."""
    data: dict[str, Any] = event["data"]
    was = _body_bytes(answer.get("body", ""))
    provider: Provider = data.get("provider", "unknown")
    message = read_stream(provider, was)
    body = message if message is not None else _body_json(was, event, change)
    body, raised = _new_value(change, function, body)
    if message is None or not isinstance(body, dict):
        return _with_answer(data, member, answer | {"body": _body_text(body)}), raised
    stream = write_stream(provider, body, was).decode()
    opening = {name: data[name] for name in ("opened", "opening") if name in data}
    data = _with_answer(data, member, answer | {"body": stream}) | opening | {"pieces": [stream]}
    del data[member]["body"]
    return data, raised


def change_model_call(call: Call[A], change: RequestChange, redact_json: Callable[[bytes], bytes]) -> Call[A]:
    """*call* with its request changed, or *call* itself if the change is not for it.

    A replay matches it by the request of the agent, of which the facts have the digest.
    """
    other = call.ask_otherwise(change) if call.ask_otherwise is not None and change.is_any else None
    if other is None:
        return call
    text = redact_json(to_text(call.request, is_json=call.is_json))
    as_asked = {"asked": msgspec.to_builtins(other.undo), "askedHash": digest_of_bytes(text)}
    facts = other.call.facts
    return msgspec.structs.replace(
        other.call, facts=lambda: {**(facts() if callable(facts) else facts), **as_asked}
    )


def _new_value(
    change: ForkChange, function: ChangeFunction | None, value: object
) -> tuple[object, BaseException | None]:
    if function is not None:
        try:
            return msgspec.json.decode(to_ordered_text(function(from_json(value)))), None
        except UsageError:
            raise
        except Exception as error:
            return None, error
    if change.replace:
        return change.replace[0], None
    for path, new in change.set.items():
        value = set_at(value, path, new)
    return value, None


def _body_json(body: Any, event: dict[str, object], change: ForkChange) -> object:
    if change.replace:
        return None
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, TypeError):
        raise UsageError(
            f"event {event['seq']}: its body is neither JSON nor a stream that is known, and has no paths; "
            "use replace"
        ) from None


def _join_pieces(pieces: list[str | bytes]) -> str:
    parts = (piece if isinstance(piece, str) else piece.decode("utf-8", "replace") for piece in pieces)
    return "".join(parts)


def _body_bytes(body: object) -> bytes:
    return body if isinstance(body, bytes) else str(body).encode("utf-8", "replace")


def _body_text(body: object) -> str:
    return body if isinstance(body, str) else msgspec.json.encode(body).decode()


def _with_answer(data: dict[str, Any], member: str, answer: dict[str, Any]) -> dict[str, Any]:
    """Set a complete HTTP answer; the members about a model's answer are read from it."""
    answer = {name: value for name, value in answer.items() if name != "decodedFrom"}
    kept = {name: value for name, value in data.items() if name not in _ANSWER_MEMBERS}
    data = kept | {member: answer}
    if data.get("provider") in get_args(Provider):
        provider: Provider = data["provider"]
        fields = response_fields(read_response(provider, answer["status"], {}, [answer["body"].encode()]))
        if "error" in fields:
            fields["modelError"] = fields.pop("error")
        fields["model"] = fields["model"] or data["model"]
        data |= fields
    return data


def _with_failure(
    error: str, event: dict[str, JsonValue], data: dict[str, object], member: str, *, is_http: bool
) -> tuple[dict[str, object], BaseException | None]:
    kind, message = error_type(error)
    if isinstance(kind, int):
        if not is_http:
            raise UsageError(
                f"event {event['seq']} is not an HTTP answer; name an exception, not the status {kind}"
            )
        body = msgspec.json.encode(
            {"error": {"message": message, "type": _phrase(kind), "code": kind}}
        ).decode()
        answer = {"body": body, "bytes": len(body), "headers": [{"content-type": "application/json"}]}
        answer |= {"httpVersion": "HTTP/1.1", "reason": _phrase(kind), "status": kind}
        return _with_answer(data, member, answer), None
    kept = ("callId", "source", "key", "provider", "model", "inline", "lane", "parent", "type")
    data = {name: value for name, value in data.items() if name in kept}
    if event["type"] == "tool_result":
        data["ok"] = False
    if event["type"] == "llm_response":
        data |= {"stopReason": None, "usage": None}
    data["error"] = {"type": kind, "message": message, "args": [message]}
    return data, None

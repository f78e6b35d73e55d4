"""The action record ``agent.action.replay.v1``: one action of an agent, its model, input and output.

Reading checks only types and stops at the first error. :mod:`reenact.check.actions` finds all problems.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

import msgspec

from reenact.canonical import JsonField, JsonValue, child_path, read_json
from reenact.errors import FormatError
from reenact.formats.record import ABSENT, Absent, Codec, Record

ACTION_ID: Final = "agent.action.replay.v1"

Number: TypeAlias = int | float
NonNegative: TypeAlias = Annotated[int, msgspec.Meta(ge=0)] | Annotated[float, msgspec.Meta(ge=0)]
UpToOne: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=1)] | Annotated[float, msgspec.Meta(ge=0, le=1)]
UpToTwo: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2)] | Annotated[float, msgspec.Meta(ge=0, le=2)]


class Model(Record, frozen=True, kw_only=True):
    provider: str
    name: str
    version: str | Absent = ABSENT


class GenerationParams(Record, frozen=True, kw_only=True):
    temperature: UpToTwo | Absent = ABSENT
    top_p: UpToOne | Absent = ABSENT
    max_tokens: NonNegative | Absent = ABSENT
    seed: Number | Absent = ABSENT
    stop: list[str] | Absent = ABSENT


class ChatMessage(Record, frozen=True, kw_only=True):
    role: str
    content: str


class ModelInput(Record, frozen=True, kw_only=True):
    messages: Annotated[list[ChatMessage], msgspec.Meta(min_length=1)]
    tools: list[JsonField] | Absent = ABSENT


class Usage(Record, frozen=True, kw_only=True):
    input_tokens: NonNegative | Absent = ABSENT
    output_tokens: NonNegative | Absent = ABSENT


class ModelOutput(Record, frozen=True, kw_only=True):
    content: str | Absent = ABSENT
    tool_calls: list[JsonField] | Absent = ABSENT
    finish_reason: str | Absent = ABSENT
    usage: Usage | Absent = ABSENT


class Action(Record, frozen=True, kw_only=True):
    agent_id: str
    action_id: str
    occurred_at_unix_ms: str
    """Milliseconds since 1970 as decimal text, so that every reader hashes the same."""
    model: Model
    input: ModelInput
    output: ModelOutput
    params: GenerationParams | Absent = ABSENT
    context: Any = ABSENT


CODEC: Final = Codec[Action](Action)


def read_action(data: bytes, file: str) -> Action:
    """The action in *data*; :class:`FormatError` with the JSON path of what is wrong."""
    try:
        return action_from_json(read_json(data, "jcs"))
    except FormatError as error:
        raise error.at(file=file) from None


def action_from_json(value: JsonValue) -> Action:
    """The action in a decoded value; the record and its ``model`` must not have unknown fields."""
    action = CODEC.from_json(value)
    _refuse_extra(action, "$")
    _refuse_extra(action.model, "$.model")
    return action


def write_action(action: Action) -> bytes:
    """The action as one line of canonical JSON."""
    return CODEC.to_bytes(action) + b"\n"


def _refuse_extra(record: Record, path: str) -> None:
    for key in sorted(record.extra):
        raise FormatError("unexpected field; move it into context", json_path=child_path(path, key))

"""Validates the values of a stream one after the other, and counts the results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

import msgspec

from reenact.canonical import JsonValue, read_json
from reenact.check.actions.capsule import Capsule, Result
from reenact.check.actions.policy import Policy
from reenact.errors import FormatError
from reenact.formats.decision import Decision
from reenact.formats.lines import LINE_SUFFIXES, MAX_LINE_BYTES, read_lines


class JudgedValue(msgspec.Struct, frozen=True):
    """One value of a stream and its result; no result if it could not be read."""

    file: str
    line: int | None
    """``None`` if the whole file is one value."""
    value: Any
    result: Result | None
    error: FormatError | OSError | None = None
    decision: Decision | None = None
    """The decision of the policy, if there is one, on an accepted action."""

    @property
    def place(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"

    @property
    def is_good(self) -> bool:
        """Accepted, and allowed if there is a policy."""
        return (
            self.result is not None
            and self.result.is_accepted
            and (self.decision is None or self.decision.is_allowed)
        )


def validate_stream(
    stream: BinaryIO, file: str, capsule: Capsule, *, policy: Policy | None = None
) -> Iterator[JudgedValue]:
    """Validate the values of *stream*: one per line in constant memory, or one in the whole file.

    A file is read by lines if its suffix says so, or if its first line is a whole JSON value. An unreadable
    line does not stop the others.
    """
    if file.endswith(LINE_SUFFIXES):
        yield from _lines(stream, file, capsule, policy)
        return
    head = stream.readline(MAX_LINE_BYTES + 2)
    if _is_whole(head):
        yield from _lines(_RejoinedStream(head, stream), file, capsule, policy)
    else:
        yield _judge(head + stream.read(), file, None, capsule, policy)


def _lines(
    stream: BinaryIO | _RejoinedStream, file: str, capsule: Capsule, policy: Policy | None
) -> Iterator[JudgedValue]:
    errors: list[FormatError] = []
    is_empty = True
    for line in read_lines(cast("BinaryIO", stream), file=file, on_error=errors.append):
        is_empty = False
        yield _judge(line.text, file, line.number, capsule, policy)
    if is_empty and not errors:
        errors.append(FormatError("holds nothing to validate; put one action on each line", file=file))
    for error in errors:
        yield JudgedValue(file, error.line, None, None, error)


def _judge(text: bytes, file: str, line: int | None, capsule: Capsule, policy: Policy | None) -> JudgedValue:
    try:
        value = read_json(text, "jcs")
    except FormatError as error:
        return JudgedValue(file, line, None, None, error.at(file=file, line=line or _first_line(error)))
    result = capsule.execute(value)
    if policy is None or not result.is_accepted:
        return JudgedValue(file, line, value, result)
    return JudgedValue(
        file, line, value, result, None, policy.decide_accepted(value, result.data["model_full_name"])
    )


def _first_line(error: FormatError) -> int | None:
    # Reading names the line of a place from the second one on.
    return 1 if " at column " in error.reason else None


def _is_whole(text: bytes) -> bool:
    try:
        read_json(text, "jcs")
    except FormatError:
        return False
    return True


class _RejoinedStream:
    """A stream whose first line was read already."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head = head
        self._rest = rest

    def readline(self, size: int) -> bytes:
        head, self._head = self._head, b""
        return head or self._rest.readline(size)


class ValidationTally:
    """Counts over any number of judged values."""

    def __init__(self) -> None:
        self.accepted = 0
        self.rejected = 0
        self.unreadable = 0
        self.problems: Counter[str] = Counter()
        """Problems by code; one value may have several."""
        self.models: Counter[str] = Counter()
        """Values by full model name, if it is known."""
        self.verdicts: Counter[str] = Counter()

    @property
    def count(self) -> int:
        return self.accepted + self.rejected + self.unreadable

    @property
    def is_good(self) -> bool:
        """Whether everything was accepted, and allowed if there is a policy."""
        return self.count == self.accepted and self.verdicts.total() == self.verdicts["allow"]

    def add(self, judged: JudgedValue) -> None:
        """Count one more."""
        if judged.result is None:
            self.unreadable += 1
            return
        if judged.result.is_accepted:
            self.accepted += 1
        else:
            self.rejected += 1
        if judged.result.problems:
            self.problems.update(problem.code for problem in judged.result.problems)
        if model := _model(judged.result.data):
            self.models[model] += 1
        if judged.decision is not None:
            self.verdicts[judged.decision.verdict] += 1

    def to_json(self) -> dict[str, JsonValue]:
        """All counts, the largest first; verdicts only with a policy."""
        counts: dict[str, JsonValue] = {
            "count": self.count,
            "accepted": self.accepted,
            "rejected": self.rejected,
            "unreadable": self.unreadable,
            "problems": dict(self.problems.most_common()),
            "models": dict(self.models.most_common()),
        }
        return counts | ({"verdicts": dict(self.verdicts.most_common())} if self.verdicts else {})


def _model(data: JsonValue) -> str | None:
    model = data.get("model_full_name") if type(data) is dict else None
    return model if type(model) is str else None

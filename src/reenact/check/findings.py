"""The findings of a check, one per problem, with its place; and the report that holds them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

from reenact.canonical import JsonValue
from reenact.errors import FormatError
from reenact.formats.record import Record, unknown_members

FindingSeverity: TypeAlias = Literal["error", "warning"]


class Finding(msgspec.Struct, frozen=True):
    """One problem."""

    code: str
    message: str
    file: str
    severity: FindingSeverity = "error"
    line: int | None = None
    json_path: str | None = None

    @classmethod
    def of(cls, code: str, error: FormatError, *, file: str) -> Finding:
        """The finding for an error that a reader raised."""
        return cls(code, error.reason, error.file or file, line=error.line, json_path=error.json_path)

    def describe(self) -> str:
        """``events.jsonl:17: $.data.callId: message [code]``, on one line."""
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        path = f" {self.json_path}:" if self.json_path else ""
        return f"{place}:{path} {self.message} [{self.code}]"


severity_of: Final[Callable[[Finding], FindingSeverity]] = attrgetter("severity")


def unknown_member_findings(record: Record, file: str) -> Iterator[Finding]:
    """A warning for each member that the format does not have; it may be a misspelt optional one."""
    for path in unknown_members(record):
        message = "is not a member of this format; it is not checked"
        yield Finding("unknown_member", message, file, "warning", json_path=path)


class VerifyReport(msgspec.Struct, frozen=True):
    """The findings of one check, and facts about the artifact."""

    what: str
    """The kind of artifact: ``capture``, ``replay log``, …"""
    path: str
    findings: list[Finding]
    facts: dict[str, JsonValue]
    """Counts, digests and states for the summary."""

    @property
    def is_good(self) -> bool:
        """Whether nothing worse than a warning was found."""
        return "error" not in map(severity_of, self.findings)

    def to_json(self) -> dict[str, JsonValue]:
        """The report as plain JSON, with its verdict."""
        value: dict[str, JsonValue] = msgspec.to_builtins(self)
        return value | {"good": self.is_good}


class SealCheck(NamedTuple):
    """The findings of the comparison with a seal, and facts for the summary."""

    findings: list[Finding]
    facts: dict[str, JsonValue]

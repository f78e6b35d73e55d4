"""The capsule: a named, versioned validation of one JSON value.

A capsule has a manifest, which can be printed, and logic, which is code. Executing it checks the value
against the input schema, runs the logic, and checks its result against the output schema.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Literal, TypeAlias

import msgspec

from reenact import canonical
from reenact.canonical import JsonValue
from reenact.check.actions.schema import Accepts, Problem, Schema, compile_schema, to_json_schema, walk
from reenact.errors import CheckFailed
from reenact.formats.schemas import DIALECT

Status: TypeAlias = Literal["accepted", "rejected"]


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    version: str
    profile: str
    """The family of capsules this one belongs to."""
    summary: str
    logic_version: str
    """Must change when the same value could get another result."""
    tags: tuple[str, ...]
    input_schema: Schema
    output_schema: Schema


class Findings(msgspec.Struct, frozen=True):
    """The result of a capsule's logic, without the problems that the schemas find."""

    problems: list[Problem]
    data: Any


class Result(msgspec.Struct, frozen=True):
    status: Status
    """Rejected when any problem is an error."""
    problems: tuple[Problem, ...]
    data: Any
    """Complete for an accepted value; for a rejected one, the readable parts."""

    @property
    def is_accepted(self) -> bool:
        return self.status == "accepted"


class Capsule:
    """A manifest and its *logic*, which is called with values of any type."""

    def __init__(self, manifest: Manifest, logic: Callable[[Any], Findings]) -> None:
        self.manifest = manifest
        self.logic = logic

    @cached_property
    def _accepts_input(self) -> Accepts:
        return compile_schema(self.manifest.input_schema)

    @cached_property
    def _accepts_output(self) -> Accepts:
        return compile_schema(self.manifest.output_schema, null_is_absent=True)

    def execute(self, value: JsonValue) -> Result:
        """The result for any JSON value; problems of the schema come before those of the logic."""
        findings = self._run(value)
        own, data = findings.problems, findings.data
        if not own and self._accepts_input(value) and self._accepts_output(data):
            return Result("accepted", (), data)
        problems = [*walk(self.manifest.input_schema, value), *own]
        if not _has_error(problems):
            # The data of a rejected value may be incomplete; for an accepted one that is a bug in it.
            problems += walk(self.manifest.output_schema, data, "data", null_is_absent=True)
        return Result("rejected" if _has_error(problems) else "accepted", tuple(problems), data)

    def manifest_json(self) -> dict[str, JsonValue]:
        """The manifest as plain JSON, schemas included."""
        value: dict[str, JsonValue] = msgspec.to_builtins(self.manifest)
        return value

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the manifest in the canonical form of RFC 8785, in bare hex."""
        return canonical.digest(self.manifest_json(), "jcs")

    def _run(self, value: object) -> Findings:
        try:
            return self.logic(value)
        except Exception as error:
            raise CheckFailed(
                f"capsule {self.manifest.id}: its logic failed with {type(error).__name__}: {error}; "
                "report it to the capsule's author"
            ) from error

    def json_schema(self) -> dict[str, JsonValue]:
        """The JSON Schema (2020-12) of the values it takes; the logic may still refuse some of them."""
        head = {
            "$schema": DIALECT,
            "$id": f"urn:reenact:schema:{self.manifest.id}:{self.manifest.version}",
            "title": self.manifest.id,
        }
        return head | to_json_schema(self.manifest.input_schema)


def first_problem(result: Result) -> str:
    """The first problem of a rejected value in one line, and how many more there are."""
    first, more = result.problems[0], len(result.problems) - 1
    return (
        f"{first.path or 'the value'}: {first.message} ({first.code}{f', and {more} more' if more else ''})"
    )


def _has_error(problems: list[Problem]) -> bool:
    return any(problem.severity == "error" for problem in problems)

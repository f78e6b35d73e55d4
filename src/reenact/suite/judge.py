"""Judging one assertion of a test case, by a built-in type or by one that users add.

A package declares ``[project.entry-points."reenact.assertions"]`` with ``name = "package.module:function"``.
A project names its files in ``reenact.toml`` and marks the functions in them::

    from reenact.suite import Verdict, assertion

    @assertion
    def mentions_order_number(trace, params):
        return Verdict(passed="#" in trace.final_output.content, message="…")
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.metadata import entry_points
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeAlias, TypeVar, get_type_hints, overload

import msgspec

from reenact import canonical
from reenact.canonical import JsonValue
from reenact.errors import UsageError
from reenact.formats.record import Absent
from reenact.formats.result import AssertionResult, AssertionStatus, Evidence
from reenact.formats.testcase import Assertion
from reenact.formats.trace import Trace
from reenact.suite import budgets, failure, files, grounding, memory, output, secrets, sequence, tools
from reenact.suite.params import UnknownName, read_params, unknown_name, unknown_params
from reenact.suite.verdict import Verdict

Judge: TypeAlias = Callable[[Trace, Any], Verdict]
"""A pure function; its second parameter is a :class:`~reenact.suite.params.Params`, or a plain ``dict``."""

SPECIFIED: Final[tuple[Judge, ...]] = (
    tools.must_call_tool,
    tools.must_not_call_tool,
    tools.tool_call_order,
    tools.max_tool_calls,
    tools.tool_args_match,
    tools.stop_after_success,
    output.output_contains,
    output.output_omits,
    output.output_matches_format,
    grounding.claims_supported_by_fixtures,
    memory.memory_recall_same_group,
    memory.no_cross_group_memory_use,
    sequence.scheduler_outbound_count,
    sequence.scheduler_task_runs,
    failure.retry_policy_respected,
    failure.graceful_failure_output,
    output.ask_clarifying_when_ambiguous,
    grounding.no_fabricated_source_or_citation,
    memory.memory_update_on_correction,
)
"""The assertion types of the published format."""

OUR_OWN: Final[tuple[Judge, ...]] = (
    sequence.tool_sequence,
    tools.tool_args,
    sequence.step_count,
    failure.no_errors,
    budgets.latency_budget,
    budgets.token_budget,
    budgets.cost_budget,
    output.final_output_json_schema,
    memory.state_mutation_allowed,
    secrets.no_secret_in_output,
    sequence.divergence_free,
)

OF_FILES: Final[tuple[Judge, ...]] = (
    files.file_exists,
    files.file_contains,
    files.file_unchanged,
    files.files_changed_only,
    files.command_succeeds_in_workspace,
)
"""The assertion types that need a capture with a workspace."""

BUILT_IN: Final[Mapping[str, Judge]] = {judge.__name__: judge for judge in (*SPECIFIED, *OUR_OWN, *OF_FILES)}


def judge(
    assertion: Assertion,
    trace: Trace,
    kinds: Mapping[str, Judge],
    defaults: Mapping[str, Mapping[str, JsonValue]] | None = None,
    *,
    strict: bool = False,
) -> AssertionResult:
    """Judge *trace* by *assertion*; *defaults* are parameters by type that the test does not give.

    With *strict*, a parameter that the type does not have fails the assertion.
    """
    given = _or_empty(assertion.params)
    lacking = [
        name for name in assertion.requires_capabilities or () if trace.capabilities.get(name) is not True
    ]
    if lacking:
        reason = f"the run does not have {', '.join(lacking)}"
        return _result(assertion, "skip", Verdict(passed=True, message=reason), given)
    params = {**(defaults or {}).get(assertion.type, {}), **given}
    found = _verdict(assertion.type, params, trace, kinds, strict)
    return _result(assertion, "pass" if found.passed else "fail", found, given)


def _verdict(
    kind: str, params: dict[str, JsonValue], trace: Trace, kinds: Mapping[str, Judge], strict: bool
) -> Verdict:
    """An unknown type, a wrong parameter and a function that raises give a failed verdict."""
    if kind not in kinds:
        reason = unknown_name(kind, "assertion type", list(kinds))
        return Verdict(passed=False, message=f"type {kind!r}: {reason}")
    function = kinds[kind]
    try:
        read = read_params(params_type(function), params, strict=strict)
        found: object = function(trace, read)
        if isinstance(found, Verdict) and kind not in BUILT_IN:
            canonical.encode(found.observed)  # it is written into results
    except UsageError as error:
        return Verdict(passed=False, message=str(error))
    except Exception as error:  # a user's function may raise anything; the other assertions are still judged
        return Verdict(passed=False, message=f"{kind} raised {type(error).__name__}: {error}")
    if not isinstance(found, Verdict):
        reason = f"{kind} returned a {type(found).__name__}; it must return reenact.suite.Verdict"
        return Verdict(passed=False, message=reason)
    return found


@cache
def params_type(function: Judge) -> type[object]:
    """The type of the function's second parameter; ``dict`` if it is not annotated."""
    name = list(signature(function).parameters)[1]
    kind = get_type_hints(function).get(name, dict)
    return kind if isinstance(kind, type) and issubclass(kind, msgspec.Struct) else dict


def unknown_params_of(assertion: Assertion, kinds: Mapping[str, Judge]) -> list[UnknownName]:
    """The parameters of *assertion* that its type does not have."""
    if assertion.type not in kinds:
        return []
    return unknown_params(params_type(kinds[assertion.type]), _or_empty(assertion.params))


def _or_empty(params: dict[str, JsonValue] | Absent | None) -> dict[str, JsonValue]:
    return params if isinstance(params, dict) else {}


def _result(
    assertion: Assertion, status: AssertionStatus, found: Verdict, params: dict[str, JsonValue]
) -> AssertionResult:
    return AssertionResult(
        id=assertion.id,
        type=assertion.type,
        severity="critical" if assertion.is_critical else "warning",
        status=status,
        message=found.message,
        params=params,
        observed=found.observed,
        evidence=Evidence(event_refs=list(found.event_refs)),
    )


GROUP: Final = "reenact.assertions"
_MARK: Final = "__reenact_assertion__"

F = TypeVar("F", bound=Judge)


@overload
def assertion(function: F, /) -> F: ...
@overload
def assertion(*, name: str) -> Callable[[F], F]: ...
def assertion(function: F | None = None, /, *, name: str | None = None) -> F | Callable[[F], F]:
    """Mark a function as an assertion type; the default *name* is the function's."""

    def mark(marked: F) -> F:
        setattr(marked, _MARK, name or marked.__name__)
        return marked

    return mark if function is None else mark(function)


def all_kinds(files: Iterable[Path] = ()) -> dict[str, Judge]:
    """The built-in types, those of installed packages and those in *files*; names must be unique."""
    kinds: dict[str, Judge] = dict(BUILT_IN)
    for point in entry_points(group=GROUP):
        try:
            found = {point.name: point.load()}
        except Exception as error:
            raise UsageError(f"{point.value}: cannot be loaded: {type(error).__name__}: {error}") from error
        _add(kinds, found, point.value)
    for file in files:
        _add(kinds, _find_marked(_load(file)), str(file))
    return kinds


def _add(kinds: dict[str, Judge], found: Mapping[str, Judge], where: str) -> None:
    for name, function in found.items():
        if name in kinds:
            raise UsageError(f"{where}: the assertion type {name!r} exists already; choose another name")
        kinds[name] = function


def _load(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"reenact_assertions_{file.stem}", file)
    if spec is None or spec.loader is None or not file.is_file():
        raise UsageError(f"{file}: no Python file; check assertions in reenact.toml")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UsageError(f"{file}: cannot be loaded: {type(error).__name__}: {error}") from error
    return module


def _find_marked(module: ModuleType) -> dict[str, Judge]:
    functions = {getattr(value, _MARK): value for value in vars(module).values() if hasattr(value, _MARK)}
    if not functions:
        raise UsageError(f"{module.__file__}: no function is marked; use @reenact.suite.assertion")
    return functions

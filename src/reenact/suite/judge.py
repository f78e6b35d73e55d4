"""Judging one assertion of a test case: its type found, its parameters read, its function applied."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from inspect import signature
from typing import Any, get_type_hints

import msgspec

from reenact import canonical
from reenact.errors import UsageError
from reenact.formats.record import Absent
from reenact.formats.result import AssertionResult, AssertionStatus, Evidence
from reenact.formats.testcase import Assertion
from reenact.formats.trace import Trace
from reenact.suite.kinds import BUILT_IN, Judge
from reenact.suite.params import UnknownName, read_params, unknown_name, unknown_params
from reenact.suite.verdict import Verdict


def judge(
    assertion: Assertion,
    trace: Trace,
    kinds: Mapping[str, Judge],
    defaults: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    strict: bool = False,
) -> AssertionResult:
    """What *assertion* finds in *trace*; *defaults* are parameters by type, where the test is silent.

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
    kind: str, params: dict[str, Any], trace: Trace, kinds: Mapping[str, Judge], strict: bool
) -> Verdict:
    """A failed one for an unknown type, a broken parameter, and a function that raises."""
    if kind not in kinds:
        reason = unknown_name(kind, "assertion type", list(kinds))
        return Verdict(passed=False, message=f"type {kind!r}: {reason}")
    function = kinds[kind]
    try:
        read = read_params(params_type(function), params, strict=strict)
        found: object = function(trace, read)
        if isinstance(found, Verdict) and kind not in BUILT_IN:
            canonical.encode(found.observed)  # it will be written into results
    except UsageError as error:
        return Verdict(passed=False, message=str(error))
    except Exception as error:  # whatever a user's own function does, the other assertions are judged
        return Verdict(passed=False, message=f"{kind} raised {type(error).__name__}: {error}")
    if not isinstance(found, Verdict):
        reason = f"{kind} returned a {type(found).__name__}; it must return reenact.suite.Verdict"
        return Verdict(passed=False, message=reason)
    return found


@cache
def params_type(function: Judge) -> type[Any]:
    """The type of the function's second parameter; a plain ``dict`` where it does not say."""
    name = list(signature(function).parameters)[1]
    kind = get_type_hints(function).get(name, dict)
    return kind if isinstance(kind, type) and issubclass(kind, msgspec.Struct) else dict


def unknown_params_of(assertion: Assertion, kinds: Mapping[str, Judge]) -> list[UnknownName]:
    """The parameters of *assertion* that its type does not have."""
    if assertion.type not in kinds:
        return []
    return unknown_params(params_type(kinds[assertion.type]), _or_empty(assertion.params))


def _or_empty(params: dict[str, Any] | Absent | None) -> dict[str, Any]:
    return params if isinstance(params, dict) else {}


def _result(
    assertion: Assertion, status: AssertionStatus, found: Verdict, params: dict[str, Any]
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

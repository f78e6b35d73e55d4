"""Describes mismatches as divergences that a person can act on."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from heapq import nsmallest
from typing import Any, Final, NamedTuple, TypedDict

import msgspec

from reenact.boundary import Lane
from reenact.comparing.differences import MAX_DIFFERENCES, Difference, differences
from reenact.formats.capture import HIDDEN
from reenact.formats.divergence import Candidate, DivergenceCode, Observed, ReplayDivergence
from reenact.lane_name import ROOT, LaneName
from reenact.replayer.frames import calling_frames
from reenact.replayer.lanes import Key
from reenact.replayer.likeness import RunLikeness
from reenact.replayer.renaming import differing_parts
from reenact.replayer.source import RecordedCall, ReplaySource
from reenact.replayer.volatile import VolatileKeys
from reenact.volatile.alignment import family

_WORDS: Final = re.compile(r"\w+|[^\w\s]")
_CANDIDATES: Final = 3
_LOOKED_AT: Final = 40
"""How many recorded calls to compare when searching similar ones."""
_LEFT_OVER: Final = 20
"""How many calls that never came to report one by one."""


def describe_mismatch(
    source: ReplaySource,
    lane: Lane,
    key: Key,
    request: object,
    expected: RecordedCall | None,
    unmade: RecordedCall | None,
    *,
    volatile: VolatileKeys,
    likeness: RunLikeness,
    orders_sets_anew: bool,
) -> ReplayDivergence:
    """The call *key* was made in *lane*, but the recording has *expected* there, or no call.

    *unmade* is an equal recorded call that was not made yet, but may not come now.
    """
    observed = Observed(key.type, _observed_data(key, request))
    what = name_call(key.type, key.name)
    candidates = _find_candidates(source, key, request, expected, volatile)
    moved = _explain_move(source, lane, unmade) if unmade is not None else ""
    if expected is None:
        return ReplayDivergence(
            code="nondeterministic_underflow" if key.is_chance else "event_unexpected",
            detail=f"{what} was called, but {moved or 'the recording has no further call here'}",
            expected=_event(source, unmade.seq) if unmade is not None else None,
            observed=observed,
            event_seq=unmade.seq if unmade is not None else None,
            candidates=candidates,
            lane=source.lane_name(lane),
            **called_from(lane),
        )
    code: DivergenceCode = "event_payload_mismatch" if expected.type == key.type else "event_type_mismatch"
    is_same = expected.type == key.type and family(expected.name) == family(key.name)
    if is_same:
        found = _compare_requests(source, key, request, expected, volatile, likeness)
    else:
        found = _compare_names(key, expected)
    return ReplayDivergence(
        code=code,
        detail=f"{found.detail}; {moved}" if moved else found.detail,
        expected=_event(source, expected.seq),
        observed=observed,
        event_seq=expected.seq,
        json_path=found.places[0].path.replace("$", found.base, 1) if found.places else found.base,
        differences=found.places,
        candidates=candidates,
        lane=source.lane_name(lane),
        **called_from(lane),
        volatile=volatile.suggested(key, found.places) if is_same else (),
        has_set_order=found.is_reordered and orders_sets_anew,
    )


class _Mismatch(NamedTuple):
    """How a live call differs from the recorded one that was due."""

    detail: str
    base: str
    """The path of what was compared, in the event."""
    places: tuple[Difference, ...]
    is_reordered: bool = False


def _compare_requests(
    source: ReplaySource,
    key: Key,
    request: object,
    expected: RecordedCall,
    volatile: VolatileKeys,
    likeness: RunLikeness,
) -> _Mismatch:
    """Compare the requests of two calls with the same name."""
    places = volatile.differences(expected, request)
    remaining = likeness.remaining(expected, places)
    reason = ""
    if remaining != places or _are_within_texts(places):
        asked_for = volatile.without_volatile(key.type, key.name, request)
        reason = likeness.explain(expected, asked_for, places)
    is_reordered = _is_reordered(source, expected, request, places)
    asked = "what a model is asked" if key.type == "llm_request" else name_call(key.type, key.name)
    detail = f"{asked} {'has the same results in another order' if is_reordered else 'differs'}"
    detail += f" ({reason})" if reason else ""
    return _Mismatch(detail, _request_path(expected), remaining, is_reordered)


def _compare_names(key: Key, expected: RecordedCall) -> _Mismatch:
    """Compare two calls with different names, or of different types."""
    recorded, live = name_call(expected.type, expected.name), name_call(key.type, key.name)
    detail = f"the recording has {recorded} here, not {live}"
    if expected.type != key.type:
        return _Mismatch(detail, "$", (Difference("$.type", expected.type, key.type),))
    names = differences(_name_members(expected.type, expected.name), _name_members(key.type, key.name))
    return _Mismatch(detail, "$.data", names)


def _explain_move(source: ReplaySource, lane: Lane, unmade: RecordedCall) -> str:
    """Why an equal call that was recorded in another task may not come now."""
    if unmade.lane == source.lane_name(lane):
        return ""
    in_its_way = next(call for call in source.calls if call.lane == unmade.lane and not call.taken)
    return (
        f"the same call was recorded in another task (event {unmade.seq}), "
        f"behind event {in_its_way.seq} ({name_call(in_its_way.type, in_its_way.name)}), which was not made"
    )


def _is_reordered(
    source: ReplaySource, expected: RecordedCall, request: object, places: tuple[Difference, ...]
) -> bool:
    """Whether both consist of the same words; if all differences are known, only those are compared."""
    if not places or len(places) >= MAX_DIFFERENCES:
        return _parts(source.request(expected)) == _parts(request)
    pairs = [_find_differing(place.expected, place.observed) for place in places]
    there = [expected for expected, _ in pairs if expected is not msgspec.UNSET]
    here = [observed for _, observed in pairs if observed is not msgspec.UNSET]
    return _parts(there) == _parts(here)


def _find_differing(expected: object, observed: object) -> tuple[object, object]:
    """Only the differing parts of two texts: long texts may differ in one word, and counting all is slow."""
    if isinstance(expected, str) and isinstance(observed, str):
        return differing_parts(expected, observed)
    return expected, observed


def _parts(value: object) -> Counter[str]:
    """The words in *value* and how often each occurs."""
    found: Counter[str] = Counter()
    left = [value]
    while left:
        part = left.pop()
        if isinstance(part, dict):
            found.update(list(part))
            left += part.values()
        elif isinstance(part, list):
            left += part
        else:
            found.update(_WORDS.findall(part) if isinstance(part, str) else (repr(part),))
    return found


def describe_unplaced(key: Key, request: object) -> ReplayDivergence:
    """The call *key* was made by code that belongs to no run while several runs are open."""
    return ReplayDivergence(
        code="event_unexpected",
        detail=f"{name_call(key.type, key.name)} was called by a thread that belongs to no run while several "
        "are open; start it inside its run",
        observed=Observed(key.type, _observed_data(key, request)),
        **called_from(None),
    )


def describe_early_call(
    source: ReplaySource, call: RecordedCall, earlier_seq: int, lane: Lane
) -> ReplayDivergence:
    """*call* came before an earlier call whose outcome the recorded run already had by then."""
    earlier = source.by_seq[earlier_seq]
    return ReplayDivergence(
        code="event_unexpected",
        detail=f"{name_call(call.type, call.name)} was called, but event {earlier_seq} "
        f"({name_call(earlier.type, earlier.name)}) came and ended before it in the recording",
        expected=_event(source, earlier_seq),
        observed=Observed(call.type, _event(source, call.seq)["data"]),
        event_seq=earlier_seq,
        lane=source.lane_name(lane),
    )


def describe_left_over(source: ReplaySource) -> list[ReplayDivergence]:
    """The recorded calls that never came and answered no other call.

    A call without an outcome when the recorded run ended need not come.
    """
    missing = [call for call in source.calls if not call.taken and not call.lent and call.outcome_seq]
    found = [
        ReplayDivergence(
            code="event_missing",
            detail=f"{_describe(source, call)} was recorded, but never called{_explain_stray(call.lane)}",
            expected=_event(source, call.seq),
            event_seq=call.seq,
            lane=call.lane,
        )
        for call in missing[:_LEFT_OVER]
    ]
    if len(missing) > _LEFT_OVER:
        rest = missing[_LEFT_OVER]
        detail = f"{len(missing) - _LEFT_OVER} further recorded calls never came"
        found.append(ReplayDivergence(code="event_missing", detail=detail, event_seq=rest.seq))
    return found


def _explain_stray(lane: str) -> str:
    """A hint if the call was made by code that the run had not started."""
    if not LaneName(lane).is_of_stray:
        return ""
    return (
        "; what made it was there before the run, as a server of a fixture is, which replay answers for: "
        "start it in the run, or call it by its test client"
    )


def compare_end(source: ReplaySource, error: BaseException | None) -> list[ReplayDivergence]:
    """A divergence if only one run ended with an error, or with errors of different classes.

    None if the recording broke off, or if another process replays the root lane and compares the end.
    """
    if not source.is_ours(ROOT):
        return []
    event = _event(source, len(source.reader))
    expected = str(event["data"].get("error", "")).partition(":")[0]
    observed = "" if error is None else type(error).__name__
    if event["type"] != "run_end" or expected == observed:
        return []
    is_status = not expected or not observed
    how = f"this one {f'with {observed}' if observed else 'without an error'}"
    return [
        ReplayDivergence(
            code="event_payload_mismatch",
            detail=f"the recorded run ended {f'with {expected}' if expected else 'without an error'}, {how}",
            expected=event,
            observed=Observed(
                "run_end", {"status": "error", "error": observed} if observed else {"status": "ok"}
            ),
            event_seq=event["seq"],
            json_path="$.data.status" if is_status else "$.data.error",
        )
    ]


def compare_tasks(
    source: ReplaySource, ends: list[tuple[str, str]], likeness: RunLikeness
) -> list[ReplayDivergence]:
    """A divergence for each function whose tasks ended differently from the recorded ones.

    Tasks are grouped by function, because one more task around them changes their lanes. If a function ran
    more or less often, only its outermost task is compared. If results may contain generated names or
    secrets, their digests cannot be compared, only whether the tasks returned.
    """
    is_exact = not likeness.renamed
    recorded, found = _by_function(source.ends, is_exact), _by_function(ends, is_exact)
    divergences = []
    for function, tasks in recorded.items():
        others = found.get(function, {})
        if HIDDEN in (*tasks.values(), *others.values()):
            tasks, others = _without_values(tasks), _without_values(others)
        if len(tasks) != len(others):
            lane = min(tasks, key=lambda name: (LaneName(name).depth, name))
            tasks = {lane: tasks[lane]}
            others = {lane: others[lane]} if lane in others else tasks
        then, now = Counter(tasks.values()), Counter(others.values())
        if then != now:
            ended, was = _describe_end(now - then), _describe_end(then - now)
            other = "returned another value than when it was recorded"
            detail = other if ended == was else f"{ended}, but when it was recorded it {was}"
            divergences.append(
                ReplayDivergence(
                    code="event_payload_mismatch",
                    detail=f"{function}() {detail}",
                    lane=next(iter(tasks)),
                )
            )
    return divergences


def _by_function(ends: list[tuple[str, str]], is_exact: bool) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for lane, how in ends:
        function, outcome = _read_end(how, is_exact)
        if outcome:  # a library's task has none
            found.setdefault(function, {})[lane] = outcome
    return found


def _without_values(tasks: dict[str, str]) -> dict[str, str]:
    return {lane: "=" if outcome.startswith("=") else outcome for lane, outcome in tasks.items()}


def _read_end(how: str, is_exact: bool) -> tuple[str, str]:
    function, _, outcome = how.partition(" ")
    return function, outcome if is_exact or not outcome.startswith("=") else "="


def _describe_end(outcomes: Counter[str]) -> str:
    outcome = next(iter(outcomes))
    if outcome.startswith("="):
        return "returned something else" if len(outcome) > 1 else "returned"
    return f"raised {outcome[1:]}" if outcome.startswith("^") else "was cancelled"


def compare_output(
    source: ReplaySource, text: bytes, digest: str, likeness: RunLikeness
) -> list[ReplayDivergence]:
    """A divergence if both runs have a final output and these differ."""
    seq = len(source.reader)
    event = _event(source, seq)
    recorded = event["data"] if event["type"] == "run_end" else {}
    if recorded.get("finalOutputHash") in (None, digest):
        return []
    output = msgspec.json.decode(text)
    expected = source.reader.resolve(recorded["finalOutput"])
    if likeness.is_same(seq, expected, output):
        return []
    places = differences(expected, output)
    return [
        ReplayDivergence(
            code="event_payload_mismatch",
            detail="the final output differs",
            expected=event,
            observed=Observed("run_end", {"finalOutput": output, "finalOutputHash": digest}),
            event_seq=seq,
            json_path=places[0].path.replace("$", "$.data.finalOutput", 1) if places else None,
            differences=places,
        )
    ]


def describe_unanswered(source: ReplaySource, call: RecordedCall, lane: Lane) -> ReplayDivergence:
    """The recorded caller stopped waiting before there was an answer; this one still waits."""
    how = "was cancelled by its caller" if call.outcome_seq else "never ended, the recording broke off"
    waited_s = (call.ended_ms - call.made_ms) / 1000
    return ReplayDivergence(
        code="event_missing",
        detail=f"{name_call(call.type, call.name)} {how} after {waited_s:.1f} s in the recording; "
        "the agent kept waiting for it",
        expected=_event(source, call.outcome_seq or call.seq),
        event_seq=call.outcome_seq or call.seq,
        lane=source.lane_name(lane),
        **called_from(lane),
    )


def read_on(source: ReplaySource, call: RecordedCall, lane: Lane) -> ReplayDivergence:
    """The recorded reader stopped before the end of the stream; this one reads on."""
    return ReplayDivergence(
        code="event_unexpected",
        detail=f"{name_call(call.type, call.name)}: the stream is read further than it was recorded",
        expected=_event(source, call.outcome_seq),
        event_seq=call.outcome_seq,
        lane=source.lane_name(lane),
        **called_from(lane),
    )


def name_call(event_type: str, name: str) -> str:
    """A call as a person would name it."""
    kinds = {"tool_call": "tool", "llm_request": "a model", "state_mutation": "a state change"}
    return f"{kinds.get(event_type, '')} {name}".strip()


def _describe(source: ReplaySource, call: RecordedCall) -> str:
    """A recorded call; a state change, which has no name, with its subject."""
    what = name_call(call.type, call.name)
    if call.type != "state_mutation":
        return what
    asked = source.request(call)
    details = asked.get("details")
    about = asked.get("path") or (details.get("name") if isinstance(details, dict) else None)
    return f"{what} ({asked['type']}{f' {about}' if isinstance(about, str) else ''})"


class CalledFrom(TypedDict):
    """Where in the agent's code a call was made."""

    source_line: str | None
    callers: tuple[str, ...]


def called_from(lane: Lane | None) -> CalledFrom:
    """The lines of the agent's own code that make the current call, which *lane* makes."""
    frames = calling_frames(lane)
    return {"source_line": frames[0] if frames else None, "callers": frames[1:]}


def _observed_data(key: Key, request: object) -> dict[str, object]:
    if key.type == "tool_call":
        return {"tool": key.name, "args": request}
    if key.type == "llm_request" or not isinstance(request, dict):
        return {"request": request}
    return request


def _event(source: ReplaySource, seq: int) -> dict[str, Any]:
    event: dict[str, Any] = msgspec.json.decode(source.reader.line(seq))
    return event


def _request_path(call: RecordedCall) -> str:
    """The JSON path of the request in a call's event."""
    if call.is_instant:
        return "$.data"
    return "$.data.args" if call.type == "tool_call" else "$.data.request"


def _are_within_texts(places: tuple[Difference, ...]) -> bool:
    """Whether the difference may be a small part of a text."""
    return any(isinstance(place.expected, str) and isinstance(place.observed, str) for place in places)


def _name_members(event_type: str, name: str) -> dict[str, str]:
    """The fields of an event that form a call's name."""
    if event_type == "tool_call":
        return {"tool": name}
    source, _, key = name.partition("/")
    return {"source": source, "key": key}


def _find_candidates(
    source: ReplaySource, key: Key, request: object, expected: RecordedCall | None, volatile: VolatileKeys
) -> tuple[Candidate, ...]:
    """Recorded calls of the same name near *expected*, most similar first; of equals, those not yet made."""
    same = source.calls_named(key.type, key.name)
    middle = bisect_left(same, expected.seq, key=lambda call: call.seq) if expected is not None else 0
    compared = [
        Candidate(
            event_seq=call.seq,
            name=call.name or call.type,
            lane=call.lane,
            differences=len(volatile.differences(call, request)),
            is_taken=call.taken,
        )
        for call in same[max(0, middle - _LOOKED_AT // 2) :][:_LOOKED_AT]
    ]
    return tuple(nsmallest(_CANDIDATES, compared, key=lambda near: (near.differences, near.is_taken)))

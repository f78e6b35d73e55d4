"""What differs between runs, and what of that a replay minds."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from reenact.comparing.differences import differences
from reenact.formats.divergence import DivergenceCode, ReplayDivergence
from reenact.volatile.alignment import AlignedCall, Alignment
from reenact.volatile.diagnosis import Diagnosis, Source
from reenact.volatile.masking import DEFAULTS, Masking


def asked(request: Any, seq: int = 2) -> AlignedCall:
    return AlignedCall(seq, "0", "llm_request", "", request)


def minded(
    expected: Any, observed: Any, /, *, code: DivergenceCode = "event_payload_mismatch", **more: Any
) -> ReplayDivergence:
    """A replay asked *observed* where the recording has *expected*."""
    places = differences(expected, observed)
    found = ReplayDivergence(
        code=code,
        detail="what a model is asked differs",
        expected={"type": "llm_request", "data": {"request": expected}},
        event_seq=2,
        json_path=f"$.data.request{places[0].path[1:]}",
        differences=places,
    )
    return msgspec.structs.replace(found, **more)


@pytest.fixture
def diagnosis() -> Diagnosis:
    return Diagnosis(Masking(DEFAULTS))


def only(diagnosis: Diagnosis) -> Source:
    [source] = diagnosis.sources()
    return source


def test_what_only_runs_show_is_in_the_recording(diagnosis: Diagnosis) -> None:
    """It differs, has two examples, and needs no rule."""
    pairs = [(asked({"a": 1}, 2), asked({"a": 2}, 2)), (asked({"a": 1}, 4), asked({"a": 1}, 4))]
    diagnosis.add_runs(Alignment(pairs, [], []))
    diagnosis.add_replay([])
    source = only(diagnosis)
    assert (source.call, source.path, source.examples) == ("llm", "$.a", (1, 2))
    assert (source.seqs, source.of, source.covered_by, source.rules) == ([2], 2, "recording", ())
    assert diagnosis.rules() == []


def test_what_a_replay_minds_gets_a_rule(diagnosis: Diagnosis) -> None:
    """Whether the runs had shown it or not."""
    diagnosis.add_runs(Alignment([(asked({"a": [1]}), asked({"a": [2]}))], [], []))
    diagnosis.add_replay([minded({"a": [2, 2]}, {"a": [3, 4]})])
    source = only(diagnosis)
    assert (source.path, source.seqs, source.covered_by) == ("$.a[*]", [2], "rule")
    assert [str(rule) for rule in diagnosis.rules()] == ["llm $.a[*]"]


def test_the_clock_of_a_program_gets_a_rule_although_no_replay_minds(diagnosis: Diagnosis) -> None:
    """It may have come in the same minute. What is recorded, and what is no time, gets none."""
    times = ["[Sun 2026-11-15 16:02 UTC] go, a1b2c3d4e5", "[Mon 2026-11-16 09:00 UTC] go, a1b2c3d4e5"]
    for has_own_clock in (False, True):
        pair = [
            asked({"text": text, "id": text[1:4] * 3})._replace(has_own_clock=has_own_clock) for text in times
        ]
        diagnosis.add_runs(Alignment([(pair[0], pair[1])], [], []))
        diagnosis.add_replay([])
        assert len(diagnosis.rules()) == has_own_clock
    [rule] = diagnosis.rules()
    assert rule.path == "$.text"
    assert [source.covered_by for source in diagnosis.sources()] == ["rule", "recording"]


def test_what_a_rule_covers_already_is_told_so(diagnosis: Diagnosis) -> None:
    """The ones that always hold are rules as well."""
    bodies = [{"body": {"user": name}} for name in ("x", "y")]
    diagnosis.add_runs(Alignment([(asked(bodies[0]), asked(bodies[1]))], [], []))
    diagnosis.add_replay([])
    assert (only(diagnosis).covered_by, only(diagnosis).rules) == ("rule", ())


UNCOVERED = {
    "a call too many": minded(1, 2, code="event_unexpected", expected=None, differences=()),
    "a call too few": minded(1, 2, code="event_missing", differences=()),
    "another tool": minded(1, 2, json_path="$.data.tool"),
    "another kind": minded(1, 2, code="event_type_mismatch"),
    "another call of its kind": minded(1, 2, answered_with=4),
    "another end": minded(1, 2, expected={"type": "run_end", "data": {}}),
    "another exit status": minded(1, 2, expected={"exitStatus": 1}),
}


@pytest.mark.parametrize("divergence", UNCOVERED.values(), ids=UNCOVERED)
def test_what_is_no_difference_in_a_request_is_a_reason(divergence, diagnosis) -> None:
    """And no rule is made from it."""
    diagnosis.add_replay([divergence])
    assert diagnosis.reasons == [divergence.headline]
    assert (diagnosis.rules(), diagnosis.sources()) == ([], [])


def test_an_item_more_is_a_reason(diagnosis: Diagnosis) -> None:
    """With its place."""
    diagnosis.add_replay([minded({"a": []}, {"a": [1]})])
    assert only(diagnosis).covered_by == "nothing"
    assert diagnosis.reasons == [
        "llm: $.a[0]: observed 1, expected nothing; no rule can cover an item more or less"
    ]


def test_a_later_replay_counts(diagnosis: Diagnosis) -> None:
    """Under the rules made so far there may be nothing left to mind."""
    diagnosis.add_replay([minded({"a": []}, {"a": [1]})])
    diagnosis.add_replay([])
    assert diagnosis.reasons == []


def test_calls_of_one_run_are_told(diagnosis: Diagnosis) -> None:
    """With the event and the run."""
    diagnosis.add_runs(Alignment([], [asked(1, 2)], [asked(2, 4)]))
    assert diagnosis.strays == [
        "event 2: llm was called by only the earlier run",
        "event 4: llm was called by only the later run",
    ]

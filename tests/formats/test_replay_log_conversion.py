"""Between the dialects: what both can hold arrives, the rest is named."""

import io
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.formats.dialects import DIALECTS, UnknownEvent, current, legacy
from reenact.formats.dialects.conversion import Converter
from reenact.formats.dialects.losses import Loss
from reenact.formats.record import ABSENT
from reenact.formats.replay_log import ReplayWriter, read_replay_log

from .replay_log_strategies import of_kind, patient, texts

GOLDEN = Path(__file__).parents[1] / "golden" / "replay_log"
TIME = "2026-02-15T00:00:00Z"
OTHER = {"current": "legacy", "legacy": "current"}


def converted(name: str, to: str) -> tuple[list, list[Loss]]:
    lines = read_replay_log(io.BytesIO((GOLDEN / f"{name}.jsonl").read_bytes()), file=name)
    converter = Converter(to)
    conversions = [converter.convert(event, line.number) for line, event in lines]
    return (
        [event for conversion in conversions for event in conversion.events],
        [loss for conversion in conversions for loss in conversion.losses],
    )


def turn(event, to: str):
    """One event alone, its losses as a dict from field to reason."""
    conversion = Converter(to).convert(event)
    return conversion.events, {loss.field: loss.reason for loss in conversion.losses}


def test_current_log_becomes_a_legacy_log_with_its_losses():
    """Every event arrives; each field that legacy lacks is named with its line."""
    events, losses = converted("current", "legacy")
    assert [type(event).__name__ for event in events] == [
        "ReplayHeader", "SessionStart", "ToolCall", "ToolResult",
        "ToolCall", "ToolResult", "Verification", "SessionEnd",
    ]  # fmt: skip
    assert [(loss.line, loss.event, loss.field) for loss in losses] == [
        (2, "SessionStart", "lane"),
        (2, "SessionStart", "repo"),
        (4, "ToolResult", "side_effects"),
        (6, "ToolResult", "error"),
        (6, "ToolResult", "side_effects"),
        (6, "ToolResult", "latency_ms"),
        (7, "Verification", "cwd"),
        (7, "Verification", "duration_ms"),
        (8, "SessionEnd", "summary"),
        (8, "SessionEnd", "total_latency_ms"),
    ]


def test_legacy_log_becomes_a_current_log_with_its_losses():
    """Plan events have no counterpart, and two commands become two verifications."""
    events, losses = converted("legacy", "current")
    assert [type(event).__name__ for event in events] == [
        "ReplayHeader", "SessionStart", "ToolCall", "ToolResult",
        "Verification", "Verification", "SessionEnd",
    ]  # fmt: skip
    assert [(loss.line, loss.event, loss.field) for loss in losses] == [
        (2, "SessionStart", "issue_number"),
        (2, "SessionStart", "policy_version"),
        (3, "PlanStart", None),
        (4, "ToolCall", "session_id"),
        (4, "ToolCall", "step_id"),
        (5, "ToolResult", "session_id"),
        (6, "StepComplete", None),
        (7, "Verification", "commands"),
        (7, "Verification", "session_id"),
        (8, "SessionEnd", "session_id"),
    ]
    assert [event.session_id for event in events[1:]] == ["sess_abc123"] * 6
    assert [event.verification_delta for event in events[4:6]] == [ABSENT, 3]


@pytest.mark.parametrize("name", ["current", "legacy", "current-published", "current-unknown"])
def test_what_comes_out_can_be_written(name):
    """A converted log is a log of the other dialect."""
    to = OTHER[name.partition("-")[0]]
    writer = ReplayWriter(io.BytesIO(), to)
    for event in converted(name, to)[0]:
        writer.emit(event)


def test_events_of_the_target_stay_as_they_are():
    """Converting to the dialect a log has changes nothing and loses nothing."""
    events, losses = converted("current-unknown", "current")
    assert losses == []
    assert [type(event).__name__ for event in events][2] == "UnknownEvent"


ALL_KINDS = [(name, kind) for name, dialect in DIALECTS.items() for kind in dialect.kind.__args__]


def session_of(name: str, session_id: str):
    """The converter there, one event behind a SessionStart, and the converter back."""
    there, back = Converter(OTHER[name]), Converter(name)
    start = DIALECTS[name].from_json(
        {DIALECTS[name].tag_field: "SessionStart", DIALECTS[name].time_field: TIME,
         "session_id": session_id, "policy_bundle_id": "p"}
    )  # fmt: skip
    for event in there.convert(start).events:
        back.convert(event)
    return there, back


@patient
@given(st.data(), st.sampled_from(ALL_KINDS), texts)
def test_whatever_changes_on_the_way_there_and_back_was_named(data, case, session_id):
    """Each field of each event comes back as it was, or stands among the losses of either way."""
    name, kind = case
    event = DIALECTS[name].from_json(data.draw(of_kind(kind)))
    there, back = session_of(name, session_id)
    gone = there.convert(event, 7)
    named = {loss.field for loss in gone.losses}
    returned = []
    for moved in gone.events:
        again = back.convert(moved, 7)
        named |= {loss.field for loss in again.losses}
        returned += again.events
    if len(returned) != 1:
        assert named & {None, "commands"}
        return
    for field in set(kind.__struct_fields__) - {"extra"}:
        before, after = getattr(event, field), getattr(returned[0], field)
        is_same = (type(before), before) == (type(after), after)  # 1000.0 is not 1000
        assert is_same or field in named, (field, before, after, named)
    assert returned[0].extra.items() <= event.extra.items()
    assert event.extra.keys() - returned[0].extra.keys() <= named
    assert all(loss.line == 7 for loss in gone.losses)


@patient
@given(of_kind(current.ToolCall, unknown=False), of_kind(current.ToolResult, unknown=False))
def test_a_call_and_its_result_stay_tied(call, result):
    """One id ties a call and its result in either dialect."""
    result["step_id"] = call["step_id"]
    (legacy_call,), _ = turn(current.DIALECT.from_json(call), "legacy")
    (legacy_result,), _ = turn(current.DIALECT.from_json(result), "legacy")
    assert legacy_call.id == legacy_result.id == call["step_id"]
    (current_call,), losses = turn(legacy_call, "current")
    assert current_call.step_id == call["step_id"]
    assert "step_id" not in losses


RESULT = legacy.ToolResult(id="1", latency_ms=1, output_hash="h", step_utility=0, t=TIME)
EXIT_CODES = {
    None: (True, False),
    ABSENT: (True, True),
    0: (True, True),
    1: (False, False),
    101: (False, True),
}


@pytest.mark.parametrize(("exit_code", "expected"), EXIT_CODES.items(), ids=map(str, EXIT_CODES))
def test_exit_code_becomes_ok(exit_code, expected):
    """Null and 0 are ok; a code that ok cannot give back is named."""
    (event,), losses = turn(msgspec.structs.replace(RESULT, exit_code=exit_code), "current")
    assert (event.ok, "exit_code" in losses) == expected


@pytest.mark.parametrize(("ok", "exit_code"), [(True, None), (False, 1)])
def test_ok_becomes_an_exit_code(ok, exit_code):
    """A failure never turns into a success on the way to legacy."""
    result = current.ToolResult(
        step_id="1", ok=ok, output_hash="h", latency_ms=1, side_effects=[], step_utility=0
    )
    (event,), losses = turn(result, "legacy")
    assert event.exit_code == exit_code
    assert losses.keys() == {"ts"}


STATUSES = [
    ("current", "success", "Success"),
    ("current", "failure", "Failed"),
    ("current", "cancelled", "Cancelled"),
    ("legacy", "Success", "success"),
    ("legacy", "Failed", "failure"),
    ("legacy", "Cancelled", "cancelled"),
    ("legacy", "Timeout", "failure"),
]


@pytest.mark.parametrize(("name", "status", "expected"), STATUSES)
def test_status_words(name, status, expected):
    """Each status has its word; a timeout is a failure in current, and that is named."""
    value = {"status": status, "confidence": 1, "total_tool_calls": 0, "total_latency_ms": 0}
    value |= {DIALECTS[name].tag_field: "SessionEnd", DIALECTS[name].time_field: TIME}
    (event,), losses = turn(DIALECTS[name].from_json(value), OTHER[name])
    assert event.status == expected
    assert ("status" in losses) == (status == "Timeout")


def test_missing_totals_are_counted_from_the_log():
    """Legacy requires totals; a current log without them gets its own sums, and says so."""
    lines = read_replay_log(io.BytesIO((GOLDEN / "current.jsonl").read_bytes()), file="current")
    converter = Converter("legacy")
    *body, end = [event for _, event in lines]
    for event in body:
        converter.convert(event)
    conversion = converter.convert(
        msgspec.structs.replace(end, total_tool_calls=ABSENT, total_latency_ms=ABSENT, summary=ABSENT)
    )
    assert (conversion.events[0].total_tool_calls, conversion.events[0].total_latency_ms) == (2, 128)
    # 127.5 was filled in and then rounded.
    assert Counter(loss.field for loss in conversion.losses) == {"total_latency_ms": 2, "total_tool_calls": 1}


def test_missing_time_is_that_of_the_event_before():
    """Legacy requires a time; the last one known stands in, and that is named."""
    converter = Converter("legacy")
    converter.convert(current.ReplayHeader(created_at=TIME, producer="p", replay_version=1))
    conversion = converter.convert(current.SessionStart(session_id="s", policy_bundle_id="p"))
    assert conversion.events[0].t == TIME
    assert [loss.field for loss in conversion.losses] == ["ts"]


def test_commands_and_exit_codes_without_a_partner_are_named():
    """Three commands and one exit code make one verification and a loss; no command makes none."""
    value = legacy.Verification(commands=["a", "b", "c"], exit_codes=[0], verification_delta=1, t=TIME)
    (event,), losses = turn(value, "current")
    assert (event.command, event.verification_delta) == ("a", 1)
    assert "2 without a partner" in losses["commands"]
    events, losses = turn(msgspec.structs.replace(value, commands=[]), "current")
    assert events == ()
    assert losses.keys() == {"exit_codes", None}


def test_parameters_that_are_no_object_are_named():
    """Legacy takes any value as params; current takes objects."""
    call = legacy.ToolCall(id="1", step_id="1", tool="t", params=[1], params_hash="h", t=TIME)
    (event,), losses = turn(call, "current")
    assert event.params is ABSENT
    assert losses.keys() == {"params"}


def test_another_session_is_named():
    """A legacy event belongs to the session that started; another one would be forgotten."""
    there, _ = session_of("current", "s")
    call = current.ToolCall(step_id="1", tool="t", params_hash="h", session_id="s", ts=TIME)
    assert there.convert(call).losses == ()
    (loss,) = there.convert(msgspec.structs.replace(call, session_id="t")).losses
    assert loss.field == "session_id"


def test_unknown_fields_are_carried_unless_their_name_is_taken():
    """An unknown field moves along; one whose name the target uses itself is named."""
    extra = {"cost": 3, "id": "x", "event": "y", "t": "z"}
    call = current.ToolCall(step_id="1", tool="t", params_hash="h", ts=TIME, extra=extra)
    (event,), losses = turn(call, "legacy")
    assert event.extra == {"cost": 3}
    assert losses.keys() == {"id", "event", "t"}


def test_unknown_events_are_carried_under_the_names_of_the_target():
    """An unknown event keeps its name, its time and its fields."""
    event = UnknownEvent({"type": "RuntimeEvent", "ts": TIME, "seq": 1})
    moved, losses = turn(event, "legacy")
    assert moved == (UnknownEvent({"event": "RuntimeEvent", "t": TIME, "seq": 1}),)
    assert losses == {}
    assert turn(*moved, "current") == ((event,), {})


def test_unknown_event_with_a_name_of_the_target_is_that_event_or_named():
    """PlanStart is unknown in current and known in legacy: it is one there, or is named as lost."""
    value = {"type": "PlanStart", "ts": TIME, "plan_hash": "h", "step_count": 3}
    assert turn(UnknownEvent(value), "legacy") == (
        (legacy.PlanStart(plan_hash="h", step_count=3, t=TIME),),
        {},
    )
    events, losses = turn(UnknownEvent({"type": "PlanStart"}), "legacy")
    assert events == ()
    assert "another event of this name" in losses[None]

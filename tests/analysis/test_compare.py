"""Two runs compared: by content and causality, whatever they were kept in."""

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reenact
from reenact.analysis.artifact import open_artifact
from reenact.analysis.compare import Comparison
from tests.analysis.recordings import ask, fetch, order, record, search, side_by_side

GOLDEN = Path(__file__).parents[1] / "golden"
QUERIES = st.lists(st.sampled_from(["lamp", "desk", "chair"]), max_size=6)


def compared(left, right, **options):
    with open_artifact(left) as ours, open_artifact(right) as theirs:
        comparison = Comparison(ours, theirs, **options)
        marks = [row.mark for row in comparison.rows(0, len(comparison))]
        return comparison, marks, list(comparison.changes())


def replay_log(file, params):
    """A log of one search."""
    digest = "sha256:" + "0" * 64
    call = {"params": params, "params_hash": digest, "step_id": "s", "tool": "search"}
    result = {"latency_ms": 1, "ok": True, "output_hash": digest, "side_effects": [], "step_id": "s"}
    header = {"created_at": "2026-01-01T00:00:00Z", "producer": "x", "replay_version": 1}
    events = [("ReplayHeader", header), ("ToolCall", call), ("ToolResult", result)]
    file.write_text(
        "".join(json.dumps({"type": name} | event, sort_keys=True) + "\n" for name, event in events)
    )
    return file


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(QUERIES, st.data())
def test_one_call_more_is_one_difference(tmp_path_factory, queries, data):
    """In real captures, wherever it was made; and none fewer the other way round."""
    place = data.draw(st.integers(0, len(queries)))
    root = tmp_path_factory.mktemp("runs")
    left = record(root / "a", *queries)
    right = record(root / "b", *queries[:place], "shelf", *queries[place:])
    assert sorted(compared(left, right)[1]) == sorted(["added", *["same"] * len(queries)])
    assert sorted(compared(right, left)[1]) == sorted(["removed", *["same"] * len(queries)])
    comparison, _, changes = compared(left, left)
    assert comparison.counts["same"] == len(queries)
    assert (comparison.first, changes) == (None, [])


def test_a_call_inside_another_is_compared_with_its_counterpart(tmp_path):
    """Also when the calls before it have become more."""
    for name, before in (("a", 0), ("b", 2)):
        with reenact.capture(tmp_path / name):
            for number in range(before):
                search(f"more {number}")
            with pytest.raises(KeyError):
                order("desk")
    _, marks, _ = compared(tmp_path / "a", tmp_path / "b")
    assert marks == ["added", "added", "same", "same"]


def test_tasks_side_by_side_are_compared_each_with_its_own(tmp_path):
    """However they interleaved."""
    for name, queries in (("a", "xyz"), ("b", "xyz"), ("c", "xyzw")):
        with reenact.capture(tmp_path / name):
            side_by_side(*queries)
    assert set(compared(tmp_path / "a", tmp_path / "b")[1]) == {"same"}
    assert sorted(compared(tmp_path / "a", tmp_path / "c")[1]) == ["added", "same", "same", "same"]


def test_a_changed_call_is_named_by_path(tmp_path):
    """What was asked and what came of it."""
    left, right = record(tmp_path / "a", "lamp", "desk"), record(tmp_path / "b", "lamp", "desks")
    comparison, marks, [change] = compared(left, right)
    assert (marks, comparison.first) == (["same", "changed"], 1)
    assert [(each.path, each.left, each.right) for each in change.changes] == [
        ("$.asked.arguments.query", "desk", "desks"),
        ("$.came.result.b[0]", "desk", "desks"),
        ("$.came.result.b[1]", "desk", "desks"),
    ]


def test_chance_is_expected_to_differ(tmp_path):
    """Unless strictness is asked for; one draw more is a difference all the same."""
    for name, draws in (("a", 1), ("b", 1), ("c", 2)):
        with reenact.capture(tmp_path / name) as run:
            for _ in range(draws):
                run.rng.random()
    assert compared(tmp_path / "a", tmp_path / "b")[1] == ["same"]
    assert compared(tmp_path / "a", tmp_path / "b", strict=True)[1] == ["changed"]
    assert compared(tmp_path / "a", tmp_path / "c")[1] == ["same", "added"]


def test_ids_that_are_made_anew_are_no_content(tmp_path):
    """A provider's ids of messages and calls differ in every run."""
    for name in ("a", "b"):
        call = {"id": f"call_{name}", "type": "function", "function": {"name": "find", "arguments": "{}"}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        answer = {
            "id": f"chat_{name}",
            "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        }
        with reenact.capture(tmp_path / name, redact="none"):
            ask("Where is it?", answer=answer)
    assert compared(tmp_path / "a", tmp_path / "b")[1] == ["same"]


def test_one_message_more_is_one_change(tmp_path):
    """Not every message behind it."""
    with reenact.capture(tmp_path / "a", redact="none"):
        ask("one", "two", "three")
    with reenact.capture(tmp_path / "b", redact="none"):
        ask("zero", "nought", "one", "two", "three")
    _, _, [change] = compared(tmp_path / "a", tmp_path / "b")
    assert [each.path for each in change.changes] == ["$.asked.messages[0]", "$.asked.messages[1]"]


def test_what_the_runs_came_to_is_compared(tmp_path):
    """Also where every step is the same."""
    for name in ("a", "b"):
        with reenact.capture(tmp_path / name) as run:
            search("lamp")
            run.final_output = {"answer": name}
    with open_artifact(tmp_path / "a") as left, open_artifact(tmp_path / "b") as right:
        comparison = Comparison(left, right)
        assert comparison.first is None
        [change] = comparison.outcome()
        assert (change.path, change.left, change.right) == ("$.finalOutput.answer", "a", "b")


def test_hidden_secrets_are_no_difference(tmp_path):
    """Their placeholders are other ones in every capture, and tell no more than the kind."""
    for name in ("a", "b"):
        with reenact.capture(tmp_path / name, redact="default") as run:
            run.final_output = search(f"the orders of ghp_{'a1' * 18}")
    assert compared(tmp_path / "a", tmp_path / "b")[1] == ["same"]
    with open_artifact(tmp_path / "a") as left, open_artifact(tmp_path / "b") as right:
        assert left.header().final_output != right.header().final_output
        comparison = Comparison(left, right)
        assert (comparison.first, comparison.outcome()) == (None, [])


def test_events_without_their_capture_are_compared_with_it(tmp_path):
    """Equal digests mean equal payloads, so blobs need not be there twice."""
    with reenact.capture(tmp_path / "a", redact="none"):
        fetch(20_000)
    shutil.copy(tmp_path / "a" / "events.jsonl", tmp_path / "old.jsonl")
    assert compared(tmp_path / "old.jsonl", tmp_path / "a")[1] == ["same"]


def test_a_published_log_equals_its_source():
    """As far as it says anything."""
    logs = GOLDEN / "replay_log"
    assert set(compared(logs / "current.jsonl", logs / "current-published.jsonl")[1]) == {"same"}


def test_artifacts_of_different_kinds_are_compared_by_what_both_say(tmp_path):
    """A log has digests of results, a capture the results."""
    with reenact.capture(tmp_path / "a", redact="none"):
        search("lamp", limit=1)
    log = replay_log(tmp_path / "REPLAY.jsonl", {"limit": 1, "query": "lamp"})
    assert compared(tmp_path / "a", log)[1] == ["same"]
    log = replay_log(tmp_path / "REPLAY.jsonl", {"limit": 1, "query": "lump"})
    assert compared(tmp_path / "a", log)[1] == ["changed"]


def test_steps_that_a_format_has_no_words_for_are_left_out(tmp_path):
    """A log knows tools alone; a trace does not know chance, and a capture no messages."""
    with reenact.capture(tmp_path / "a", redact="none") as run:
        ask("hi")
        run.clock.now()
        search("lamp")
    log = replay_log(tmp_path / "REPLAY.jsonl", {"limit": 2, "query": "lamp"})
    comparison, marks, _ = compared(tmp_path / "a", log)
    assert (marks, comparison.left_out) == (["same"], (2, 0))
    comparison, marks, _ = compared(GOLDEN / "trace" / "every-step.json", tmp_path / "a")
    assert comparison.left_out == (2, 1)


def test_totals_stand_side_by_side(tmp_path):
    """Steps, errors, time and tokens."""
    record(tmp_path / "a", "lamp")
    with reenact.capture(tmp_path / "b"):
        ask("hi")
        with pytest.raises(KeyError):
            order("desk")
    with open_artifact(tmp_path / "a") as left, open_artifact(tmp_path / "b") as right:
        ours, theirs = Comparison(left, right).totals()
    assert (ours.steps, ours.errors, ours.input_tokens) == (1, 0, 0)
    assert (theirs.steps, theirs.errors, theirs.input_tokens, theirs.output_tokens) == (3, 1, 100, 20)

"""A replay ends with a receipt: what was replayed, by what, under which rules, and what came of it."""

from __future__ import annotations

import importlib
import json
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import reenact
from reenact.formats.replay_receipt import ReplayReceipt, read_replay_receipt
from tests.twice import captured


@reenact.tool
def say(word: str) -> str:
    return f"said {word}"


def receipt_of(path: Path, agent: Callable[[reenact.Run], Any], **options: Any) -> ReplayReceipt:
    """The receipt of a replay, whatever its verdict."""
    run = reenact.replay(path, **options)
    try:
        with run:
            agent(run)
    except reenact.Diverged:
        pass
    assert run.receipt is not None
    return run.receipt


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    def agent(run: reenact.Run) -> None:
        run.final_output = say("hi")

    captured(tmp_path / "run", agent)
    return tmp_path / "run"


def test_a_receipt_is_bound_to_its_capture(capture: Path) -> None:
    """By the digest over the recorded events, as the manifest states it."""
    manifest = json.loads((capture / "manifest.json").read_bytes())
    receipt = receipt_of(capture, lambda run: say("hi"))
    assert receipt.verdict == "reproduced"
    assert receipt.capture.eventsHash == manifest["integrity"]["eventsHash"]
    assert receipt.capture.captureId == manifest["captureId"]
    assert receipt.capture.eventCount == manifest["eventCount"]


def test_a_receipt_names_the_rules(capture: Path) -> None:
    """Policy, redaction and the tools that passed through."""
    receipt = receipt_of(capture, lambda run: say("hi"), policy="lenient", passthrough=["b", "a"])
    assert (receipt.matching.policy, receipt.matching.passthroughTools) == ("lenient", ["a", "b"])
    assert receipt.matching.redaction in ("default", "strict")


def test_a_receipt_has_every_divergence(capture: Path) -> None:
    """As JSON, in the order in which they were found."""
    receipt = receipt_of(capture, lambda run: [say("x"), say("hi")], policy="lenient")
    assert receipt.verdict == "diverged"
    assert [found["code"] for found in receipt.divergences] == ["event_payload_mismatch"]


def test_a_receipt_counts_what_was_refused(capture: Path) -> None:
    """What tried to go live, with its target and the agent's line."""

    def agent(run: reenact.Run) -> None:
        say("hi")
        for port in (9, 10):
            try:
                socket.create_connection(("127.0.0.1", port), timeout=0.1)
            except Exception:
                continue

    receipt = receipt_of(capture, agent)
    assert receipt.verdict == "diverged"
    assert [(call.kind, call.target) for call in receipt.liveCallsRefused] == [
        ("connect", "127.0.0.1:9"),
        ("connect", "127.0.0.1:10"),
    ]
    assert __file__ in str(receipt.liveCallsRefused[0].frame)


def test_a_receipt_has_the_final_output(capture: Path) -> None:
    """As a digest: the one that the recording has, where both are equal."""
    recorded = json.loads((capture / "events.jsonl").read_bytes().splitlines()[-1])

    def agent(run: reenact.Run) -> None:
        run.final_output = say("hi")

    assert receipt_of(capture, agent).finalOutputHash == recorded["data"]["finalOutputHash"]
    assert receipt_of(capture, lambda run: say("hi")).finalOutputHash is None


def test_the_fingerprint_changes_with_the_agents_code(
    capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another line of code is another fingerprint; the same code is the same."""
    monkeypatch.syspath_prepend(str(tmp_path))
    source = tmp_path / "agent_under_replay.py"
    source.write_text("ANSWER = 1\n")
    module = importlib.import_module("agent_under_replay")
    try:
        first = receipt_of(capture, lambda run: say("hi")).fingerprint
        assert receipt_of(capture, lambda run: say("hi")).fingerprint == first
        source.write_text("ANSWER = 22\n")
        importlib.reload(module)
        second = receipt_of(capture, lambda run: say("hi")).fingerprint
    finally:
        del sys.modules["agent_under_replay"]
    assert second.code != first.code
    assert (second.packages, second.python) == (first.packages, first.python)


@pytest.mark.parametrize("word", ["hi", "x"])
def test_the_receipt_is_written(capture: Path, tmp_path: Path, word: str) -> None:
    """To the path that was asked for, into new folders too, also where the replay fails."""
    path = tmp_path / "receipts" / "today" / "receipt.json"
    receipt = receipt_of(capture, lambda run: say(word), receipt=path)
    assert read_replay_receipt(path.read_bytes(), file=str(path)) == receipt
    assert receipt.verdict == ("reproduced" if word == "hi" else "diverged")


def test_a_receipt_that_cannot_be_written_does_not_hide_the_divergence(capture: Path, tmp_path: Path) -> None:
    """What the replay found comes first."""
    (tmp_path / "file").write_text("in the way")
    with (
        pytest.raises(reenact.Diverged),
        reenact.replay(capture, receipt=tmp_path / "file" / "receipt.json"),
    ):
        say("x")


def test_a_receipt_tells_no_secret(tmp_path: Path) -> None:
    """Neither in its divergences nor in its refusals."""
    secret = "sk-ant-api03-" + "A" * 40
    captured(tmp_path / "run", lambda run: say("hi"))

    def agent(run: reenact.Run) -> None:
        say(f"my key is {secret}")

    receipt = receipt_of(tmp_path / "run", agent, receipt=tmp_path / "receipt.json")
    assert secret not in (tmp_path / "receipt.json").read_text()
    assert receipt.divergences


def test_notes_are_in_the_receipt(capture: Path) -> None:
    """Outcomes out of order are reported, and are no divergence."""
    receipt = receipt_of(capture, lambda run: say("hi"))
    # Newer Pythons tell that the recording was made by way of another module than this replay.
    assert [note for note in receipt.notes if not note.startswith("nothing of tests/twice.py")] == []
    assert receipt.liveCallsRefused == []

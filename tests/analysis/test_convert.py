"""Artifacts as other artifacts: what arrives verifies, and what does not is named."""

import json
from pathlib import Path

import anthropic
import pytest

import reenact
from reenact.analysis.convert import TARGETS, convert_artifact, convert_to_capture
from reenact.check.actions.action import ACTION
from reenact.check.artifact import check_artifact
from reenact.check.integrity.capture import check_capture
from reenact.check.receipts import check_receipt
from reenact.errors import FormatError, StoreError, UsageError
from reenact.formats.bundle import read_bundle
from reenact.formats.hashes import output_hash, trajectory_hash
from reenact.formats.receipt import read_receipt
from reenact.formats.replay_log import ReplayReader, read_replay_log
from reenact.formats.trace import read_trace
from reenact.store.reader import CaptureReader
from reenact.testing import Reply, ScriptedProvider, ToolCall
from tests.formats import GOLDEN

DERIVED = {"derived": True}
CURRENT = GOLDEN / "replay_log" / "current.jsonl"
LEGACY = GOLDEN / "replay_log" / "legacy.jsonl"


@reenact.tool
def search(query: str) -> dict[str, object]:
    return {"hits": (query,), "big": "x" * 20_000}


@reenact.tool
def send(to: str) -> None:
    raise TimeoutError("slow")


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """A run with a model, a tool that returns, one that fails, and chance."""
    path = tmp_path / "run"
    with (
        ScriptedProvider([Reply("tea it is")]) as provider,
        anthropic.Anthropic(base_url=provider.url, api_key="k") as client,
        reenact.capture(path) as run,
    ):
        run.rng.random()
        search("tea")
        with pytest.raises(TimeoutError):
            send(to="ann")
        asked = [{"role": "user", "content": "what to drink?"}]
        run.final_output = client.messages.create(model="m", max_tokens=9, messages=asked).content[0].text
    return path


def converted(path: Path, to: str, *, lenient: bool = False) -> tuple[bytes, set[str]]:
    """The text, and the names of what was lost."""
    losses = []
    text = b"".join(convert_artifact(path, to, on_loss=losses.append, lenient=lenient))
    return text, {loss.event if loss.field is None else f"{loss.event}.{loss.field}" for loss in losses}


def written(path: Path, text: bytes) -> Path:
    path.write_bytes(text)
    return path


def test_a_capture_becomes_a_log(capture: Path, tmp_path: Path) -> None:
    """Calls, results by hash, start and end are there; model calls and chance are named as lost."""
    text, lost = converted(capture, "replay-log")
    log = ReplayReader(lambda: written(tmp_path / "log", text).open("rb"))
    names = [type(event).__name__ for event in log]
    assert names == [
        "ReplayHeader",
        "SessionStart",
        *["ToolCall", "ToolResult"] * 2,
        "SessionEnd",
    ]
    found, failed = [event for event in log if type(event).__name__ == "ToolResult"]
    content = '{"big":"' + "x" * 20_000 + '","hits":["tea"]}'
    assert found.output_hash == output_hash(success=True, content=content, error=None)
    assert (failed.ok, failed.error.name, failed.error.message) == (False, "TimeoutError", "slow")
    assert {"llm_request", "llm_response", "nondeterministic", "tool_call.lane"} <= lost
    assert [*log][-1].summary == "tea it is"


def test_a_dialect_is_for_receipts() -> None:
    """A log has two targets; one that is not meant is not passed over."""
    with pytest.raises(UsageError, match="replay-log-legacy"):
        reenact.convert(CURRENT, "replay-log", dialect="legacy")


def test_a_capture_becomes_a_log_of_the_older_dialect(capture: Path, tmp_path: Path) -> None:
    """What neither dialect's step holds is named, whichever of the two steps lost it."""
    text, lost = converted(capture, "replay-log-legacy")
    assert ReplayReader(lambda: written(tmp_path / "log", text).open("rb")).dialect == "legacy"
    assert {"llm_request", "SessionEnd.summary"} <= lost


def test_tools_that_nobody_saw_are_derived_from_the_model_traffic(tmp_path: Path) -> None:
    """An agent whose tools are plain functions: a call in one answer, its result in the next request."""
    asked = [{"role": "user", "content": "what to drink?"}]
    wanted = [ToolCall("search", {"query": "tea"}), ToolCall("send", {"to": "ann"})]
    script = [Reply(tool_calls=wanted), Reply("tea")]
    with (
        ScriptedProvider(script) as provider,
        anthropic.Anthropic(base_url=provider.url, api_key="k") as client,
        reenact.capture(tmp_path / "run"),
    ):
        made = client.messages.create(model="m", max_tokens=9, messages=asked).content
        contents = [("green", False), ("no such address", True)]
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": content, "is_error": is_error}
            for block, (content, is_error) in zip(made, contents, strict=True)
        ]
        asked += [{"role": "assistant", "content": made}, {"role": "user", "content": results}]
        client.messages.create(model="m", max_tokens=9, messages=asked)
    log = written(tmp_path / "REPLAY.jsonl", converted(tmp_path / "run", "replay-log")[0])
    assert check_artifact(log).findings == []
    events = [*ReplayReader(lambda: log.open("rb"))]
    calls = [(event.tool, event.params, event.extra) for event in events if hasattr(event, "tool")]
    assert calls == [("search", {"query": "tea"}, DERIVED), ("send", {"to": "ann"}, DERIVED)]
    found = [(event.ok, event.output_hash) for event in events if hasattr(event, "output_hash")]
    assert found == [
        (True, output_hash(success=True, content="green", error=None)),
        (False, output_hash(success=False, content="", error="no such address")),
    ]


def test_the_receipt_of_a_capture_is_that_of_its_log(capture: Path, tmp_path: Path) -> None:
    """Both name the log that convert writes."""
    log = written(tmp_path / "REPLAY.jsonl", converted(capture, "replay-log")[0])
    receipt = converted(capture, "receipt")[0]
    assert receipt == converted(log, "receipt")[0]
    claims = read_receipt(receipt, "RECEIPT.json")
    assert [claim.tool for claim in claims.tool_calls] == ["search", "send"]


@pytest.mark.parametrize("log", [CURRENT, LEGACY], ids=["current", "legacy"])
@pytest.mark.parametrize("shape", ["current", "legacy"])
def test_a_receipt_in_either_shape_agrees_with_its_log(log: Path, shape: str, tmp_path: Path) -> None:
    """Whichever dialect the log has."""
    pieces = convert_artifact(log, "receipt", on_loss=lambda _: None, dialect=shape)
    receipt = written(tmp_path / "RECEIPT.json", b"".join(pieces))
    with log.open("rb") as stream, log.open("rb") as again:
        findings = check_receipt(
            read_receipt(receipt.read_bytes(), "RECEIPT.json"),
            read_replay_log(stream, file=log.name),
            trajectory_hash=trajectory_hash(again, file=log.name),
            file="RECEIPT.json",
            log_file=log.name,
        )
    assert findings == []


@pytest.mark.parametrize("log", [CURRENT, LEGACY], ids=["current", "legacy"])
@pytest.mark.parametrize("to", ["replay-log", "replay-log-legacy"])
def test_a_log_in_its_own_dialect_stays_as_it_is(log: Path, to: str) -> None:
    """Byte for byte; into the other dialect it differs and says so."""
    text, lost = converted(log, to)
    is_own = (log is CURRENT) == (to == "replay-log")
    assert (text == log.read_bytes()) is is_own
    assert bool(lost) is not is_own


@pytest.mark.parametrize("log", [CURRENT, LEGACY], ids=["current", "legacy"])
def test_a_log_becomes_the_skeleton_of_a_capture(log: Path, tmp_path: Path) -> None:
    """It verifies, says what it is, and serves no output: the log knows them by hash only."""
    losses = []
    out = tmp_path / "capture"
    convert_to_capture(log, out, on_loss=losses.append)
    assert check_capture(out).findings == []
    reader = CaptureReader(out)
    assert "by hash only" in reader.manifest.warnings[0]
    kinds = [event.data for event in reader.events()]
    assert all(data.result["$py"] == "opaque" for data in kinds if getattr(data, "ok", False))
    assert "Verification" in {loss.event for loss in losses}


def test_the_same_log_gives_the_same_skeleton(tmp_path: Path) -> None:
    """Nothing is drawn from clock or chance."""
    for name in ("a", "b"):
        convert_to_capture(CURRENT, tmp_path / name, on_loss=lambda _: None)
    for file in ("manifest.json", "events.jsonl"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_a_skeleton_gives_the_calls_of_its_log_again(tmp_path: Path) -> None:
    """Tools, parameters and their hashes survive the way there and back."""
    convert_to_capture(CURRENT, tmp_path / "c", on_loss=lambda _: None)
    back = written(tmp_path / "back.jsonl", converted(tmp_path / "c", "replay-log")[0])
    calls = [
        [(call.tool, call.step_id, call.params_hash) for call in ReplayReader(file).tool_calls()]
        for file in (lambda: CURRENT.open("rb"), lambda: back.open("rb"))
    ]
    assert calls[0] == calls[1]


def test_a_reference_in_a_log_is_not_followed_in_its_skeleton(tmp_path: Path) -> None:
    """What looks like one of a capture's own marks is kept as the plain value it is."""
    params = {"$blob": "sha256:" + "0" * 64, "bytes": 1}
    text = CURRENT.read_bytes().replace(b'{"command":"rg -n \\"foo\\" ."}', json.dumps(params).encode())
    convert_to_capture(written(tmp_path / "log.jsonl", text), tmp_path / "c", on_loss=lambda _: None)
    back = written(tmp_path / "back.jsonl", converted(tmp_path / "c", "replay-log")[0])
    assert next(ReplayReader(lambda: back.open("rb")).tool_calls()).params == params


def test_a_capture_becomes_a_trace_and_a_bundle(capture: Path) -> None:
    """Both can be read again; a bundle has no model calls, a trace no chance."""
    text, lost = converted(capture, "trace")
    assert [event.type for event in read_trace(text, "t").events][:2] == ["tool_call", "tool_result"]
    assert lost == {"run_start", "nondeterministic"}
    text, lost = converted(capture, "bundle")
    assert read_bundle(text, "b").final_output.content == "tea it is"
    assert lost == {"run_start", "nondeterministic", "llm_request", "llm_response"}


def test_a_bundle_becomes_a_trace_and_comes_back(tmp_path: Path) -> None:
    """The steps are the same again."""
    bundle = GOLDEN / "bundle" / "every-step.json"
    trace = written(tmp_path / "trace.json", converted(bundle, "trace")[0])
    again = read_bundle(converted(trace, "bundle")[0], "b")
    assert [type(step) for step in again.script] == [
        type(step) for step in read_bundle(bundle.read_bytes(), "b").script
    ]


def test_the_exchanges_of_a_capture_become_actions(capture: Path) -> None:
    """Each is accepted by the capsule, and names the event that asked."""
    text, lost = converted(capture, "actions")
    (action,) = map(json.loads, text.splitlines())
    assert ACTION.execute(action).is_accepted
    assert action["output"]["content"] == "tea it is"
    assert CaptureReader(capture).event(action["context"]["seq"]).data.model == "m"
    assert lost == set()


NO_WAYS = {
    "a log to actions": (CURRENT, "actions", "convert the capture"),
    "a bundle to a receipt": (GOLDEN / "bundle" / "scheduler.json", "receipt", "it can become trace"),
    "a receipt to a log": (GOLDEN / "receipt" / "current.json", "replay-log", "nothing else"),
}


@pytest.mark.parametrize("name", NO_WAYS)
def test_where_no_way_leads_the_message_says_where_one_does(name: str) -> None:
    """One line, with what is possible instead."""
    path, to, remedy = NO_WAYS[name]
    with pytest.raises(UsageError, match=remedy):
        converted(path, to)


@pytest.mark.parametrize("to", [to for to in TARGETS if to not in ("actions", "capture")])
def test_a_broken_line_stops_a_conversion_unless_it_is_lenient(to: str, tmp_path: Path) -> None:
    """Then the line is a loss like any other, and the rest arrives."""
    text = CURRENT.read_bytes().splitlines(keepends=True)
    log = written(tmp_path / "log.jsonl", b"".join([*text[:4], b"{broken\n", *text[4:]]))
    with pytest.raises(FormatError, match=r"log\.jsonl:5: "):
        converted(log, to)
    arrived, lost = converted(log, to, lenient=True)
    assert arrived
    assert "unreadable line" in lost


def test_a_log_that_breaks_off_leaves_no_capture(tmp_path: Path) -> None:
    """Not even the beginning of one."""
    log = written(tmp_path / "log.jsonl", CURRENT.read_bytes() + b"{half")
    with pytest.raises(FormatError):
        convert_to_capture(log, tmp_path / "out", on_loss=lambda _: None)
    assert [path.name for path in tmp_path.iterdir()] == ["log.jsonl"]


def test_a_capture_is_never_written_over(capture: Path) -> None:
    """The directory must be new or empty."""
    with pytest.raises(StoreError, match="holds a capture already"):
        convert_to_capture(CURRENT, capture, on_loss=lambda _: None)

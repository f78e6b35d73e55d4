"""What a run says of itself stands in its log: nothing is made up where the truth is known."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import decimal
import enum
import json
import pathlib
import subprocess
import uuid
from pathlib import Path
from threading import Thread
from typing import Annotated, Any

import anthropic
import msgspec
import pydantic
import pytest

import reenact
from reenact.analysis.convert import convert_artifact
from reenact.check.artifact import check_artifact, with_receipt
from reenact.errors import UsageError
from reenact.run.provenance import origin_of_run
from reenact.seams.validation import InvalidArguments, schema_of_signature
from reenact.testing import Reply, ScriptedProvider


@reenact.tool(side_effects=["payment"])
def pay(amount: int, to: str = "bob") -> dict[str, Any]:
    return {"stdout": "o" * 12_000, "stderr": "", "returncode": 3}


@reenact.tool
def work(path: str) -> str:
    subprocess.run(["true"], check=True)
    pathlib.Path(path).write_text("x")
    return "w" * 3_000


def agent(run: reenact.Run, folder: Path) -> None:
    run.plan({"steps": ["pay", "work"]})
    with run.step("step-1"):
        pay(3)
        run.step_utility(0.5)
    with run.step("step-2") as step:
        work(str(folder / "out.txt"))
        run.side_effect("deploy", place="staging")
        step.iterations = 2
    run.verification("make test", 0, verification_delta=2, duration_ms=12.5)
    run.confidence = 0.75
    run.final_output = "done"


def log_of(path: Path, to: str = "replay-log") -> list[dict[str, Any]]:
    text = b"".join(convert_artifact(path, to, on_loss=lambda _: None))
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    with reenact.capture(tmp_path / "run", policy_bundle_id="p1", issue_number=7) as run:
        agent(run, tmp_path)
    return tmp_path / "run"


def events_named(log: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [event for event in log if name in (event.get("type"), event.get("event"))]


def test_the_log_has_all_that_the_run_said(recorded: Path) -> None:
    """Policy, issue, plan, steps, effects, utility, verification and confidence."""
    log = log_of(recorded)
    (start,) = events_named(log, "SessionStart")
    assert (start["policy_bundle_id"], start["issue_number"]) == ("p1", 7)
    assert [event["plan_step_id"] for event in events_named(log, "ToolCall")] == ["step-1", "step-2"]
    paid, worked = events_named(log, "ToolResult")
    assert (paid["side_effects"], paid["step_utility"], paid["exit_code"]) == (["payment"], 0.5, 3)
    assert worked["side_effects"] == ["process_spawn", "fs_write"]
    assert [step["iterations"] for step in events_named(log, "StepComplete")] == [1, 2]
    (verified,) = events_named(log, "Verification")
    assert (verified["command"], verified["exit_code"]) == ("make test", 0)
    assert (verified["verification_delta"], verified["duration_ms"]) == (2, 12.5)
    assert log[-1]["confidence"] == 0.75
    older = log_of(recorded, "replay-log-legacy")
    assert events_named(older, "SessionStart")[0]["issue_number"] == 7
    assert [event["step_id"] for event in events_named(older, "ToolCall")] == ["step-1", "step-2"]
    assert [event["exit_code"] for event in events_named(older, "ToolResult")] == [3, None]
    assert len(events_named(older, "PlanStart")) == 1


def test_outputs_are_previewed_and_hashed_whole(recorded: Path) -> None:
    """2,000 characters of an output, 10,000 of a stream; the hash covers everything."""
    paid, worked = events_named(log_of(recorded), "ToolResult")
    assert worked["output_preview"] == "w" * 1_000 + "..." + "w" * 1_000
    assert (len(paid["stdout"]), paid["stderr"]) == (10_003, "")


@pytest.mark.parametrize("shape", ["current", "legacy"])
def test_the_receipt_of_either_shape_agrees_with_the_log(recorded: Path, shape: str, tmp_path: Path) -> None:
    """Whatever the run said of itself."""
    to = "replay-log" if shape == "current" else "replay-log-legacy"
    log, receipt = tmp_path / "REPLAY.jsonl", tmp_path / "RECEIPT.json"
    log.write_bytes(b"".join(convert_artifact(recorded, to, on_loss=lambda _: None)))
    pieces = convert_artifact(log, "receipt", on_loss=lambda _: None, dialect=shape)
    receipt.write_bytes(b"".join(pieces))
    assert with_receipt(check_artifact(log), receipt).findings == []


def test_a_replay_says_the_same_again(recorded: Path, tmp_path: Path) -> None:
    """How long a verification took may differ; what it found may not."""
    with reenact.replay(recorded) as run:
        agent(run, tmp_path)
    assert run.divergences == []
    with pytest.raises(reenact.Diverged), reenact.replay(recorded) as run:
        run.plan({"steps": ["something else"]})


def test_a_summary_is_for_people(recorded: Path) -> None:
    """What was done, changed and verified, each with its event."""
    text = b"".join(convert_artifact(recorded, "summary", on_loss=lambda _: None)).decode()
    verified = "`make test` passed, 2 fewer tests fail than before ([event "
    for words in ("succeeded", "issue #7", "`pay`", "wrote `", verified, "> done"):
        assert words in text
    assert "(events.jsonl#L" in text


@reenact.tool
def release(run: reenact.Run) -> str:
    run.side_effect("deploy", place="production")
    run.side_effect("announce")
    return "released"


def test_a_side_effect_stands_at_its_tool_or_is_named_as_lost(recorded: Path, tmp_path: Path) -> None:
    """A log has effects of tools alone; one that was told between two calls does not vanish unsaid."""
    losses: list[Any] = []
    list(convert_artifact(recorded, "replay-log", on_loss=losses.append))
    (lost,) = [loss for loss in losses if "no tool was running" in loss.reason]
    lines = (recorded / "events.jsonl").read_text().splitlines()
    assert '"side_effect"' in lines[lost.line - 1]
    with reenact.capture(tmp_path / "inside") as run:
        release(run)
    losses.clear()
    log = b"".join(convert_artifact(tmp_path / "inside", "replay-log", on_loss=losses.append))
    (result,) = events_named([json.loads(line) for line in log.splitlines()], "ToolResult")
    assert result["side_effects"] == ["deploy", "announce"]
    assert [loss.field for loss in losses if "the tag alone" in loss.reason] == ["details"]


@pytest.mark.parametrize(("delta", "words"), [(1, "1 fewer test fails"), (-2, "2 more tests fail")])
def test_a_summary_says_which_way_a_delta_goes(delta: int, words: str, tmp_path: Path) -> None:
    """Positive is better: fewer tests fail."""
    with reenact.capture(tmp_path / "run") as run:
        run.verification("make test", 1, verification_delta=delta)
    text = b"".join(convert_artifact(tmp_path / "run", "summary", on_loss=lambda _: None)).decode()
    assert f"`make test` failed with 1, {words} than before ([event 2](events.jsonl#L2))" in text


def test_what_a_receipt_claims_and_the_log_does_not_say_is_named(recorded: Path, tmp_path: Path) -> None:
    """The older dialect has no side effects, so that nothing there proves the receipt's."""
    older, receipt = tmp_path / "REPLAY.jsonl", tmp_path / "RECEIPT.json"
    older.write_bytes(b"".join(convert_artifact(recorded, "replay-log-legacy", on_loss=lambda _: None)))
    pieces = b"".join(convert_artifact(recorded, "receipt", on_loss=lambda _: None, dialect="legacy"))
    receipt.write_text(json.dumps(json.loads(pieces) | {"signature": "by hand"}))
    report = with_receipt(check_artifact(older), receipt)
    assert report.findings == []
    assert report.facts["claimedButNotInTheLog"] == ["signature", "tool_calls.side_effects"]


def test_a_summary_of_a_hostile_log_holds_no_markup(tmp_path: Path) -> None:
    """Whatever a tool or a model says is text."""
    with reenact.capture(tmp_path / "run") as run:
        run.final_output = "<script>x</script> [a](http://b) `c`\n# big"
    text = b"".join(convert_artifact(tmp_path / "run", "summary", on_loss=lambda _: None)).decode()
    assert "<script>" not in text
    assert "[a](" not in text
    assert "\n# big" not in text


def test_a_utility_is_a_number_from_minus_one_to_one(tmp_path: Path) -> None:
    """And belongs to a tool call of the same task."""
    with reenact.capture(tmp_path / "run") as run:
        with pytest.raises(UsageError, match="no tool was called"):
            run.step_utility(0.5)
        pay(1)
        with pytest.raises(UsageError, match="from -1 to 1"):
            run.step_utility(2)


def test_a_confidence_beyond_its_range_is_not_recorded(tmp_path: Path) -> None:
    """The run goes on and warns."""
    with reenact.capture(tmp_path / "run") as run:
        run.confidence = 7
    assert "run.confidence = 7" in run.warnings[0]
    assert log_of(tmp_path / "run")[-1]["confidence"] == 1.0


def test_steps_of_parallel_tasks_keep_their_calls_apart(tmp_path: Path) -> None:
    """A call belongs to the step that its own task, or one above it, is in."""

    async def do(run: reenact.Run, number: int) -> None:
        with run.step(f"step-{number}"):
            await asyncio.sleep(0)
            pay(number)

    async def main(run: reenact.Run) -> None:
        await asyncio.gather(*(do(run, number) for number in range(12)))

    with reenact.capture(tmp_path / "run") as run:
        asyncio.run(main(run))
    calls = events_named(log_of(tmp_path / "run"), "ToolCall")
    assert len(calls) == 12
    assert all(call["plan_step_id"] == f"step-{call['params']['amount']}" for call in calls)


# Where a run comes from


def git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


def test_the_repository_is_found(tmp_path: Path) -> None:
    """Remote, branch, commit, and whether files differ; a path on this machine is no remote."""
    git(tmp_path, "init", "-b", "trunk")
    git(tmp_path, "remote", "add", "origin", "https://example.com/app.git")
    (tmp_path / "a").write_text("1")
    git(tmp_path, "add", "a")
    git(tmp_path, "commit", "-m", "one")
    repo: Any = origin_of_run(environ={}, folder=tmp_path)["repo"]
    assert (repo["branch"], repo["remote"], repo["dirty"]) == (
        "trunk",
        "https://example.com/app.git",
        False,
    )
    assert len(repo["commit"]) == 40
    (tmp_path / "below").mkdir()
    (tmp_path / "a").write_text("2")
    git(tmp_path, "remote", "set-url", "origin", "/home/ann/app")
    repo = origin_of_run(environ={}, folder=tmp_path / "below")["repo"]
    assert repo["dirty"] is True
    assert "remote" not in repo


def test_continuous_integration_says_where_it_runs(tmp_path: Path) -> None:
    """What its variables say goes before what git finds; what nobody says is not made up."""
    (tmp_path / "event.json").write_text('{"pull_request": {"number": 12}}')
    github = {
        "GITHUB_REPOSITORY": "acme/shop",
        "GITHUB_SHA": "f" * 40,
        "GITHUB_HEAD_REF": "fix",
        "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
        "REENACT_POLICY_BUNDLE_ID": "p9",
    }
    assert origin_of_run(environ=github, folder=tmp_path) == {
        "policyBundleId": "p9",
        "issueNumber": 12,
        "repo": {"remote": "https://github.com/acme/shop", "commit": "f" * 40, "branch": "fix"},
    }
    assert origin_of_run(environ={}, folder=tmp_path) == {}


# Parameters are validated before the tool runs


def test_arguments_that_do_not_fit_never_reach_the_tool(tmp_path: Path) -> None:
    """The violation is the call's outcome, and replay repeats it."""
    ran: list[int] = []

    @reenact.tool(schema={"type": "object", "properties": {"amount": {"maximum": 10}}})
    def send(amount: int) -> int:
        ran.append(amount)
        return amount

    def run_it() -> None:
        assert send(5) == 5
        with pytest.raises(InvalidArguments, match=r"send: \$\.amount"):
            send(50)

    with reenact.capture(tmp_path / "run"):
        run_it()
    with reenact.replay(tmp_path / "run"):
        run_it()
    assert ran == [5]
    results = events_named(log_of(tmp_path / "run"), "ToolResult")
    assert [result["ok"] for result in results] == [True, False]
    run_it()  # outside any run too


def test_the_signature_is_a_schema() -> None:
    """Names, types and what has a default; what has no JSON form may be anything."""

    def find(query: str, limit: int = 3, *, tags: list[str] | None = None, run: Thread | None) -> None: ...

    schema = schema_of_signature(find)
    assert schema["required"] == ["query", "run"]
    assert schema["properties"]["limit"] == {"type": "integer"}
    assert {"title": "Thread"} in schema["properties"]["run"]["anyOf"]
    assert schema["additionalProperties"] is False


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Order(pydantic.BaseModel):
    name: str
    count: int = 1


FITTING: list[tuple[Any, Any]] = [
    (datetime.datetime, datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)),
    (datetime.date, datetime.date(2026, 1, 2)),
    (datetime.timedelta, datetime.timedelta(days=1)),
    (decimal.Decimal, decimal.Decimal("1.5")),
    (uuid.UUID, uuid.UUID(int=1)),
    (Colour, Colour.RED),
    (Point, Point(1)),
    (list[Point], [Point(1), {"x": 2}]),
    (Order, Order(name="a")),
    (dict[str, Order], {"one": Order(name="a")}),
    (bytes, b"a"),
    (tuple[int, str], (1, "a")),
    (set[int], {1}),
    (dict[int, str], {1: "a"}),
    (Path, Path("a")),
    (float, 1),
    (Annotated[int, msgspec.Meta(ge=1)], 1),
    (object, object()),
]
UNFIT: list[tuple[Any, Any]] = [
    (int, "1"),
    (Point, {"x": "one"}),
    (list[Point], [{"y": 1}]),
    (Order, {"count": 1}),
    (dict[str, Order], {"one": {"name": 1}}),
    (list[Path], "a"),
    (Colour, "blue"),
    (set[int], {"a"}),
    (Annotated[int, msgspec.Meta(ge=1)], 0),
]


@pytest.mark.parametrize(
    ("kind", "value"), FITTING + UNFIT, ids=lambda each: getattr(each, "__name__", type(each).__name__)
)
def test_the_signature_takes_what_the_function_takes(kind: Any, value: Any) -> None:
    """Values of Python's types as JSON has them, and none that the annotation does not allow."""

    def put(value: Any) -> str:
        return "put"

    put.__annotations__["value"] = kind
    checked = reenact.tool(schema="signature")(put)
    if (kind, value) in FITTING:
        assert checked(value) == "put"
    else:
        with pytest.raises(InvalidArguments, match=r"put: \$\.value"):
            checked(value)


def test_an_annotation_that_cannot_be_resolved_allows_anything() -> None:
    """It may be one for type checkers alone."""

    def put(value: NeverImported, count: int) -> str:  # type: ignore[name-defined]  # noqa: F821
        return "put"

    assert reenact.tool(schema="signature")(put)(object(), 1) == "put"


async def test_coroutines_are_validated_too(tmp_path: Path) -> None:
    """Before they are begun."""

    @reenact.tool(schema="signature")
    async def find(query: str) -> str:
        return query

    async with reenact.capture(tmp_path / "run"):
        assert await find("a") == "a"
        with pytest.raises(InvalidArguments):
            await find(3)  # type: ignore[arg-type]


def test_the_model_may_have_been_offered_the_schema(tmp_path: Path) -> None:
    """That of the latest model call which offered a tool of this name."""

    @reenact.tool(schema="offered")
    def lookup(city: str) -> str:
        return city

    offered = {"type": "object", "properties": {"city": {"enum": ["Rome"]}}, "required": ["city"]}
    with (
        ScriptedProvider([Reply("ok")]) as provider,
        anthropic.Anthropic(base_url=provider.url, api_key="k") as client,
        reenact.capture(tmp_path / "run"),
    ):
        assert lookup("Oslo") == "Oslo"  # nobody has offered anything yet
        client.messages.create(
            model="m",
            max_tokens=9,
            messages=[{"role": "user", "content": "where?"}],
            tools=[{"name": "lookup", "input_schema": offered}],
        )
        assert lookup("Rome") == "Rome"
        with pytest.raises(InvalidArguments):
            lookup("Oslo")


def test_a_schema_that_is_none_is_refused_where_it_is_written() -> None:
    """Not when the tool is first called."""
    with pytest.raises(UsageError, match="not a JSON Schema"):
        reenact.tool(schema={"type": "nonsense"})(lambda: None)

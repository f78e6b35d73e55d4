"""Recorded runs against a changed prompt, model or agent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

import reenact
from reenact.shadowing.experiment import shadow
from reenact.testing import Reply, Request, ScriptedProvider, ToolCall

RUNS = 50
LIVE: list[str] = []


@reenact.tool
def look_up(order: str) -> str:
    LIVE.append(order)
    return f"{order} is on its way"


def _say(request: Request) -> Reply:
    """Asked to be brief, the model does not look up every third order, and promises something."""
    messages = request.body["messages"]
    number = int(messages[0]["content"].split()[-1])
    is_brief = request.body["system"] == "Be brief."
    if len(messages) > 1:
        return Reply(text=f"Order {number}: {messages[-1]['content']}")
    if is_brief and number % 3 == 0:
        return Reply(text="It will be there tomorrow.")
    return Reply(tool_calls=(ToolCall("look_up", {"order": f"A-{number}"}),))


class Shop:
    """An agent, its provider, and fifty runs of it."""

    def __init__(self, provider: ScriptedProvider, folder: Path) -> None:
        self.provider = provider
        self.runs = folder
        self.client = httpx2.Client(verify=False)

    def agent(self, path: Path, system: str = "Help.") -> str:
        messages: list[Any] = [{"role": "user", "content": f"Where is order {int(path.name)}"}]
        while True:
            body = {"model": "m", "max_tokens": 9, "system": system, "messages": messages}
            url = self.provider.base_url("anthropic")
            answer = self.client.post(f"{url}/v1/messages", json=body).json()
            calls = [part for part in answer["content"] if part["type"] == "tool_use"]
            if not calls:
                return str(answer["content"][0]["text"])
            messages.append({"role": "assistant", "content": answer["content"]})
            messages.append({"role": "user", "content": look_up(**calls[0]["input"])})


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("runs")
    with ScriptedProvider(_say) as provider:
        shop = Shop(provider, folder)
        for number in range(RUNS):
            with reenact.capture(folder / f"{number:02}") as run:
                run.final_output = shop.agent(folder / f"{number:02}")
        yield shop
        shop.client.close()


TEST = """
schema_version: "0.1"
id: looks-before-it-promises
name: The order is looked up
mode: replay
adapter: mock
adapter_input: {capture: "00"}
scenario: {trigger: user_message}
assertions:
  - {id: looks, type: must_call_tool, severity: critical, params: {tool: look_up}}
"""


@pytest.fixture
def test_file(tmp_path: Path) -> Path:
    file = tmp_path / "test.yaml"
    file.write_text(TEST)
    return file


def test_a_changed_prompt_is_told_from_chance(shop: Shop, test_file: Path, tmp_path: Path) -> None:
    """Seventeen of fifty runs do without the tool now, and these are named."""
    LIVE.clear()
    report = shadow(
        shop.runs,
        shop.agent,
        change={"system": "Be brief."},
        on_miss="live",
        test=test_file,
        output=tmp_path / "out",
    )
    changed = [run for run in report.runs if run.difference == "tools"]
    assert [int(Path(run.path).name) for run in changed] == list(range(0, RUNS, 3))
    assert report.counts == {"same": 33, "words": 0, "tools": 17, "failed": 0}
    assert LIVE == []  # no tool was run again
    first = changed[0].first
    assert first is not None
    assert (first.recorded, first.candidate) == ('look_up {"order":"A-0"}', "nothing more")
    found = report.comparison
    assert (found.runs, found.worse, found.better) == (50, 17, 0)
    assert found.is_worse
    assert found.low < -0.34 < found.high < 0
    assert report.verdict.startswith("worse: the pass rate is 34 points lower (-")
    assert report.baseline == "replayed"
    with reenact.replay(tmp_path / "out" / "0001-00") as run:
        run.final_output = shop.agent(shop.runs / "00")
    assert changed[0].candidates[0].failed_assertions[0].startswith("looks: ")


def test_without_a_test_nothing_is_worse_that_ends_well(shop: Shop) -> None:
    """The runs that changed are named all the same; nothing is left behind."""
    before = sorted(shop.runs.iterdir())
    report = shadow(before[:4], shop.agent, change={"system": "Be brief."}, on_miss="live")
    assert report.counts["tools"] == 2
    assert report.verdict == "no difference can be told from this many runs"
    assert sorted(shop.runs.iterdir()) == before


def test_no_change_is_the_same(shop: Shop, test_file: Path) -> None:
    """Every call is answered from the recording."""
    asked = len(shop.provider.requests)
    report = shadow(sorted(shop.runs.iterdir())[:5], shop.agent, test=test_file)
    assert report.counts == {"same": 5, "words": 0, "tools": 0, "failed": 0}
    assert (report.baseline, len(shop.provider.requests)) == ("recorded", asked)
    assert report.comparison.p_value == 1


def test_an_agent_that_was_changed(shop: Shop) -> None:
    """Where the recording has no answer, the run has failed, with the call that is missing."""
    report = shadow(shop.runs / "04", lambda path: shop.agent(path, "Be kind."))
    assert report.counts["failed"] == 1
    assert "the recording does not have this call" in report.runs[0].candidates[0].problem
    live = shadow(shop.runs / "04", lambda path: shop.agent(path, "Be kind."), on_miss="live")
    assert live.counts["same"] == 1


def test_a_run_that_the_old_agent_does_not_reproduce_is_set_apart(shop: Shop) -> None:
    """It counts for nothing."""
    paths = [shop.runs / "01", shop.runs / "02"]
    report = shadow(
        paths,
        shop.agent,
        baseline=lambda path: shop.agent(path, "Help." if path.name == "01" else "Other."),
    )
    assert [bool(run.set_apart) for run in report.runs] == [False, True]
    assert (report.set_apart, report.comparison.runs) == (1, 1)


def test_samples_tell_how_reliable_a_run_is(shop: Shop, test_file: Path) -> None:
    report = shadow(
        [shop.runs / "00", shop.runs / "01"],
        shop.agent,
        change={"system": "Be brief."},
        on_miss="live",
        test=test_file,
        samples=3,
    )
    assert report.pass_power == {"1": 0.5, "2": 0.5, "3": 0.5}
    assert [len(run.candidates) for run in report.runs] == [3, 3]


def test_what_cannot_be_is_said_before_anything_runs(shop: Shop, tmp_path: Path, test_file: Path) -> None:
    asked = len(shop.provider.requests)
    wrong: list[tuple[type[Exception], str, dict[str, Any]]] = [
        (reenact.UsageError, "choose --on-miss live", {"change": {"model": "new"}}),
        (reenact.UsageError, "an outcome is changed in a fork", {"change": {"error": "OSError"}}),
        (reenact.UsageError, "at least 1", {"samples": 0}),
        (reenact.StoreError, "none.yaml: No such file", {"test": tmp_path / "none.yaml"}),
        (reenact.StoreError, "exists already", {"output": shop.runs}),
    ]
    for kind, message, options in wrong:
        with pytest.raises(kind, match=message):
            shadow(shop.runs, shop.agent, **options)
    with pytest.raises(reenact.StoreError, match="No such file or directory"):
        shadow(tmp_path / "nowhere", shop.agent)
    assert len(shop.provider.requests) == asked

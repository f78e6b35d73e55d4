"""Replay under volatile rules: equal but for what they name; other differences are reported."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

import reenact
from reenact.boundary import Call, crossing
from reenact.formats.capture import read_manifest, write_manifest
from reenact.formats.divergence import ReplayDivergence
from reenact.formats.volatile import VolatileRule, rules_in
from reenact.volatile.masking import DEFAULTS
from tests.replayer.stray import StrayThread
from tests.twice import captured, replayed

runs: list[str] = []


@reenact.tool
def search(query: str, when: str = "", **more: Any) -> str:
    runs.append(query)
    return f"found {query}"


def fetch(url: str) -> Any:
    with crossing(Call("network", f"GET {url}", {"method": "GET", "url": url})) as step:
        if step.live:
            step.answer = f"page {url}"
    return step.answer


def ask(text: str, **body: Any) -> Any:
    facts = {"provider": "p", "model": "m", "inputHash": "sha256:" + "0" * 64}
    request = {"method": "POST", "url": "http://a/v1", "body": {"messages": [{"content": text}], **body}}
    with crossing(Call("llm", "p", request, facts)) as step:
        if step.live:
            step.answer = f"answer to {text}"
            step.facts = {"provider": "p", "model": "m", "stopReason": None, "usage": None}
    return step.answer


def in_threads(*calls: Callable[[], Any]) -> list[Any]:
    """What the calls come to, each made in a job of its own."""
    with ThreadPoolExecutor(len(calls)) as pool:
        return [job.result() for job in [pool.submit(call) for call in calls]]


Agent = Callable[[reenact.Run], Any]
DATE = r"llm $.body.messages[*].content =~ \d{4}-\d\d-\d\d"

REPRODUCED: dict[str, tuple[Agent, Agent, list[str]]] = {
    "a member": (lambda run: search("a", "now"), lambda run: search("a", "later"), ["tool search $.when"]),
    "a member more": (lambda run: search("a"), lambda run: search("a", trace=1), ["$..trace"]),
    "a part of a text": (
        lambda run: ask("Today is 2026-11-15. Why?"),
        lambda run: ask("Today is 2026-11-16. Why?"),
        [DATE],
    ),
    "several calls in order": (
        lambda run: [search("a", "1"), search("b", "2"), search("a", "3")],
        lambda run: [search("a", "7"), search("b", "8"), search("a", "9")],
        ["$.when"],
    ),
    "threads": (
        lambda run: in_threads(lambda: search("a", "1"), lambda: search("b", "2")),
        lambda run: in_threads(lambda: search("a", "3"), lambda: search("b", "4")),
        ["$.when"],
    ),
    "an address": (
        lambda run: fetch("http://a/?t=1"),
        lambda run: fetch("http://a/?t=2"),
        [r"network $.url =~ t=\d+"],
    ),
    "a state": (
        lambda run: run.memory_write("a", {"at": 1, "what": 2}),
        lambda run: run.memory_write("a", {"at": 3, "what": 2}),
        ["state $.content.at"],
    ),
    "what always may": (lambda run: ask("a", user="1"), lambda run: ask("a", user="2"), []),
}  # fmt: skip


@pytest.mark.parametrize(("recorded", "agent", "rules"), REPRODUCED.values(), ids=REPRODUCED)
def test_what_a_rule_names_may_differ(tmp_path, recorded, agent, rules) -> None:
    """The recorded answers are given, nothing is reported, and nothing runs."""
    before = captured(tmp_path / "run", recorded)
    runs.clear()
    assert replayed(tmp_path / "run", agent, volatile=rules) == before
    assert runs == []


@pytest.mark.parametrize("name", [name for name, (_, _, rules) in REPRODUCED.items() if rules])
def test_without_the_rule_it_differs(tmp_path, name) -> None:
    """Nothing is passed over that nobody named."""
    recorded, agent, _ = REPRODUCED[name]
    captured(tmp_path / "run", recorded)
    with pytest.raises(reenact.Diverged):
        replayed(tmp_path / "run", agent)


def test_a_rule_covers_nothing_else(tmp_path) -> None:
    """What differs beside the volatile part is reported, and the volatile part is not."""
    captured(tmp_path / "run", lambda run: search("a", "now"))
    with pytest.raises(reenact.Diverged) as caught:
        replayed(tmp_path / "run", lambda run: search("b", "later"), volatile=["$.when"])
    found = caught.value.divergence
    assert [place.path for place in found.differences] == ["$.query"]
    assert [near.differences for near in found.candidates] == [1]


def test_an_equal_call_goes_before_one_that_is_equal_but_for_a_rule(tmp_path) -> None:
    """Siblings that a rule makes alike keep their own answers wherever they are unchanged."""

    def recorded(run: reenact.Run) -> list[Any]:
        return in_threads(lambda: [search("a", "1"), search("x")], lambda: [search("a", "2"), search("y")])

    def swapped(run: reenact.Run) -> list[Any]:
        return in_threads(lambda: [search("a", "2"), search("y")], lambda: [search("a", "1"), search("x")])

    captured(tmp_path / "run", recorded)
    assert replayed(tmp_path / "run", swapped, volatile=["$.when"]) == [
        ["found a", "found y"],
        ["found a", "found x"],
    ]


def test_calls_in_no_known_order_get_their_own_answers(tmp_path) -> None:
    """Those of threads that were there before the run, as those that come through a gateway."""
    with StrayThread() as pool:
        captured(tmp_path / "run", lambda run: pool.starmap(search, [("a", "1"), ("b", "2"), ("c", "3")]))
        found = replayed(
            tmp_path / "run",
            lambda run: pool.starmap(search, [("c", "7"), ("b", "2"), ("a", "9")]),
            volatile=["$.when"],
        )
    assert found == ["found c", "found b", "found a"]


# Where rules come from


def test_rules_are_kept_in_the_capture(tmp_path) -> None:
    """Given when recording, they need not be given again; the manifest has them."""
    captured(tmp_path / "run", lambda run: search("a", "now"), volatile=["$.when"])
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_bytes())
    assert manifest["volatile"] == [{"path": "$.when"}]
    replayed(tmp_path / "run", lambda run: search("a", "later"))


def test_rules_of_the_project_hold(tmp_path, monkeypatch) -> None:
    """The nearest reenact.toml upwards."""
    captured(tmp_path / "run", lambda run: search("a", "now"))
    (tmp_path / "reenact.toml").write_text("[[volatile]]\npath = '$.when'\n")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    replayed(tmp_path / "run", lambda run: search("a", "later"))


def test_the_receipt_names_the_rules_in_force(tmp_path, monkeypatch) -> None:
    """All of them, each once: what always holds, the capture's, the project's and those given."""
    captured(tmp_path / "run", lambda run: search("a"), volatile=["$.a"])
    (tmp_path / "reenact.toml").write_text("[[volatile]]\npath = '$.b'\n[[volatile]]\npath = '$.a'\n")
    monkeypatch.chdir(tmp_path)
    with reenact.replay(tmp_path / "run", volatile=["$.c", {"path": "$.d", "mask": "x"}]) as run:
        search("a")
    assert run.receipt is not None
    told = [str(rule) for rule in run.receipt.matching.volatile]
    assert told == [*map(str, DEFAULTS), "$.a", "$.b", "$.c", "$.d =~ x"]


WRONG: dict[str, Any] = {
    "no path": "x",
    "a bad mask": "$ =~ (",
    "no table": {"mask": "x"},
    "more": {"path": "$", "x": 1},
}


@pytest.mark.parametrize("rule", WRONG.values(), ids=WRONG)
def test_a_wrong_rule_is_refused_at_once(tmp_path, rule) -> None:
    """Before anything is recorded or replayed."""
    captured(tmp_path / "run", lambda run: search("a"))
    with pytest.raises(reenact.UsageError, match=r"^volatile: "):
        reenact.replay(tmp_path / "run", volatile=[rule])
    with pytest.raises(reenact.UsageError, match=r"^volatile: "):
        reenact.capture(tmp_path / "new", volatile=[rule])
    assert not (tmp_path / "new").exists()


# The rule to add


def divergence(path: Path, recorded: Agent, agent: Agent) -> ReplayDivergence:
    captured(path, recorded)
    with pytest.raises(reenact.Diverged) as caught:
        replayed(path, agent)
    found = caught.value.divergence
    assert isinstance(found, ReplayDivergence)
    return found


SUGGESTED = {
    "a date in a prompt": (
        lambda run: ask("You help.\nToday is 2026-11-15.\nBe kind."),
        lambda run: ask("You help.\nToday is 2026-11-16.\nBe kind."),
        [r"llm $.body.messages[*].content =~ Today is \d{4}-\d\d-\d\d"],
    ),
    "a working directory and a duration": (
        lambda run: ask("cwd: /home/ada/shop\ntook 0.31 s"),
        lambda run: ask("cwd: /tmp/x1/shop\ntook 12 s"),
        [
            r"llm $.body.messages[*].content =~ cwd: (?:/[\w.@+~-]+)+",
            r"llm $.body.messages[*].content =~ took \d+(?:\.\d+)? ?(?:ns|µs|us|ms|s|seconds?)",
        ],
    ),
    "an identifier": (
        lambda run: search("a", "0e98a0e4-32d2-4e4a-a0a1-0b5f0f4d8f11"),
        lambda run: search("a", "5b1f7a10-9a52-4a3a-8d0c-4d1c9a6d2e55"),
        ["tool search $.when"],
    ),
}


@pytest.mark.parametrize(("recorded", "agent", "rules"), SUGGESTED.values(), ids=SUGGESTED)
def test_the_rule_to_add_is_shown(tmp_path, recorded, agent, rules) -> None:
    """In text ready to paste and in JSON; with it the same replay passes."""
    found = divergence(tmp_path / "run", recorded, agent)
    assert [str(rule) for rule in found.volatile] == rules
    pasted = found.explain().partition("add to reenact.toml:\n")[2]
    assert rules_in(tomllib.loads(pasted), file="pasted") == found.volatile
    assert ReplayDivergence.from_json(found.to_json()) == found
    replayed(tmp_path / "run", agent, volatile=found.to_json()["volatile"])


REAL = {
    "another word": (lambda run: search("lamp"), lambda run: search("desk")),
    "another number": (lambda run: search("a", "page 1"), lambda run: search("a", "page 2")),
    "a word beside the date": (
        lambda run: ask("Today is 2026-11-15, Oslo"),
        lambda run: ask("Today is 2026-11-16, Bergen"),
    ),
    "another message": (lambda run: ask("a", tools=[1]), lambda run: ask("a", tools=[1, 2])),
    "another tool": (lambda run: search("a"), lambda run: ask("a")),
}


@pytest.mark.parametrize(("recorded", "agent"), REAL.values(), ids=REAL)
def test_no_rule_is_shown_for_what_may_be_a_real_difference(tmp_path, recorded, agent) -> None:
    """Masking a question away would serve the answer to another."""
    found = divergence(tmp_path / "run", recorded, agent)
    assert found.volatile == ()
    assert "reenact.toml" not in found.explain()
    assert "volatile" not in found.to_json()


def test_a_capture_with_a_rule_that_cannot_be_read_is_refused(tmp_path) -> None:
    """The manifest is from outside."""
    captured(tmp_path / "run", lambda run: search("a"))
    file = tmp_path / "run" / "manifest.json"
    manifest = read_manifest(file.read_bytes(), file="manifest.json")
    file.write_bytes(write_manifest(msgspec.structs.replace(manifest, volatile=[VolatileRule(path="x")])))
    with pytest.raises(reenact.FormatError, match=r"manifest.json: \$.volatile\[0\]: a path begins with \$"):
        reenact.replay(tmp_path / "run")


# The how-to


PAGE = Path(__file__).parents[2] / "docs" / "howto" / "volatile-values.md"


def test_the_example_holds(tmp_path, monkeypatch) -> None:
    """The program asserts by itself that it was answered from the recording."""
    [program] = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(program, str(PAGE), "exec"), {"__name__": "example"})


def test_the_page_names_every_default() -> None:
    """What always may differ is argued for."""
    text = PAGE.read_text(encoding="utf-8")
    assert all(f"{rule.path}`" in text for rule in DEFAULTS)

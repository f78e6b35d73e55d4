"""Lenient replay answers with the likest call that may be due, and says which it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import reenact
from reenact.boundary import Call, crossing
from reenact.comparing.differences import Difference
from reenact.replayer.nearest import distance
from tests.replayer.stray import StrayThread
from tests.twice import captured


@reenact.tool
def say(word: str) -> str:
    return f"said {word}"


def ask(*messages: str) -> Any:
    facts = {"provider": "p", "model": "m", "inputHash": "sha256:" + "0" * 64}
    with crossing(Call("llm", "p", {"messages": list(messages)}, facts)) as step:
        if step.live:
            step.answer = f"answer {len(messages)}"
            step.facts = {"provider": "p", "model": "m", "stopReason": None, "usage": None}
    return step.answer


def fetch(url: str) -> Any:
    with crossing(Call("network", f"GET {url}", {"method": "GET", "url": url})) as step:
        if step.live:
            step.answer = f"page {url}"
    return step.answer


@pytest.fixture
def pool() -> Iterator[StrayThread]:
    """A thread that was there before the run: its calls have no known order, as those at the gateway."""
    with StrayThread() as found:
        yield found


Agent = Callable[[reenact.Run], Any]


def lenient(path: Path, agent: Agent) -> tuple[Any, list[tuple[int | None, int | None]]]:
    """What *agent* comes to, and of each divergence the event it is compared with and the one it is given."""
    with reenact.replay(path, policy="lenient", stall_s=0.2) as run:
        result = agent(run)
    return result, [(found.event_seq, found.answered_with) for found in run.divergences]


def chat(turns: int, tool: str) -> list[Any]:
    """A conversation in which each turn carries what a tool said before."""
    messages, answers = ["Hello"], []
    for number in range(turns):
        answers.append(ask(*messages))
        messages += [answers[-1], f"{tool} output {number}"]
    return answers


@pytest.mark.parametrize("turns", [3, 45])
def test_a_conversation_in_no_known_order_goes_on(turns: int, tmp_path: Path, pool: StrayThread) -> None:
    """Every turn differs from its own recorded one, and gets that one's answer."""
    recorded = captured(tmp_path / "run", lambda run: pool.apply(chat, (turns, "old")))
    result, told = lenient(tmp_path / "run", lambda run: pool.apply(chat, (turns, "new")))
    assert result == recorded
    assert told == [(seq, seq) for seq in range(4, 2 * turns + 2, 2)]


def test_parallel_calls_get_the_answers_of_their_likes(tmp_path: Path, pool: StrayThread) -> None:
    """Whatever their order, where none depends on another."""
    words = ["alpha one", "beta two", "gamma three"]
    captured(tmp_path / "run", lambda run: pool.map(say, words))
    changed = [f"{word}!" for word in reversed(words)]
    result, _ = lenient(tmp_path / "run", lambda run: pool.map(say, changed))
    assert result == [f"said {word}" for word in reversed(words)]


def test_a_liker_call_further_on_goes_before_the_one_in_its_place(tmp_path: Path) -> None:
    """The agent left something out and changed what follows; the answer is reported to be from there."""
    captured(tmp_path / "run", lambda run: [say("alpha"), say("the second question")])
    result, told = lenient(tmp_path / "run", lambda run: say("the second question!"))
    assert result == "said the second question"
    assert told == [(2, 4), (2, None)]


def test_the_call_in_its_place_goes_before_one_as_like(tmp_path: Path) -> None:
    """What was not due is no better without a reason."""
    captured(tmp_path / "run", lambda run: [say("a"), say("b")])
    assert lenient(tmp_path / "run", lambda run: [say("x"), say("y")]) == (
        ["said a", "said b"],
        [(2, 2), (4, 4)],
    )


def test_another_address_is_answered_too(tmp_path: Path) -> None:
    """The address is part of what is asked, not of what kind of call it is."""
    captured(tmp_path / "run", lambda run: fetch("http://a/?q=1"))
    result, told = lenient(tmp_path / "run", lambda run: fetch("http://a/?q=2"))
    assert (result, told) == ("page http://a/?q=1", [(2, 2)])


def test_the_answer_from_elsewhere_is_shown(tmp_path: Path) -> None:
    """In the text, where it is not the event that was due."""
    captured(tmp_path / "run", lambda run: [say("alpha"), say("the second question")])
    with reenact.replay(tmp_path / "run", policy="lenient") as run:
        say("the second question!")
    assert "  answered     with the outcome of event 4\n" in run.divergences[0].explain() + "\n"
    assert "answered" not in run.divergences[1].explain()


def test_it_is_the_same_every_time(tmp_path: Path, pool: StrayThread) -> None:
    """Equally like calls are lent in recorded order."""
    captured(tmp_path / "run", lambda run: pool.map(say, ["a", "b", "c", "d"]))
    first, again = (lenient(tmp_path / "run", lambda run: pool.map(say, "wxyz")) for _ in range(2))
    assert first == again == (["said a", "said b", "said c", "said d"], [(seq, seq) for seq in (2, 4, 6, 8)])


DISTANCES = {
    "nothing": ([], 0.0),
    "a number": ([Difference("$", 1, 2)], 1.0),
    "a member more": ([Difference("$.a", observed="x")], 1.0),
    "other words": ([Difference("$", "abc", "xyz")], 1.0),
    "half of a text": ([Difference("$", "ab-cd", "ab+cdefgh")], 1 - 2 / 9),
    "the middle": ([Difference("$", "ab-cd", "ab+cd")], 1 - 4 / 5),
    "a longer beginning": ([Difference("$", "ab", "xab")], 1 - 2 / 3),
    "one repeated": ([Difference("$", "aa", "aaa")], 1 - 2 / 3),
    "an empty text": ([Difference("$", "", "a")], 1.0),
}


@pytest.mark.parametrize(("places", "expected"), DISTANCES.values(), ids=DISTANCES)
def test_distance(places: list[Difference], expected: float) -> None:
    """Places count; texts by how much of them is another."""
    assert distance(places) == pytest.approx(expected)

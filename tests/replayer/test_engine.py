"""``ReplayEngine``: recorded answers for equal calls; strict raises, lenient collects and goes on."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import reenact
from reenact.boundary import Call, crossing
from reenact.formats.divergence import ReplayDivergence
from reenact.redaction import Redactor
from reenact.replayer.engine import ReplayEngine
from reenact.replayer.source import ReplaySource
from tests.twice import captured, replayed, twice


@reenact.tool
def say(word: Any) -> str:
    return f"said {word}"


@reenact.tool
def shout(word: str) -> str:
    return word.upper()


def ask(prompt: Any) -> Any:
    """A model call, as a seam makes it."""
    facts = {"provider": "p", "model": "m", "inputHash": "sha256:" + "0" * 64}
    with crossing(Call("llm", "p", {"messages": prompt}, facts)) as step:
        if step.live:
            step.answer = {"b": f"answer to {prompt}", "a": 1}
            step.facts = {"provider": "p", "model": "m", "stopReason": None, "usage": None}
    return step.answer


def saying(*words: str) -> Callable[[reenact.Run], list[str]]:
    return lambda run: [say(word) for word in words]


# The seed's contract


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    captured(tmp_path / "run", lambda run: [ask("hello"), say("hi"), run.clock.now()])
    return tmp_path / "run"


def engine(path: Path, **options: Any) -> ReplayEngine:
    return ReplayEngine(ReplaySource(path), Redactor("none", salt=b""), **options)


def test_the_engine_answers_model_tool_and_chance(capture: Path) -> None:
    """Each method gives the recorded value, in whatever order the members were put together."""
    found = engine(capture)
    assert found.replay_llm_request({"messages": "hello"}) == {"a": 1, "b": "answer to hello"}
    assert found.replay_tool_call("say", {"word": "hi"}) == "said hi"
    assert isinstance(found.replay_nondeterministic("clock", "now"), float)
    assert found.divergences() == []


def test_the_engine_raises_at_the_first_divergence(capture: Path) -> None:
    """And at everything after it."""
    found = engine(capture)
    with pytest.raises(reenact.Diverged, match="event_type_mismatch"):
        found.replay_tool_call("say", {"word": "hi"})
    with pytest.raises(reenact.Diverged, match="event_type_mismatch"):
        found.replay_llm_request({"messages": "hello"})
    assert [one.code for one in found.divergences()] == ["event_type_mismatch"]


def test_a_lenient_engine_collects(capture: Path) -> None:
    """Divergences are appended, and what is recorded is given all the same."""
    found = engine(capture, policy="lenient")
    assert found.replay_llm_request({"messages": "hello?"})["a"] == 1
    assert found.replay_tool_call("say", {"word": "hi!"}) == "said hi"
    assert [one.code for one in found.divergences()] == ["event_payload_mismatch"] * 2


def test_the_context_of_a_replay_gives_recorded_chance(capture: Path) -> None:
    """What the seed calls ``nextNondeterministic``; a context that records has none to give."""
    found = engine(capture)
    found.replay_llm_request({"messages": "hello"})
    found.replay_tool_call("say", {"word": "hi"})
    assert isinstance(found.next_nondeterministic("clock", "now"), float)


def test_the_order_of_members_of_an_answer_is_kept(tmp_path: Path) -> None:
    """A model's answer has its members in the order in which they came."""
    assert twice(tmp_path / "run", lambda run: list(ask("x"))) == ["b", "a"]


# Swallowed divergences


def swallowed_in_place(run: reenact.Run) -> None:
    with contextlib.suppress(Exception):
        say("other")


def swallowed_in_a_thread(run: reenact.Run) -> None:
    thread = threading.Thread(target=swallowed_in_place, args=(run,))
    thread.start()
    thread.join()


def swallowed_in_a_pool(run: reenact.Run) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(say, "other").exception()


async def swallowed_in_a_task(run: reenact.Run) -> None:
    async def call() -> None:
        say("other")

    await asyncio.gather(call(), return_exceptions=True)


def swallowed_in_a_generator(run: reenact.Run) -> None:
    def words() -> Iterator[str]:
        try:
            yield say("other")
        except Exception:
            yield "fallback"

    list(words())


def swallowed_and_wrapped(run: reenact.Run) -> None:
    try:
        say("other")
    except Exception as error:
        raise RuntimeError("tool failed") from error


def swallowed_with_a_fallback(run: reenact.Run) -> None:
    try:
        say("other")
    except reenact.Diverged:
        try:
            say("hi")
        except reenact.Diverged:
            return


SWALLOWING = [
    swallowed_in_place,
    swallowed_in_a_thread,
    swallowed_in_a_pool,
    swallowed_in_a_task,
    swallowed_in_a_generator,
    swallowed_and_wrapped,
    swallowed_with_a_fallback,
]


@pytest.mark.parametrize("agent", SWALLOWING)
def test_a_swallowed_divergence_fails_the_run_at_its_end(
    tmp_path: Path, agent: Callable[[reenact.Run], Any]
) -> None:
    """Agents catch everything; the run remembers."""
    captured(tmp_path / "run", saying("hi"))
    with pytest.raises(reenact.Diverged) as caught:
        replayed(tmp_path / "run", agent)
    assert caught.value.divergence.observed.data["args"] == {"word": "other"}


def test_the_error_that_hid_the_divergence_is_its_cause(tmp_path: Path) -> None:
    """What the agent made of it is not lost."""
    captured(tmp_path / "run", saying("hi"))
    with pytest.raises(reenact.Diverged) as caught:
        replayed(tmp_path / "run", swallowed_and_wrapped)
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_an_error_of_the_agent_is_not_replaced_by_what_it_left_undone(tmp_path: Path) -> None:
    """A replay that fails by itself says why; the calls that did not come follow from that."""
    captured(tmp_path / "run", saying("a", "b"))

    def agent(run: reenact.Run) -> None:
        say("a")
        raise ZeroDivisionError("agent's own")

    with pytest.raises(ZeroDivisionError):
        replayed(tmp_path / "run", agent)


# How the run ends


def test_a_replay_that_fails_where_the_recording_did_not_is_not_reproduced(tmp_path: Path) -> None:
    """The end of a run is an event like others."""
    captured(tmp_path / "run", saying("a"))
    with pytest.raises(ZeroDivisionError), reenact.replay(tmp_path / "run") as run:
        say("a")
        raise ZeroDivisionError
    (found,) = run.divergences
    assert (found.code, found.json_path) == ("event_payload_mismatch", "$.data.status")
    assert run.receipt is not None
    assert run.receipt.verdict == "diverged"


def test_a_failure_that_repeats_is_reproduced(tmp_path: Path) -> None:
    """Last night's crash crashes again: that is what replay is for."""

    def agent() -> None:
        say("a")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), reenact.capture(tmp_path / "run"):
        agent()
    with pytest.raises(ZeroDivisionError), reenact.replay(tmp_path / "run") as run:
        agent()
    assert run.divergences == []
    assert run.receipt is not None
    assert run.receipt.verdict == "reproduced"


def test_a_failure_that_does_not_repeat_is_told(tmp_path: Path) -> None:
    """A replay that ends well where the recorded run failed is not that run."""
    with pytest.raises(ZeroDivisionError), reenact.capture(tmp_path / "run"):
        raise ZeroDivisionError
    with reenact.replay(tmp_path / "run", policy="lenient") as run:
        pass
    assert [found.detail for found in run.divergences] == [
        "the recorded run ended with ZeroDivisionError, this one without an error"
    ]


# Lenient replay goes on


def lenient(path: Path, agent: Callable[[reenact.Run], Any]) -> tuple[Any, list[str]]:
    with reenact.replay(path, policy="lenient", stall_s=0.2) as run:
        result = agent(run)
    return result, [found.code for found in run.divergences]


def test_lenient_goes_on_after_a_changed_call(tmp_path: Path) -> None:
    """One changed call is one divergence; it gets the answer of the call in its place."""
    captured(tmp_path / "run", saying("a", "b", "c"))
    assert lenient(tmp_path / "run", saying("a", "x", "c")) == (
        ["said a", "said b", "said c"],
        ["event_payload_mismatch"],
    )


def test_lenient_goes_on_after_an_added_call(tmp_path: Path) -> None:
    """One added call is one divergence; those after it are recognised."""
    captured(tmp_path / "run", saying("a", "b", "c"))
    result, codes = lenient(tmp_path / "run", saying("a", "x", "b", "c"))
    assert result[2:] == ["said b", "said c"]
    assert codes == ["event_payload_mismatch"]


def test_lenient_goes_on_after_a_dropped_call(tmp_path: Path) -> None:
    """One dropped call is reported where it was missed, and as missing; those after it are recognised."""
    captured(tmp_path / "run", saying("a", "b", "c", "d"))
    assert lenient(tmp_path / "run", saying("a", "c", "d")) == (
        ["said a", "said c", "said d"],
        ["event_payload_mismatch", "event_missing"],
    )


def test_lenient_goes_on_after_swapped_calls(tmp_path: Path) -> None:
    """Two swapped calls each get their own answer."""
    captured(tmp_path / "run", saying("a", "b", "c"))
    result, codes = lenient(tmp_path / "run", saying("b", "a", "c"))
    assert result == ["said b", "said a", "said c"]
    assert set(codes) == {"event_payload_mismatch"}


def test_lenient_goes_on_with_another_tool(tmp_path: Path) -> None:
    """A tool that was never recorded has no answer; the agent is told, and may go on."""
    captured(tmp_path / "run", saying("a", "b"))

    def agent(run: reenact.Run) -> list[str]:
        first = say("a")
        with pytest.raises(reenact.Diverged):
            shout("x")
        return [first, say("b")]

    assert lenient(tmp_path / "run", agent) == (["said a", "said b"], ["event_payload_mismatch"])


def test_lenient_never_answers_for_ever(tmp_path: Path) -> None:
    """An agent that asks until it likes the answer comes to an end: no answer is given twice that way."""
    captured(tmp_path / "run", saying("a", "b", "c"))

    def agent(run: reenact.Run) -> int:
        for number in range(1000):
            try:
                say(f"again {number}")
            except reenact.Diverged:
                return number
        return 1000

    assert lenient(tmp_path / "run", agent)[0] == 3


@pytest.mark.slow
def test_lenient_tells_many_divergences_quickly(tmp_path: Path) -> None:
    """A thousand changed calls of a thousand take no more than a few seconds."""
    words = [str(number) for number in range(1000)]
    captured(tmp_path / "run", saying(*words))
    began = time.process_time()
    _, codes = lenient(tmp_path / "run", saying(*(word + "!" for word in words)))
    assert codes == ["event_payload_mismatch"] * 1000
    assert time.process_time() - began < 5


def test_lenient_tells_the_listener(tmp_path: Path) -> None:
    """Diagnostics go to the event stream as well as to the result."""
    captured(tmp_path / "run", saying("a", "b"))
    heard: list[ReplayDivergence] = []
    with reenact.replay(tmp_path / "run", policy="lenient", on_divergence=heard.append) as run:
        say("x")
    assert heard == run.divergences
    assert [found.code for found in heard] == ["event_payload_mismatch", "event_missing"]


def test_an_unknown_policy(tmp_path: Path) -> None:
    """Is refused with what there is."""
    captured(tmp_path / "run", saying("a"))
    with pytest.raises(reenact.UsageError, match="choose strict or lenient"):
        reenact.replay(tmp_path / "run", policy="easy")  # type: ignore[arg-type]


# Switching runs on and off


def test_the_mode_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One block, three modes; an argument wins over the environment."""

    def run_block(**options: Any) -> reenact.Run:
        with reenact.capture(tmp_path / "run", **options) as run:
            run.final_output = say("a")
        return run

    monkeypatch.setenv("REENACT_MODE", "off")
    assert run_block().mode == "off"
    assert not (tmp_path / "run").exists()
    assert run_block(mode="capture").mode == "capture"
    monkeypatch.setenv("REENACT_MODE", "replay")
    assert run_block().mode == "replay"
    monkeypatch.setenv("REENACT_MODE", "rewind")
    with pytest.raises(reenact.UsageError, match="choose off, capture or replay"):
        run_block()


def test_the_run_in_async_code(tmp_path: Path) -> None:
    """``async with`` and ``with`` are the same."""

    async def both() -> list[Any]:
        async with reenact.capture(tmp_path / "run") as run:
            first = [say("a"), await asyncio.create_task(asyncio.to_thread(say, "b"))]
        async with reenact.replay(tmp_path / "run") as again:
            second = [say("a"), await asyncio.create_task(asyncio.to_thread(say, "b"))]
        assert (run.manifest.status if run.manifest else None, again.divergences) == ("ok", [])
        return [first, second]

    first, second = asyncio.run(both())
    assert first == second

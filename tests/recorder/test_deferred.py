"""A call that leaves before it is recorded is in its recording as if it had waited."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reenact
from reenact.boundary import Call, crossing
from reenact.canonical import read_json
from reenact.store.reader import CaptureReader
from tests.recorder.recording import events_in, recorded_by

PROMPT: Final = "You route support requests. " * 20


@reenact.tool
def work(number: int) -> int:
    return number


class Asking:
    """A model that is asked, step by step, as a seam does it."""

    def __init__(
        self, number: int, *, may_leave_first: bool, facts: Callable[[], dict[str, Any]] = dict
    ) -> None:
        request = {"body": {"messages": [PROMPT, f"question {number}"]}}
        call = Call("llm", "", request, is_json=True, may_leave_first=lambda: may_leave_first, facts=facts)
        self._crossing = crossing(call, streaming=True)
        self._step = self._crossing.__enter__()
        self._number = number

    def leave(self) -> None:
        self._step.mark_sent()

    def begin(self) -> None:
        self._step.begin(self.end)

    def end(self) -> None:
        self._step.answer = {"said": self._number}
        self._crossing.__exit__(None, None, None)


def ask(number: int) -> None:
    asking = Asking(number, may_leave_first=True)
    asking.leave()
    asking.end()


def told_in(path: Path) -> list[Any]:
    """The events of a capture, without their times."""
    return [read_json(line) | {"ts": 0} for line in (path / "events.jsonl").read_bytes().splitlines()]


def types_in(path: Path) -> list[str]:
    return [event["type"] for event in told_in(path)]


# The same recording

ACTS: Final = st.lists(
    st.tuples(st.sampled_from(["ask", "leave", "begin", "end", "work", "note"]), st.integers(0, 3)),
    max_size=25,
)


def act_out(path: Path, acts: list[tuple[str, int]], *, may_leave_first: bool) -> list[Any]:
    """Up to four calls at a time: ask, then leave, begin or end them, with other events in between."""
    asked: dict[int, Asking] = {}
    with recorded_by(path) as context:
        for act, number in acts:
            if act == "work":
                work(number)
            elif act == "note":
                context.record_nondeterministic("rng", "dice", number)
            elif act == "ask":
                asked.setdefault(number, Asking(number, may_leave_first=may_leave_first))
            elif act == "end" and number in asked:
                asked.pop(number).end()
            elif number in asked:
                getattr(asked[number], act)()
        for asking in asked.values():
            asking.end()
    return told_in(path)


@settings(deadline=None)  # it waits for the disk
@given(acts=ACTS)
def test_whoever_leaves_first_is_recorded_in_its_place(
    tmp_path_factory: pytest.TempPathFactory, acts: list[tuple[str, int]]
) -> None:
    """Events, their order and what they refer to are those of calls that were recorded before they left."""
    root = tmp_path_factory.mktemp("runs")
    early = act_out(root / "early", acts, may_leave_first=True)
    assert early == act_out(root / "in time", acts, may_leave_first=False)


def test_an_outcome_waits_for_the_thread_that_writes_its_call(tmp_path: Path) -> None:
    """Who comes back while another thread is writing what was deferred has its outcome recorded too."""
    is_writing, may_write = Event(), Event()

    def take_long() -> dict[str, Any]:
        is_writing.set()
        may_write.wait(20)
        return {}

    with reenact.capture(tmp_path / "run"):
        slow = Asking(1, may_leave_first=True, facts=take_long)
        quick = Asking(2, may_leave_first=True)
        run = copy_context().run
        threads = [Thread(target=copy_context().run, args=[work, 1]), Thread(target=run, args=[quick.end])]
        threads[0].start()
        is_writing.wait(20)
        threads[1].start()
        threads[1].join(0.2)
        may_write.set()
        for thread in threads:
            thread.join()
        slow.end()
    types = types_in(tmp_path / "run")
    assert (types.count("llm_request"), types.count("llm_response")) == (2, 2)


def test_calls_of_many_threads_lose_nothing(tmp_path: Path) -> None:
    """Each has its call and its outcome, whoever wrote them, and refers to what is written before it."""
    with reenact.capture(tmp_path / "run") as run, ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(200)))
    assert run.warnings == []
    called: set[str] = set()
    ended: set[str] = set()
    for event in told_in(tmp_path / "run"):
        data = event["data"]
        if event["type"] == "llm_request":
            references = data["request"]["body"]["messages"]
            assert isinstance(references, list) or references["$ref"]["call"] in called
            called.add(data["callId"])
        elif event["type"] == "llm_response":
            assert data["callId"] in called
            ended.add(data["callId"])
    assert len(called) == len(ended) == 200


# When it is written


def test_it_is_written_when_it_has_left(tmp_path: Path) -> None:
    with recorded_by(tmp_path / "run"):
        asking = Asking(1, may_leave_first=True)
        assert types_in(tmp_path / "run") == []
        asking.leave()
        assert types_in(tmp_path / "run") == ["llm_request"]
        asking.end()


def test_it_is_written_when_the_run_ends(tmp_path: Path) -> None:
    """Somebody's call was under way: it is there, without an outcome."""
    with recorded_by(tmp_path / "run"):
        Asking(1, may_leave_first=True)
    assert types_in(tmp_path / "run") == ["llm_request", "run_end"]


def test_nothing_leaves_first_where_the_disk_must_have_it(tmp_path: Path) -> None:
    with reenact.capture(tmp_path / "run", durability="disk"):
        asking = Asking(1, may_leave_first=True)
        assert types_in(tmp_path / "run") == ["run_start", "llm_request"]
        asking.end()


# What goes wrong


class Interrupting:
    """A sink on which Ctrl-C hits once, right before or right behind the write."""

    def __init__(self, inner: Any, at: int, *, is_behind: bool) -> None:
        self._inner, self._at, self._is_behind = inner, at, is_behind

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def append(self, event: bytes) -> None:
        if self._inner.count + 1 == self._at and not self._is_behind:
            self._at = 0
            raise KeyboardInterrupt
        self._inner.append(event)
        if self._inner.count == self._at and self._is_behind:
            raise KeyboardInterrupt


@pytest.mark.parametrize("is_behind", [False, True])
@pytest.mark.parametrize("at", range(1, 8))
def test_ctrl_c_leaves_no_outcome_without_its_call(tmp_path: Path, at: int, is_behind: bool) -> None:
    def agent() -> None:
        for number in range(4):
            asking = Asking(number, may_leave_first=True)
            try:
                asking.leave()
            finally:
                asking.end()

    with (
        pytest.raises(KeyboardInterrupt),
        recorded_by(tmp_path / "run", wrap=lambda sink: Interrupting(sink, at, is_behind=is_behind)),
    ):
        agent()
    events = told_in(tmp_path / "run")
    called = [event["data"]["callId"] for event in events if event["type"] == "llm_request"]
    ended = [event["data"]["callId"] for event in events if event["type"] == "llm_response"]
    assert called[: len(ended)] == ended
    assert [event.seq for event in events_in(tmp_path / "run")] == list(range(1, len(events) + 1))


def test_ctrl_c_in_one_call_does_not_lose_the_next(tmp_path: Path) -> None:
    """Two have left; who writes the first is interrupted, and the second is written with what follows."""
    with recorded_by(tmp_path / "run", wrap=lambda sink: Interrupting(sink, 1, is_behind=False)):
        first, second = (Asking(number, may_leave_first=True) for number in range(2))
        with pytest.raises(KeyboardInterrupt):
            first.leave()
        work(1)
        second.end()
    assert types_in(tmp_path / "run") == [
        "llm_request",
        "tool_call",
        "tool_result",
        "llm_response",
        "run_end",
    ]


def test_a_sink_that_fails_later_never_reaches_the_agent(tmp_path: Path) -> None:
    """The call has left; the run goes on, and says that it is not whole."""

    def full(sink: Any) -> Any:
        class Full:
            def __getattr__(self, name: str) -> Any:
                return getattr(sink, name)

            def append(self, event: bytes) -> None:
                raise OSError(28, "No space left on device")

        return Full()

    heard: list[str] = []
    with recorded_by(tmp_path / "run", wrap=full, on_warning=heard.append):
        for number in range(3):
            ask(number)
    assert len(heard) == 1
    assert "No space left" in heard[0]
    assert CaptureReader(tmp_path / "run").manifest.status == "error"

"""Random concurrent programs, forked at random points, with a change and without, and forked again.

To what tests/replayer/test_random_programs.py draws come tools that call tools, tools that are generators, a
model that a server answers, whole and as a stream, and calls that hand on what came before. Every answer is
told once: a call depends on a change where its request holds an answer that does.
``make test-hard`` runs many, ``REENACT_PROGRAMS=5000`` so many.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import pytest

import reenact
from reenact.check.integrity.capture import check_capture
from reenact.replayer.source import RecordedCall, ReplaySource
from reenact.store.reader import CaptureReader
from reenact.testing import Reply, ScriptedProvider
from tests.hard import SEED, rounds, say
from tests.replayer.test_random_programs import (
    SYNC_KINDS,
    Machine,
    Node,
    ShufflingLoop,
    draw_program,
    draw_schedules,
)

PROGRAMS = int(os.environ.get("REENACT_PROGRAMS") or rounds(20, 2000))
FIRST = (SEED - 1) * 100_000
SHARDS = 4
LEAVES = ("stream", "left_stream", "model", "model_stream")
ANSWER = re.compile(r"answer-\d+")


class Answers(Iterator[int]):
    """Numbers that nobody else gives, for the answers of one run."""

    def __init__(self, first: int, fork: Any = None) -> None:
        self._lock = threading.Lock()
        self._fork = fork
        self.first = self.last = first
        self.early = 0
        """How many were asked for before the point of the fork."""

    def __next__(self) -> int:
        with self._lock:
            self.early += self._fork is not None and not self._fork.context.is_reached
            self.last += 1
            return self.last

    @property
    def count(self) -> int:
        return self.last - self.first


class Model:
    """A server that answers with the numbers of the run that is under way."""

    def __init__(self) -> None:
        self.answers = Answers(0)
        self.provider = ScriptedProvider(self._reply)

    def _reply(self, request: Any) -> Reply:
        return Reply(f"answer-{next(self.answers)} to {len(request.user_text)} letters")


@dataclass
class ForkedMachine(Machine):
    """Runs a program with nested tools, generators and a model."""

    answers: Answers = field(default_factory=lambda: Answers(0))
    model: Model = field(default_factory=Model)
    sync_kinds = (*SYNC_KINDS, "chain", "nested")

    def __post_init__(self) -> None:
        self.model.answers = self.answers
        self.nodes: dict[str, Node] = {}

        def answer() -> str:
            return f"answer-{next(self.answers)}"

        @reenact.tool
        def ask(what: Any) -> str:
            self.schedule.pause()
            return answer()

        @reenact.tool
        async def ask_on_loop(what: Any) -> str:
            await self.schedule.pause_on_loop()
            return answer()

        @reenact.tool
        def stream(what: Any) -> Iterator[Any]:
            yield answer()
            for part in range(3):
                self.schedule.pause()
                yield [part, answer()]

        @reenact.tool
        async def stream_on_loop(what: Any) -> AsyncIterator[Any]:
            yield answer()
            for part in range(3):
                await self.schedule.pause_on_loop()
                yield [part, answer()]

        @reenact.tool
        def nested(name: str, before: str) -> list[Any]:
            inside = self.ask([name, "inside", before])
            return [answer(), inside, [self.do(child) for child in self.nodes[name].children]]

        @reenact.tool
        async def nested_on_loop(name: str, before: str) -> list[Any]:
            inside = await self.ask_on_loop([name, "inside", before])
            below = asyncio.gather(*map(self.do_on_loop, self.nodes[name].children))
            return [answer(), inside, await below]

        self.ask, self.ask_on_loop = ask, ask_on_loop
        self.nested, self.nested_on_loop = nested, nested_on_loop
        self.stream, self.stream_on_loop = stream, stream_on_loop

    # In threads

    def leaf(self, node: Node) -> Any:
        if node.kind == "stream":
            return list(self.stream(node.name))
        if node.kind == "left_stream":
            return list(islice(self.stream(node.name), 2))
        return self.ask_model(node) if node.kind in LEAVES else super().leaf(node)

    def ask_model(self, node: Node, *before: Any) -> Any:
        request = self._request(node, *before)
        if not request["json"]["stream"]:
            return _said([self.client.post(**request).text])
        with self.client.stream("POST", **request) as response:
            return _said(response.iter_text())

    def _chain(self, node: Node) -> Any:
        last: Any = None
        for child in node.children:
            found = self.do(child)
            is_model = child.kind in ("model", "model_stream")
            last = self.ask_model(child, last, found) if is_model else self.ask([child.name, last, found])
        return last

    def _nested(self, node: Node) -> Any:
        self.nodes[node.name] = node
        return self.nested(node.name, self.ask([node.name, "before"]))

    # On an event loop

    async def leaf_on_loop(self, node: Node) -> Any:
        if node.kind in ("stream", "left_stream"):
            items = self.stream_on_loop(node.name)
            found = [await anext(items) for _ in range(2)]
            if node.kind == "stream":
                return [*found, *[item async for item in items]]
            await items.aclose()
            return found
        return await self.ask_model_on_loop(node) if node.kind in LEAVES else await super().leaf_on_loop(node)

    async def ask_model_on_loop(self, node: Node, *before: Any) -> Any:
        request = self._request(node, *before)
        if not request["json"]["stream"]:
            return _said([(await self.async_client.post(**request)).text])
        async with self.async_client.stream("POST", **request) as response:
            return _said([text async for text in response.aiter_text()])

    async def _chain_on_loop(self, node: Node) -> Any:
        last: Any = None
        for child in node.children:
            found = await self.do_on_loop(child)
            if child.kind in ("model", "model_stream"):
                last = await self.ask_model_on_loop(child, last, found)
            else:
                last = await self.ask_on_loop([child.name, last, found])
        return last

    async def _nested_on_loop(self, node: Node) -> Any:
        self.nodes[node.name] = node
        return await self.nested_on_loop(node.name, await self.ask_on_loop([node.name, "before"]))

    def _request(self, node: Node, *before: Any) -> dict[str, Any]:
        messages = [{"role": "user", "content": json.dumps([node.name, before])}]
        body = {"model": "m", "messages": messages, "stream": node.kind == "model_stream"}
        return {"url": f"{self.model.provider.base_url('openai')}/chat/completions", "json": body}

    def main(self, program: Node, loop_factory: Any = None) -> Any:
        async def whole() -> Any:
            async with httpx.AsyncClient(verify=False, trust_env=False) as self.async_client:
                return await self.do_on_loop(program)

        with (
            httpx.Client(verify=False, trust_env=False) as self.client,
            asyncio.Runner(loop_factory=loop_factory) as runner,
        ):
            return runner.run(whole())


def _said(texts: Any) -> list[str]:
    """The answer's number, and all words of it."""
    text = "".join(texts)
    assert "answer-" in text, text
    return sorted(set(ANSWER.findall(text)))


class Trial:
    """One program, its recording, and forks of it, in a folder of their own."""

    def __init__(self, model: Model, seed: int, place: Path, *, is_plain: bool) -> None:
        self.rng = random.Random(seed)
        self.name = f"program {seed}"
        self.model = model
        self.place = place
        self.is_plain = is_plain
        self.program = draw_program(
            self.rng,
            is_plain=is_plain,
            more_leaves=LEAVES,
            more_sync=("chain", "nested"),
            more_async=("chain_on_loop", "nested_on_loop"),
        )
        self.then, self.now = draw_schedules(self.rng, is_same_shape=True)

    def record(self) -> Any:
        with reenact.capture(self.place / "run") as run:
            return ForkedMachine(run, self.then, Answers(0), model=self.model).main(self.program)

    def fork(self, path: Path, output: Path, first: int, **options: Any) -> tuple[Any, Any]:
        """What it comes to, and the run; nothing goes live that must not."""
        asked = len(self.model.provider.requests)
        with self._schedule() as loop_factory, reenact.fork(path, output=output, stall_s=5, **options) as run:
            answers = Answers(first, run)
            machine = ForkedMachine(run, self.now, answers, model=self.model)
            try:
                result = machine.main(self.program, loop_factory)
            finally:
                assert answers.early == 0, f"{self.name}: live before the point of the fork"
                if options.get("on_miss") != "live":
                    assert answers.count == 0, f"{self.name}: live"
                    assert len(self.model.provider.requests) == asked, f"{self.name}: live"
        return result, run

    def replay(self, path: Path) -> Any:
        with self._schedule() as loop_factory, reenact.replay(path, stall_s=5) as run:
            answers = Answers(-1000)
            result = ForkedMachine(run, self.now, answers, model=self.model).main(self.program, loop_factory)
        assert answers.count == 0, self.name
        return result

    @contextmanager
    def _schedule(self) -> Iterator[Any]:
        """Of a plain program nothing depends on who is first, so a loop may call back in any order."""
        ShufflingLoop.rng = random.Random(self.now.rng.random())
        interval = sys.getswitchinterval()
        sys.setswitchinterval(self.now.rng.choice((1e-5, 1e-3, interval)))
        try:
            yield self.now.rng.choice((None, ShufflingLoop)) if self.is_plain else None
        finally:
            sys.setswitchinterval(interval)


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    model = Model()
    with model.provider:
        yield model


@contextmanager
def trial(model: Model, seed: int, *, is_plain: bool) -> Iterator[Trial]:
    with tempfile.TemporaryDirectory() as folder:
        tried = Trial(model, seed, Path(folder), is_plain=is_plain)
        try:
            yield tried
        except Exception as error:
            raise AssertionError(f"{tried.name}: {error}") from error


def own_words(path: Path) -> list[bytes]:
    """All events, without the ids of the run."""
    reader = CaptureReader(path)
    ids = (reader.manifest.captureId.encode(), reader.manifest.runId.encode())
    return [line.replace(ids[0], b"CAPTURE").replace(ids[1], b"RUN") for line in reader.lines()]


@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_fork_without_a_change_is_its_parent(model: Model, shard: int) -> None:
    """Whatever the schedule and the point: the same result, the same events, nothing live, and so again."""
    calls = sum(fork_unchanged(model, seed) for seed in range(FIRST + shard, FIRST + PROGRAMS, SHARDS))
    say(f"{PROGRAMS // SHARDS} programs with {calls} calls, forked without a change, and the forks again")


def fork_unchanged(model: Model, seed: int) -> int:
    """How many calls the program has."""
    with trial(model, seed, is_plain=seed % 3 == 0) as tried:
        recorded = tried.record()
        source = ReplaySource(tried.place / "run")
        at = tried.rng.choice([call.seq for call in source.calls if call.parent is None])
        result, run = tried.fork(tried.place / "run", tried.place / "fork", 1000, at=at)
        assert result == recorded
        assert run.shares.live == run.shares.nearest == 0
        assert own_words(tried.place / "fork") == own_words(tried.place / "run")
        again, _ = tried.fork(tried.place / "fork", tried.place / "again", 2000, at=at)
        assert again == recorded
        return len(source.calls)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_change_goes_as_far_as_it_is_asked_about(model: Model, shard: int) -> None:
    """The prefix makes no live call, what does not depend on the change is answered from the recording.

    Whatever came of it, the fork is replayed, which comes to the same, and is forked again.
    """
    told = Counter[str]()
    for seed in range(FIRST + shard, FIRST + PROGRAMS, SHARDS):
        told += fork_changed(model, seed)
    say(f"forks with a change: {dict(told)}")


def fork_changed(model: Model, seed: int) -> Counter[str]:
    """What was done."""
    told = Counter[str]()
    with trial(model, seed + 7, is_plain=seed % 4 != 3) as tried:
        before, path = tried.record(), tried.place / "run"
        for generation in range(1, 4):
            point = draw_point(tried, path)
            if point is None:
                break
            output, changed = tried.place / f"fork-{generation}", f"answer-{generation}999"
            on_miss = tried.rng.choice(("live", "live", "live", "nearest", "fail"))
            options = {"at": point.seq, "change": change_of(point, changed), "on_miss": on_miss}
            depending = depending_on(path, point)
            told[f"{on_miss} {'plain' if tried.is_plain else 'racing'}"] += 1
            if on_miss == "fail" and tried.is_plain and depending.requests:
                with pytest.raises(reenact.Diverged):
                    tried.fork(path, output, 1000 * generation, **options)
                assert not output.exists()
                continue
            try:
                result, run = tried.fork(path, output, 1000 * generation, **options)
            except reenact.Diverged:
                if (on_miss, tried.is_plain) != ("fail", False):
                    raise
                continue
            assert check_capture(output).findings == []
            if tried.is_plain and on_miss == "live":
                check_shares(path, run, depending)
                still = [each for each in ANSWER.findall(json.dumps(before)) if each not in depending.answers]
                assert [each for each in ANSWER.findall(json.dumps(result)) if each in still] == still
                told["made live"] += run.shares.live
                told["answered"] += run.shares.recording
            assert tried.replay(output) == result
            if on_miss == "live":  # other answers may be there more than once now
                before, path = result, output
    return told


def draw_point(tried: Trial, path: Path) -> RecordedCall | None:
    """A call whose outcome can be changed."""
    calls = ReplaySource(path).calls
    points = [call for call in calls if call.parent is None and call.type in ("tool_call", "llm_request")]
    return tried.rng.choice(points) if points else None


def change_of(call: RecordedCall, answer: str) -> dict[str, Any]:
    if call.type == "llm_request":
        return {"set": {"$.choices[0].message.content": answer}}
    return {"replace": [answer, "changed"] if call.is_stream or "nested" in call.name else answer}


@dataclass
class Depending:
    """What depends on the outcome of one call."""

    answers: set[str]
    requests: set[int]
    """By the numbers of their events."""
    gone: set[int]
    """Calls inside the changed one, which are not made."""


def depending_on(path: Path, point: RecordedCall) -> Depending:
    source = ReplaySource(path)
    answers = set(ANSWER.findall(answer_text(source, point)))
    found = Depending(answers, set(), set())
    inside = {point.call_id}
    for call in sorted(source.calls, key=lambda each: each.seq):
        if call.parent in inside:
            inside |= {call.call_id} - {None}
            found.gone.add(call.seq)
        elif call.seq != point.seq and call.outcome_seq and not call.is_instant:
            request = json.dumps(source.reader.resolve(source.data(call.seq)))
            if answers.intersection(ANSWER.findall(request)):
                found.requests.add(call.seq)
                # What is below a tool is told below; its own answer comes first.
                answers.update(ANSWER.findall(answer_text(source, call))[:1])
    return found


def answer_text(source: ReplaySource, call: RecordedCall) -> str:
    return json.dumps(source.reader.resolve(source.data(call.outcome_seq)))


def check_shares(path: Path, run: Any, depending: Depending) -> None:
    """All calls that do not depend on the change are answered, all that do are made."""
    calls = ReplaySource(path).calls
    assert run.shares.live == len(depending.requests)
    answered = {call.seq for call in calls} - depending.requests - {run.context.plan.at}
    assert run.shares.prefix + run.shares.recording == len(answered)

"""The run's own clock, random numbers, ids and memory: drawn once, the same ever after."""

from __future__ import annotations

import random
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import reenact
from tests.twice import captured, events, replayed, twice

DRAWS: dict[str, Callable[[random.Random], Any]] = {
    "random": lambda rng: rng.random(),
    "getrandbits": lambda rng: [rng.getrandbits(bits) for bits in (0, 1, 32, 64, 65, 521)],
    "randbytes": lambda rng: rng.randbytes(40),
    "randrange": lambda rng: rng.randrange(10, 10**30, 7),
    "randint": lambda rng: rng.randint(-5, 5),
    "choice": lambda rng: rng.choice("abcdef"),
    "choices": lambda rng: rng.choices("abcdef", weights=[1, 2, 3, 4, 5, 6], k=5),
    "sample": lambda rng: rng.sample(range(10**6), k=5),
    "sample with counts": lambda rng: rng.sample(["a", "b"], counts=[3, 3], k=4),
    "uniform": lambda rng: rng.uniform(1, 5),
    "triangular": lambda rng: rng.triangular(),
    "betavariate": lambda rng: rng.betavariate(1, 2),
    "expovariate": lambda rng: rng.expovariate(1),
    "gammavariate": lambda rng: rng.gammavariate(2, 1),
    "gauss": lambda rng: [rng.gauss(0, 1) for _ in range(3)],
    "lognormvariate": lambda rng: rng.lognormvariate(0, 1),
    "normalvariate": lambda rng: rng.normalvariate(0, 1),
    "vonmisesvariate": lambda rng: rng.vonmisesvariate(0, 1),
    "paretovariate": lambda rng: rng.paretovariate(1),
    "weibullvariate": lambda rng: rng.weibullvariate(1, 1),
    "shuffle": lambda rng: _shuffled(rng, list(range(20))),
}


def _shuffled(rng: random.Random, items: list[int]) -> list[int]:
    rng.shuffle(items)
    return items


@pytest.mark.parametrize("name", DRAWS)
def test_every_kind_of_draw_repeats(tmp_path: Path, name: str) -> None:
    """All of ``random.Random`` gives the recorded values."""
    twice(tmp_path / "run", lambda run: DRAWS[name](run.rng))


def test_every_method_of_random_is_covered() -> None:
    """The table above names every public method that draws."""
    not_draws = {"seed", "getstate", "setstate", "VERSION", "binomialvariate"}
    assert {name for name in dir(random.Random) if not name.startswith("_")} - not_draws == (
        set(DRAWS) - {"sample with counts"}
    )


def test_seeding_does_not_matter_in_replay(tmp_path: Path) -> None:
    """The recorded values are given whatever seed the agent sets."""

    def agent(seed: int) -> Callable[[reenact.Run], float]:
        def draw(run: reenact.Run) -> float:
            run.rng.seed(seed)
            return run.rng.random()

        return draw

    assert captured(tmp_path / "run", agent(1)) == replayed(tmp_path / "run", agent(2))


def test_draws_differ_between_recordings(tmp_path: Path) -> None:
    """Recorded is real chance, not a fixed seed."""
    assert captured(tmp_path / "a", lambda run: run.uuid4()) != captured(
        tmp_path / "b", lambda run: run.uuid4()
    )


def test_ids(tmp_path: Path) -> None:
    """``run.uuid4`` is a proper random UUID, the recorded one in replay."""
    found = twice(tmp_path / "run", lambda run: run.uuid4())
    assert isinstance(found, uuid.UUID)
    assert found.version == 4


def test_the_clock(tmp_path: Path) -> None:
    """Time reads as it was read then."""
    before = time.time()
    now, monotonic = twice(tmp_path / "run", lambda run: [run.clock.now(), run.clock.monotonic()])
    assert before <= now <= time.time()
    assert isinstance(monotonic, float)


def test_reading_more_chance_than_recorded(tmp_path: Path) -> None:
    """One read too many is an underflow, named as such."""
    captured(tmp_path / "run", lambda run: run.clock.now())
    with pytest.raises(reenact.Diverged) as caught:
        replayed(tmp_path / "run", lambda run: [run.clock.now(), run.clock.now()])
    assert caught.value.divergence.code == "nondeterministic_underflow"


def test_another_source_of_chance(tmp_path: Path) -> None:
    """A random number where the time was read: the place says which."""
    captured(tmp_path / "run", lambda run: run.clock.now())
    with pytest.raises(reenact.Diverged) as caught:
        replayed(tmp_path / "run", lambda run: run.rng.random())
    found = caught.value.divergence
    assert (found.code, found.json_path) == ("event_payload_mismatch", "$.data.key")
    assert [place.path for place in found.differences] == ["$.key", "$.source"]


def test_in_lenient_replay_chance_goes_on(tmp_path: Path) -> None:
    """A lenient replay notes the underflow and draws anew: time and chance are not outside calls."""
    captured(tmp_path / "run", lambda run: run.clock.now())
    with reenact.replay(tmp_path / "run", policy="lenient") as run:
        recorded = run.clock.now()
        drawn = run.clock.now()
        run.memory_write("notes", "new")
    assert drawn > recorded
    assert [found.code for found in run.divergences] == ["nondeterministic_underflow", "event_unexpected"]


# Memory and state


def test_memory_reads_come_from_the_recording(tmp_path: Path) -> None:
    """The memory is not asked again."""
    memory = {"facts": {"name": "Ada"}}

    def agent(run: reenact.Run) -> Any:
        return run.memory_read("facts", lambda: dict(memory["facts"]), group_id="g", source="kv")

    first = captured(tmp_path / "run", agent)
    memory["facts"]["name"] = "changed"
    assert replayed(tmp_path / "run", agent) == first == {"name": "Ada"}
    ((kind, data),) = events(tmp_path / "run")
    assert kind == "state_mutation"
    wanted = {"type": "memory_read", "path": "facts", "group_id": "g", "source": "kv"}
    assert wanted.items() <= data.items()


def test_a_memory_read_that_fails(tmp_path: Path) -> None:
    """Something that is not there is not there in replay either."""
    memory: dict[str, str] = {}

    def agent(run: reenact.Run) -> str:
        try:
            return str(run.memory_read("facts", lambda: memory["name"]))
        except KeyError as error:
            return repr(error)

    captured(tmp_path / "run", agent)
    memory["name"] = "Ada"
    assert replayed(tmp_path / "run", agent) == "KeyError('name')"


def test_calls_inside_a_memory_read_are_not_expected(tmp_path: Path) -> None:
    """A read that goes through a tool is answered as one."""

    @reenact.tool
    def embed(text: str) -> list[float]:
        return [float(len(text))]

    def agent(run: reenact.Run) -> Any:
        found = run.memory_read("near", lambda: [embed("query"), run.clock.now()])
        return [found, embed("after"), run.memory_read("near", lambda: embed("again"))]

    twice(tmp_path / "run", agent)


def test_memory_writes_are_compared(tmp_path: Path) -> None:
    """The agent must write the same to its memory; the place says what differs."""
    captured(tmp_path / "run", lambda run: run.memory_write("facts", {"name": "Ada", "age": 1}))
    replayed(tmp_path / "run", lambda run: run.memory_write("facts", {"age": 1, "name": "Ada"}))
    with pytest.raises(reenact.Diverged) as caught:
        replayed(tmp_path / "run", lambda run: run.memory_write("facts", {"name": "Bob", "age": 1}))
    found = caught.value.divergence
    assert (found.code, found.json_path) == ("event_payload_mismatch", "$.data.content.name")


def test_other_changes_of_state_are_compared(tmp_path: Path) -> None:
    """``state_mutation`` takes any kind and details."""
    captured(tmp_path / "run", lambda run: run.state_mutation("file_write", path="a.txt", bytes=3))
    replayed(tmp_path / "run", lambda run: run.state_mutation("file_write", bytes=3, path="a.txt"))
    with pytest.raises(reenact.Diverged, match=r"\$\.details\.path"):
        replayed(tmp_path / "run", lambda run: run.state_mutation("file_write", path="b.txt", bytes=3))


def test_details_may_be_called_like_our_own_fields(tmp_path: Path) -> None:
    """Names of the record's own cannot be taken over by a detail."""
    twice(
        tmp_path / "run", lambda run: run.state_mutation("note", value=1, lane="x", valueHash="y", parent=2)
    )
    with pytest.raises(reenact.Diverged):
        replayed(tmp_path / "run", lambda run: run.state_mutation("note", value=2, lane="x"))


def test_outside_a_run_everything_is_real() -> None:
    """The same code runs without a recording."""
    with reenact.capture("nowhere", mode="off") as run:
        assert abs(run.clock.now() - time.time()) < 1
        assert run.memory_read("x", lambda: 5) == 5
        run.memory_write("x", 6)
        assert 0 <= run.rng.random() < 1
    assert not Path("nowhere").exists()


# The final output


def test_the_final_output_is_compared(tmp_path: Path) -> None:
    """Where both runs have one, they must be equal; the place says where they are not."""

    def agent(answer: Any) -> Callable[[reenact.Run], None]:
        def run_it(run: reenact.Run) -> None:
            run.final_output = answer

        return run_it

    captured(tmp_path / "run", agent({"text": "shipped", "on": ("monday",)}))
    replayed(tmp_path / "run", agent({"on": ("monday",), "text": "shipped"}))
    replayed(tmp_path / "run", agent(None))
    with pytest.raises(reenact.Diverged) as caught:
        replayed(tmp_path / "run", agent({"text": "lost", "on": ("monday",)}))
    found = caught.value.divergence
    assert (found.code, found.json_path) == ("event_payload_mismatch", "$.data.finalOutput.text")
    assert found.to_json()["observed"]["data"]["finalOutput"]["text"] == "lost"


def test_a_final_output_that_cannot_be_recorded(tmp_path: Path) -> None:
    """An object is recorded by its type; the run does not fail over it."""

    def agent(run: reenact.Run) -> None:
        run.final_output = object()

    twice(tmp_path / "run", agent)

    def other(run: reenact.Run) -> None:
        run.final_output = threading.local()

    with pytest.raises(reenact.Diverged, match="final output"):
        replayed(tmp_path / "run", other)


def test_a_final_output_without_a_recorded_one(tmp_path: Path) -> None:
    """Nothing to compare with is no divergence."""
    captured(tmp_path / "run", lambda run: None)

    def agent(run: reenact.Run) -> None:
        run.final_output = "late"

    replayed(tmp_path / "run", agent)

"""Chance: what was drawn when recorded is drawn in replay, and seeds keep their meaning."""

from __future__ import annotations

import os
import pickle
import random
import secrets
import ssl
import uuid
from pathlib import Path
from random import randint
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reenact
from reenact.store.reader import CaptureReader


def shuffled() -> list[int]:
    items = list(range(20))
    random.shuffle(items)
    return items


DRAWS = {
    "random": lambda: random.random(),
    "randint": lambda: randint(1, 10**9),
    "randrange": lambda: random.randrange(0, 10**30, 7),
    "choice": lambda: [random.choice("abcdefgh") for _ in range(20)],
    "choices": lambda: random.choices(range(100), k=10),
    "sample": lambda: random.sample(range(1000), 10),
    "shuffle": shuffled,
    "uniform": lambda: random.uniform(1, 2),
    "gauss": lambda: [random.gauss(0, 1) for _ in range(3)],
    "normalvariate": lambda: random.normalvariate(0, 1),
    "expovariate": lambda: random.expovariate(1),
    "getrandbits": lambda: [random.getrandbits(count) for count in (1, 63, 64, 65, 500)],
    "randbytes": lambda: random.randbytes(40),
    "Random": lambda: [random.Random().random() for _ in range(3)],
    "Random.seed": lambda: reseeded().random(),
    "SystemRandom": lambda: random.SystemRandom().random(),
    "SystemRandom.randbytes": lambda: random.SystemRandom().randbytes(20),
    "uuid4": lambda: uuid4(),
    "uuid1": lambda: uuid.uuid1(),
    "getnode": lambda: uuid.getnode(),
    "token_bytes": lambda: secrets.token_bytes(),
    "token_hex": lambda: secrets.token_hex(8),
    "token_urlsafe": lambda: secrets.token_urlsafe(nbytes=9),
    "randbelow": lambda: secrets.randbelow(10**20),
    "randbits": lambda: secrets.randbits(100),
    "secrets.choice": lambda: [secrets.choice("abcdefgh") for _ in range(20)],
    "urandom": lambda: os.urandom(9),
    "RAND_bytes": lambda: ssl.RAND_bytes(9),
}


def reseeded() -> random.Random:
    generator = random.Random(1)
    generator.seed()
    return generator


@pytest.mark.parametrize("name", DRAWS)
def test_a_draw_is_the_recorded_one(name: str, tmp_path: Path) -> None:
    """The same value of the same type."""
    with reenact.capture(tmp_path / "run", redact="none"):
        recorded = DRAWS[name]()
    DRAWS[name]()
    with reenact.replay(tmp_path / "run"):
        replayed = DRAWS[name]()
    assert (replayed, type(replayed)) == (recorded, type(recorded))


@pytest.mark.parametrize("name", [name for name in DRAWS if name != "getnode"])
def test_another_run_draws_otherwise(name: str, tmp_path: Path) -> None:
    """Recording is not seeding; three draws are enough to tell."""
    drawn = []
    for number in range(3):
        with reenact.capture(tmp_path / str(number)):
            drawn.append(DRAWS[name]())
    assert drawn[0] != drawn[1] or drawn[1] != drawn[2]


@settings(deadline=None, max_examples=50)
@given(seed=st.integers(), count=st.integers(0, 200))
def test_a_seed_means_what_it_meant(seed: int, count: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Seeded draws are those of the bare module, recorded or replayed, and leave its state alike."""

    def agent() -> list[object]:
        random.seed(seed)
        return [random.getrandbits(count + 1), shuffled(), random.gauss(0, 1), random.sample(range(99), 5)]

    before = random.getstate()
    path = tmp_path_factory.mktemp("seeds")
    try:
        bare = agent(), random.getstate()
        with reenact.capture(path / "run"):
            recorded = agent(), random.getstate()
        with reenact.replay(path / "run"):
            replayed = agent(), random.getstate()
    finally:
        random.setstate(before)
    assert bare == recorded == replayed


def test_a_seeded_generator_is_not_recorded(tmp_path: Path) -> None:
    """A generator of one's own with a seed is no chance; one without needs one event for its seed."""
    with reenact.capture(tmp_path / "run"):
        assert [random.Random(7).random() for _ in range(3)] == [random.Random(7).random()] * 3
        generator = random.Random()
        generator.sample(range(1000), 100)
    assert isinstance(generator, random.Random)
    assert type(pickle.loads(pickle.dumps(generator))) is random.Random
    assert len(list(CaptureReader(tmp_path / "run").events())) == 3


def test_a_token_is_hidden_like_any_text(tmp_path: Path) -> None:
    """Strict redaction keeps random tokens off the disk; replay gives the placeholder, and it matches."""

    @reenact.tool
    def store(token: str) -> str:
        return "stored"

    def agent() -> str:
        token = secrets.token_urlsafe(40)
        store(token)
        return token

    with reenact.capture(tmp_path / "run", redact="strict"):
        token = agent()
    assert token not in (tmp_path / "run" / "events.jsonl").read_text()
    with reenact.replay(tmp_path / "run"):
        assert agent().startswith("<secret:")

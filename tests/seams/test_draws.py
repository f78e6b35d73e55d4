"""Sources of chance are watched while a replay is open: what they gave is known to be drawn."""

from __future__ import annotations

import os
import random
import secrets
import string
import tempfile
import uuid
from collections.abc import Callable

import pytest

from reenact.seams.stdlib.draws import Draws, watch_draws

LETTERS = string.ascii_lowercase + string.digits

DRAWN: dict[str, Callable[[], str]] = {
    "a UUID": lambda: str(uuid.uuid4()),
    "its beginning": lambda: uuid.uuid4().hex[:6],
    "a token": lambda: secrets.token_hex(9),
    "a token for addresses": lambda: secrets.token_urlsafe(9),
    "bytes": lambda: os.urandom(4).hex(),
    "chosen letters": lambda: "".join(random.choices(LETTERS, k=8)),
    "letter by letter": lambda: "".join(random.choice(LETTERS) for _ in range(9)),
    "of another generator": lambda: "".join(random.Random().choices(LETTERS, k=8)),
    "of the system's": lambda: "".join(random.SystemRandom().choices(LETTERS, k=8)),
    "a number": lambda: str(random.randint(10**9, 10**10)),
    "a file's name": lambda: tempfile.mktemp(dir="/")[-8:],
}


@pytest.mark.parametrize("draw", DRAWN.values(), ids=DRAWN.keys())
def test_what_was_drawn_is_known(draw: Callable[[], str]) -> None:
    """Whoever drew it, and only while it is watched."""
    with watch_draws(Draws()):
        random.seed()  # another test may have told the shared generator where to begin
    draws = Draws()
    before = draw()
    with watch_draws(draws):
        name = draw()
    behind = draw()
    assert [draws.has_given(each) for each in (before, name, behind)] == [False, True, False]


def test_what_a_seed_decides_is_not_drawn() -> None:
    """It would be the same with the same seed, which somebody gave."""
    draws = Draws()
    with watch_draws(draws):
        name = "".join(random.Random(7).choices(LETTERS, k=12))
    assert not draws.has_given(name)


def test_sources_are_left_as_they_were() -> None:
    """Nothing of it stays behind."""
    before = os.urandom, random.choice, random.Random.choice, random.Random.seed, secrets.choice
    with watch_draws(Draws()), watch_draws(Draws()):
        assert os.urandom is not before[0]
    assert (os.urandom, random.choice, random.Random.choice, random.Random.seed, secrets.choice) == before

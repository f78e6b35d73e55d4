"""What a replayed command was given: names and times in it were not generated."""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reenact.run.given import Given
from reenact.volatile.times import Window

ORDER = uuid.UUID("8f14e45f-ceea-467f-ab5d-3f0c6a9d1e77")
NEVER_S = float(2**40)


def given(folder: Path, *words: str, **environ: str) -> Given:
    return Given(words, environ, folder, before_s=NEVER_S)


SPELLINGS: dict[str, Callable[[uuid.UUID], str]] = {
    "as it is": str,
    "in capitals": lambda order: str(order).upper(),
    "without dashes": lambda order: order.hex,
    "without dashes in capitals": lambda order: order.hex.upper(),
    "as an address": lambda order: order.urn,
}


@pytest.mark.parametrize("spell", SPELLINGS.values(), ids=SPELLINGS.keys())
@pytest.mark.parametrize("place", ["a word", "the environment", "a file"])
def test_an_id_is_given_in_any_spelling(
    spell: Callable[[uuid.UUID], str], place: str, tmp_path: Path
) -> None:
    """Programs parse ids and write them again in another form."""
    text = f"order={spell(ORDER)}"
    if place == "a file":
        (tmp_path / "orders.txt").write_text(text)
    words = (text,) if place == "a word" else ()
    found = given(tmp_path, *words, **({"ORDER": text} if place == "the environment" else {}))
    assert found.holds(str(ORDER))
    assert found.holds(ORDER.hex)
    assert not found.holds(str(uuid.uuid4()))


@pytest.mark.parametrize("stored", [ORDER.hex, ORDER.bytes, ORDER.bytes_le], ids=["hex", "bytes", "bytes_le"])
def test_an_id_is_given_in_a_database(stored: str | bytes, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "orders.db") as database:
        database.execute("create table orders (id)")
        database.execute("insert into orders values (?)", (stored,))
    database.close()
    assert given(tmp_path).holds(str(ORDER))


def test_a_name_is_given_if_its_parts_are(tmp_path: Path) -> None:
    """A program may put a name together from what the user gave; parts of longer words do not count."""
    found = given(tmp_path, "--customer=acme7X", "Qz81kk/2044", CALLED="acmeQz81")
    assert found.holds("acme7XQz81kk")
    assert found.holds("2044Acme7xqz81kk")
    assert not found.holds("acme7XQz81")
    assert not found.holds("acme7XQz81kkb")


def test_a_name_is_given_in_other_letters(tmp_path: Path) -> None:
    assert given(tmp_path, "--id=01HZX3KQ5W8N7RM2VB4TJYD6CF").holds("01hzx3kq5w8n7rm2vb4tjyd6cf")


NOW_S = datetime(2026, 12, 23, 9, 43, 7, tzinfo=UTC).timestamp()
TOLD = [
    ("on 2026-12-23", "2026-12-23", True),
    ("on 2026-12-23", "Wednesday, December 23, 2026", True),
    ("on 23.12.2026", "2026-12-23", True),
    ("on Dec 23", "2026-12-23", True),
    ("on 2026-12-24", "2026-12-23", False),
    ("at 9:43 AM", "09:43", True),
    ("on 2026-12-23", "2026-12-23T09:43:07Z", False),
    ("nothing", "2026-12-23", False),
]


@pytest.mark.parametrize(("word", "time", "is_given"), TOLD)
def test_a_time_is_told_by_what_the_user_wrote(word: str, time: str, is_given: bool, tmp_path: Path) -> None:
    """In whatever form the program writes it again; the second of a day is read from a clock."""
    assert given(tmp_path, "agent", word).holds_time(time, Window(NOW_S - 1, NOW_S + 1)) == is_given


def test_a_time_of_the_surroundings_is_not_told(tmp_path: Path) -> None:
    """A date in a log of the project, or in the environment of a build, is the current one by itself."""
    (tmp_path / "task.txt").write_text("Book it for 2026-12-24.")
    (tmp_path / "app.log").write_text("2026-12-25 started")
    found = given(tmp_path, "agent", "--task=task.txt", STARTED_AT="2026-12-26T09:00:00Z")
    now = Window(NOW_S, NOW_S + 9e5)
    assert [found.holds_time(f"2026-12-{day}", now) for day in (24, 25, 26)] == [True, False, False]

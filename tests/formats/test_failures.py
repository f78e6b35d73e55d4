"""Exceptions survive being recorded: type, message, attributes, what is inside them and what caused them."""

from __future__ import annotations

import errno
from typing import Any, NamedTuple

import msgspec
import pytest

from reenact.formats.failures import RecordedError, failure_text, rebuild


class Plain(Exception):
    pass


class Asks(Exception):
    """Its constructor wants more than its arguments hold, and keeps what it got."""

    def __init__(self, pool: object, *, status: int) -> None:
        super().__init__(f"{status} from somewhere")
        self.pool = pool
        self.status = status
        self._retries = [1, 2]


class Key(NamedTuple):
    zone: str
    host: str


class Unreachable(OSError):
    """As in aiohttp: an error of the system inside one of the library."""

    def __init__(self, key: Key, error: OSError) -> None:
        super().__init__(error.errno, error.strerror)
        self.key = key
        self.os_error = error
        self.args = key, error


def again(error: BaseException) -> Any:
    return rebuild(msgspec.json.decode(failure_text(error)))


@pytest.mark.parametrize(
    "error",
    [
        Plain(),
        Plain("said", 1, None),
        KeyError("k"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
        TimeoutError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_is_the_same_again(error: BaseException) -> None:
    found = again(error)
    assert (type(found), found.args, str(found)) == (type(error), error.args, str(error))


def test_attributes_come_back_without_the_constructor() -> None:
    """What cannot be recorded, such as a connection pool, is left out."""
    found = again(Asks(object(), status=503))
    assert (type(found), str(found), found.status, found._retries) == (
        Asks,
        "503 from somewhere",
        503,
        [1, 2],
    )
    assert not hasattr(found, "pool")


def test_an_error_inside_an_error_comes_back() -> None:
    """With the members that the system's errors keep beside their attributes."""
    inner = ConnectionRefusedError(errno.ECONNREFUSED, "refused")
    found = again(Unreachable(Key("b", "a"), inner))
    assert (found.errno, found.strerror) == (errno.ECONNREFUSED, "refused")
    assert type(found.os_error) is ConnectionRefusedError
    assert found.os_error.errno == errno.ECONNREFUSED
    assert found.key == Key("b", "a")


def test_the_cause_comes_back() -> None:
    error = Plain("outer")
    error.__cause__ = ValueError("inner")
    found = again(error)
    assert (type(found.__cause__), str(found.__cause__)) == (ValueError, "inner")


def test_an_error_that_contains_itself_ends_somewhere() -> None:
    error = Plain()
    error.args = (error,)
    assert isinstance(again(error), Plain)


def test_a_class_that_is_not_loaded_has_a_stand_in() -> None:
    """Nothing is imported to raise an error."""
    found = rebuild({"type": "no.such.module:Oops", "message": "oops", "args": []})
    assert isinstance(found, RecordedError)
    assert (found.type_name, str(found)) == ("no.such.module:Oops", "oops")

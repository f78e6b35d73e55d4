"""What a tool raised is raised again: same class, arguments, attributes and message."""

from __future__ import annotations

import asyncio
import json
import subprocess
import urllib.error
from email.message import Message
from typing import Any

import msgspec
import pydantic
import pytest

from reenact.canonical import encode
from reenact.values.codec import failure_text, rebuild
from reenact.values.objects import RecordedError


class Refused(Exception):
    """Asks for more than it keeps."""

    def __init__(self, reason: str, *, status: int, retry_after_s: float) -> None:
        super().__init__(f"{status}: {reason}")
        self.reason = reason
        self.status = status
        self.retry_after_s = retry_after_s


class Picky(ValueError):
    """Will not be made without a word."""

    def __new__(cls, *arguments: Any, word: str | None = None) -> Picky:
        if word is None:
            raise LookupError("no word")
        return super().__new__(cls, *arguments)

    def __init__(self, *arguments: Any, word: str) -> None:
        super().__init__(*arguments)
        self.word = word


class Busy(OSError):
    """An operating system error with a mind of its own."""

    def __init__(self, device: str) -> None:
        super().__init__(16, "busy", device)
        self.device = device


class Computed(Exception):
    """Its status follows from its code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code

    @property
    def status(self) -> str:
        return f"E{self.code}"


def noted(error: Exception) -> Exception:
    error.add_note("while shipping")
    return error


def _decoding_error() -> Exception:
    try:
        b"\xff".decode()
    except UnicodeDecodeError as error:
        return error
    raise AssertionError


def _json_error() -> Exception:
    try:
        json.loads("{")
    except json.JSONDecodeError as error:
        return error
    raise AssertionError


GOOD: dict[str, BaseException] = {
    "plain": ValueError("no"),
    "no arguments": RuntimeError(),
    "key error": KeyError("name"),
    "odd arguments": ValueError({1, 2}, (3,), b"x", {"$a": 1}),
    "file not found": FileNotFoundError(2, "No such file", "/tmp/x"),
    "two files": OSError(18, "cross-device link", "a", None, "b"),
    "own operating system error": Busy("printer"),
    "decoding": _decoding_error(),
    "JSON": _json_error(),
    "stop": StopIteration(3),
    "exit": SystemExit(4),
    "import": ImportError("no module", name="x", path="y"),
    "attribute": AttributeError("no x", name="x"),
    "syntax": SyntaxError("bad", ("f.py", 3, 4, "x =", 3, 5)),
    "timeout": TimeoutError(),
    "cancelled inside": asyncio.CancelledError("inner"),
    "keyboard": KeyboardInterrupt(),
    "own": Refused("quota", status=429, retry_after_s=1.5),
    "picky": Picky("no", word="please"),
    "computed attribute": Computed(7),
    "subprocess": subprocess.CalledProcessError(2, ["ls"], b"out", b"err"),
    "subprocess timeout": subprocess.TimeoutExpired("ls", 3.0),
    "notes": noted(ValueError("no")),
    "group": ExceptionGroup("two", [ValueError(1), ExceptionGroup("inner", [KeyError("k")])]),
    "exception as argument": RuntimeError("failed", ValueError(1)),
}


def again(error: BaseException) -> BaseException:
    return rebuild(msgspec.json.decode(failure_text(error)))


def seen(error: BaseException) -> Any:
    """All that an agent can see of an exception."""
    attributes = {name: getattr(error, name, None) for name in dir(error) if not name.startswith("__")}
    return (
        type(error),
        str(error),
        seen_all(error.args),
        {name: seen_all(value) for name, value in attributes.items() if not callable(value)},
        getattr(error, "__notes__", None),
    )


def seen_all(value: Any) -> Any:
    if isinstance(value, BaseException):
        return seen(value)
    if isinstance(value, list | tuple):
        return [seen_all(child) for child in value]
    return value


@pytest.mark.parametrize("name", GOOD)
def test_an_exception_comes_back_the_same(name: str) -> None:
    """Class, message, arguments, attributes and notes are those that were raised."""
    assert seen(again(GOOD[name])) == seen(GOOD[name])


@pytest.mark.parametrize("name", GOOD)
def test_a_failure_is_canonical_json(name: str) -> None:
    """It stands in an event as it is."""
    text = failure_text(GOOD[name])
    assert encode(msgspec.json.decode(text)) == text


def test_the_cause_comes_back() -> None:
    """``raise … from …`` keeps its origin, however long the chain."""
    first, second, third = ValueError("first"), KeyError("second"), RuntimeError("third")
    second.__cause__, third.__cause__ = first, second
    found = again(third)
    assert repr(found.__cause__) == "KeyError('second')"
    assert found.__cause__ is not None
    assert repr(found.__cause__.__cause__) == "ValueError('first')"


def test_what_cannot_be_recorded_is_left_out() -> None:
    """An exception that carries a connection is still of its class, so that ``except`` finds it."""
    error = Refused("quota", status=429, retry_after_s=1.5)
    error.connection = object()  # type: ignore[attr-defined]
    found = again(error)
    assert isinstance(found, Refused)
    assert (found.status, str(found)) == (429, "429: quota")
    assert not hasattr(found, "connection")


def test_arguments_that_cannot_be_recorded_give_way_to_the_message() -> None:
    """One argument that is a connection does not cost the exception its class and message."""
    found = again(ConnectionError("refused by", object()))
    assert type(found) is ConnectionError
    assert "refused by" in str(found)


def test_an_http_error_keeps_its_status() -> None:
    """Errors of the standard library with constructors of their own are rebuilt too."""
    found = again(urllib.error.HTTPError("http://x", 404, "gone", Message(), None))
    assert isinstance(found, urllib.error.HTTPError)
    assert (found.code, found.url if hasattr(found, "url") else found.filename) == (404, "http://x")


def test_a_validation_error_is_named() -> None:
    """A class that cannot be rebuilt from its parts is stood in for, with its name and message."""

    class Model(pydantic.BaseModel):
        number: int

    with pytest.raises(pydantic.ValidationError) as caught:
        Model.model_validate({"number": "x"})
    found = again(caught.value)
    assert isinstance(found, RecordedError)
    assert found.type_name == "pydantic_core._pydantic_core:ValidationError"
    assert "number" in str(found)


def test_a_class_that_is_gone_is_named() -> None:
    """Nothing is imported for an exception; its name and message remain."""
    found = rebuild({"type": "antigravity:Fell", "message": "down", "args": ["down"]})
    assert isinstance(found, RecordedError)
    assert (found.type_name, str(found)) == ("antigravity:Fell", "down")


@pytest.mark.parametrize("name", ["os:system", "builtins:print", "subprocess:Popen"])
def test_only_exceptions_are_built(name: str) -> None:
    """A forged capture cannot have anything else called."""
    assert isinstance(rebuild({"type": name, "message": "", "args": ["true"]}), RecordedError)


def test_a_constructor_is_never_run() -> None:
    """Rebuilding an exception runs none of its own code."""
    found = again(Picky("no", word="please"))
    assert type(found) is Picky


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise OSError("cannot say")


def test_an_exception_that_cannot_be_printed_is_recorded() -> None:
    """Recording never fails because of an exception's own code."""
    assert type(again(Unspeakable(1))) is Unspeakable


def test_an_exception_that_is_its_own_cause_is_recorded() -> None:
    """A loop of causes does not go on for ever."""
    error, other = ValueError("loop"), KeyError("back")
    error.__cause__, other.__cause__ = other, error
    assert isinstance(again(error), ValueError)


def test_a_lone_surrogate_in_a_message_is_recorded() -> None:
    """File names that are no Unicode stand in many error messages."""
    found = again(ValueError("bad name \udcff"))
    assert found.args == ("bad name \udcff",)

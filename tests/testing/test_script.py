"""Which turn answers which request."""

from __future__ import annotations

from typing import Any

import pytest

from reenact.errors import UsageError
from reenact.testing import Fail, Message, Reply, Request, Script, ToolResult, echo

A, B, C = Reply("a"), Reply("b"), Reply("c")


def asked(text: str = "", turn: int = 0, results: tuple[ToolResult, ...] = ()) -> Request:
    """A request in which the model has spoken *turn* times."""
    messages = [Message("user", text)]
    for _ in range(turn):
        messages += [Message("assistant"), Message("tool", "", results)]
    fields: dict[str, Any] = {"provider": "openai", "wire": "openai_chat", "method": "POST", "path": "/"}
    return Request(number=0, headers={}, raw=b"", body={}, time=0, messages=tuple(messages), **fields)


def test_a_list_is_used_up_in_order() -> None:
    """Each turn answers once; then there is none."""
    script = Script.of([A, B])
    assert [script.take(asked()) for _ in range(3)] == [A, B, None]


def test_a_single_turn_answers_for_ever() -> None:
    """One turn in place of a list answers every request."""
    script = Script.of(A)
    assert script.unused == (A,)
    assert [script.take(asked()) for _ in range(3)] == [A, A, A]
    assert script.unused == ()


def test_a_function_decides_by_the_request() -> None:
    """A function is asked each time and has no turns left over."""
    script = Script.of(lambda request: Reply(request.user_text.upper()))
    assert script.take(asked("x")) == Reply("X")
    assert script.unused == ()


WHEN = {
    "text": Reply(when="alpha"),
    "turn number": Reply(when=1),
    "first turn": Fail(when=0),
    "predicate on tool results": Reply(
        when=lambda request: any("42" in r.text for r in request.tool_results)
    ),
}
HOLDS = {
    "text": asked("the alpha case"),
    "turn number": asked("x", 1),
    "first turn": asked("x"),
    "predicate on tool results": asked("x", 1, (ToolResult("c", "is 42"),)),
}
FAILS = {
    "text": asked("the beta case"),
    "turn number": asked("x", 2),
    "first turn": asked("x", 1),
    "predicate on tool results": asked("x", 1, (ToolResult("c", "is 41"),)),
}


@pytest.mark.parametrize("name", WHEN)
def test_a_turn_waits_for_its_request(name: str) -> None:
    """A turn whose ``when`` does not hold is passed over and kept."""
    script = Script.of([WHEN[name], B])
    assert script.take(FAILS[name]) == B
    assert script.take(FAILS[name]) is None
    assert script.unused == (WHEN[name],)
    assert script.take(HOLDS[name]) == WHEN[name]


def test_conversations_are_told_apart_by_text() -> None:
    """Each key has a script of its own, however the requests interleave."""
    script = Script.by_text({"alpha": [A, B], "beta": [C]})
    assert [script.take(asked(text)) for text in ("alpha", "beta", "alpha", "beta")] == [A, C, B, None]


def test_the_longest_key_wins() -> None:
    """A key inside another does not steal its requests, in whatever order they were written."""
    script = Script.by_text({"task 1": A, "task 10": B})
    assert script.take(asked("do task 10")) == B
    assert script.take(asked("do task 1")) == A


def test_the_default_answers_the_rest() -> None:
    """Only what no key matches goes to the default."""
    script = Script.by_text({"alpha": A}, default=[C])
    assert [script.take(asked(text)) for text in ("gamma", "alpha", "gamma")] == [C, A, None]


def test_what_a_text_never_asked_for_is_unused() -> None:
    """Unused turns of every key are listed; a default that was not needed is not one of them."""
    script = Script.by_text({"alpha": A, "beta": [B, C]}, default=Fail())
    script.take(asked("beta"))
    assert script.unused == (A, C)


def test_echo_repeats_the_users_words() -> None:
    """The plain echo; everything but the text comes from the model reply."""
    assert echo(like=Reply(usage=(1, 2)))(asked("again")) == Reply("again", usage=(1, 2))


def test_echo_answers_with_any_function_of_the_request() -> None:
    """The answer may be computed."""
    assert echo(lambda request: f"{len(request.user_text)}")(asked("four")) == Reply("4")


def test_what_is_not_a_turn_is_refused_with_its_place() -> None:
    """A wrong entry is found when the script is made, not when it is due."""
    with pytest.raises(UsageError, match=r"script\[1\]: 'text'"):
        Script.of([A, "text"])  # type: ignore[list-item]  # the mistake under test

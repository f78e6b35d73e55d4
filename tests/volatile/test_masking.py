"""What rules leave out of a comparison, and that they leave out nothing else."""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.formats.json_paths import PathPattern
from reenact.formats.volatile import VolatileRule
from reenact.volatile.masking import DEFAULTS, LEFT_OUT, MASKED, Masking


def rule_of(text):
    """The rule that *text* is, also where nobody may give one that is as wide."""
    return VolatileRule(path=text) if text in ("$", "$[*]", "$..*") else VolatileRule.parse(text)


def masked(request: Any, *rules: str, event_type: str = "tool_call", name: str = "search") -> Any:
    return Masking(map(rule_of, rules)).mask(event_type, name, request)


CASES = {
    "a member is left out": ({"a": 1, "b": 2}, ["$.a"], {"b": 2}),
    "and need not be there": ({"b": 2}, ["$.a"], {"b": 2}),
    "an item keeps its place": ([1, 2], ["$[0]"], [LEFT_OUT, 2]),
    "the whole": ({"a": 1}, ["$"], LEFT_OUT),
    "a part of a text": ({"a": "at 12:30 by"}, [r"$.a =~ \d+:\d+"], {"a": f"at {MASKED} by"}),
    "every such part": ("1 and 22", [r"$ =~ \d+"], f"{MASKED} and {MASKED}"),
    "texts below": ({"a": [{"b": "1"}, "2", 3]}, [r"$.a =~ \d"], {"a": [{"b": MASKED}, MASKED, 3]}),
    "no keys": ({"1": "1"}, [r"$ =~ \d"], {"1": MASKED}),
    "beyond ASCII": ("né 1 ☕", [r"$ =~ \d"], f"né {MASKED} ☕"),
    "two rules": ("a1b2", ["$ =~ a1", "$ =~ b2"], MASKED + MASKED),
    "leaving out goes first": ({"a": "1"}, ["$.a =~ 1", "$.a"], {}),
    "other calls stay": ({"a": 1}, ["tool other $.a", "llm $.a"], {"a": 1}),
    "this kind": ({"a": 1}, ["tool $.a"], {}),
    "this name": ({"a": 1}, ["tool search $.a"], {}),
}  # fmt: skip


@pytest.mark.parametrize(("request_", "rules", "expected"), CASES.values(), ids=CASES)
def test_masking(request_, rules, expected) -> None:
    """Each rule on its example; the request itself stays as it is."""
    before = deepcopy(request_)
    assert masked(request_, *rules) == expected
    assert request_ == before


def test_a_text_that_takes_too_long_is_compared_as_it_is() -> None:
    """Fail closed: it may then be told as a difference, but is never taken for equal."""
    long = "x" * 3_000_000
    assert masked(long, r"$ =~ (?:x{50}){20}y") == long


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(0, 3), st.text("ab12", max_size=4)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["a", "b", "id"]), inner, max_size=3)
    ),
    max_leaves=12,
)
paths = st.sampled_from(["$", "$.a", "$..id", "$[*]", "$.*.a", "$.a..b", "$..*", "$[0].id", "$..[1]"])


def without(value: Any, pattern: PathPattern, place: tuple[Any, ...] = ()) -> Any:
    """What is to be compared, said in another way: by looking at each place of the value by itself."""
    if pattern.matches(place):
        return ...
    if isinstance(value, dict):
        members = {key: without(child, pattern, (*place, key)) for key, child in value.items()}
        return {key: child for key, child in members.items() if child is not ...}
    if isinstance(value, list):
        return [without(child, pattern, (*place, index)) for index, child in enumerate(value)]
    return value


@given(json_values, json_values, paths)
def test_masked_values_are_equal_iff_they_are_equal_elsewhere(one, other, path) -> None:
    """A rule without a mask makes exactly the named places not count."""
    pattern = PathPattern.parse(path)
    expected = without(one, pattern) == without(other, pattern)
    masking = Masking([VolatileRule(path=path)])
    either = [masking.mask("tool_call", "search", value) for value in (one, other)]
    assert (either[0] == either[1]) == expected


@given(
    st.text("ab12 ", max_size=8),
    st.text("ab12 ", max_size=8),
    st.sampled_from([r"\d+", "a", "b1|2", r"\d\b"]),
)
def test_masked_texts_are_equal_iff_they_are_equal_between_the_matches(one, other, mask) -> None:
    """A mask makes exactly what it finds not count; that something was there does."""
    expected = re.split(mask, one) == re.split(mask, other)
    assert (masked(one, f"$ =~ {mask}") == masked(other, f"$ =~ {mask}")) == expected


@given(json_values, paths, st.sampled_from([None, r"\d", "a+"]))
def test_masking_twice_is_masking_once(value, path, mask) -> None:
    """What is masked holds nothing more to mask, as long as nothing moves up into a named place."""
    rule = path if mask is None else f"{path} =~ {mask}"
    once = masked(value, rule)
    assert masked(once, rule) == once


def test_no_rule_costs_nothing() -> None:
    """Calls that no rule is about are not even looked at."""
    masking = Masking(DEFAULTS)
    assert not masking.may_apply("tool_call", "search")
    assert masking.may_apply("llm_request", "")


BODY = {
    "model": "m",
    "prompt_cache_key": "k1",
    "user": "u1",
    "safety_identifier": "s1",
    "metadata": {"user_id": "i1", "purpose": "p"},
    "client_metadata": {"installation": "c1"},
    "input": [
        {"type": "output", "output": "Chunk ID: f4a9b1\nWall time: 0.0292 seconds\nOutput:\nfine"},
        {"type": "output", "output": '{"output":"fine","metadata":{"exit_code":0,"duration_seconds":0.1}}'},
        {"type": "message", "content": "Wall time: 0.0292 seconds"},
        {"type": "message", "id": "msg_01a1dfe4-c70c-7be0-97c6-2521c697608c", "content": "fine"},
        {"type": "reasoning", "id": "rs_68af4030baa48193b0b43b4c2a176a1a"},
    ],
}  # fmt: skip
NOISE = {
    "01a1dfe4-c70c": "01a1dfe6-03fe",
    "k1": "k2",
    "u1": "u2",
    "s1": "s2",
    "i1": "i2",
    "c1": "c2",
    ":0.1": ":7.25",
}


def changed(body: Any, before: str, behind: str) -> Any:
    if isinstance(body, dict):
        return {key: changed(child, before, behind) for key, child in body.items()}
    if isinstance(body, list):
        return [changed(child, before, behind) for child in body]
    return body.replace(before, behind) if isinstance(body, str) else body


def by_default(body: Any) -> Any:
    return Masking(DEFAULTS).mask("llm_request", "", {"url": "http://a", "body": body})


@pytest.mark.parametrize("before", NOISE)
def test_what_never_reaches_the_model_is_passed_over_by_default(before) -> None:
    """Bookkeeping of clients."""
    assert by_default(changed(BODY, before, NOISE[before])) == by_default(BODY)


def test_the_clock_of_the_client_is_passed_over_in_outputs_alone() -> None:
    """The duration of a command above its output; the same words in a message count."""
    other = deepcopy(BODY)
    other["input"][0]["output"] = (
        other["input"][0]["output"].replace("0.0292", "1.5").replace("f4a9b1", "00c0de")
    )
    assert by_default(other) == by_default(BODY)
    other["input"][2]["content"] = "Wall time: 1.5 seconds"
    assert by_default(other) != by_default(BODY)


@pytest.mark.parametrize("part", ["fine", "exit_code", "output", "p", "m", "rs_68af"])
def test_nothing_else_is_passed_over_by_default(part) -> None:
    """Words, outputs, models and a caller's own notes are compared."""
    assert by_default(changed(BODY, part, part + "!")) != by_default(BODY)

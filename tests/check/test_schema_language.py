"""The schema language: what is found where, in which order, and three ways to the same answer."""

import math

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from reenact.check.actions.schema import (
    AnySchema,
    ArraySchema,
    BooleanSchema,
    EnumSchema,
    Field,
    NumberSchema,
    ObjectSchema,
    StringSchema,
    compile_schema,
    to_json_schema,
    walk,
)
from tests.check.strategies import schemas, small_values
from tests.formats import json_values, law

TEXT = StringSchema("A text")
PAIR = ObjectSchema(
    "A pair",
    (Field("z", "First", TEXT), Field("a", "Second", NumberSchema("0 to 2", 0, 2), required=False)),
)
OPEN = ObjectSchema(
    "An open object", (Field("pair", "A pair", PAIR), Field("b", "A text", TEXT)), extras=True
)
PAIRS = ArraySchema("Pairs", PAIR, minimum=2)
COLOUR = EnumSchema("A colour", ("red", "blue"))


def found(schema, value):
    return [(problem.code, problem.path) for problem in walk(schema, value)]


FINDINGS = {
    "any takes null": (AnySchema("Any"), None, []),
    "any takes objects": (AnySchema("Any"), {"a": []}, []),
    "an empty text is a text": (TEXT, "", []),
    "null is no text": (TEXT, None, [("invalid_type", "")]),
    "a number is no text": (TEXT, 1, [("invalid_type", "")]),
    "a boolean is not a number": (NumberSchema("Any"), True, [("invalid_type", "")]),
    "a number is no boolean": (BooleanSchema("Yes or no"), 1, [("invalid_type", "")]),
    "a boolean": (BooleanSchema("Yes or no"), False, []),
    "NaN is not a number": (NumberSchema("Any"), math.nan, [("invalid_type", "")]),
    "infinity is not a number": (NumberSchema("0 or more", 0), math.inf, [("invalid_type", "")]),
    "at the minimum": (NumberSchema("0 to 2", 0, 2), 0, []),
    "at the maximum": (NumberSchema("0 to 2", 0, 2), 2.0, []),
    "below the minimum": (NumberSchema("0 to 2", 0, 2), -0.1, [("number_below_minimum", "")]),
    "above the maximum": (NumberSchema("0 to 2", 0, 2), 3, [("number_above_maximum", "")]),
    "an integer too large for a float": (
        NumberSchema("0 to 2", 0, 2),
        10**400,
        [("number_above_maximum", "")],
    ),
    "one of the texts": (COLOUR, "red", []),
    "none of the texts": (COLOUR, "Red", [("invalid_enum_value", "")]),
    "no text at all": (COLOUR, 1, [("invalid_type", "")]),
    "an object is no array": (PAIRS, {}, [("invalid_type", "")]),
    "a tuple is no array": (PAIRS, (), [("invalid_type", "")]),
    "an array is no object": (PAIR, [], [("invalid_type", "")]),
    "a small array's items are checked": (
        PAIRS,
        [{"z": 1}],
        [("array_too_small", ""), ("invalid_type", "[0].z")],
    ),
    "items are numbered": (
        PAIRS,
        [{"z": ""}, {"a": 3}],
        [("missing_field", "[1].z"), ("number_above_maximum", "[1].a")],
    ),
    "an optional field may be absent": (PAIR, {"z": ""}, []),
    "an optional field may not be null": (PAIR, {"z": "", "a": None}, [("invalid_type", "a")]),
    "fields come in the schema's order": (
        PAIR,
        {"a": "", "z": 1},
        [("invalid_type", "z"), ("invalid_type", "a")],
    ),
    "unexpected members come last, sorted": (
        PAIR,
        {"é": 1, "y": 1, "B": 1},
        [
            ("missing_field", "z"),
            ("unexpected_field", "B"),
            ("unexpected_field", "y"),
            ("unexpected_field", "é"),
        ],
    ),
    "depth first": (
        OPEN,
        {"b": 1, "pair": {"q": 1, "a": None}, "other": 1},
        [
            ("missing_field", "pair.z"),
            ("invalid_type", "pair.a"),
            ("unexpected_field", "pair.q"),
            ("invalid_type", "b"),
        ],
    ),
    "odd keys stand as they are": (
        PAIR,
        {"z": "", "x.y[0]": 1, "": 1},
        [("unexpected_field", ""), ("unexpected_field", "x.y[0]")],
    ),
}


@pytest.mark.parametrize("name", FINDINGS)
def test_problems_have_their_code_place_and_order(name):
    """The table is the rule; every one of these is an error."""
    schema, value, expected = FINDINGS[name]
    assert found(schema, value) == expected
    assert all(problem.severity == "error" for problem in walk(schema, value))


def test_a_message_says_what_was_expected_and_what_came():
    """Without repeating the value, which may be secret or large."""
    (problem,) = walk(OPEN, {"pair": {"z": "hush"}, "b": ["hush"]})
    assert problem.message == "must be a string, not an array"


def test_null_counts_as_absent_where_asked():
    """Optional fields only: so it is in what capsules give."""
    assert list(walk(PAIR, {"z": "", "a": None}, null_is_absent=True)) == []
    assert [problem.path for problem in walk(PAIR, {"z": None}, null_is_absent=True)] == ["z"]


@law
@given(schemas, small_values | json_values)
def test_the_fast_way_agrees_with_the_walk(schema, value):
    """For every schema and every value, and with nulls either way."""
    for null_is_absent in (False, True):
        accepts = compile_schema(schema, null_is_absent=null_is_absent)
        assert accepts(value) is (not list(walk(schema, value, null_is_absent=null_is_absent)))


@law
@given(schemas, small_values | json_values)
def test_json_schema_agrees_with_the_walk(schema, value):
    """Other people's validators find the same values good."""
    for null_is_absent in (False, True):
        converted = to_json_schema(schema, null_is_absent=null_is_absent)
        Draft202012Validator.check_schema(converted)
        is_good = not list(walk(schema, value, null_is_absent=null_is_absent))
        assert Draft202012Validator(converted).is_valid(value) is is_good


@pytest.mark.parametrize("value", [(1, 2), b"x", {1, 2}, object(), {1: 2}, {None: 1, "z": 2}, math.nan])
def test_what_is_no_json_is_a_problem_not_an_exception(value):
    """Python has values that JSON has not."""
    assert found(PAIR, value)
    assert not compile_schema(PAIR)(value)

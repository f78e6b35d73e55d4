"""Commitments bind a field to its value and tell nobody what it is."""

from hypothesis import given
from hypothesis import strategies as st

from reenact.check.publishing import fields_of
from reenact.check.seals.commitments import Salts, commitment, commitments_of, leaf_of
from reenact.formats.seal import SALT_BYTES
from tests.formats import json_values, law, texts

SEED = bytes(range(32))
TOOLS = ["search", "shell_command", "read_file"]


def test_fields_are_what_is_no_object():
    """Arrays are one field, an empty object is one too, and odd names are quoted."""
    value = {"a": {"b": 1, "c": {"d": [1, {"e": 2}]}}, "f": {}, "odd key": {"": None}}
    assert fields_of(value) == {
        "$.a.b": 1,
        "$.a.c.d": [1, {"e": 2}],
        "$.f": {},
        '$["odd key"][""]': None,
    }


@law
@given(st.dictionaries(texts, json_values, max_size=4), st.dictionaries(texts, json_values, max_size=4))
def test_two_events_have_two_sets_of_fields(one, other):
    """Nothing of an event is lost in its fields."""
    assert (fields_of(one) == fields_of(other)) is (one == other)


@law
@given(texts, json_values, texts, json_values)
def test_a_commitment_is_to_one_name_and_one_value(name, value, other_name, other_value):
    """Another of either gives another commitment under the same salt."""
    salt = bytes(SALT_BYTES)
    same = repr((name, value)) == repr((other_name, other_value))
    assert same or commitment(name, value, salt) != commitment(other_name, other_value, salt)


def test_integers_floats_and_booleans_are_different_values():
    """Equal to Python, not to us."""
    assert len({commitment("$.a", value, bytes(16)) for value in (1, 1.0, True, "1")}) == 4


def test_a_tool_cannot_be_guessed_from_its_commitment():
    """Its name has few forms, its salt has 2**128; equal names at two places look different."""
    salts = [Salts(SEED, tree, position) for tree in ("events", "log") for position in (1, 2)]
    found = [commitments_of({"$.tool": "search"}, salt)["$.tool"] for salt in salts]
    assert len(set(found)) == 4
    for guess in TOOLS:
        for salt in (b"", bytes(SALT_BYTES), SEED[:SALT_BYTES]):
            assert commitment("$.tool", guess, salt) not in found
    assert all(len(salt.of("$.tool")) == SALT_BYTES == 16 for salt in salts)


def test_salts_of_one_seed_tell_nothing_about_another():
    """Each field has its own, and a new seed has new ones."""
    places = [(tree, position, name) for tree in ("events", "log") for position in (1, 11) for name in "ab"]
    salts = {Salts(seed, t, p).of(n) for seed in (SEED, SEED[::-1]) for t, p, n in places}
    assert len(salts) == 16


def test_a_leaf_holds_its_commitments_by_name():
    """The order of the members does not matter, a field more or less does."""
    salts = Salts(SEED, "log", 1)
    fields = {"$.b": 1, "$.a": 2}
    leaf = leaf_of(commitments_of(fields, salts).values())
    assert leaf == leaf_of(commitments_of(dict(reversed(fields.items())), salts).values())
    assert leaf != leaf_of(commitments_of({"$.b": 1}, salts).values())

"""Schemas, values and actions at random."""

import copy

from hypothesis import strategies as st

from reenact.check.actions.schema import (
    AnySchema,
    ArraySchema,
    BooleanSchema,
    EnumSchema,
    Field,
    NumberSchema,
    ObjectSchema,
    StringSchema,
)
from tests.formats import json_values

NAMES = st.sampled_from(["a", "b", "c", "d"])
bounds = st.none() | st.integers(-3, 3) | st.floats(-3, 3)

leaf_schemas = (
    st.just(AnySchema("any"))
    | st.just(StringSchema("string"))
    | st.just(BooleanSchema("boolean"))
    | st.builds(NumberSchema, st.just("number"), bounds, bounds)
    | st.builds(EnumSchema, st.just("enum"), st.lists(NAMES, min_size=1, unique=True).map(tuple))
)


def objects_of(schemas):
    fields = st.lists(
        st.builds(Field, NAMES, st.just("field"), schemas, st.booleans()),
        max_size=3,
        unique_by=lambda field: field.name,
    )
    return st.builds(ObjectSchema, st.just("object"), fields.map(tuple), st.booleans())


schemas = st.recursive(
    leaf_schemas,
    lambda children: (
        objects_of(children) | st.builds(ArraySchema, st.just("array"), children, st.integers(0, 2))
    ),
    max_leaves=6,
)

small_values = st.recursive(
    st.none() | st.booleans() | st.integers(-4, 4) | st.floats(-4, 4) | NAMES | st.just(""),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(NAMES, children, max_size=4),
    max_leaves=8,
)


def paths_of(value, path=()):
    """Where in *value* something could be changed."""
    yield path
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, child in children:
        yield from paths_of(child, (*path, key))


@st.composite
def damaged(draw, originals, most=3):
    """One of *originals* with a few members replaced, removed or added."""
    value = copy.deepcopy(draw(st.sampled_from(originals)))
    for _ in range(draw(st.integers(0, most))):
        path = draw(st.sampled_from(list(paths_of(value))))
        how = draw(st.sampled_from(["replace", "remove", "add"]))
        value = _change(value, path, how, draw(json_values | small_values))
    return value


def _change(value, path, how, new):
    if not path:
        return new if how == "replace" else {**value, "x": new} if isinstance(value, dict) else value
    *parents, last = path
    place = value
    for key in parents:
        place = place[key]
    if how == "replace":
        place[last] = new
    elif how == "remove":
        del place[last]
    elif isinstance(place[last], dict):
        place[last]["x"] = new
    return value

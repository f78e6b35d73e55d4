"""What a tool was given and what it returned comes back equal and of the same type."""

from __future__ import annotations

import dataclasses
import enum
import math
import random
from collections import namedtuple
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, NamedTuple
from uuid import UUID

import attrs
import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact import canonical
from reenact.errors import FormatError
from reenact.values import codec
from reenact.values.codec import embed, from_json, from_text, object_text, to_ordered_text, to_text


class Colour(enum.Enum):
    RED = "red"
    TUPLE = (1, 2)


class Word(enum.StrEnum):
    YES = "yes"


class Level(enum.IntEnum):
    LOW = 1


class Access(enum.Flag):
    READ = 1
    WRITE = 2


class Signal(enum.IntFlag):
    STOP = 1
    GO = 2


@dataclasses.dataclass
class Order:
    number: int
    lines: list[Any] = dataclasses.field(default_factory=list)
    total: float = dataclasses.field(init=False, default=0.0)


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    value: Any


class Point(NamedTuple):
    x: int
    y: Any = None


Pair = namedtuple("Pair", "first second")


class Struct(msgspec.Struct, frozen=True, rename="camel"):
    some_field: Any


class Item(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")

    name: str = pydantic.Field(alias="itemName")
    size: int = 0
    _seen: list[int] = pydantic.PrivateAttr(default_factory=list)


@attrs.frozen
class Parcel:
    weight: int
    _hidden: Any = None


GOOD: dict[str, Any] = {
    "none": None,
    "true": True,
    "one is not true": [1, True, 1.0, 0, False, -0.0],
    "text": "grüß dich \U0001f600 \x00 \u2028",
    "lone surrogate": "a\ud800b",
    "lone surrogate as key": {"\udfff": 1},
    "text that looks like ours": ["$py", "$blob", {"a": "$json"}],
    "an object that looks like ours": {"$py": "tuple", "value": [1]},
    "a schema": {"$ref": "#/$defs/x", "$defs": {"x": {"type": "string"}}},
    "nan": math.nan,
    "infinities": [math.inf, -math.inf],
    "64 bits": [2**63, 2**64 - 1, -(2**63)],
    "huge integers": [2**64, -(2**63) - 1, 10**400],
    "huge integer alone": 1 << 200,
    "float that is an integer": 1e16,
    "tuple": (1, "a", None),
    "empty tuple": (),
    "tuple in a list": [(1, 2), [3]],
    "tuple among brackets": ["(so", ("(", "it) goes"), "(("],
    "tuple of many": tuple(range(70_000)),
    "set": {1, 2, 3},
    "empty set": set(),
    "set of tuples": {(1, 2), ("a",)},
    "frozenset": frozenset({"a", "b"}),
    "deep": [[[[[[[[[[[[{"a": [[[[[[]]]]]]}]]]]]]]]]]]],
    "many, not deep": [[number] for number in range(1000)],
    "bytes": b"\x00\xff",
    "bytearray": bytearray(b"abc"),
    "complex": 1 + 2j,
    "odd keys": {1: "a", None: "b", (1, 2): "c"},
    "datetime": datetime(2024, 2, 29, 23, 59, 59, 999999, tzinfo=UTC),
    "datetime without zone": datetime(2024, 1, 1),  # noqa: DTZ001 — that is the case
    "datetime with offset": datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=5, minutes=30))),
    "the second two o'clock": datetime(2024, 10, 27, 2, 30, fold=1),  # noqa: DTZ001
    "date": date(1, 1, 1),
    "time": time(12, 30, 1, tzinfo=UTC),
    "timedelta": timedelta(days=-1, microseconds=5),
    "decimal": Decimal("1.10"),
    "uuid": UUID(int=7),
    "path": Path("/tmp/x"),
    "pure path": PurePosixPath("a/b"),
    "windows path": PureWindowsPath("C:\\a\\b"),
    "enum": Colour.RED,
    "enum by tuple": Colour.TUPLE,
    "string enum": Word.YES,
    "integer enum": Level.LOW,
    "enum in a list": [Word.YES, Level.LOW, {"a": Word.YES}],
    "enum as key": {Word.YES: Level.LOW},
    "flags": Access.READ | Access.WRITE,
    "no flag": Access(0),
    "integer flags": Signal.STOP | Signal.GO,
    "dataclass": Order(1, [Point(1, 2), (3,)]),
    "frozen dataclass": Frozen(Frozen({1, 2})),
    "named tuple": Point(1, Pair(2, "b")),
    "struct": Struct((1,)),
    "attrs": Parcel(1, hidden=Frozen(2)),
    "exception": ValueError("no", (1, 2)),
}


def same(left: Any, right: Any) -> bool:
    """Equal and of equal types, all the way down; NaN equals itself and exceptions their likes."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return left == right or (math.isnan(left) and math.isnan(right))
    if isinstance(left, dict):
        pairs = zip(left.items(), right.items(), strict=True)
        return len(left) == len(right) and all(same(list(a), list(b)) for a, b in pairs)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, Frozen):
        return same(left.value, right.value)
    if isinstance(left, Struct):
        return same(left.some_field, right.some_field)
    if isinstance(left, BaseException):
        return same(left.args, right.args)
    if isinstance(left, datetime):
        return left == right and left.fold == right.fold
    return bool(left == right)


@pytest.mark.parametrize("name", GOOD)
def test_a_value_comes_back_the_same(name: str) -> None:
    """Each kind of value that can be recorded is rebuilt equal and of its own type."""
    assert same(from_text(to_ordered_text(GOOD[name])), GOOD[name])


@pytest.mark.parametrize("name", GOOD)
def test_the_text_is_canonical_json(name: str) -> None:
    """What is written is what canonical JSON allows: 64-bit integers, no NaN, no lone surrogates."""
    text = to_text(GOOD[name])
    assert canonical.encode(msgspec.json.decode(text)) == text


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=8,
)
hashable = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(st.characters(codec=None), max_size=4)
    | st.binary(max_size=4)
    | st.sampled_from((*Colour, *Word, *Level))
    | st.decimals(allow_nan=False)
    | st.uuids()
    | st.datetimes(timezones=st.none() | st.just(UTC))
    | st.dates()
    | st.timedeltas(),
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3),
    max_leaves=4,
)
anything = st.recursive(
    plain | hashable,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(hashable, inner, max_size=3)
        | st.sets(hashable, max_size=3)
        | st.builds(Frozen, inner)
        | st.builds(Point, st.integers(), inner)
        | st.builds(Struct, inner)
    ),
    max_leaves=8,
)


@given(anything)
def test_any_value_comes_back(value: Any) -> None:
    """Whatever is nested in whatever, ``x`` comes back with the order of its members; its text is stable."""
    assert same(from_text(to_ordered_text(value)), value)
    assert to_text(from_text(to_text(value))) == to_text(value)


@given(anything)
def test_an_embedded_text_is_the_value(value: Any) -> None:
    """An answer stands in a canonical line, and loses neither its types nor the order of its members."""
    text = to_ordered_text(value)
    line = embed(text, value)
    assert line == embed(text)
    stored = msgspec.json.decode(line)
    assert canonical.encode(stored) == line
    if isinstance(stored, dict) and "$json" in stored:
        stored = msgspec.json.decode(stored["$json"])
    assert same(from_json(stored), value)


def shuffled(value: Any, rng: random.Random) -> Any:
    """*value* with the members of all its dicts, and the items of its sets, in another order."""
    if isinstance(value, dict):
        items = [(key, shuffled(child, rng)) for key, child in value.items()]
        rng.shuffle(items)
        return dict(items)
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        return type(value)(shuffled(child, rng) for child in value)
    if isinstance(value, Frozen):
        return Frozen(shuffled(value.value, rng))
    return value


@given(anything, st.randoms(use_true_random=False))
def test_the_order_of_members_never_matters_in_matching(value: Any, rng: random.Random) -> None:
    """Equal requests have one text, in whatever order their members were put together."""
    assert to_text(shuffled(value, rng)) == to_text(value)


def test_a_pydantic_model_comes_back() -> None:
    """Extra members, aliases and which fields were set survive: SDKs dump with ``exclude_unset``."""
    item = Item.model_validate({"itemName": "bolt", "colour": "red"})
    item._seen.append(1)
    again = from_text(to_text(item))
    assert again == item
    assert type(again) is Item
    assert again.model_dump(exclude_unset=True) == {"name": "bolt", "colour": "red"}


def test_subclasses_of_plain_types_become_plain() -> None:
    """A dict, list or str of a class of its own is recorded as what it holds: its class may do anything."""

    class Mine(dict[str, int]):
        pass

    class Name(str):
        __slots__ = ()

    assert from_text(to_text([Mine(a=1), Name("x")])) == [{"a": 1}, "x"]


class Connection:
    """Something that cannot be recorded."""


class Hostile:
    """Something whose very looks hurt."""

    def __eq__(self, other: object) -> bool:
        raise AttributeError("do not compare me")

    def __getattr__(self, name: str) -> Any:
        raise OSError("do not look at me")

    __hash__ = None  # type: ignore[assignment]


def _endless() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


def _deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


@dataclasses.dataclass
class Sly:
    """A data class whose field cannot be read."""

    field: int = 0

    def __getattribute__(self, name: str) -> Any:
        if name == "field":
            raise RuntimeError("not now")
        return super().__getattribute__(name)


OPAQUE: dict[str, Any] = {
    "object": Connection(),
    "function": lambda: None,
    "module": math,
    "fraction": Fraction(1, 3),
    "hostile": Hostile(),
    "contains itself": _endless(),
    "far too deep": _deep(100_000),
    "too deep for an event": _deep(250),
    "unreadable": Sly(),
    "generator": (n for n in range(3)),
}


@pytest.mark.parametrize("name", OPAQUE)
def test_what_cannot_be_recorded_is_named_and_refused(name: str) -> None:
    """Writing never fails; reading says what it was and what to do, instead of inventing a value."""
    kind = type(OPAQUE[name])
    text = to_text(OPAQUE[name])
    assert to_ordered_text(OPAQUE[name])
    with pytest.raises(FormatError, match=rf"{kind.__qualname__}.*pass through"):
        from_text(text)


def test_only_the_opaque_member_is_opaque() -> None:
    """An object with known names keeps what can be recorded."""
    members = msgspec.json.decode(object_text({"path": "a", "content": Connection()}))
    assert members["path"] == "a"
    assert members["content"]["$py"] == "opaque"


def test_a_generator_given_as_an_argument_is_not_consumed() -> None:
    """Recording a call leaves its arguments as they are."""
    numbers = (n for n in range(3))
    to_text({"numbers": numbers})
    assert list(numbers) == [0, 1, 2]


def test_a_class_that_is_not_loaded_is_not_imported() -> None:
    """Reading a value never imports a module: a capture is data, not code."""
    with pytest.raises(FormatError, match=r"antigravity:Fun.*import it first"):
        from_text(b'{"$py":"object","type":"antigravity:Fun","value":{}}')


@pytest.mark.parametrize("name", ["os:system", "builtins:eval", "subprocess:Popen", "collections:Counter"])
def test_only_data_classes_are_rebuilt(name: str) -> None:
    """A forged capture cannot have anything else called."""
    with pytest.raises(FormatError):
        from_text(b'{"$py":"object","type":"%b","value":{"args":["true"]}}' % name.encode())


MALFORMED = (
    b'{"$py":"nonsense"}',
    b'{"$py":["tuple"]}',
    b'{"$py":"tuple"}',
    b'{"$py":"int","value":5}',
    b'{"$py":"bytes","value":"?"}',
    b'{"$py":"datetime","value":"yesterday"}',
    b'{"$py":"dict","value":[[1]]}',
    b'{"$py":"dict","value":[[[],1]]}',
    b'{"$py":"set","value":[[]]}',
    b'{"$py":"object","type":7,"value":{}}',
    b'{"$py":"object","type":"tests.formats.test_values:Point","value":{"z":1}}',
    b'{"$py":"enum","type":"tests.formats.test_values:Colour","value":"GREEN"}',
    b'{"$py":"Decimal","value":"x"}',
)


@pytest.mark.parametrize("text", MALFORMED)
def test_a_malformed_value_is_a_format_error(text: bytes) -> None:
    """A capture that was made up is refused, not stumbled over."""
    with pytest.raises(FormatError):
        from_text(text)


@pytest.mark.parametrize("value", ['say "$HOME"', 'a,"$x', '{"$py', "base+1", "$", {"a": '"$b"'}, ["$c"]])
def test_a_text_that_speaks_of_marks_is_plain(value: object) -> None:
    """Dollars and signs in strings, as source code has them, are taken for neither marks nor numbers."""
    text = codec.dump_sorted({"value": value})
    assert codec.is_plain(text)
    assert canonical.is_canonical(text)


@pytest.mark.parametrize("value", [{"$py": "tuple"}, {"a": 1, "$ref": 2}, [{"b": {"$": 0}}]])
def test_a_name_that_begins_with_a_dollar_is_seen(value: object) -> None:
    """Wherever it stands in a text that we wrote."""
    assert not codec.is_plain(codec.dump_sorted(value))


@pytest.mark.parametrize("value", [1e16, [1e300], {"a": -2.5e22}])
def test_a_number_with_an_exponent_is_seen(value: object) -> None:
    """The other library writes it otherwise."""
    assert not canonical.is_canonical(codec.dump_sorted(value))

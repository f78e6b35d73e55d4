"""Canonical JSON: the published vectors, RFC 8785's own examples, refusals, and the laws of encoding."""

import collections
import datetime
import decimal
import enum
import json
import math
import shutil
import struct
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reenact import canonical
from reenact.canonical import read_json
from reenact.errors import FormatError

VECTORS = Path(__file__).parent / "golden" / "vectors"
OPENAGENTS = json.loads((VECTORS / "openagents-canonical-hash.json").read_bytes())
ACTIONS = json.loads((VECTORS / "ai.agent.action-v0.json").read_bytes())["vectors"]

REPLAY_VECTORS = {
    f"{family}-{vector['name']}": (vector["payload"], vector)
    for family in ("khala", "spacetime")
    for vector in OPENAGENTS[family]["vectors"]
} | {f"derived-{index}": (vector["value"], vector) for index, vector in enumerate(OPENAGENTS["derived"])}


@pytest.mark.parametrize(("value", "expected"), REPLAY_VECTORS.values(), ids=REPLAY_VECTORS)
def test_replay_profile_reproduces_the_published_vectors(value, expected):
    """Text and digest are those of the OpenAgents vectors."""
    assert canonical.encode(value).decode() == expected["canonical_json"]
    assert canonical.digest(value) == expected["sha256"]


@pytest.mark.parametrize("text", OPENAGENTS["f32_widened_in_replay_jsonl"].values())
def test_replay_profile_keeps_widened_floats_as_written(text):
    """A 32-bit float that was widened is written with the digits it was read with."""
    assert canonical.encode(read_json(text.encode())).decode() == text


@pytest.mark.parametrize("vector", ACTIONS, ids=[vector["name"] for vector in ACTIONS])
def test_jcs_profile_reproduces_the_action_digests(vector):
    """The four digests of a verifiable record are bare hex over RFC 8785."""
    subject, expected = vector["subject"], vector["expected"]
    envelope = {"vdr_version": "0", "profile": vector["profile"], "subject": subject}
    asked = {"model": subject["model"], "params": subject.get("params"), "input": subject["input"]}
    assert canonical.digest(subject, "jcs") == expected["subject_digest"]
    assert canonical.digest(envelope, "jcs") == expected["record_digest"]
    assert canonical.digest(asked, "jcs") == expected["input_digest"]
    assert canonical.digest(subject["output"], "jcs") == expected["output_digest"]


# RFC 8785, Appendix B: the bits of a double and its text.
NUMBERS = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "ffefffffffffffff": "-1.7976931348623157e+308",
    "4340000000000000": "9007199254740992",
    "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555554": "333333333.33333325",
    "41b3de4355555555": "333333333.3333333",
    "41b3de4355555556": "333333333.3333334",
    "41b3de4355555557": "333333333.33333343",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}


@pytest.mark.parametrize(("bits", "text"), NUMBERS.items())
def test_jcs_numbers_follow_the_rfc(bits, text):
    """Doubles are written as ECMAScript writes them."""
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    assert canonical.encode(number, "jcs").decode() == text


def test_jcs_sorts_keys_by_utf16_units():
    """The sorting example of RFC 8785 §3.2.3: surrogates sort before U+FB33."""
    value = {
        "\u20ac": "Euro Sign",
        "\r": "Carriage Return",
        "\ufb33": "Hebrew Letter Dalet With Dagesh",
        "1": "One",
        "\U0001f600": "Emoji: Grinning Face",
        "\u0080": "Control",
        "\u00f6": "Latin Small Letter O With Diaeresis",
    }
    assert list(json.loads(canonical.encode(value, "jcs")).values()) == [
        "Carriage Return",
        "One",
        "Control",
        "Latin Small Letter O With Diaeresis",
        "Euro Sign",
        "Emoji: Grinning Face",
        "Hebrew Letter Dalet With Dagesh",
    ]


def test_replay_sorts_keys_by_code_point():
    """The other profile differs exactly there: U+FB33 comes before the astral emoji."""
    assert (
        canonical.encode({"\U0001f600": 1, "\ufb33": 2, "a": 3})
        == '{"a":3,"\ufb33":2,"\U0001f600":1}'.encode()
    )


def test_jcs_reproduces_the_sample_of_the_rfc():
    """The sample object of RFC 8785 §3.2.2."""
    value = {
        "numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": '\u20ac$\u000f\nA\'B"\\\\"/',
        "literals": [None, True, False],
    }
    expected = (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )
    assert canonical.encode(value, "jcs").decode() == expected


REPLAY_TEXTS = {
    "a float stays a float": (1.0, "1.0"),
    "a large float has no plus sign": (1e16, "1e16"),
    "a plus sign in a text is text": (["e+", 1e300, 0.5], '["e+",1e300,0.5]'),
    "a small float": (1e-7, "1e-7"),
    "minus zero": (-0.0, "-0.0"),
    "the largest integer": (2**64 - 1, "18446744073709551615"),
    "the smallest integer": (-(2**63), "-9223372036854775808"),
    "controls are escaped, DEL and U+2028 are not": (
        "\x00\x1f\b\f\n\r\t\x7f\u2028/",
        '"\\u0000\\u001f\\b\\f\\n\\r\\t\x7f\u2028/"',
    ),
    "keys are escaped": ({'a"\n': 1}, '{"a\\"\\n":1}'),
    "a tuple is an array": ((1, (2,)), "[1,[2]]"),
    "a null beside a number": ([None, 127, -1, 255], "[null,127,-1,255]"),
}


@pytest.mark.parametrize(("value", "text"), REPLAY_TEXTS.values(), ids=REPLAY_TEXTS)
def test_replay_profile_writes(value, text):
    """The choices of the ``replay`` profile, one by one."""
    assert canonical.encode(value).decode() == text


class Colour(enum.Enum):
    RED = "red"


class Number(enum.IntEnum):
    ONE = 1


class Name(str):
    __slots__ = ()


class Word(str, enum.Enum):  # noqa: UP042 — the older spelling, which agents still use
    YES = "yes"


UNHOLDABLE = {
    "NaN": math.nan,
    "NaN with a payload": struct.unpack(">d", bytes.fromhex("fff8cb7fffcb7f01"))[0],
    "infinity": math.inf,
    "minus infinity": -math.inf,
    "lone surrogate": "a\ud800",
    "key with a lone surrogate": {"\udfff": 1},
    "integer above 64 bits": 2**64,
    "integer below 64 bits": -(2**63) - 1,
    "integer of thousands of digits": 10**5000,
    "integer key": {1: 2},
    "null key": {None: 2},
    "enum key": {Word.YES: 2},
    "bytes": b"x",
    "bytearray": bytearray(b"x"),
    "set": {1},
    "frozenset": frozenset({1}),
    "complex": 1j,
    "Decimal": decimal.Decimal("1.5"),
    "str subclass": Name("x"),
    "dict subclass": collections.OrderedDict(a=1),
    "named tuple": collections.namedtuple("Point", "x")(1),
    "date": datetime.date(2026, 1, 1),
    "datetime": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
    "object": object(),
}


WRITTEN_AS_TEXT = {"UUID": uuid.UUID(int=1), "Enum": Colour.RED, "IntEnum": Number.ONE, "str Enum": Word.YES}


@pytest.mark.parametrize("value", WRITTEN_AS_TEXT.values(), ids=WRITTEN_AS_TEXT)
def test_enum_members_and_uuids_are_written_as_what_they_stand_for(value):
    """The one documented exception of the ``replay`` profile; RFC 8785 has none."""
    expected = value.value if isinstance(value, enum.Enum) else str(value)
    assert canonical.encode([value]) == canonical.encode([expected])
    with pytest.raises(FormatError):
        canonical.encode([value], "jcs")


@pytest.mark.parametrize("profile", ["replay", "jcs"])
@pytest.mark.parametrize("value", UNHOLDABLE.values(), ids=UNHOLDABLE)
def test_what_json_cannot_hold_is_refused_with_its_path(value, profile):
    """Nothing is silently changed; the error says where the culprit is."""
    with pytest.raises(FormatError) as caught:
        canonical.encode({"a": [None, 0.5, {"odd key": value}]}, profile)
    assert caught.value.json_path == '$.a[2]["odd key"]'


def test_jcs_refuses_integers_that_doubles_cannot_tell_apart():
    """2**53 and 2**53 + 1 would get one text there; one that is the text of a double is that double."""
    for good in (2**53 - 1, -(2**53), 10**16, 123456789012345680000, 10**21 - 2**17 * 10):
        is_text = canonical.encode(float(good), "jcs") == str(good).encode()
        assert not is_text or canonical.encode(good, "jcs") == str(good).encode()
    for bad in (2**53 + 1, -(2**53) - 1, 10**16 + 1, 123456789012345678901, 10**21, 10**400):
        with pytest.raises(FormatError, match="beyond"):
            canonical.encode([bad], "jcs")


NUMBER_TEXTS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(10**25), 10**25).map(str),
    st.integers(2**53 - 5, 2**53 + 5).map(str),
    st.builds("{}e{}".format, st.integers(-(10**18), 10**18), st.integers(-320, 280)),
    st.builds("{}.{}E{:+d}".format, st.integers(0, 999), st.integers(0, 10**9), st.integers(-30, 30)),
    st.sampled_from(["-0", "-0.0", "1e16", "1e-6", "5e-324", "1e21", "1e-7", "123456789012345680000"]),
)


@pytest.fixture(scope="module")
def javascript():
    """What JavaScript writes for each of some JSON texts."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node")
    script = """
        const texts = JSON.parse(process.argv[1]);
        process.stdout.write(JSON.stringify(texts.map(text => JSON.stringify(JSON.parse(text)))));
    """

    def stringify(texts):
        done = subprocess.run(
            [node, "-e", script, json.dumps(texts)], capture_output=True, check=True, timeout=60
        )
        return json.loads(done.stdout)

    return stringify


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.lists(NUMBER_TEXTS, min_size=100, max_size=200))
def test_jcs_numbers_are_those_of_javascript(javascript, texts):
    """What we read, we write as JavaScript does, and read again; what we refuse would have been changed."""
    for text, theirs in zip(texts, javascript(texts), strict=True):
        try:
            value = read_json(text.encode(), "jcs")
            ours = canonical.encode(value, "jcs").decode()
        except FormatError:
            assert theirs == "null" or theirs != text, text
            continue
        assert ours == theirs, text
        assert canonical.encode(read_json(ours.encode(), "jcs"), "jcs").decode() == ours


def nested(depth, wrap):
    value = 1
    for _ in range(depth):
        value = wrap(value)
    return value


WRAPS = {
    "list": lambda value: [value],
    "dict": lambda value: {"a": value},
    "tuple": lambda value: (value,),
    "tuple in list": lambda value: [(value,)],
}


@pytest.mark.parametrize("profile", ["replay", "jcs"])
@pytest.mark.parametrize("wrap", ["list", "dict", "tuple"])
def test_nesting_is_taken_up_to_the_limit(wrap, profile):
    """Both profiles stop at the same depth, which reading stops at too."""
    deepest = canonical.encode(nested(canonical.MAX_DEPTH, WRAPS[wrap]), profile)
    assert canonical.encode(read_json(deepest), profile) == deepest
    with pytest.raises(FormatError, match="nested deeper"):
        canonical.encode(nested(canonical.MAX_DEPTH + 1, WRAPS[wrap]), profile)


@pytest.mark.parametrize("wrap", WRAPS)
def test_hostile_nesting_does_not_crash(wrap):
    """Run apart, because what this guards against ends the interpreter."""
    shape = {"list": "[v]", "dict": "{'a': v}", "tuple": "(v,)", "tuple in list": "[(v,)]"}[wrap]
    program = (
        "from reenact import canonical\n"
        "for depth in (300, 1900, 5000, 50_000):\n"
        "    v = 1\n"
        f"    for _ in range(depth): v = {shape}\n"
        "    try: canonical.encode(v)\n"
        "    except canonical.FormatError: print('refused')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["refused"] * 4


def test_cycles_are_refused():
    """A value that contains itself is too deep, however many ways lead round."""
    cycle: list = []
    cycle.append((((((((cycle, cycle),),),),),),))
    for profile in ("replay", "jcs"):
        with pytest.raises(FormatError, match="nested deeper"):
            canonical.encode(cycle, profile)


def test_shared_objects_are_not_cycles():
    """The same tuple in many places is written in each."""
    shared = (1, 2)
    assert (
        canonical.encode([[shared] * 200] * 3)
        == b"[" + b",".join([b"[" + b",".join([b"[1,2]"] * 200) + b"]"] * 3) + b"]"
    )


def test_is_digest_takes_lowercase_hex_only():
    """The written form of a digest is exact."""
    good = canonical.digest({})
    assert canonical.is_digest(good)
    for bad in (good.upper(), good[:-1], good + "0", good[7:], 7, None):
        assert not canonical.is_digest(bad)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
LEAVES_OF_JCS = st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | TEXTS


def nested_values(leaves):
    def wrap(inner):
        return st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=5)

    return st.recursive(leaves, wrap, max_leaves=20)


VALUES = nested_values(LEAVES_OF_JCS | FLOATS | st.integers(-(2**63), 2**64 - 1))


@given(VALUES)
def test_reading_gives_the_value_back(value):
    """decode(encode(x)) == x, types included."""
    back = read_json(canonical.encode(value))
    assert back == value
    assert repr(sorted_keys(back)) == repr(sorted_keys(value))


@given(VALUES)
def test_encoding_again_changes_nothing(value):
    """Canonical text is its own canonical text."""
    text = canonical.encode(value)
    assert canonical.encode(read_json(text)) == text == canonical.encode_clean(value)


@given(VALUES)
def test_insertion_order_does_not_matter(value):
    """Equal values have equal texts."""
    assert canonical.encode(backwards(value)) == canonical.encode(value)


@given(nested_values(LEAVES_OF_JCS | FLOATS))
def test_jcs_text_read_as_doubles_is_its_own_canonical_text(value):
    """For RFC 8785 all numbers are doubles; read so, value and text come back."""
    text = canonical.encode(value, "jcs")
    back = json.loads(text, parse_int=float)
    assert back == value
    assert canonical.encode(back, "jcs") == text == canonical.encode(backwards(value), "jcs")


@given(nested_values(LEAVES_OF_JCS))
def test_text_is_the_standard_librarys_where_the_rules_agree(value):
    """Without floats, sorted and compact JSON of the standard library is the same text."""
    reference = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert canonical.encode(value).decode() == reference


@given(FLOATS)
def test_jcs_numbers_are_shortest_and_exact(number):
    """The text of a double reads back to the same double and has Python's digits."""
    text = canonical.encode(number, "jcs").decode()
    assert float(text) == number
    assert digits(text) == digits(repr(number))


def digits(text):
    return text.partition("e")[0].replace(".", "").lstrip("-").strip("0")


def backwards(value):
    if isinstance(value, dict):
        return {key: backwards(value[key]) for key in reversed(value)}
    return [backwards(item) for item in value] if isinstance(value, list) else value


def sorted_keys(value):
    if isinstance(value, dict):
        return {key: sorted_keys(value[key]) for key in sorted(value)}
    return [sorted_keys(item) for item in value] if isinstance(value, list) else value

"""The fast reader of JSON text, held against the exact one."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reenact import canonical
from reenact.canonical import read_json, read_json_exactly
from reenact.errors import FormatError
from tests.formats import UNREADABLE, json_values, law, texts


def outcome(read, text):
    """What reading gives: the value with its types, or the words of the refusal."""
    try:
        return repr(read(text))
    except FormatError as error:
        return error


def assert_same(text):
    fast, exact = outcome(read_json, text), outcome(read_json_exactly, text)
    assert type(fast) is type(exact)
    assert str(fast) == str(exact)


@pytest.mark.parametrize("name", UNREADABLE)
def test_unreadable_bytes_are_refused_in_the_same_words(name):
    """The place is the exact reader's."""
    assert_same(UNREADABLE[name])


EDGES = {
    "the deepest nesting": b"[" * 254 + b"]" * 254,
    "a level too deep": b"[" * 255 + b"]" * 255,
    "the deepest value": b"[" * 254 + b"1" + b"]" * 254,
    "the deepest member": b'{"a":' * 254 + b"1" + b"}" * 254,
    "a value too deep": b"[" * 255 + b"1" + b"]" * 255,
    "the largest integer": b"18446744073709551615",
    "an integer too large": b"18446744073709551616",
    "the smallest integer": b"-9223372036854775808",
    "an integer too small": b"-9223372036854775809",
    "minus zero": b"[-0, -0.0, 0e1]",
    "an infinite float": b"1e400",
    "an escaped quote": b'{"a\\"": "\\\\\\"", "\\u0022": "\\\\"}',
    "an escaped quote and a repeated key": b'{"a": "\\"", "a": "\\""}',
    "a repeated key in other spelling": b'{"a": 1, "\\u0061": 2}',
    "a repeated key whose text has the missing quotes": b'{"a": 1, "a": "\\"\\""}',
    "a byte order mark": b'\xef\xbb\xbf{"a": 1}',
    "a surrogate pair": b'"\\ud83d\\ude00"',
}


@pytest.mark.parametrize("name", EDGES)
def test_edges_are_read_alike(name):
    """Value for value and refusal for refusal."""
    assert_same(EDGES[name])


@law
@given(json_values, st.booleans(), st.booleans())
def test_every_value_is_read_alike_however_it_is_written(value, is_ascii, is_spaced):
    """Escapes and white space do not confuse the count."""
    assert_same(json.dumps(value, ensure_ascii=is_ascii, indent=1 if is_spaced else None).encode())


@law
@given(st.lists(st.tuples(texts, json_values), max_size=4))
@example([("a", "\\"), ("a", '"')])
def test_repeated_keys_never_pass(pairs):
    """However the rest of the object looks."""
    text = "{" + ",".join(f"{json.dumps(key)}:{json.dumps(value)}" for key, value in pairs) + "}"
    assert_same(text.encode())


@law
@given(st.binary(max_size=20) | st.text(alphabet='{}[]":,\\u0a1 ', max_size=20).map(str.encode))
def test_arbitrary_bytes_are_read_alike(text):
    """Nothing but a value or a FormatError comes out."""
    assert_same(text)


def test_ordinary_text_takes_the_fast_way(monkeypatch):
    """Spaces, escapes and all."""
    monkeypatch.delattr(canonical, "read_json_exactly")
    text = json.dumps({"a": ['say "hi" \\ bye', 1.5, None], "é": {"b": "\n"}}, indent=2).encode()
    assert read_json(text) == json.loads(text)

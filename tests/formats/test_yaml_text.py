"""YAML read as plain JSON, and everything it refuses."""

import json
import math

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from reenact.errors import FormatError
from reenact.formats import yaml_text
from reenact.formats.yaml_text import MAX_BYTES, MAX_DEPTH, Place, read_yaml, write_yaml
from tests.formats import json_values, law

SCALARS = {
    "null": None,
    "Null": None,
    "~": None,
    "": None,
    "true": True,
    "FALSE": False,
    "yes": "yes",
    "No": "No",
    "on": "on",
    "y": "y",
    "TrUe": "TrUe",
    "0": 0,
    "-17": -17,
    "+17": 17,
    "017": 17,
    "0o17": 15,
    "0x1F": 31,
    "0b11": "0b11",
    "1_000": "1_000",
    "12:30": "12:30",
    "190:20:30": "190:20:30",
    "18446744073709551615": 2**64 - 1,
    "1.0": 1.0,
    ".5": 0.5,
    "1.": 1.0,
    "1e3": 1000.0,
    "-1.5E-3": -0.0015,
    "1.2.3": "1.2.3",
    "2024-01-01": "2024-01-01",
    "2024-01-01T00:00:00Z": "2024-01-01T00:00:00Z",
    "=": "=",
    "<<": "<<",
    '"null"': "null",
    "'17'": "17",
    "'it''s'": "it's",
    '"\\u00fc\\n"': "ü\n",
    "Grüße 👋": "Grüße 👋",
}


@pytest.mark.parametrize("text", SCALARS)
def test_scalars_follow_the_core_schema(text):
    """Only null, booleans, integers and floats of YAML 1.2 are more than text."""
    value = read_yaml(f"a: {text}\n".encode(), "t.yaml").value["a"]
    assert (value, type(value)) == (SCALARS[text], type(SCALARS[text]))


REFUSED = {
    "empty": (b"", 1, 1, "no document"),
    "only a comment": (b"# nothing\n", 1, 1, "no document"),
    "local tag": (b"a: !thing 5", 1, 4, "tags"),
    "python tag": (b"a:\n  - !!python/object/apply:os.system [ls]", 2, 5, "tags"),
    "standard tag": (b"!!str 5", 1, 1, "tags"),
    "non-specific tag": (b"a: ! 5", 1, 4, "tags"),
    "tagged key": (b"!!str a: 5", 1, 1, "tags"),
    "anchor": (b"a: &x 1", 1, 4, "anchors"),
    "alias": (b"b: 1\na: *x", 2, 4, "aliases"),
    "alias as key": (b"*x : 1", 1, 1, "aliases"),
    "duplicate key": (b"a: 1\nb: 2\na: 3", 3, 1, "'a' appears twice"),
    "duplicate key, other spelling": (b"{a: 1, 'a': 2}", 1, 8, "'a' appears twice"),
    "number as key": (b"a:\n  1: x", 2, 3, "a key must be text"),
    "null as key": (b"~: x", 1, 1, "a key must be text"),
    "boolean as key": (b"true: x", 1, 1, "a key must be text"),
    "list as key": (b"? [a]\n: x", 1, 3, "a key must be text"),
    "two documents": (b"a: 1\n---\nb: 2", 2, 1, "second document"),
    "tab as indentation": (b"a:\n\tb: 1", 2, 1, "tab"),
    "unclosed bracket": (b"a: [1, 2\nb: 3\n", 2, 2, "not YAML"),
    "bad indentation": (b"a:\n  b: 1\n c: 2", 3, 2, "not YAML"),
    "not UTF-8": (b"a: 1\nb: \xff", 2, 4, "not UTF-8"),
    "UTF-16": ("a: 1".encode("utf-16"), 1, 1, "not UTF-8"),
    "NUL byte": (b"a: 1\nb: \x00", 2, 4, "U+0000"),
    "delete character": (b"\x7f", 1, 1, "U+007F"),
    "byte order mark inside": ("a: \ufeff".encode(), 1, 4, "U+FEFF"),
    "infinity": (b"a: .inf", 1, 4, "not a JSON number"),
    "not a number": (b"a: .NaN", 1, 4, "not a JSON number"),
    "overflow to infinity": (b"a: 1e999", 1, 4, "not a JSON number"),
    "integer beyond 64 bits": (b"a: 18446744073709551616", 1, 4, "64 bits"),
    "integer of thousands of digits": (b"a: " + b"9" * 5000, 1, 4, "64 bits"),
    "unclosed quote": (b"a: 'x\n", 2, 1, "not YAML"),
    "stray colon": (b"a: b: c", 1, 5, "not YAML"),
    "reserved character": (b"a: @x", 1, 4, "not YAML"),
}


@pytest.mark.parametrize("loader", [yaml.SafeLoader, yaml.CSafeLoader], ids=["python", "libyaml"])
@pytest.mark.parametrize("name", REFUSED)
def test_refusal_names_line_and_column(name, loader, monkeypatch):
    """What is refused is refused at its place, on one line, with or without libyaml."""
    monkeypatch.setattr(yaml_text, "_LOADER", loader)
    data, line, column, reason = REFUSED[name]
    with pytest.raises(FormatError) as caught:
        read_yaml(data, "t.yaml")
    assert str(caught.value).startswith(f"t.yaml:{line}: column {column}: ")
    assert reason in caught.value.reason
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("loader", [yaml.SafeLoader, yaml.CSafeLoader], ids=["python", "libyaml"])
@pytest.mark.parametrize("escape", ["\\UFFFFFFFF", "\\U00110000", "\\ud800", "\\q"])
def test_escapes_that_are_no_characters_are_refused(escape, loader, monkeypatch):
    """Neither parser lets them out as anything but a format error."""
    monkeypatch.setattr(yaml_text, "_LOADER", loader)
    with pytest.raises(FormatError, match=r"\At\.yaml:"):
        read_yaml(f'a: "{escape}"'.encode(), "t.yaml")


def test_alias_bomb_is_refused_at_its_first_anchor():
    """Nothing is expanded, so nothing can explode."""
    levels = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    levels += [f"{n}: &{n} [{', '.join([f'*{p}'] * 9)}]" for p, n in zip("abcdefgh", "bcdefghi", strict=True)]
    with pytest.raises(FormatError, match=r"t\.yaml:1: column 4: anchors"):
        read_yaml("\n".join(levels).encode(), "t.yaml")


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_nesting_is_bounded(opening):
    """The last permitted level reads; one more is refused, and so are very many."""
    closing = {"[": "]", "{a: ": "}"}.get(opening, "")
    read_yaml(f"{opening * MAX_DEPTH}{closing * MAX_DEPTH}".encode(), "t.yaml")
    for depth in (MAX_DEPTH + 1, 50_000):
        with pytest.raises(FormatError, match="nested deeper than 100 levels"):
            read_yaml(f"{opening * depth}{closing * depth}".encode(), "t.yaml")


def test_size_is_bounded():
    """A file one byte too large is refused before it is parsed."""
    assert read_yaml(b"a".ljust(MAX_BYTES), "t.yaml").value == "a"
    with pytest.raises(FormatError, match=r"t\.yaml: the file is larger than 1048576 bytes"):
        read_yaml(b"a".ljust(MAX_BYTES + 1), "t.yaml")


@pytest.mark.parametrize(
    "data",
    {
        "byte order mark": b"\xef\xbb\xbfa: [1, x]\n",
        "CRLF": b"a:\r\n  - 1\r\n  - x\r\n",
        "document marks": b"---\na: [1, x]\n...\n",
        "version directive": b"%YAML 1.1\n---\na: [1, x]\n",
        "JSON": b'{"a": [1, "x"]}',
        "comments": b"# one\na: # two\n  - 1 # three\n  - x\n",
    }.items(),
    ids=lambda item: item[0],
)
def test_harmless_variations_read_alike(data):
    """Editors and habits differ; the value does not."""
    assert read_yaml(data[1], "t.yaml").value == {"a": [1, "x"]}


def test_places_are_kept_by_json_path():
    """Members are found at their keys, items where they start."""
    document = read_yaml(b"a:\n  - b: 1\n    'odd key': {c: 2}\n", "t.yaml")
    assert document.places == {
        "$": Place(1, 1),
        "$.a": Place(1, 1),
        "$.a[0]": Place(2, 5),
        "$.a[0].b": Place(2, 5),
        '$.a[0]["odd key"]': Place(3, 5),
        '$.a[0]["odd key"].c': Place(3, 17),
    }


@pytest.mark.parametrize(
    ("path", "nearest"),
    [
        ("$.a[0].missing", "$.a[0]"),
        ("$.a[0].b.deep[3]", "$.a[0].b"),
        ('$["]["]', "$"),
        ("$.a[0][...]", "$.a[0]"),
    ],
)
def test_a_path_that_was_not_written_is_placed_at_what_surrounds_it(path, nearest):
    """A missing field has no place of its own."""
    document = read_yaml(b"x: 0\na:\n  - b: 1\n", "t.yaml")
    assert document.place(path) == document.places[nearest]


def same(left, right):
    """Equality that tells 1 from 1.0 and True, and 0.0 from -0.0."""
    return repr(left) == repr(right)


tricky = st.sampled_from(
    [*SCALARS, "---", "- a", "a: b", "# x", " a", "a ", "\x85", "a\u2028b", "\r\n", "\ufeff"]
)


@law
@given(json_values | tricky | st.dictionaries(tricky, tricky))
def test_what_is_written_reads_back(value):
    """The writer quotes whatever a reader could take for something else."""
    assert same(read_yaml(write_yaml(value), "t.yaml").value, value)


@law
@given(json_values)
def test_json_is_yaml(value):
    """A JSON text means the same when read as YAML, where YAML can hold its characters as they are."""
    text = json.dumps(value, ensure_ascii=False)
    assume(text.isprintable())
    assert same(read_yaml(text.encode(), "t.yaml").value, value)


@pytest.mark.parametrize("value", [math.nan, {1: 2}, "\ud800", b"x", {1, 2}], ids=repr)
def test_the_writer_refuses_what_json_cannot_hold(value):
    """Nothing is changed silently on the way out."""
    with pytest.raises(FormatError):
        write_yaml(value)


def test_the_writer_never_uses_anchors():
    """A value that occurs twice is written twice."""
    shared = ["x"]
    assert read_yaml(write_yaml([shared, shared]), "t.yaml").value == [["x"], ["x"]]


noise = st.binary(max_size=60) | st.text("&*!:-{}[]\"'|>\n\t #%@`,?abc01.~<\\uxU", max_size=60).map(
    str.encode
)


def read_with(loader, data, monkeypatch):
    monkeypatch.setattr(yaml_text, "_LOADER", loader)
    try:
        return repr(read_yaml(data, "t.yaml").value)
    except FormatError:
        return None


@law
@given(noise)
def test_arbitrary_bytes_raise_nothing_but_format_errors(data):
    """With or without libyaml, and where both parsers take a text, they take it for the same value."""
    with pytest.MonkeyPatch.context() as patch:
        found = {read_with(loader, data, patch) for loader in (yaml.SafeLoader, yaml.CSafeLoader)}
    assert len(found - {None}) <= 1

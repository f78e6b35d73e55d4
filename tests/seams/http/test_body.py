"""What a request's body means, and that chance in how it is written does not change it."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.seams.http.message import meaning

MEANINGS: dict[str, tuple[str, str, bytes, dict[str, Any]]] = {
    "nothing": ("application/json", "", b"", {}),
    "json": ("application/json; charset=utf-8", "", b' {"a": 1.0} ', {"body": {"a": 1.0}}),
    "json of a vendor": ("application/vnd.api+json", "", b"[1]", {"body": [1]}),
    "json without a type": ("", "", b'{"a": 1}', {"body": {"a": 1}}),
    "broken json": ("application/json", "", b'{"a":', {"text": '{"a":'}),
    "form": (
        "application/x-www-form-urlencoded",
        "",
        b"a=1+2&b=&a=%C3%BC",
        {"form": [["a", "1 2"], ["b", ""], ["a", "ü"]]},
    ),
    "text": ("text/plain", "", "grüß".encode(), {"text": "grüß"}),
    "text that looks like json": ("text/plain", "", b"1", {"text": "1"}),
    "bytes": ("image/png", "", b"\x89PNG\xff", {"bytes": b"\x89PNG\xff"}),
    "gzip": ("application/json", "gzip", gzip.compress(b"[1]"), {"body": [1]}),
    "deflate": ("application/json", "deflate", zlib.compress(b"[1]"), {"body": [1]}),
    "two codings": ("application/json", "deflate, gzip", gzip.compress(zlib.compress(b"[1]")), {"body": [1]}),
    "not what its coding says": ("text/plain", "gzip", b"plain", {"text": "plain"}),
    "an unknown coding": ("text/plain", "rot13", b"cynva", {"text": "cynva"}),
    "multipart": (
        'multipart/form-data; boundary="x y"',
        "",
        b'--x y\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n\r\n--x y--\r\n',
        {"parts": [{"headers": {"content-disposition": 'form-data; name="a"'}, "content": "1\r\n"}]},
    ),
}


@pytest.mark.parametrize("name", MEANINGS)
def test_each_kind_of_body_is_read_as_what_it_says(name: str) -> None:
    content_type, content_encoding, body, expected = MEANINGS[name]
    assert meaning(content_type, content_encoding, body) == expected


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(),
    lambda child: st.lists(child) | st.dictionaries(st.text(), child),
    max_leaves=10,
)


@given(json_values, st.integers(0, 4))
def test_white_space_and_escapes_do_not_change_json(value: Any, indent: int) -> None:
    """Two ways of writing the same value mean the same."""
    plain = json.dumps(value).encode()
    pretty = json.dumps(value, indent=indent, ensure_ascii=False).encode("utf-8", "surrogatepass")
    assert meaning("application/json", "", plain) == meaning("application/json", "", pretty)


@given(st.dictionaries(st.text(), st.text(), min_size=2))
def test_the_order_of_keys_does_not_change_json(value: dict[str, str]) -> None:
    backwards = dict(reversed(value.items()))
    assert meaning("application/json", "", json.dumps(value).encode()) == meaning(
        "application/json", "", json.dumps(backwards).encode()
    )


@given(
    st.dictionaries(
        st.text(st.characters(codec="ascii", exclude_characters='"\\\r\n')), st.binary(), min_size=1
    )
)
def test_the_boundary_does_not_change_a_multipart_body(files: dict[str, bytes]) -> None:
    """The parts are those that were put in, whatever their bytes."""

    def sent() -> dict[str, Any]:
        given_files = [(name, (name, content)) for name, content in files.items()]
        request = httpx2.Request("POST", "http://x/", files=given_files)
        return meaning(request.headers["content-type"], "", request.read())

    first, second = sent(), sent()
    assert first == second
    contents = [part["content"] for part in first["parts"]]
    assert [text.encode() if isinstance(text, str) else text for text in contents] == list(files.values())

"""Content codings are undone chunk by chunk, wherever the chunks are cut."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.seams.http.message import Undecodable, decoder
from tests.seams.http.site import CODINGS


def bare_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


CODERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    **{name: (name, encode) for name, encode in CODINGS.items()},
    "x-gzip": ("X-GZip", CODINGS["gzip"]),
    "deflate without a header": ("deflate", bare_deflate),
    "two": ("deflate, identity, br", lambda data: CODINGS["br"](CODINGS["deflate"](data))),
}


@pytest.mark.parametrize("name", CODERS)
@given(data=st.binary(max_size=200), cut=st.integers(1, 50))
def test_the_chunks_add_up(name: str, data: bytes, cut: int) -> None:
    content_encoding, encode = CODERS[name]
    coded = encode(data)
    decode = decoder(content_encoding)
    assert decode is not None
    assert b"".join(decode(coded[at : at + cut]) for at in range(0, len(coded), cut)) == data


@pytest.mark.parametrize("content_encoding", ["", "identity", "rot13", "gzip, rot13"])
def test_what_cannot_be_undone_is_said(content_encoding: str) -> None:
    assert decoder(content_encoding) is None


@pytest.mark.parametrize("content_encoding", CODINGS)
def test_bytes_that_do_not_fit_are_refused(content_encoding: str) -> None:
    decode = decoder(content_encoding)
    assert decode is not None
    with pytest.raises(Undecodable):
        decode(b"\x0f" * 64)

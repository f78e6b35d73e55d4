"""What holds for any text: idempotence, chunks, registered secrets, the prefilter."""

from __future__ import annotations

import html
import json
import re
import sysconfig
from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reenact import canonical
from reenact.errors import UsageError
from reenact.redaction import PLACEHOLDER, Redactor, coded, jsontext, literals, names, places, tables
from tests.hard import rounds

from . import redaction_cases as cases

SALT = b"salt of one capture"
REGISTERED = 'hünter2 "quoted"/<b>&\\'

_secrets = [secret for secret, _ in cases.SHAPES.values()] + [text for text, _, _ in cases.PLACES.values()]
_pieces = [
    *_secrets,
    *(text for text in cases.ORDINARY.values() if isinstance(text, str)),
    *(f'{{"{name}": "' for name in ("password", "token", "max_tokens", "content", "delta")),
    *(
        "password",
        "api_key",
        "token",
        "Authorization",
        "Cookie",
        "Bearer",
        "Basic",
        "https://",
        "?key=",
        "sig=",
    ),
    *(
        "=",
        ": ",
        '"',
        "'",
        "\\",
        '\\"',
        "&",
        "\n",
        "\\n",
        "{",
        "}",
        "[",
        "]",
        ", ",
        " ",
        "@",
        "%20",
        "/",
        "<",
        ">",
    ),
    *('data: {"delta":"', '"}\n\n', "letmein", "abc123def456", "ü", "�", "\x00", "<secret:opaque:0123abcd>"),
    *(
        '["client_secret","letmein"]',
        '[["a","b"],["password","letmein"]]',
        '{"name":"token","value":"letmein"}',
    ),
    *(
        "<password>",
        "</password>",
        ' key="api_key" value="letmein"',
        "--api-key letmein ",
        " -u bob:letmein ",
    ),
    *(
        "%22password%22%3A%22letmein%22",
        "X-Session-Id: ",
        '"headers": {"x-session-id": "letmein"}',
        "session",
    ),
    *(
        'form-data; name="token"\r\n\r\nletmein\r\n--',
        "[db]\n",
        "\npassword = letmein\nhost = h\n",
        "export ",
    ),
    *(
        "postgres://bob:let/me?in@h/x",
        "curl",
        "1//0",
        "glrt-",
        "xoxd-",
        "Q~",
        ":AA",
        "cookies",
        "key",
        "auth",
    ),
    REGISTERED,
    b64encode(REGISTERED.encode()).decode(),
    b64encode(cases.GITHUB.encode()).decode(),
]
texts = st.lists(st.sampled_from(_pieces) | st.text(max_size=8), max_size=8).map("".join)
bodies = st.lists(texts.map(str.encode) | st.binary(max_size=5), max_size=3).map(b"".join)
json_values = st.recursive(
    texts | st.integers(-9, 10**9) | st.booleans() | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*cases.SECRET_NAMES, *cases.ORDINARY_NAMES]) | texts, inner, max_size=3
        )
    ),
    max_leaves=6,
)
redactors = {
    profile: Redactor(profile, secrets=[REGISTERED], salt=SALT) for profile in ("none", "default", "strict")
}
profiles = pytest.mark.parametrize("profile", redactors)


@profiles
@settings(deadline=None)
@given(text=texts)
def test_redacted_text_stays_as_it_is(profile: str, text: str) -> None:
    """Redacting twice is redacting once, so replay may redact what capture redacted."""
    redact = redactors[profile].redact_text
    assert redact(redact(text)) == redact(text)


@profiles
@settings(deadline=None)
@given(value=json_values)
def test_redacted_json_is_canonical_and_stays_as_it_is(profile: str, value: object) -> None:
    """Out comes canonical JSON, and the very same bytes the second time."""
    redacted = redactors[profile].redact_json(canonical.encode(value))
    assert canonical.encode(json.loads(redacted)) == redacted
    assert redactors[profile].redact_json(redacted) is redacted


@settings(deadline=None)
@given(data=bodies)
def test_redacted_bytes_stay_as_they_are(data: bytes) -> None:
    """Binary data follows the same law."""
    redactor = redactors["default"]
    assert redactor.redact_bytes(redactor.redact_bytes(data)) == redactor.redact_bytes(data)


@profiles
@settings(deadline=None)
@given(data=bodies, cuts=st.lists(st.integers(0, 400), max_size=6))
def test_chunks_joined_are_the_redacted_whole(profile: str, data: bytes, cuts: list[int]) -> None:
    """Wherever a stream is cut, its chunks stay as many and lose what the whole would lose."""
    redactor = redactors[profile]
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    chunks = [data[start:end] for start, end in pairwise(places)]
    redacted = redactor.redact_chunks(chunks)
    assert len(redacted) == len(chunks)
    assert b"".join(redacted) == redactor.redact_bytes(data)
    assert b"".join(redactor.redact_chunks(redacted)) == b"".join(redacted)
    if redactor.redact_bytes(data) == data:
        assert redacted == chunks


@profiles
@settings(deadline=None)
@given(value=json_values)
def test_the_prefilter_misses_nothing(profile: str, value: object) -> None:
    """With it, payloads become what the rules alone would make of them."""
    redactor = Redactor(profile, secrets=[REGISTERED], salt=SALT)
    text = canonical.encode(value)
    expected = redactor.redact_json(text)
    redactor.is_suspect = lambda _: True
    assert redactor.redact_json(text) == expected


@pytest.mark.parametrize("text", ["passwd%20\u0130&-u9", "password: 12\u00e9abcd34", "token is 1\u00fcx22zz"])
def test_the_prefilter_knows_letters_beyond_ascii(text: str) -> None:
    """They go on with a word, though their bytes are no letters."""
    redactor = Redactor("default", salt=SALT)
    expected = redactor.redact_text(text)
    redactor.is_suspect = lambda _: True
    assert redactor.redact_text(text) == expected != text


@pytest.mark.parametrize(
    "text",
    [
        "except ImportError:\n    pwd = None\n\n",
        "the basic types\n",
        "b'\\x1f\\x8b'",
        "class Cookie, or Morsel",
    ],
)
def test_the_prefilter_passes_ordinary_source_code(text: str) -> None:
    """What it suspects is read a dozen times, so an import of much code would be slow."""
    assert not Redactor("default", salt=SALT).is_suspect(canonical.encode(text))


@pytest.mark.parametrize(
    "text",
    [
        "password: None, hunter2x9",
        "pwd = None\npassword = 'hunter2x9'",
        "Cookie: session=hunter2x9",
        "basic \\/abcdefg",
        "\\x1b[1mpassword\\x1b[0m = 'hunter2x9'",
        "pass\\x77ord = 'hunter2x9'",
    ],
)
def test_the_prefilter_knows_what_is_like_ordinary_source_code(text: str) -> None:
    assert Redactor("default", salt=SALT).is_suspect(canonical.encode(text))


events = st.lists(
    st.tuples(st.sampled_from(["delta", "content", "text"]), st.integers(0, 1), texts), max_size=4
).map(
    lambda events: "".join(
        f"data: {json.dumps({name: text, 'index': index})}\n\n".replace("=", "\\u003d")
        for name, index, text in events
    ).encode()
)


@settings(deadline=None)
@example(stream=b'data: {"delta": "--api-key letmein ", "index": 0}\n\n')
@given(stream=events)
def test_the_prefilter_misses_nothing_in_streams(stream: bytes) -> None:
    """Also where a secret lies over several events."""
    redactor = Redactor("default", secrets=[REGISTERED], salt=SALT)
    expected = redactor.redact_bytes(stream)
    redactor.is_suspect = lambda _: True
    assert redactor.redact_bytes(stream) == expected
    assert redactor.redact_bytes(expected) == expected


@pytest.mark.parametrize("length", range(40, 58))
@pytest.mark.parametrize("end", ["", "=", "==", "===", "=x"])
def test_base64_of_any_length_is_read(length: int, end: str) -> None:
    """Also what nobody can decode, because a character is missing or filled up wrongly."""
    coded = b64encode(b"a text that is long enough to be read, and longer").decode()[:length]
    text = f"password=hunter2xyz9 {coded}{end}"
    redacted = Redactor("default", salt=SALT).redact_text(text)
    assert "hunter2xyz9" not in redacted
    assert redacted.endswith(f" {coded}{end}")


@settings(deadline=None)
@given(text=texts.map(str.encode))
def test_both_searches_for_literals_find_the_same(text: bytes) -> None:
    """Without the compiled search the answers are the same, only slower."""
    searched = [b"pass", b"word", b"token", b"sk-", b"\\", b"data: {"]
    slow = literals.literal_search_one_by_one(searched)
    for overlapping in (False, True):
        fast = literals.literal_search(searched, overlapping=overlapping)
        assert sorted(fast(text)) == sorted(slow(text))


ANCHORED = {
    "bearer": (places._BEARER, b"bearer"),
    "auth": (places._AUTH, b"auth"),
    "basic": (places._BASIC, b"basic"),
    "cookies": (places._COOKIES, b"set-cookie", b"cookie"),
    "rows": (tables._HTML_ROW, b"<tr"),
    "insert": (tables._INSERT, b"into"),
    **{str(number): (pattern, *anchors) for number, (pattern, anchors) in enumerate(places._ANNOUNCED)},
}
_announcing = [
    *(
        "bearer ",
        "BEARER%20abcdefgh1",
        "auth",
        "_auth=",
        "Basic dXNlcjpwdw==",
        "set-cookie: a=b;",
        "coo\u212aie:",
    ),
    *("<tr>", "<TR a>", "</tr>", "insert into t (a) values (1)", "identified by '", "basic_auth('u', 'pw')"),
    *(
        "machine h login u password x1",
        "default login",
        "X-Token: 12ab",
        "x-",
        "HTTP/1.1",
        "\r\n",
        "\u0130",
        "\u017f",
    ),
    *(
        "-u bob:pw123456",
        "--user",
        "A" * 19,
        "A" * 20,
        "=",
        "\n[1]",
        '\ndata: {"a": 1}',
        "\x1b[31m",
        "\\e[0m",
    ),
]
announcing_texts = st.lists(st.sampled_from([*_announcing, *_pieces]), max_size=12).map("".join)


def _spans(found: Iterable[re.Match[str]]) -> list[tuple[int, int]]:
    return [match.span() for match in found]


def _check_short_ways(text: str) -> None:
    """Compare each search for a literal beginning with the expression alone."""
    for pattern, *anchors in ANCHORED.values():
        assert _spans(literals.matches_from(pattern, text, *anchors)) == _spans(pattern.finditer(text)), (
            pattern
        )
    assert _spans(coded._runs(text)) == _spans(coded._RUN.finditer(text))
    headers = (line for line in places._HEADER_LINE.finditer(text) if line["name"][:2] in ("X-", "x-"))
    assert _spans(literals.matches_from(places._HEADER_LINE, text, b"x-")) == _spans(headers)
    if not jsontext.is_json(text):
        lines = [line.span(1) for line in jsontext._LINE.finditer(text) if jsontext.is_json(line[1])]
        assert jsontext.json_spans(text) == lines
    if coded._COLOURS.search(text):
        assert any(mark in literals.to_searched(text) for mark in coded._COLOUR_MARKS)


@settings(deadline=None)
@given(text=announcing_texts)
def test_the_short_ways_find_what_the_expressions_find(text: str) -> None:
    """A search for how a match begins finds the same matches as the expression that is tried everywhere."""
    _check_short_ways(text)


def test_the_short_ways_find_the_same_in_sources() -> None:
    """The same in the source of Python's library."""
    files = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*/*.py"))
    for file in files[:: max(1, len(files) // rounds(60, 2000))]:
        _check_short_ways(file.read_text(errors="surrogateescape"))


NAMES = st.sampled_from(
    ["secret", "_key", "Key", "PASSWD", "passw", "ord", "api-", "proxyauth", "to\u212aen"]
)


@settings(deadline=None)
@given(text=st.lists(NAMES | st.text(max_size=3)).map("".join))
def test_cores_of_secret_names_are_found_as_their_expression_finds_them(text: str) -> None:
    """By literals first, which is faster; whatever stands around them, in any case and script."""
    expected = [core.span() for core in re.finditer(names.CORES, text, re.IGNORECASE)]
    assert list(names.core_spans(text)) == expected


FORMS = {
    "plain": lambda text: text,
    "json": lambda text: json.dumps(text, ensure_ascii=False),
    "json in ascii": json.dumps,
    "json in json": lambda text: json.dumps(json.dumps(text)),
    "json three times": lambda text: json.dumps(json.dumps(json.dumps(text))),
    "percent": lambda text: quote(text, safe=""),
    "percent, slashes kept": quote,
    "percent in lowercase": lambda text: re.sub(
        "%..", lambda escape: escape[0].lower(), quote(text, safe="")
    ),
    "form": quote_plus,
    "base64": lambda text: b64encode(text.encode()).decode(),
    "base64 urlsafe": lambda text: urlsafe_b64encode(text.encode()).decode(),
    "base64 unpadded": lambda text: b64encode(text.encode()).decode().rstrip("="),
    "hex": lambda text: text.encode().hex(),
    "hex in uppercase": lambda text: text.encode().hex().upper(),
    "html": html.escape,
    "html text": lambda text: html.escape(text, quote=False),
}

plain_secrets = st.text("abcXYZ0189-_.", min_size=6, max_size=40) | st.text(
    "abXZ019 +/=%&<>\"'\\üß€", min_size=6, max_size=20
)


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=40, deadline=None)
@given(secret=plain_secrets, before=st.text(max_size=6), after=st.text(max_size=6))
@example(secret="000000", before="%", after="")
def test_a_registered_secret_survives_in_no_form(form: str, secret: str, before: str, after: str) -> None:
    """Whatever surrounds it, alone or together with it, no form of the value is left."""
    redactor = Redactor("none", secrets=[secret], salt=SALT)
    encode = FORMS[form]
    for text in (before + encode(secret) + after, encode(before + secret + after)):
        redacted = redactor.redact_text(text)
        left = PLACEHOLDER.sub("\0", redacted)
        assert encode(secret).strip('"\\') not in left
        assert secret not in decoded(redacted)


def decoded(text: str) -> str:
    """What base64 may still hide."""
    try:
        return b64decode(text.replace("-", "+").replace("_", "/") + "==").decode("utf-8", "replace")
    except ValueError:
        return ""


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_secret_gets_one_placeholder(form: str) -> None:
    """Equality survives: the hash covers the plain value."""
    redactor = Redactor("none", secrets=[REGISTERED], salt=SALT)
    placeholder = redactor.redact_text(REGISTERED)
    assert PLACEHOLDER.fullmatch(placeholder)
    assert PLACEHOLDER.findall(redactor.redact_text(FORMS[form](REGISTERED))) == [placeholder]


def test_a_registered_secret_vanishes_as_a_key_and_inside_words() -> None:
    """No place is safe for it."""
    redactor = Redactor("none", secrets=["hunter2", b"bytes-too"], salt=SALT)
    redacted = redactor.redact_json(canonical.encode({"xhunter2y": ["ahunter2b", "bytes-too"]}))
    assert b"hunter2" not in redacted
    assert b"bytes-too" not in redacted
    assert len(PLACEHOLDER.findall(redacted.decode())) == 3


def test_a_registered_secret_vanishes_as_a_number() -> None:
    """A PIN is one, too; the number around it becomes a string."""
    redactor = Redactor("none", secrets=["4711"], salt=SALT)
    assert b"4711" not in redactor.redact_json(canonical.encode({"pin": 4711, "n": [14711, 0.4711], "x": 47}))
    assert "4711" not in redactor.redact_text('{"pin": 4711}')


def test_case_counts_for_a_registered_secret() -> None:
    """Another spelling is another text."""
    redactor = Redactor("none", secrets=["Hunter2x"], salt=SALT)
    assert redactor.redact_text("hunter2x HUNTER2X") == "hunter2x HUNTER2X"


@pytest.mark.parametrize("secret", ["", "abc", b"abc", "日本語"])
def test_a_short_secret_is_refused(secret: str | bytes) -> None:
    """It would be found in ordinary words; the message says so without the value."""
    with pytest.raises(UsageError, match="at least 4") as caught:
        Redactor("default", secrets=[secret], salt=SALT)
    assert not secret or str(secret) not in str(caught.value)


def test_an_unknown_profile_is_refused() -> None:
    """The message lists the known ones."""
    with pytest.raises(UsageError, match="none, default, strict"):
        Redactor("lax", salt=SALT)  # type: ignore[arg-type]  # that is the test


def test_the_salt_decides_the_placeholder() -> None:
    """Two captures cannot be joined by their placeholders, one can be compared with itself."""
    one, again, other = (
        Redactor("default", salt=salt).redact_text(cases.GITHUB) for salt in (b"1", b"1", b"2")
    )
    assert one == again
    assert one != other

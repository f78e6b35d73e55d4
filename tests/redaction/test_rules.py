"""What is found, what is left alone."""

from __future__ import annotations

import json
import re
from base64 import b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from time import process_time
from typing import Any

import pytest

from reenact import canonical
from reenact.redaction import PLACEHOLDER, Redactor, SecretRule
from reenact.redaction.names import is_secret_name

from . import redaction_cases as cases

SALT = b"salt of one capture"


@pytest.fixture(scope="module")
def redactor() -> Redactor:
    return Redactor("default", salt=SALT)


def placeholder_of(value: str) -> str:
    """What a value becomes below a name that announces a secret."""
    redacted = json.loads(Redactor("default", salt=SALT).redact_json(canonical.encode({"password": value})))
    placeholder: str = redacted["password"]
    assert PLACEHOLDER.fullmatch(placeholder)
    return placeholder


@pytest.mark.parametrize("wrapping", cases.WRAPPINGS.values(), ids=cases.WRAPPINGS)
@pytest.mark.parametrize(("secret", "kind"), cases.SHAPES.values(), ids=cases.SHAPES)
def test_a_token_of_known_shape_is_replaced_wherever_it_stands(
    redactor: Redactor, secret: str, kind: str, wrapping: str
) -> None:
    """Only the token changes, into a placeholder of its kind."""
    redacted = redactor.redact_text(wrapping.format(secret))
    assert redacted == wrapping.format(placeholder_of(secret))
    assert f"<secret:{kind}:" in redacted


@pytest.mark.parametrize(("text", "gone", "value"), cases.PLACES.values(), ids=cases.PLACES)
def test_a_value_is_recognised_by_its_place(redactor: Redactor, text: str, gone: str, value: str) -> None:
    """A value without a shape is replaced where names and syntax announce it, and nothing else is."""
    redacted = redactor.redact_text(text)
    assert gone not in redacted
    assert placeholder_of(value) in redacted
    assert all(piece.strip('"') in text for piece in PLACEHOLDER.split(redacted))


@pytest.mark.parametrize(("text", "gone", "value"), cases.PLACES.values(), ids=cases.PLACES)
def test_text_inside_json_is_treated_like_text(redactor: Redactor, text: str, gone: str, value: str) -> None:
    """A string of a payload becomes what the text itself becomes."""
    payload = canonical.encode({"output": [text]})
    assert json.loads(redactor.redact_json(payload)) == {"output": [redactor.redact_text(text)]}


@pytest.mark.parametrize("payload", cases.ORDINARY.values(), ids=cases.ORDINARY)
def test_an_ordinary_payload_is_the_same_object(redactor: Redactor, payload: Any) -> None:
    """Nothing in everyday traffic is taken for a secret, and nothing is written anew."""
    text = canonical.encode(payload)
    assert redactor.redact_json(text) is text
    assert redactor.redact_bytes(text) == text
    if isinstance(payload, str):
        assert redactor.redact_text(payload) == payload
    assert redactor.redact_text(json.dumps(payload)) == json.dumps(payload)


@pytest.mark.parametrize("payload", cases.ORDINARY.values(), ids=cases.ORDINARY)
def test_strict_leaves_ordinary_payloads_alone_too(payload: Any) -> None:
    """Digests, ids, UUIDs and images are no random strings; none of the payloads names a person."""
    text = canonical.encode(payload)
    if b"@github.com" not in text and b"chatcmpl-" not in text:
        assert Redactor("strict", salt=SALT).redact_json(text) is text


@pytest.mark.parametrize("name", cases.SECRET_NAMES)
def test_a_name_that_announces_a_secret(redactor: Redactor, name: str) -> None:
    """The string below it goes, at any depth."""
    assert is_secret_name(name)
    redacted = json.loads(redactor.redact_json(canonical.encode([{"a": {name: "plain words"}}])))
    assert redacted == [{"a": {name: placeholder_of("plain words")}}]


@pytest.mark.parametrize("name", cases.ORDINARY_NAMES)
def test_a_name_that_only_looks_like_one(redactor: Redactor, name: str) -> None:
    """The value below it stays: replay needs ids and counts."""
    assert not is_secret_name(name)
    text = canonical.encode({name: "plain words", "n": {name: 12345}})
    assert redactor.redact_json(text) is text


def test_containers_below_a_secret_name_are_walked(redactor: Redactor) -> None:
    """A schema that describes a password survives; a secret inside it does not."""
    payload = {"credentials": {"type": "object", "password": "plain words", "list": ["a", cases.GITHUB]}}
    assert json.loads(redactor.redact_json(canonical.encode(payload))) == {
        "credentials": {
            "type": "object",
            "password": placeholder_of("plain words"),
            "list": ["a", placeholder_of(cases.GITHUB)],
        }
    }


def test_numbers_below_a_password_are_secret_and_below_a_token_are_counts(redactor: Redactor) -> None:
    """A PIN vanishes; what a model counts stays."""
    redacted = redactor.redact_json(canonical.encode({"password": 1234, "auth_token": 99, "secret": True}))
    assert json.loads(redacted) == {"password": placeholder_of("1234"), "auth_token": 99, "secret": True}


def test_a_named_value_is_found_by_its_name(redactor: Redactor) -> None:
    """Lists of headers and variables write the name as a value."""
    payload = [
        {"name": "Authorization", "value": "Bearer plain-words"},
        {"key": "DB_PASSWORD", "value": "plain"},
    ]
    assert json.loads(redactor.redact_json(canonical.encode(payload))) == [
        {"name": "Authorization", "value": f"Bearer {placeholder_of('plain-words')}"},
        {"key": "DB_PASSWORD", "value": placeholder_of("plain")},
    ]


def test_json_in_a_string_keeps_its_spacing_and_order(redactor: Redactor) -> None:
    """A replayed agent that reads and writes the arguments again gets the recorded text."""
    arguments = '{ "user":"bob",\n  "password" : "two words",  "n": [1, 2.50]}'
    redacted = redactor.redact_text(arguments)
    assert redacted == arguments.replace("two words", placeholder_of("two words"))


def test_json_in_json_in_json_is_found(redactor: Redactor) -> None:
    """Each level is decoded before its names and strings are looked at."""
    nested = json.dumps({"a": json.dumps({"b": json.dumps({"password": 'quo"ted \\ ümläut'})})})
    redacted = redactor.redact_text(nested)
    inner = json.loads(json.loads(json.loads(redacted)["a"])["b"])
    assert inner == {"password": placeholder_of('quo"ted \\ ümläut')}


@pytest.mark.parametrize("before", range(4))
@pytest.mark.parametrize("encode", [b64encode, urlsafe_b64encode], ids=["standard", "urlsafe"])
@pytest.mark.parametrize(("secret", "kind"), cases.SHAPES.values(), ids=cases.SHAPES)
def test_a_token_inside_base64_is_replaced_and_the_rest_still_decodes(
    redactor: Redactor, secret: str, kind: str, encode: Any, before: int
) -> None:
    """Whatever stands before it, the decoded text holds the placeholder in its place."""
    plain = " " * before + secret + "\n and more ÿ"
    wrapped = "data:" + encode(plain.encode()).decode()
    redacted = redactor.redact_text(wrapped).removeprefix("data:")
    assert urlsafe_b64decode(redacted).decode() == plain.replace(secret, placeholder_of(secret))


def test_base64_that_is_a_secret_becomes_its_placeholder(redactor: Redactor) -> None:
    """The same placeholder as the plain value, so both are seen to be equal."""
    encoded = b64encode(cases.ANTHROPIC.encode()).decode()
    assert redactor.redact_text(f"key: {encoded}.") == f"key: {placeholder_of(cases.ANTHROPIC)}."


HEX: dict[str, Callable[[bytes], str]] = {
    "lower": bytes.hex,
    "upper": lambda data: data.hex().upper(),
    "0x": lambda data: "0x" + data.hex(),
}


@pytest.mark.parametrize("form", HEX)
@pytest.mark.parametrize("around", [("", ""), ("login ", "\n and more")], ids=["alone", "in text"])
@pytest.mark.parametrize(("secret", "kind"), cases.SHAPES.values(), ids=cases.SHAPES)
def test_a_token_in_hexadecimal_is_replaced(
    redactor: Redactor, secret: str, kind: str, around: tuple[str, str], form: str
) -> None:
    """A dump of bytes tells as much as its text."""
    if len(secret) < 10:
        pytest.skip("so short a token is found only as text")
    encoded = HEX[form]("".join((around[0], secret, around[1])).encode())
    redacted = redactor.redact_text(json.dumps({"dump": encoded}))
    found = json.loads(redacted)["dump"]
    if found != placeholder_of(secret):
        found = bytes.fromhex(found.removeprefix("0x")).decode()
    assert found == around[0] + placeholder_of(secret) + around[1]


def test_digests_and_ordinary_words_in_hexadecimal_stay(redactor: Redactor) -> None:
    """Most hexadecimal digits are no text, and most text no secret."""
    plain = [
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        b"nothing to hide here".hex(),
    ]
    assert redactor.redact_text(json.dumps(plain)) == json.dumps(plain)


def test_base64_over_several_lines_keeps_its_lines(redactor: Redactor) -> None:
    """File contents come wrapped; a secret may lie over the end of a line."""
    plain = ("# settings\n" * 8 + f"KEY={cases.ANTHROPIC}\n" + "# more\n" * 8).encode()
    encoded = b64encode(plain).decode()
    wrapped = "\n".join(encoded[at : at + 60] for at in range(0, len(encoded), 60)) + "\n"
    redacted = redactor.redact_text(wrapped)
    assert {len(line) for line in redacted.splitlines()[:-1]} == {60}
    expected = plain.decode().replace(cases.ANTHROPIC, placeholder_of(cases.ANTHROPIC))
    assert b64encode(expected.encode()).decode() == redacted.replace("\n", "")


HEADERS = {
    "bearer": (("Authorization", "Bearer plain-words"), "Bearer {}", "plain-words"),
    "basic": (("authorization", "Basic dXNlcjpodW50ZXIy"), "Basic {}", "hunter2"),
    "github": (("Authorization", f"token {cases.GITHUB}"), "token {}", cases.GITHUB),
    "proxy": (("Proxy-Authorization", "Bearer plain"), "Bearer {}", "plain"),
    "x-api-key": (("X-Api-Key", cases.ANTHROPIC), "{}", cases.ANTHROPIC),
    "api-key": (("api-key", "plain"), "{}", "plain"),
    "google": (("x-goog-api-key", cases.GOOGLE), "{}", cases.GOOGLE),
    "auth token": (("X-Auth-Token", "plain"), "{}", "plain"),
    "access token": (("x-access-token", "plain"), "{}", "plain"),
    "amazon": (("X-Amz-Security-Token", "plain"), "{}", "plain"),
    "session": (("Mcp-Session-Id", "plain"), "{}", "plain"),
    "secret": (("X-Client-Secret", "plain"), "{}", "plain"),
    "password": (("x-password", "plain"), "{}", "plain"),
    "credential": (("x-credential", "plain"), "{}", "plain"),
    "cookie": (("Cookie", "sid=plain"), "sid={}", "plain"),
    "set-cookie": (("Set-Cookie", "sid=plain; Path=/; HttpOnly"), "sid={}; Path=/; HttpOnly", "plain"),
    "location": (
        ("Location", "https://h/?access_token=plain&a=1"),
        "https://h/?access_token={}&a=1",
        "plain",
    ),
}


def redacted_header(redactor: Redactor, name: str, value: str) -> str:
    [redacted] = json.loads(redactor.redact_header_object({name: value})).values()
    return str(redacted)


@pytest.mark.parametrize(("header", "pattern", "value"), HEADERS.values(), ids=HEADERS)
def test_a_header_that_carries_a_secret(
    redactor: Redactor, header: tuple[str, str], pattern: str, value: str
) -> None:
    """Its secret goes; scheme words, cookie names and attributes stay."""
    assert redacted_header(redactor, *header) == pattern.format(placeholder_of(value))


@pytest.mark.parametrize(
    "header",
    [
        ("Content-Type", "application/json"),
        ("x-ratelimit-remaining-tokens", "149984"),
        ("anthropic-ratelimit-input-tokens-limit", "50000"),
        ("x-request-id", "req_011CSHoEeqs5C35K2UUqR7Fy"),
        ("www-authenticate", 'Bearer realm="api"'),
    ],
)
def test_an_ordinary_header_is_kept(redactor: Redactor, header: tuple[str, str]) -> None:
    """Clients read rate limits and request ids."""
    assert redacted_header(redactor, *header) == header[1]


def test_headers_by_name_are_redacted_like_any_object() -> None:
    """Whether they came before or not: the text is the object's, and what was replaced is counted."""
    redactor = Redactor("default", salt=SALT)
    headers = {"x-b": "ü", "authorization": "Bearer a1b2c3d4e5f6", "cookie": "a=secret1", "accept": "*/*"}
    expected = redactor.redact_json(canonical.encode(headers))
    replaced = redactor.count
    for times in (2, 3):
        assert redactor.redact_header_object(headers) == expected
        assert redactor.count == times * replaced
    assert expected.count(b"<secret:") == replaced > 0


def test_a_header_that_was_no_secret_may_be_one_elsewhere() -> None:
    """What is remembered of a header holds for the profile and the secrets under which it was looked at."""
    headers = {"x-team": "blue falcon", "authorization": "Bearer a1b2c3d4e5f6"}
    texts = [
        Redactor("none", salt=SALT).redact_header_object(headers),
        Redactor("default", salt=SALT).redact_header_object(headers),
        Redactor("default", secrets=["blue falcon"], salt=SALT).redact_header_object(headers),
    ]
    assert [b"blue falcon" in text for text in texts] == [True, True, False]
    assert [b"a1b2c3d4e5f6" in text for text in texts] == [True, False, False]


URLS = {
    "password": ("https://bob:hunter2@h.example/x", "https://bob:{}@h.example/x", "hunter2"),
    "token as user": ("https://s3cr3t@h.example/", "https://{}@h.example/", "s3cr3t"),
    "parameter": ("https://h/?a=1&api_key=plain&b=2", "https://h/?a=1&api_key={}&b=2", "plain"),
    "escaped parameter": ("https://h/?token=a%2Fb+c", "https://h/?token={}", "a/b c"),
    "fragment": ("https://h/#access_token=plain&x=1", "https://h/#access_token={}&x=1", "plain"),
    "google key": (f"https://h/v1?key={cases.GOOGLE}", "https://h/v1?key={}", cases.GOOGLE),
    "shared access": ("https://h/b?sv=1&sig=abc%3D", "https://h/b?sv=1&sig={}", "abc="),
    "token in the path": (f"https://h/bot/{cases.GITHUB}/send", "https://h/bot/{}/send", cases.GITHUB),
    "relative": ("/v1/x?api_key=plain", "/v1/x?api_key={}", "plain"),
}


@pytest.mark.parametrize(("url", "pattern", "value"), URLS.values(), ids=URLS)
def test_a_url_that_carries_a_secret(redactor: Redactor, url: str, pattern: str, value: str) -> None:
    """Its secret goes, the rest of it stays as it was written."""
    assert redactor.redact_text(url) == pattern.format(placeholder_of(value))


def test_a_password_that_is_escaped_in_a_url_is_found(redactor: Redactor) -> None:
    """What is coded is redacted decoded, and written coded again."""
    redacted = redactor.redact_text("https://bob:a%2Fb%40@h.example/")
    assert redacted == f"https%3A%2F%2Fbob%3A{placeholder_of('a/b@')}%40h.example%2F"


def test_a_placeholder_that_a_client_quoted_is_the_placeholder_again(redactor: Redactor) -> None:
    """A replayed agent follows a redacted link; its client escapes the brackets."""
    redacted = redactor.redact_text("https://h/?token=plain")
    quoted = redacted.replace("<", "%3C").replace(">", "%3E")
    assert redactor.redact_text(quoted) == redacted
    assert redactor.redact_text(quoted.replace(":", "%3A").replace("https%3A", "https:")) == redacted


def test_strict_adds_addresses_random_strings_and_doubtful_assignments() -> None:
    """What may be personal or a key without a known shape goes too."""
    strict, default = (Redactor(profile, salt=SALT) for profile in ("strict", "default"))
    text = (
        f"mail bob.smith@mail.example.org, id {'aB3dE6gH9jK2mN5pQ8rS1tU4vW7xY0zA'}, then password=letmein now"
    )
    assert default.redact_text(text) == text
    redacted = strict.redact_text(text)
    assert [kind.split(":")[1] for kind in PLACEHOLDER.findall(redacted)] == ["email", "random", "opaque"]


def test_none_redacts_only_what_is_registered() -> None:
    """No name and no shape counts."""
    redactor = Redactor("none", secrets=["my own value"], salt=SALT)
    payload = canonical.encode({"password": "p", "key": cases.ANTHROPIC})
    assert redactor.redact_json(payload) is payload
    assert redacted_header(redactor, "Authorization", "Bearer x") == "Bearer x"
    assert redactor.redact_text("https://a:b@h/?token=c") == "https://a:b@h/?token=c"
    assert "my own value" not in redactor.redact_text("it is my own value, really")


def test_a_rule_of_the_users_own_holds_without_a_profile() -> None:
    """It was asked for by name."""
    redactor = Redactor("none", salt=SALT, extra_rules=[SecretRule("acme-id", r"ACME-\d{6}", ("ACME-",))])
    assert redactor.redact_text("ACME-123456").startswith("<secret:acme-id:")


@pytest.mark.parametrize("anchors", [("ACME-",), ()], ids=["with an anchor", "without"])
def test_a_rule_of_the_users_own(anchors: tuple[str, ...]) -> None:
    """Its group ``secret`` is replaced and its kind is written; the built-in rules still hold."""
    rule = SecretRule("acme-id", r"ACME-(?P<secret>\d{6})", anchors)
    redactor = Redactor("default", salt=SALT, extra_rules=[rule])
    redacted = redactor.redact_text(f"ids ACME-123456 and {cases.GITHUB}")
    assert redacted.startswith("ids ACME-<secret:")
    assert "123456" not in redacted
    assert "<secret:github-token:" in redacted


def test_a_wrong_rule_of_the_users_own_is_refused_at_once() -> None:
    """Not at the first text that has its anchor, in the middle of a run."""
    with pytest.raises(re.error):
        Redactor("none", salt=SALT, extra_rules=[SecretRule("acme-id", r"ACME-(\d{6}", ("ACME-",))])


def test_what_one_redactor_knows_another_does_not() -> None:
    """Rules are made ready once for a process; secrets, rules and profile still belong to one capture."""
    text = "the word swordfish, sent to ann@example.org"
    plain = Redactor("default", salt=b"1")
    assert Redactor("default", secrets=["swordfish"], salt=b"1").redact_text(text) != text
    assert (
        Redactor("default", extra_rules=[SecretRule("fish", "swordfish")], salt=b"1").redact_text(text)
        != text
    )
    assert Redactor("strict", salt=b"1").redact_text(text) != text
    assert [redactor.redact_text(text) for redactor in (plain, Redactor("default", salt=b"1"))] == [text] * 2


def test_equal_secrets_look_different_under_another_salt() -> None:
    """Redactors of two captures share their rules, not their placeholders."""
    first, second = (Redactor("none", secrets=["swordfish"], salt=salt) for salt in (b"1", b"2"))
    assert first.redact_text("swordfish") != second.redact_text("swordfish")
    assert (first.count, second.count) == (1, 1)


NESTED = (
    *("secret=", "?secret=(", "secret=your-", "a=b&secret=", "secret='", "eyJ-", "http://a:b@"),
    *(
        "<secret><![CDATA[",
        "[('secret','",
        'secret:"""',
        "a=b;secret=",
        "\n secret: |\n ",
        "name: secret\nvalue: ",
    ),
    *("<key>secret</key><a>", "password '", "\nSECRET=a", "form-data; name=secret\n\n"),
)


@pytest.mark.slow
@pytest.mark.usefixtures("collector_off")
@pytest.mark.parametrize("piece", NESTED)
def test_a_hostile_text_is_redacted_soon(redactor: Redactor, piece: str) -> None:
    """Where each value holds all that follow, none is read to its end but the one that is replaced."""
    start = process_time()
    redactor.redact_text(piece * (60_000 // len(piece)))
    assert process_time() - start < 3


def test_a_long_value_is_replaced_to_its_end(redactor: Redactor) -> None:
    """Also where it is judged by its beginning, and what stands behind it is another value."""
    found = redactor.redact_text(
        f"token={'a1' * 3000} url?secret={'z' * 5000}&a=b password=ab12cd34token='x9yz'"
    )
    assert not {"a1a1", "zzzz", "ab12", "x9yz"} & set(re.findall("a1a1|zzzz|ab12|x9yz", found))
    assert "&a=b " in found

"""No planted secret survives, wherever it stands and however it is coded.

A bounded form runs with every suite; ``REENACT_HARD=1`` draws many more.
"""

from __future__ import annotations

import json
import os
import random
import re
from base64 import b64encode
from time import process_time
from urllib.parse import quote, quote_plus

import pytest

from reenact.redaction import PLACEHOLDER, Redactor

from . import planted

HARD = os.environ.get("REENACT_HARD") == "1"
ROUNDS = 40 if HARD else 1
SALT = b"salt of one capture"
REDACTORS = {profile: Redactor(profile, salt=SALT) for profile in ("default", "strict")}
profiles = pytest.mark.parametrize("profile", REDACTORS)

WORDS = (
    *("correct-horse-battery", "hunter2", "letmein", "Tr0ub4dor&3", "pa/ss+wo=rd9", "geheim42"),
    *("bb=aZX~aaa.Y", "-.abcXYZ01909"),
)
"""Passwords without any shape: their names alone tell."""

UNQUOTED = (
    *("ini", "dotenv", "yaml", "yaml list", "command line", "npmrc", "properties", "settings of a line"),
    *("yaml, next line", "yaml in markdown", "data of curl"),
)
"""Where a value that holds other signs would stand in quotes."""


def leaks(profile: str, text: str, secret: str) -> bool:
    """Whether any way in which payloads are written keeps *secret* of *text*; laws are checked on the way."""
    redactor = REDACTORS[profile]
    redacted = redactor.redact_text(text)
    assert redactor.redact_text(redacted) == redacted
    assert redactor.redact_bytes(text.encode()).decode() == redacted
    written = redactor.redact_json(json.dumps(text, ensure_ascii=False).encode())
    assert redacted != text
    return any(planted.holds(data, secret) for data in (redacted.encode(), written))


@profiles
@pytest.mark.parametrize("place", planted.SHAPED_PLACES)
def test_no_secret_with_a_shape_survives(profile: str, place: str) -> None:
    """Each family of the table, in running text, in JSON, behind base64 and percent escapes."""
    survivors = []
    for round_number in range(ROUNDS):
        for family, secret in planted.families(random.Random(f"{place}{round_number}")).items():
            if leaks(profile, planted.SHAPED_PLACES[place](secret), secret):
                survivors.append(family)
    assert survivors == []


CLEAN = "The order has not shipped yet; the carrier said so. " * 120
FAR = {
    "a name far before its value": f'["pass&#119;ord", "{CLEAN[:3900]}hunter2"]',
    "a name far behind a code": f'x&#119;y{CLEAN[:2000]}","password":"hunter2"',
    "headers far before": f'"headers&#119;": [{CLEAN[:1900]}"session&#45;x": "hunter2hunter2"]',
    "a long run": "q" * 5000 + "&#119; sk-proj-Zx8cV6bN4mQ2wE1rT3yU5iO7pA9sD0fG2hJ4kL6",
}


@profiles
@pytest.mark.parametrize("coding", [*planted.CODINGS, *FAR])
def test_what_is_found_alone_is_found_in_a_long_text(profile: str, coding: str) -> None:
    """A quick look reads only near codes; how much that is must be enough for every rule."""
    is_suspect = REDACTORS[profile].is_suspect
    secrets = [*planted.families(random.Random(coding)).values()][:: 1 if HARD else 4]
    texts = [FAR[coding]] if coding in FAR else map(planted.CODINGS[coding], secrets)
    for text in texts:
        for written in (text.encode(), json.dumps(text).encode()):
            if is_suspect(written):
                for before in (CLEAN, f'{CLEAN}"a&#98;c"{CLEAN}', f'"{CLEAN}", "'):
                    assert is_suspect(before.encode() + written + f" {CLEAN}".encode()), text


@profiles
@pytest.mark.parametrize("coding", planted.CODINGS)
def test_no_secret_survives_behind_a_coding(profile: str, coding: str) -> None:
    """Whatever undoes codings finds nothing more, and what stands around the secret is still there."""
    redactor = REDACTORS[profile]
    survivors = []
    for round_number in range(ROUNDS):
        secrets = list(planted.families(random.Random(f"{coding}{round_number}")).items())
        for family, secret in secrets[:: 1 if HARD else 3]:
            longest = max(re.split("[^A-Za-z0-9]", secret), key=len)
            text = planted.CODINGS[coding](secret)
            redacted = redactor.redact_text(text)
            assert redactor.redact_text(redacted) == redacted
            written = json.loads(redactor.redact_json(json.dumps([text]).encode()))[0]
            if longest in planted.undone(redacted) or longest in planted.undone(written):
                survivors.append(family)
    assert survivors == []


@profiles
def test_what_surrounds_a_coded_secret_stays(profile: str) -> None:
    """Colours and the coding of other text are part of what was recorded."""
    redact = REDACTORS[profile].redact_text
    token = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    coded = token.replace("_", "&#95;")
    placeholder = redact(token)
    assert PLACEHOLDER.fullmatch(placeholder)
    assert redact(f"a&#95;b {coded} c&lt;d") == f"a&#95;b {placeholder} c&lt;d"
    assert redact(f"\x1b[1m\x1b[31m{token}\x1b[0m") == f"\x1b[1m\x1b[31m{placeholder}\x1b[0m"
    assert redact(f"?a=%5F%26&t={token.replace('_', '%5F')}&x=%7E") == f"?a=%5F%26&t={placeholder}&x=%7E"


def test_a_coding_within_a_coding_has_an_end() -> None:
    """A text of nothing but codes of codes costs a few passes, however deep it goes."""
    redact = REDACTORS["default"].redact_text
    for text in ("%" + "25" * 50_000 + "41", "&" + "amp;" * 50_000 + "#95;", "\\" * 100_000 + "x41"):
        assert redact(f"password {text}") == f"password {text}"
    nested = "the password=correct-horse-42 of it"
    for _ in range(12):
        nested = b64encode(nested.encode()).decode()
    assert redact(nested) == nested


@profiles
@pytest.mark.parametrize("place", planted.NAMED_PLACES)
def test_no_value_beside_a_secret_name_survives(profile: str, place: str) -> None:
    """Wherever a name stands beside a value, one function decides, whatever the value looks like."""
    draw = random.Random(place)
    values = (
        WORDS if not HARD else (*WORDS, *("".join(draw.choices("abcXYZ019+/=-_.~", k=12)) for _ in range(60)))
    )
    survivors = []
    for name in planted.SECRET_NAMES if HARD else planted.SECRET_NAMES[len(place) % 2 :: 2]:
        for value in values:
            if place.startswith(("xml", "html", "plist")) and re.search("[&<>]", value):
                continue
            if place in UNQUOTED and re.search("[&/]", value):
                continue
            text = planted.NAMED_PLACES[place](name, value)
            if leaks(profile, text, value):
                survivors.append((name, value))
    assert survivors == []


@profiles
@pytest.mark.parametrize("place", planted.LIKELY_PLACES)
def test_no_value_with_a_digit_survives_where_words_may_stand(profile: str, place: str) -> None:
    """A word may be another name there."""
    values = ("hunter2x", "geheim42", "Tr0ub4dor-3")
    pairs = [(name, value) for name in ("password", "client_secret", "API_KEY") for value in values]
    text = planted.LIKELY_PLACES[place]
    assert [pair for pair in pairs if leaks(profile, text(*pair), pair[1])] == []


@profiles
@pytest.mark.parametrize("place", planted.NEARBY_PLACES)
def test_no_value_with_letters_and_digits_survives_beside_a_name(profile: str, place: str) -> None:
    """In whatever notation: it looks like nothing else."""
    values = ("hunter2x", "Tr0ub4dor-3", "a8f3kd92ls")
    names = ("password", "client_secret", "API_KEY", "access_token")
    text = planted.NEARBY_PLACES[place]
    pairs = [(name, value) for name in names for value in values]
    assert [pair for pair in pairs if leaks(profile, text(*pair), pair[1])] == []


NEARBY_TEXTS = (
    "The password is hashed with sha256 and base64-encoded; a token (RS256) lives 30min.",
    "max_tokens=4096, total_tokens: 12345, the token at position 12ab of 2-tuple",
    "from x import BearerToken, OAuth2Token\nsecret = base64.b64encode(key)",
    "private_key, s3_server = start(secret_access_key, us_east_1)",
    "password for 3.11.2 and token v2.0.1rc1, 2026-01-01T10:00:00Z, 0x7f00ff, 100ms",
    "see the token https://h.example/rfc6749#section-3 and secret/data/file2.json",
    json.dumps({"id": "call_9x8y7z6w", "name": "reset_password", "type": "function", "arguments": "{}"}),
    json.dumps({"type": "password", "id": "el_4711ab", "version": "2b3c4d"}),
    "MovedAttribute('HTTPPasswordMgr', 'urllib2', 'urllib.request')",
    "{password:!0,image:!0}",
)


@profiles
@pytest.mark.parametrize("text", NEARBY_TEXTS)
def test_a_word_with_digits_that_is_known_stays(profile: str, text: str) -> None:
    """Algorithms, versions, references, identifiers and figures stand beside such names all the time."""
    assert REDACTORS[profile].redact_text(text) == text


CREDENTIALS = {
    "auth key": lambda value: json.dumps({"auth_key": value, "authKey": value}),
    "docker": lambda value: json.dumps(
        {"auths": {"h": {"auth": b64encode(f"bob:{value}".encode()).decode()}}}
    ),
    "docker, identity": lambda value: json.dumps({"auths": {"h": {"identitytoken": value}}}),
    "npm": lambda value: f"_auth={b64encode(f'bob:{value}'.encode()).decode()}\n",
    "ansible": lambda value: f"ansible_ssh_pass: {value}\nansible_become_pass: {value}\n",
    "variable": lambda value: json.dumps({"env": {"DB_PASS": value, "smtp-pass": value}}),
    "hidden in another word": lambda value: f"the_password={value}&key-password={value}",
}


@profiles
@pytest.mark.parametrize("place", CREDENTIALS)
def test_no_credential_of_a_known_file_survives(profile: str, place: str) -> None:
    """Docker, npm and ansible write them under names of their own."""
    redactor = REDACTORS[profile]
    for value in ("hunter2x", "correct-horse", "letmein"):
        text = CREDENTIALS[place](value)
        for redacted in (redactor.redact_text(text), redactor.redact_bytes(text.encode()).decode()):
            assert value not in planted.undone(redacted), text


@pytest.mark.parametrize(
    "text", ["render_pass = second2x", "low-pass: f4k8d2z", '{"auth": "oauth2", "pass": true}']
)
def test_what_is_called_pass_or_auth_otherwise_stays(text: str) -> None:
    """Filters, renderers and tests pass, too."""
    assert REDACTORS["default"].redact_text(text) == text


def test_words_beside_names_take_time_linear_in_the_text() -> None:
    """There is one way to read what stands between a name and a value."""
    redact = REDACTORS["default"].redact_text
    for piece in (
        "[]",
        "<a ",
        "is ",
        "\n",
        "\\",
        "password is the ",
        "token 12 ",
        "hunter2x is the ",
        "[x] <b>",
    ):
        redact("the password " + piece * 20_000)


TABLES = (
    "token,count\nhello,5\nworld,7\n",
    "| Feature | Password | Token |\n|---|---|---|\n| Login | supported | planned |\n",
    "| name | type |\n|---|---|\n| password | string |\n",
    "id,name,password_hint,email\n1,bob,see below,x\n",
    "def login(user, password):\n    return check(user, password)\n",
    "user, password, and more\nfollow, in, this, list\n",
    "SELECT name, password FROM users\nWHERE a, b\n",
    "Give it a password -> hash function.\n",
    "the -password option and -token are explained below\n",
    json.dumps([["response_type", "token"], ["scope", "read-only"], ["state", "x12345678"]]),
    json.dumps({"columns": ["user", "max_tokens"], "rows": [["bob", "12345678"]]}),
    json.dumps(["id", "name", "password", "email"]),
    json.dumps({"password": {"type": "string", "description": "at least 8 characters", "title": "Password"}}),
    "Server=h;Database=d;Password={password};",
    'getattr(settings, "PASSWORD", "letmein")',
    'assert self.cur_token == "include", self.cur_token',
)


@profiles
@pytest.mark.parametrize("text", TABLES)
def test_a_table_of_other_things_stays_as_it_is(profile: str, text: str) -> None:
    """Names of columns are words, too."""
    assert REDACTORS[profile].redact_text(text) == text


@profiles
@pytest.mark.parametrize("place", planted.PASSWORD_PLACES)
def test_no_value_survives_where_a_language_names_it(profile: str, place: str) -> None:
    """SQL, netrc, and lines that set one variable."""
    text = planted.PASSWORD_PLACES[place]
    assert [value for value in WORDS if leaks(profile, text(value), value)] == []


@profiles
def test_a_pair_that_stands_alone_is_a_name_and_a_value(profile: str) -> None:
    """Where the second is no name too."""
    redactor = REDACTORS[profile]
    for pair in (["refresh_token", "correct-horse-battery"], ["password", "hunter2"]):
        for value in (pair, {"$py": "tuple", "value": pair}, {"a": [{"b": pair}]}):
            assert pair[1].encode() not in redactor.redact_json(json.dumps(value).encode())
        assert pair[1] not in redactor.redact_text(f"found {tuple(pair)}")
    names = json.dumps(["password", "username"], separators=(",", ":")).encode()
    assert redactor.redact_json(names) == names


@profiles
@pytest.mark.parametrize("name", planted.HEADER_NAMES)
def test_no_secret_header_survives(profile: str, name: str) -> None:
    """Requests and responses, as pairs, by name, as a list of objects, and inside a tool's arguments."""
    redactor = REDACTORS[profile]
    value = "sid=correct-horse" if name == "cookie" else "correct-horse"
    assert b"correct-horse" not in redactor.redact_header_object({name: value})
    for spelled in (name, name.title(), name.upper()):
        for headers in (
            {spelled: value},
            [{"date": "x"}, {spelled: value}],
            [["date", "x"], [spelled, value]],
        ):
            text = json.dumps(
                {"response": {"headers": headers, "status": 200}}, separators=(",", ":")
            ).encode()
            assert b"correct-horse" not in redactor.redact_json(text), text
        nested = json.dumps({"arguments": json.dumps({"headers": {spelled: value}})}).encode()
        assert b"correct-horse" not in redactor.redact_json(nested)
        options = ["curl", "-H", f"{spelled}: {value}", "https://h.example"]
        assert "correct-horse" not in str(redactor.redact_arguments(options))
        assert b"correct-horse" not in redactor.redact_json(json.dumps({"args": options}).encode())


@profiles
def test_no_secret_cut_over_interleaved_outputs_survives(profile: str) -> None:
    """Each output is read apart, by the index that its events carry."""
    redactor = REDACTORS[profile]
    survivors = []
    for round_number in range(ROUNDS):
        draw = random.Random(round_number)
        for family, secret in list(planted.families(draw).items())[:: 1 if HARD else 3]:
            for kind, stream in planted.deltas(f"It is {secret}, yes", draw).items():
                redacted = redactor.redact_bytes(stream)
                assert redactor.redact_bytes(redacted) == redacted
                if secret in _joined(redacted, 1) or _joined(redacted, 0) != _joined(stream, 0):
                    survivors.append((family, kind))
    assert survivors == []


def _joined(stream: bytes, index: int) -> str:
    """The text of one output of a stream."""
    events = [json.loads(line[6:]) for line in stream.decode().splitlines() if line]
    return "".join(str(_piece(event)) for event in events[index::2])


def _piece(event: object) -> object:
    while not isinstance(event, str):
        if isinstance(event, list):
            event = event[0]
        else:
            assert isinstance(event, dict)
            known = ("choices", "candidates", "delta", "tool_calls", "function", "content", "parts")
            event = next(
                event[name] for name in (*known, "arguments", "text", "partial_json") if name in event
            )
    return event


URLS = {
    "slash": "postgres://bob:pa/ss9word@db.example:5432/x",
    "question mark": "postgres://bob:pa?ss9word@db.example/x",
    "hash": "amqp://bob:pa#ss9word@mq.example:5671",
    "all": "redis://bob:p/a?s#s9word@cache.example:6379/0",
    "at": "mysql://bob:p@ss9word@db.example/x",
    "https": "https://bob:pa/ss9word@h.example/x",
    "plain": "https://bob:pass9word@h.example/?mail=a@b.example",
}


@profiles
@pytest.mark.parametrize("url", URLS.values(), ids=URLS)
def test_a_password_in_a_url_may_hold_any_sign(profile: str, url: str) -> None:
    """People do not escape them."""
    redactor = REDACTORS[profile]
    for redacted in (redactor.redact_text(url), redactor.redact_text(f"connect to {url} now")):
        assert "9word" not in redacted
        assert "bob:<secret:" in redacted


@pytest.mark.parametrize(
    "url", ["https://h.example:8080/a?mail=bob@example.org", "http://h:80/#x@y", "ssh://h/x"]
)
def test_a_port_is_no_password(url: str) -> None:
    """What stands behind it may hold an at sign."""
    assert REDACTORS["default"].redact_text(url) == url


PEM = (
    "-----BEGIN "
    + "PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B+AQ/EFAASC\nq83+/aB==\n-----END PRIVATE KEY-----\n"
)


@profiles
def test_a_private_key_is_one_secret_in_every_coding(profile: str) -> None:
    """Plain, escaped in JSON, percent-encoded both ways: one placeholder."""
    redactor = REDACTORS[profile]
    texts = [
        PEM,
        json.dumps(PEM),
        quote(PEM),
        quote(PEM, safe=""),
        quote_plus(PEM),
        json.dumps(json.dumps(PEM)),
    ]
    found = {tuple(PLACEHOLDER.findall(redactor.redact_text(f"key={text}&x=1"))) for text in texts}
    assert len(found) == 1, found
    assert "private-key" in found.pop()[0]


ORDINARY_HEADERS = {
    "x-ratelimit-remaining-tokens": "149984",
    "anthropic-ratelimit-tokens-reset": "2026-01-01T00:00:00Z",
    "x-usage-tokens": "123",
    "x-session-count": "3",
    "www-authenticate": 'Bearer realm="api"',
    "access-control-allow-headers": "authorization",
    "author": "bob",
    "x-author-name": "bob",
    "x-keyboard": "qwerty",
    "x-monkey": "george",
    "x-keywords": "tea, leaves",
    "x-authority": "example.org",
    "content-type": "application/json",
}


@pytest.mark.parametrize("name", ORDINARY_HEADERS)
def test_an_ordinary_header_keeps_its_value(name: str) -> None:
    """Clients act on limits and counts."""
    redactor = REDACTORS["default"]
    value = ORDINARY_HEADERS[name]
    assert json.loads(redactor.redact_header_object({name: value})) == {name: value}
    text = json.dumps({"headers": [{name: value}]}, separators=(",", ":")).encode()
    assert redactor.redact_json(text) == text


ORDINARY_TEXTS = {
    "tool message": json.dumps({"role": "tool", "name": "reset_password", "content": "sent-an-email2"}),
    "schema with a default": json.dumps({"name": "token", "default": None, "text": "a token of the user"}),
    "generics in brackets": "Vec<Secret> of them, and Map<Token, Id> too",
    "rows of a table": "| token | Required |\n| password | your own |\n<td>token</td><td>the key to use</td>",
    "yaml of settings": "token:\n  type: string\n  about: x\npassword:\n  - a: b\n",
    "f-string": "headers = {'Authorization': f'Bearer {token}'}",
    "calls": "getattr(self, 'token', 'default-one'); field('password', 'the-label')",
    "schema": json.dumps({"required": ["password", "username"], "properties": {"token": {"type": "string"}}}),
    "options in prose": "Use --token to pass a token and --password to be asked for one.",
    "usage": "Usage: tool [OPTIONS]\n  --api-key TEXT  The key.\n  --password PASSWORD  Asked for.\n",
    "docker": "docker run -u 1000:1000 image",
    "html": "<input type='password' name='user'> <b>Token</b> list",
    "generics": "def f(token: Optional[Token]) -> Dict[str, Secret]: ...",
    "cookies": json.dumps({"cookie": "chocolate chip", "cookies": 12}),
    "rows": json.dumps([["word", "count"], ["author", 3]]),
    "settings in code": "password = ask()\ntoken = read(path)\nreturn token\n",
    "mail": "https://h.example/a?b=c and bob@example.org: see https://h.example:443/x",
    "names in a tuple": "fields = ('password', 'username')",
    "call": "os.environ.get('API_KEY', 'none') or getpass('password', 'stream')",
    "prose": "Say \"password\" to login and password again; identified by name. The password 'is' asked for.",
    "yaml of names": "- name: password\n  type: string\n- name: token\n  value: ${TOKEN}\n",
    "block of text": "password: >\n\nnothing below it\n",
    "heading": "<key>password</key> <label>Password</label><b>Your token</b>",
    "loop": "for password in passwords: print(password)",
    "statement": "a = 1; password = ask(); b = 2",
    "key rows": json.dumps([{"key": "color", "value": "red"}, {"key": "monkey", "value": "george"}]),
}


@pytest.mark.parametrize("text", ORDINARY_TEXTS.values(), ids=ORDINARY_TEXTS)
def test_ordinary_text_stays(text: str) -> None:
    """What only speaks of secrets is needed in replays and reports."""
    assert REDACTORS["default"].redact_text(text) == text


@pytest.mark.parametrize(
    "piece", ["password_", "password-", "password.", "password]", "--password-", "token_v"]
)
def test_names_without_an_end_take_time_linear_in_the_text(piece: str) -> None:
    """A name is followed for so many characters; each of many would be read to the end of all otherwise."""
    redactor = Redactor("default", salt=SALT)
    began = process_time()
    redactor.redact_text(piece * 12_000)
    assert process_time() - began < 1.5

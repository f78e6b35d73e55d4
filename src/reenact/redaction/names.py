"""Decides which names mean a secret: names of members, pairs, form fields, options, variables and headers.

Payloads of language models are full of names like ``max_tokens`` and ``token_usage``, which must not count.
So a name is split into words (``maxTokens``, ``max-tokens`` and ``max_tokens`` have the same words), and the
words around a suspicious one count, too. In HTTP headers one suspicious word is enough, since it nearly
always means credentials there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from itertools import pairwise, product
from typing import Final

from reenact.lazy_regex import LazyRegex
from reenact.redaction.literals import Search, literal_search, to_lowered

KEY_WORDS: Final = (
    *("api", "access", "private", "account"),
    *("admin", "app", "auth", "client", "consumer", "decryption", "deploy", "encryption", "hmac", "license"),
    *("master", "secret", "service", "shared", "signing", "ssh", "subscription"),
)
"""Words that make a key secret: ``signing_key``; not ``cache_key``, ``primary_key``, ``public_key``."""

_SUBSTRING_KEYS: Final = frozenset({"api", "access", "private", "account"})
"""These also count inside a longer word: ``openaiapikey`` is secret, ``openaikey`` is not."""

PLAIN_CORES: Final = (
    *("passphrase", "passcode", "secret", "credential", "authorization", "token", "pwd"),
    *("csrf", "xsrf", "jwt", "bearer"),
)
PASS_WORDS: Final = frozenset(
    (
        *(
            "admin",
            "app",
            "auth",
            "become",
            "bind",
            "database",
            "db",
            "ftp",
            "imap",
            "key",
            "keystore",
            "ldap",
        ),
        *(
            "login",
            "mail",
            "mongo",
            "mysql",
            "pg",
            "postgres",
            "proxy",
            "redis",
            "root",
            "smtp",
            "ssh",
            "store",
        ),
        *("sudo", "user", "vault", "wifi"),
    )
)
"""Words after which ``pass`` is a password: ``DB_PASS``; not ``render_pass``, ``first_pass``."""
AUTH_WORDS: Final = ("basic", "http", "proxy")
CORES: Final = "|".join(
    (
        "passw(?:or)?d",
        rf"(?:{'|'.join(KEY_WORDS)})[_-]?key",
        rf"(?:{'|'.join(AUTH_WORDS)})[_-]?auth",
        *PLAIN_CORES,
        r"(?:(?<=_)|(?<=-))pass(?![a-z])",
    )
)
"""Every secret name matches this expression in any case; header names may match other expressions."""

_CORE: Final = LazyRegex(CORES)
_CORE_IN_ANY_CASE: Final = LazyRegex(CORES, re.IGNORECASE)
_PART: Final = LazyRegex(r"[^A-Za-z0-9_-]+")
_WORD: Final = LazyRegex(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")

_JOINED_TOKEN: Final = LazyRegex(
    r"(?:access|auth|refresh|bearer|session|security|api|csrf|xsrf|user|bot|app|device|id|identity|registry)token\Z"
)
_ORDINARY_BEFORE_TOKEN: Final = LazyRegex(
    "audio|bos|cached|cls|completion|continuation|decoder|each|end|eos|first|image|input|last|mask|max|min"
    "|new|next|num|of|output|pad|page|per|progress|prompt|reasoning|sep|special|start|stop|sync|text|to|total|unk"
)
_DESCRIBING: Final = LazyRegex(
    "arn|at|budget|count|created|description|enabled|endpoint|env|expires|expiry|expiration|field|file"
    "|format|hint|ids?|in|index|label|length|limit|link|manager|mode|names?|path|policy|provider|ref"
    "|required|reset|santa|schema|scheme|size|source|status|title|ttl|type|uri|url|usage|var|variable|version"
)
"""Words that describe a secret instead of holding it: ``password_hint``, ``secret_name``, ``token_type``."""
_NEUTRAL_ENDINGS: Final = frozenset({"v", "value", "val", "raw", "plain", "plaintext", "text"})
"""Last words that do not change the meaning: ``token_v2``, ``csrf_token_value``."""

_COOKIE: Final = LazyRegex(r"(?:\A|[_-])cookies?\Z")
_HEADER_SUBSTRINGS: Final = LazyRegex(
    r"api[_-]?key|token|secret|passw(?:or)?d|credential|session|authorization|cookie|csrf|xsrf|jwt"
)
_HEADER_WORDS: Final = LazyRegex(
    r"pwd|(?!(?:co)?author(?:s|ed|ity|ities|ship)?\Z|authenticate\Z)[a-z]*auth[a-z]*"
    r"|(?!key(?:board|word|note|frame|stroke|press)s?\Z|(?:mon|tur|don|hoc|joc|whis|hot)keys?\Z)[a-z]*key[a-z]*"
)
"""Words that contain ``auth`` or ``key``, except those with another meaning."""
_COUNTING: Final = LazyRegex(
    "count|limits?|remaining|reset|usage|used|budget|ttl|timeout|length|size|max|min|total|rate|ratelimit"
)
_ABOUT_ACCESS: Final = LazyRegex(r"(?:www|proxy)-authenticate\Z|access-control-|sec-websocket-|.*rate-?limit")
"""Headers about credentials that contain no credentials; clients need them."""
_HEADERS: Final = LazyRegex(r"headers?\Z")
_QUERY_NAMES: Final = frozenset(
    {"sig", "signature", "x-amz-signature", "x-amz-credential", "x-goog-signature", "x-goog-credential"}
)

HARMLESS: Final = LazyRegex(
    r"(?:\$\{[^}]*\}|\$[A-Z_][A-Z0-9_]*|\$\([^)]*\)|%[A-Z_]+%|\{\{.*\}\}|\{\w*\}|<[^<>]*>|\[[^\]]*\]|[*xX.•-]*"
    r"|(?i:(?:your|insert|enter)[-_ ].*|null|none|nil|undefined|true|false|any|object|optional|required"
    r"|str(?:ing)?|bytes|text|int(?:eger)?|number|bool(?:ean)?|redacted|password|secret|token|bearer|basic"
    r"|api[_-]?key))\Z"
)
"""Values in the position of a secret that are not secret: types, variables, masks."""


@cache
def _core_search() -> Search:
    """A search for the literals that cores begin with; a regular expression reaches only 1 MB/s."""
    joined = [*product(KEY_WORDS, ("key",)), *product(AUTH_WORDS, ("auth",))]
    pairs = [f"{word}{joint}{last}" for word, last in joined for joint in ("", "_", "-")]
    return literal_search(
        [each.encode() for each in ("passw", "pass", *PLAIN_CORES, *pairs)], overlapping=True
    )


@lru_cache(1)
def core_spans(text: str) -> list[tuple[int, int]]:
    """The spans of the cores of secret names in *text*, in any case; cached, because several rules use it."""
    done = 0
    spans = []
    for start in sorted({start for _, start, _ in _core_search()(to_lowered(text))}):
        core = _CORE_IN_ANY_CASE.match(text, start) if start >= done else None
        if core is not None:
            done = core.end()
            spans.append(core.span())
    return spans


@lru_cache(8192)
def is_secret_name(name: str, *, in_header: bool = False) -> bool:
    """Whether the scalar value of *name* is a secret; only the last part of a path counts."""
    if in_header and _is_secret_header(name):
        return True
    part = _last_part(name)
    lowered = part.lower()
    found = {match[0].replace("_", "").replace("-", "") for match in _CORE.finditer(lowered)}
    words = [word.lower() for word in _WORD.findall(part)]
    while len(words) > 1 and (words[-1].isdigit() or words[-1] in _NEUTRAL_ENDINGS):
        words.pop()
    if not found or not words or _is_description(words):
        return False
    return any(_is_meant(core, words, lowered) for core in found)


def _is_meant(core: str, words: list[str], lowered: str) -> bool:
    """Whether *core* occurs as a word, not as a part of another one."""
    if core == "token":
        if words[-1] == "token":
            return len(words) == 1 or not _ORDINARY_BEFORE_TOKEN.fullmatch(words[-2])
        return _JOINED_TOKEN.search(words[-1]) is not None
    if core == "secret":
        return bool({"secret", "secrets"} & {*words}) or lowered.endswith("secret")
    if core == "pass":
        return words[-1] == core and len(words) > 1 and words[-2] in PASS_WORDS
    if core in ("pwd", "jwt", "bearer"):
        return words[-1] == core
    if core.endswith("key") and core[:-3] not in _SUBSTRING_KEYS:
        pairs = {first + second.removesuffix("s") for first, second in pairwise(words)}
        return core in pairs or core in words
    return True


def _last_part(name: str) -> str:
    return _PART.split(name.rstrip("]"))[-1]


def _is_description(words: list[str]) -> bool:
    # The id of an access key is part of the credentials.
    return len(words) > 1 and _DESCRIBING.fullmatch(words[-1]) is not None and words[-2:] != ["key", "id"]


def _is_secret_header(name: str) -> bool:
    lowered = name.lower()
    words = [word.lower() for word in _WORD.findall(name)]
    if _ABOUT_ACCESS.match(lowered) or (words and _COUNTING.fullmatch(words[-1])):
        return False
    is_found = _HEADER_SUBSTRINGS.search(lowered) is not None
    return is_found or any(_HEADER_WORDS.fullmatch(word) for word in words)


@lru_cache(4096)
def is_headers_name(name: str) -> bool:
    """Whether the value of *name* is HTTP headers: ``headers``, ``extra_headers``, ``requestHeaders``."""
    return _HEADERS.search(name.lower()) is not None


@lru_cache(4096)
def is_cookie_name(name: str) -> bool:
    """Whether the value of *name* may be cookies."""
    return _COOKIE.search(name.lower()) is not None


@lru_cache(4096)
def holds_numbers(name: str) -> bool:
    """Whether a number can be the value of the secret *name*: a password, but not a count of tokens."""
    return "token" not in _last_part(name).lower()


@lru_cache(4096)
def is_secret_query_name(name: str) -> bool:
    """Like :func:`is_secret_name`; also true for the names of signatures in signed URLs."""
    return name.lower() in _QUERY_NAMES or is_secret_name(name)


_MIN_LENGTH: Final = 8
"""Shorter values, like ``test`` or ``admin``, would match in ordinary words."""


def environment_secrets(environ: Mapping[str, str]) -> list[str]:
    """The values of variables like ``*_API_KEY``, to be registered; paths are not secrets."""
    return [
        value
        for name, value in environ.items()
        if is_secret_name(name)
        and len(value) >= _MIN_LENGTH
        and not value.startswith(("/", "~", "."))
        and not HARMLESS.match(value)
    ]

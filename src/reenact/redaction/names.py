"""Which names announce a secret: JSON members, environment variables, form fields, headers.

Payloads of language models are full of names like ``max_tokens`` and ``token_usage``; a rule that
took those for secrets would make every capture useless, so the words around a suspicious one count.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

CORES: Final = (
    r"passw(?:or)?d|passphrase|api[_-]?key|access[_-]?key|private[_-]?key|account[_-]?key"
    r"|secret|credential|authorization|token|pwd"
)
"""A regular expression that a secret name always contains, whatever its case."""

_CORE: Final = re.compile(CORES)
_PART: Final = re.compile(r"[^A-Za-z0-9_-]+")
_WORD: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")

_JOINED_TOKEN: Final = re.compile(
    r"(?:access|auth|refresh|bearer|session|security|api|csrf|xsrf|user|bot|app|device|id)token\Z"
)
_ORDINARY_BEFORE_TOKEN: Final = re.compile(
    "audio|bos|cached|cls|completion|continuation|decoder|each|end|eos|first|image|input|last|mask|max|min"
    "|new|next|num|of|output|pad|page|per|prompt|reasoning|sep|special|start|stop|sync|text|to|total|unk"
)
_DESCRIBING: Final = re.compile(
    "arn|at|budget|count|created|description|enabled|endpoint|env|expires|expiry|expiration|field|file"
    "|format|hint|ids?|in|index|label|length|limit|link|manager|mode|names?|path|policy|provider|ref"
    "|required|reset|santa|schema|scheme|size|source|status|title|ttl|type|uri|url|usage|var|variable|version"
)
"""``password_hint``, ``secret_name``, ``token_type``: said of a secret, not one."""

_COOKIE: Final = re.compile(r"(?:\A|[_-])cookies?\Z")
_HEADERS: Final = re.compile(r"api-?key|token|secret|passw(?:or)?d|credential|session|authorization|cookie")
_RATE_LIMIT: Final = re.compile(r"rate-?limit")
_QUERY_NAMES: Final = frozenset(
    {"sig", "signature", "x-amz-signature", "x-amz-credential", "x-goog-signature"}
)

HARMLESS: Final = re.compile(
    r"(?:\$\{[^}]*\}|\$[A-Z_][A-Z0-9_]*|\$\([^)]*\)|%[A-Z_]+%|\{\{.*\}\}|\{\w*\}|<[^<>]*>|\[[^\]]*\]|[*xX.•-]*"
    r"|(?i:(?:your|insert|enter)[-_ ].*|null|none|nil|undefined|true|false|any|object|optional|required"
    r"|str(?:ing)?|bytes|text|int(?:eger)?|number|bool(?:ean)?|redacted|password|secret|token|bearer|basic"
    r"|api[_-]?key))\Z"
)
"""Values that stand where a secret would stand and are none: types, variables, masks."""


@lru_cache(4096)
def is_secret_name(name: str) -> bool:
    """Whether the scalar below *name* is a secret; names with several parts count by their last."""
    part = _last_part(name)
    lowered = part.lower()
    found = {match[0] for match in _CORE.finditer(lowered)}
    words = [word.lower() for word in _WORD.findall(part)]
    if not found or _is_description(words):
        return False
    if found == {"token"}:
        return _is_secret_token(words, lowered)
    if found == {"secret"}:
        return "secret" in words or lowered.endswith("secret")
    return found != {"pwd"} or words[-1] == "pwd"


def _last_part(name: str) -> str:
    return _PART.split(name.rstrip("]"))[-1]


def _is_description(words: list[str]) -> bool:
    # The id of an access key is half of the credentials.
    return len(words) > 1 and _DESCRIBING.fullmatch(words[-1]) is not None and words[-2:] != ["key", "id"]


def _is_secret_token(words: list[str], lowered: str) -> bool:
    if words[-1] == "token" and lowered.endswith("token"):
        return len(words) == 1 or not _ORDINARY_BEFORE_TOKEN.fullmatch(words[-2])
    return _JOINED_TOKEN.search(lowered) is not None


@lru_cache(4096)
def is_cookie_name(name: str) -> bool:
    """Whether the value below *name* is a list of cookies, if it looks like one."""
    return _COOKIE.search(name.lower()) is not None


@lru_cache(4096)
def holds_numbers(name: str) -> bool:
    """Whether a number below the secret *name* is one: a password may be, a count of tokens is not."""
    return "token" not in _last_part(name).lower()


@lru_cache(4096)
def is_secret_header(name: str) -> bool:
    """Whether an HTTP header of this name carries a secret."""
    lowered = name.lower()
    return bool(_HEADERS.search(lowered)) and not _RATE_LIMIT.search(lowered)


@lru_cache(4096)
def is_secret_query_name(name: str) -> bool:
    """Like :func:`is_secret_name`, and the names under which signed URLs carry their signature."""
    return name.lower() in _QUERY_NAMES or is_secret_name(name)

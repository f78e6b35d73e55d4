"""Finds the credentials that a call sends: from then on they are hidden wherever they appear.

A server may repeat the key of a request in its answer, and an agent may print the password that it logged in
with. There, no name and no shape shows that the value is secret. So a value is also hidden without its name
once a request has sent it as a credential. Only distinctive values count, because one like ``lm-studio`` may
be the key of one run and an ordinary word of another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from reenact.canonical import JsonValue
from reenact.formats.capture import PLACEHOLDER
from reenact.redaction.names import is_secret_name, is_secret_query_name
from reenact.redaction.nearby import looks_generated
from reenact.redaction.places import basic_password

_MIN_KEY_CHARS: Final = 16
_MIN_PASSWORD_CHARS: Final = 8
_SCHEME: Final = re.compile(r"(?:(?P<scheme>[A-Za-z][\w-]{1,30})[ \t]+)?(?P<rest>[^\s,]+)\Z")
_AUTH_OR_KEY: Final = re.compile(r"(?:\A|[-_])(?:auth(?:orization)?|api-?key|key|team)\Z", re.IGNORECASE)
"""The last word of the names of such headers; Honeycomb's is ``X-Honeycomb-Team``."""
_OF_ONE_RUN: Final = re.compile(
    "csrf|xsrf|session|nonce|idempotency|websocket|cache|partition|routing|sort|request|dedup|public",
    re.IGNORECASE,
)
"""Values with these names are made anew in each run, where other texts may repeat them, or are no secrets."""
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}\Z")


def credentials_in_request(value: JsonValue) -> Iterator[str]:
    """The credentials among the named values of a request, in its URL and its forms."""
    if isinstance(value, dict):
        for name, member in value.items():
            if isinstance(member, str):
                yield from _credentials_in_member(name, member)
            else:
                yield from credentials_in_request(member)
    elif isinstance(value, list):
        if len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], str):
            yield from _credentials_in_member(value[0], value[1])
        else:
            for item in value:
                yield from credentials_in_request(item)


def _credentials_in_member(name: str, value: str) -> Iterator[str]:
    if name == "url":
        yield from _credentials_in_url(value)
    elif is_secret_name(name) and not _OF_ONE_RUN.search(name) and _is_distinctive(value):
        yield value


def _credentials_in_url(url: str) -> Iterator[str]:
    try:
        parts = urlsplit(url)
        fields: list[Any] = [("password", parts.password or ""), *parse_qsl(parts.query)]
    except ValueError:
        return
    for name, value in fields:
        if is_secret_query_name(name) and _is_distinctive(value):
            yield value


def is_credential_header(name: str) -> bool:
    """Whether the header *name* always has credentials that are the same in each run."""
    return (_AUTH_OR_KEY.search(name) is not None or is_secret_name(name)) and not _OF_ONE_RUN.search(name)


def credential_in_header(value: str) -> str | None:
    """The credential in the value of such a header, without the word of its scheme."""
    found = _SCHEME.match(value)
    if found is None:
        return None
    rest = found["rest"]
    if found["scheme"] is not None and found["scheme"].lower() == "basic":
        password = basic_password(rest) or ""
        return password if _is_distinctive(password) else None
    has_both = re.search(r"\d", rest) is not None and re.search("[A-Za-z]", rest) is not None
    is_key = len(rest) >= _MIN_KEY_CHARS and has_both and "=" not in rest.rstrip("=")
    return rest if is_key and not _is_generated_id(rest) else None


def _is_distinctive(value: str) -> bool:
    return len(value) >= _MIN_PASSWORD_CHARS and looks_generated(value) and not _is_generated_id(value)


def _is_generated_id(value: str) -> bool:
    """Whether *value* may be an id that a library makes anew in each run, or is a placeholder."""
    return _UUID.match(value) is not None or PLACEHOLDER.search(value) is not None

"""Secrets in URLs: user information, query parameters, the path."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import unquote, unquote_plus

from reenact.redaction.edits import Edit
from reenact.redaction.names import HARMLESS, is_secret_query_name
from reenact.redaction.placeholder import Placeholders

URL: Final = re.compile(r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s\"'<>\\`]+")
_USER: Final = re.compile(r"://(?P<user>[^\s\"'\\/?#@<>:`]*)(?::(?P<password>[^\s\"'\\/?#@<>`]*))?@")
_PARAMETER: Final = re.compile(r"(?<=[?&#;])(?P<name>[^=&#;?\s]+)=(?P<value>[^&#\s]+)")
_API_KEY: Final = re.compile(r"(?=[^&]*\d)[A-Za-z0-9_.~+/-]{16,}")


def url_edits(url: str, placeholders: Placeholders) -> Iterator[Edit]:
    """Edits for what is secret in *url* by its place."""
    for user in _USER.finditer(url):
        group = "password" if user["password"] else "user"
        # A user without a password is a token more often than a name; with one it is a name.
        if user[group]:
            yield Edit(*user.span(group), placeholders.of(unquote(user[group])))
    for parameter in _PARAMETER.finditer(url):
        value = unquote_plus(parameter["value"])
        if _is_secret(unquote_plus(parameter["name"]), value):
            yield Edit(*parameter.span("value"), placeholders.of(value))


def _is_secret(name: str, value: str) -> bool:
    if HARMLESS.match(value):
        return False
    return is_secret_query_name(name) or (name == "key" and _API_KEY.fullmatch(value) is not None)


def urls_in_text(text: str, edits_of: Callable[[str], Iterator[Edit]]) -> Iterator[Edit]:
    """The edits of every URL in *text*."""
    for url in URL.finditer(text):
        for start, end, new in edits_of(url[0]):
            yield Edit(url.start() + start, url.start() + end, new)

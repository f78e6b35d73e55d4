"""Finds secrets in text by a name or a position: in URLs, headers, command lines, pairs, blocks of YAML.

A value counts only if its context or its own form shows that it is a secret.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple
from urllib.parse import unquote, unquote_plus

from reenact.lazy_regex import LazyRegex
from reenact.redaction.assignments import is_lone_value, looks_secret
from reenact.redaction.edits import Edit
from reenact.redaction.literals import matches_from
from reenact.redaction.names import (
    HARMLESS,
    core_spans,
    is_secret_name,
    is_secret_query_name,
)
from reenact.redaction.placeholder import Placeholders

# The value of a secret name

_SCHEME: Final = LazyRegex(
    r"(?P<scheme>bearer|basic|digest|token|api-?key|negotiate|ntlm|aws4-hmac-sha256)(?: +|%20)(?P<rest>.+)",
    re.DOTALL | re.IGNORECASE,
)
_PAIR: Final = LazyRegex(r"(?:\A|;)\s*[^=;\s]+=(?P<value>[^;]*)")


def member_edits(value: str, placeholders: Placeholders) -> Iterator[Edit]:
    """Edits that redact *value*, the value of a secret name; the word of an auth scheme stays."""
    if scheme := _SCHEME.fullmatch(value):
        rest = scheme["rest"]
        plain = basic_password(rest) if scheme["scheme"].lower() == "basic" else None
        yield Edit(*scheme.span("rest"), placeholders.of(plain or rest))
    elif not HARMLESS.match(value):
        yield Edit(0, len(value), placeholders.of(value))


def cookie_edits(value: str, placeholders: Placeholders, *, first_only: bool) -> Iterator[Edit]:
    """Edits for the values of all cookies; with *first_only* for ``Set-Cookie``, where attributes follow."""
    for number, pair in enumerate(_PAIR.finditer(value)):
        if first_only and number:
            return
        if not pair["value"].strip("="):  # not a name and a value, but base64 with its padding
            yield Edit(
                pair.start() + len(pair[0]) - len(pair[0].lstrip("; ")), pair.end(), placeholders.of(pair[0])
            )
        else:
            yield Edit(*pair.span("value"), placeholders.of(pair["value"]))


def basic_password(credentials: str) -> str | None:
    """The password of HTTP basic credentials, or the user if it is empty; ``None`` for other texts."""
    try:
        user, colon, password = b64decode(credentials, validate=True).decode().partition(":")
    except ValueError:
        return None
    return (password or user) if colon and (user + password).isprintable() else None


# URLs

URL: Final = LazyRegex(r"(?<![A-Za-z0-9+.-])(?P<scheme>[A-Za-z][A-Za-z0-9+.-]{1,20})://[^\s\"'<>\\`]+")
_SCHEME_OF_URL: Final = LazyRegex(r"[A-Za-z][A-Za-z0-9+.-]{1,20}\Z")
_USER: Final = LazyRegex(r"://(?P<user>[^\s\"'\\/?#@<>:`]*)(?::(?P<password>[^\s\"'\\/?#@<>`]*))?@")
_ODD_USER: Final = LazyRegex(
    r"://(?P<user>[^\s\"'\\/?#@<>:`]*):(?!\d{1,5}(?:[/?#]|\Z))(?P<password>[^\s\"'\\<>`]{1,256})@"
    r"(?=\[?[A-Za-z0-9_.:\-]+\]?(?:[/?#,;)\s]|\Z))"
)
"""A password with an unescaped ``/``, ``?``, ``#`` or ``@``; a port does not match."""
_WEB: Final = frozenset({"http", "https", "ws", "wss"})
_PARAMETER: Final = LazyRegex(r"(?<=[?&#;])(?P<name>[^=&#;?\s]+)=(?P<value>[^&#\s]+)")
_API_KEY: Final = LazyRegex(r"(?=[^&]*\d)[A-Za-z0-9_.~+/-]{16,}")


def url_edits(url: str, placeholders: Placeholders) -> Iterator[Edit]:
    """Edits for the credentials and secret parameters in *url*."""
    users = list(_USER.finditer(url))
    is_web = url.partition("://")[0].lower() in _WEB
    for user in users if users and is_web else list(_ODD_USER.finditer(url)) or users:
        group = "password" if user["password"] else "user"
        # A user without a password is usually a token; with a password it is a name.
        if user[group]:
            yield Edit(*user.span(group), placeholders.of(unquote(user[group])))
    for parameter in _PARAMETER.finditer(url):
        value = unquote_plus(parameter["value"])
        if _is_secret_parameter(unquote_plus(parameter["name"]), value):
            yield Edit(*parameter.span("value"), placeholders.of(value))


def _is_secret_parameter(name: str, value: str) -> bool:
    if HARMLESS.match(value):
        return False
    return is_secret_query_name(name) or (name == "key" and _API_KEY.fullmatch(value) is not None)


def urls_in_text(text: str, edits_of: Callable[[str], Iterator[Edit]]) -> Iterator[Edit]:
    """Edits for every URL in *text*."""
    for url in _urls(text):
        for start, end, new in edits_of(url[0]):
            yield Edit(url.start() + start, url.start() + end, new)


def _urls(text: str) -> Iterator[re.Match[str]]:
    """The matches of ``URL``; searching for ``://`` first is faster."""
    done = 0
    sign = text.find("://")
    while sign >= 0:
        scheme = _SCHEME_OF_URL.search(text, max(done, sign - 21), sign)
        url = URL.match(text, scheme.start()) if scheme is not None else None
        if url is not None:
            yield url
            done = url.end()
        sign = text.find("://", max(done, sign + 1))


# Schemes and header lines

_BEARER: Final = LazyRegex(r"(?i:\bbearer(?: +|%20))(?P<secret>[A-Za-z0-9._~+/\-]{8,}={0,2})")
_BASIC: Final = LazyRegex(r"\b[Bb]asic(?: +|%20)(?P<secret>(?=.[a-z]*[A-Z0-9+/])[A-Za-z0-9+/]{4,}={0,2})")
_AUTH: Final = LazyRegex(r"(?i:(?<![a-z])auth)[\"']?\s*[:=]\s*[\"']?(?P<secret>[A-Za-z0-9+/]{8,4096}+={0,2})")
_COOKIES: Final = LazyRegex(r"(?i:\b(?P<name>(?:set-)?cookie)[ \t]*:[ \t]*)(?P<value>[^\r\n\"'\\]+)")
_HEADER_LINE: Final = LazyRegex(
    r"(?:\A|(?<=[\r\n\"']))(?P<name>[A-Za-z][A-Za-z0-9_]*-[A-Za-z0-9_\-]+)"
    r"[ \t]*:[ \t]*(?P<value>[^\r\n\"'\\]+)"
)


_BLOCK_MARK: Final = LazyRegex(r"[|>][+\-\d]{0,2}\s*\Z")
"""YAML's mark before a block; it is not a value."""


def scheme_edits(text: str, placeholders: Placeholders) -> Iterator[Edit]:
    """Edits for ``Bearer …``, ``Basic …``, and ``_auth=…`` of npm."""
    for bearer in matches_from(_BEARER, text, b"bearer"):
        token = bearer["secret"]
        if len(token) >= 16 or re.search(r"\d", token):
            yield Edit(*bearer.span("secret"), placeholders.of(token))
    for basic in matches_from(_AUTH, text, b"auth"):
        if password := basic_password(basic["secret"]):
            yield Edit(*basic.span("secret"), placeholders.of(password))
    for basic in matches_from(_BASIC, text, b"basic"):
        if password := basic_password(basic["secret"]):
            yield Edit(*basic.span("secret"), placeholders.of(password))


def header_line_edits(text: str, placeholders: Placeholders) -> Iterator[Edit]:
    """Edits for ``Cookie:`` lines, and lines like ``X-Session-Id: …``."""
    for cookies in matches_from(_COOKIES, text, b"set-cookie", b"cookie"):
        first_only = cookies["name"].lower().startswith("set")
        for start, end, new in cookie_edits(cookies["value"], placeholders, first_only=first_only):
            yield Edit(cookies.start("value") + start, cookies.start("value") + end, new)
    is_http = "HTTP/" in text
    # A match never contains the beginning of another one, so those with a known beginning can be found alone.
    for line in _HEADER_LINE.finditer(text) if is_http else matches_from(_HEADER_LINE, text, b"x-"):
        if (
            not _BLOCK_MARK.match(line["value"])
            and is_secret_name(line["name"], in_header=True)
            and "cookie" not in line["name"].lower()
        ):
            for start, end, new in member_edits(line["value"].rstrip(), placeholders):
                yield Edit(line.start("value") + start, line.start("value") + end, new)


# Command lines

_OPTION: Final = LazyRegex(r"(?:--?[A-Za-z][\w.\-]*(?:=.*)?|--?)\Z")
_ODD_OPTION: Final = LazyRegex(r"-(?=\w*[a-z])(?=\w*[A-Z])(?=\w*\d)\w{6}")
"""A value that begins with a dash; no option has such a name."""
_USER_OPTION: Final = frozenset({"-u", "--user", "--proxy-user", "-U"})
_HEADER_OPTION: Final = frozenset({"-H", "--header", "--proxy-header"})
_HTTP_CLIENT: Final = LazyRegex(r"(?:\A|[\s/;|&(])(?:curl|wget|https?|xh)(?=\s)")
_USER_IN_TEXT: Final = LazyRegex(
    r"-(?<!\S-)(?:u|U|-user|-proxy-user)[ =]*[\"']?(?P<user>[^\s:\"']{1,256}):(?P<secret>[^\s\"']{1,256})"
)
"""The look-behind comes after the dash: an expression that begins with a literal is ten times as fast."""


def argument_name(before: str | None, argument: str) -> tuple[str | None, bool]:
    """The name of *argument* if *before* is its option, and whether *argument* is a header line."""
    is_option = _OPTION.match(argument) is not None and not _ODD_OPTION.match(argument)
    if before is None or is_option or not before.startswith("-"):
        return None, False
    return before.lstrip("-"), before in _HEADER_OPTION


def option_edits(text: str, placeholders: Placeholders) -> Iterator[Edit]:
    """Edits for ``curl -u name:password``."""
    for user in _USER_IN_TEXT.finditer(text):
        secret = user["secret"]
        if _HTTP_CLIENT.search(text[: user.start()]) or (looks_secret(secret) and not secret.isdigit()):
            yield Edit(*user.span("secret"), placeholders.of(secret))


def user_option_edits(before: str | None, argument: str, *, is_http_client: bool) -> tuple[int, str] | None:
    """Start and value of the password in an argument after ``-u``."""
    if before not in _USER_OPTION:
        return None
    user, colon, password = argument.partition(":")
    if not (user and colon and password) or not (is_http_client or looks_secret(password)):
        return None
    return len(user) + 1, password


def is_http_client(program: str) -> bool:
    """Whether *program* takes credentials after ``-u``."""
    return program.rpartition("/")[2] in ("curl", "wget", "http", "https", "xh", "curl.exe")


# A name with a value, without an assignment sign

_PAIR_IN_TEXT: Final = LazyRegex(
    r"(?P<open>[(\[])\s*(?P<raw>b?)(?P<quote>[\"'])[#.$@:]?(?P<name>[\w.\-]{1,100})"
    r"(?P=quote)\s*,\s*b?(?P<mark>[\"'])(?P<value>[^\"'\n]{1,4096}+)(?P=mark)\s*[)\]]"
)
"""Pairs of bytes are raw headers."""
_BEFORE_PAIR: Final = LazyRegex(r"(?:[\w.]|[\[({,]\s{0,20})\Z")
_SETTER: Final = LazyRegex(r"(?:(?<![A-Za-z])(?i:set|put|fill|type)|[a-z_](?:Set|Put|Fill))[A-Za-z_]{0,20}\Z")
"""Functions that set a name to a value: ``putenv``, ``setItem``, ``fill``."""
_BASIC_AUTH: Final = LazyRegex(
    r"(?i:basic_?auth)\(\s*[\"'][^\"'\n]{0,256}[\"']\s*,\s*(?P<quote>[\"'])(?P<value>[^\"'\n]{1,256}+)(?P=quote)"
)
_QUOTED_AFTER: Final = LazyRegex(
    r"(?i:\bpassw(?:or)?d|\bidentified\s+(?:with\s+\w+\s+)?by(?:\s+password)?)\s+(?P<quote>[\"'])"
    r"(?P<value>[^\"'\s]{4,256}+)(?P=quote)"
)
_KEYWORD: Final = LazyRegex(
    r"(?:(?<![\w\"'\]:]):|(?<![\w\-])set[ \t]+)(?P<name>[A-Za-z][\w\-]{0,99})\s+"
    r"\"(?P<value>[^\"\s]{4,256}+)\""
)
"""``:password "…"`` of Lisp, ``set password "…"`` of Tcl."""
_LOGIN: Final = LazyRegex(r"\b(?:machine\s+\S+|default)\s+login\s+\S+\s+password\s+(?P<value>\S{1,256})")
_ANNOUNCED: Final = (
    (_QUOTED_AFTER, (b"passw", b"identified")),
    (_LOGIN, (b"machine", b"default")),
    (_BASIC_AUTH, (b"basicauth", b"basic_auth")),
)
"""Each with the words that its matches begin with."""
_NAMED: Final = LazyRegex(
    r"(?<![\w])[\"']?(?:\w*(?i:name|key|field|header|param|parameter|variable|property|label|option|setting))[\"']?"
    r"[ \t]*[:=][ \t]*[\"']?(?P<name>[\w./\-]{1,100})[\"']?(?=[\s,;}]|\Z)"
)
"""A member with a name, ``name: password``; another member has the value."""
_NAMED_VALUE: Final = LazyRegex(
    r"(?<![\w])[\"']?\w*(?i:value|val)[\"']?[ \t]*[:=][ \t]*"
    r"(?:b?(?P<quote>[\"'`])(?P<quoted>[^\"'`\n]{1,4096})(?P=quote)|(?P<bare>[^\s\"'`#|>{\[,$][^\n#,}]{0,1024}))"
)
_MEMBERS_END: Final = LazyRegex(r"[{}]|\n[ \t]*\n|\n[ \t]*-[ \t]")
_NEAR: Final = 500
_FAR: Final = 2000
"""Limits for reading before and after a name: a line of a minified program may have a megabyte."""
_YAML_BLOCK: Final = LazyRegex(
    r"^(?P<indent>[ \t]*)(?:-[ \t]+)?[\"']?(?P<name>[\w.\-]{1,100})[\"']?:[ \t]*"
    r"(?P<mark>[|>][+\-\d]{0,2}[ \t]*|(?:!!\w+[ \t]*)?)\r?\n"
    r"(?=(?P<value>(?:(?P=indent)[ \t]+\S[^\n]*(?:\n|\Z)|[ \t]*\r?\n){1,200}+))",
    re.MULTILINE,
)
_QUOTED_LINES: Final = LazyRegex(
    r"^(?:export[ \t]+)?(?P<name>[\w.\-]{1,100})=(?P<quote>[\"'])(?P<value>[^\"'\\]{1,4096}+)(?P=quote)[ \t]*"
    r"\r?$",
    re.M,
)
"""A variable of dotenv, whose value may have several lines."""
_YAML_ITEM: Final = LazyRegex(
    r"[ \t]*-[ \t]+[\"']?(?P<value>[^\s\"':#{\[][^\n\"':#]{0,1024})[\"']?[ \t]*(?:#.*)?\r?$", re.MULTILINE
)
_YAML_QUESTION: Final = LazyRegex(
    r"^[ \t]*\?[ \t]+(?P<name>[\w.\-]{1,100})[ \t]*\r?\n[ \t]*:[ \t]+(?P<value>\S[^\n]{0,1024})", re.M
)
_TABLE_ROW: Final = LazyRegex(
    r"\|[ \t]*[`*]{0,2}(?P<name>[\w.\-]{1,100})[`*]{0,2}[ \t]*\|[ \t]*`?(?P<value>[^|\s`]{1,1024})`?[ \t]*\|"
)


def beside_edits(text: str, placeholders: Placeholders) -> Iterator[Edit]:
    """Edits for ``("password", "…")``, SQL's ``PASSWORD '…'``, netrc's ``password …``, tables and YAML."""
    for pair in _PAIR_IN_TEXT.finditer(text):
        if _is_pair(pair):
            yield from _value_edits(pair, "value", placeholders)
    for pattern, anchors in _ANNOUNCED:
        for found in matches_from(pattern, text, *anchors):
            yield from _value_edits(found, "value", placeholders)
    for row in _TABLE_ROW.finditer(text):
        if is_secret_name(row["name"]) and is_lone_value(row["value"]):
            yield from _value_edits(row, "value", placeholders)
    for line in _lines_with_cores(text):
        yield from _setting_edits(text, line, placeholders)


def _setting_edits(text: str, line: _SuspectLine, placeholders: Placeholders) -> Iterator[Edit]:
    """Edits for a setting that begins with *line*."""
    start, end, last_core = line
    for pattern in (_YAML_QUESTION, _QUOTED_LINES):
        setting = pattern.match(text, start)
        if setting is not None and is_secret_name(setting["name"]):
            yield from _value_edits(setting, "value", placeholders)
    for keyword in _KEYWORD.finditer(text, start, end) if text.find('"', start, end) >= 0 else ():
        if is_secret_name(keyword["name"]):
            yield from _value_edits(keyword, "value", placeholders)
    block = _YAML_BLOCK.match(text, start)
    if block is not None and is_secret_name(block["name"]):
        yield from _block_edits(block, placeholders)
    # The name follows a colon or an equals sign.
    may_name = text.find(":", start, last_core) >= 0 or text.find("=", start, last_core) >= 0
    for named in _NAMED.finditer(text, start, end) if may_name else ():
        value = _find_value(named) if is_secret_name(named["name"]) else None
        if value is not None:
            yield from _value_edits(value, "quoted" if value["quote"] else "bare", placeholders)


class _SuspectLine(NamedTuple):
    """A line that may contain a secret name; of a long line, the part near the name."""

    start: int
    end: int
    last_core: int
    """The start of the last core of a secret name."""


def _lines_with_cores(text: str) -> list[_SuspectLine]:
    lines: list[_SuspectLine] = []
    for core, _ in core_spans(text):
        if lines and core <= lines[-1].end:
            lines[-1] = lines[-1]._replace(last_core=core)
            continue
        start = text.rfind("\n", max(0, core - _FAR), core) + 1 or max(0, core - _FAR)
        end = text.find("\n", core, core + _FAR)
        lines.append(_SuspectLine(start, end if end >= 0 else min(core + _FAR, len(text)), core))
    return lines


def _is_pair(pair: re.Match[str]) -> bool:
    value = pair["value"]
    in_header = bool(pair["raw"]) or "-" in pair["name"]
    if not is_secret_name(pair["name"], in_header=in_header):
        return False
    start = pair.start()
    found = _BEFORE_PAIR.search(pair.string, max(0, start - 21), start)
    before = found[0][0] if found else ""
    if pair["open"] == "(" and before.isidentifier():
        # Arguments of a call can be names of any kind, so only a value that looks like a secret counts.
        if _SETTER.search(pair.string, max(0, start - 40), start):
            return len(value) >= 4 and not re.search(r"\s", value)
        return looks_secret(value) and is_lone_value(value)
    return before in ("[", "(", "{", ",") or is_lone_value(value)


def _find_value(named: re.Match[str]) -> re.Match[str] | None:
    """The value after a name, or before it, in the same object or list item."""
    text, before, behind = named.string, named.start(), named.end()
    end = _MEMBERS_END.search(text, behind, behind + _NEAR)
    value = _NAMED_VALUE.search(text, behind, end.start() if end else behind + _NEAR)
    if value is not None:
        return value
    start = max(0, before - _NEAR)
    start = max([start, *(found.end() for found in _MEMBERS_END.finditer(text, start, before))])
    return _NAMED_VALUE.search(text, start, before)


def _block_edits(block: re.Match[str], placeholders: Placeholders) -> Iterator[Edit]:
    """Edits for a YAML block; without a mark its value is one word on the next line, or a list."""
    if block["mark"].strip("!tr \t"):
        yield from _value_edits(block, "value", placeholders)
        return
    lines = block["value"].strip().splitlines()
    items = list(_YAML_ITEM.finditer(block.string, block.start("value"), block.end("value")))
    if len(items) == len(lines):
        for item in items:
            yield from _value_edits(item, "value", placeholders)
    elif len(lines) == 1 and re.fullmatch(r"[^\s:#{}\[\]\"']{4,1024}", lines[0].strip()):
        yield from _value_edits(block, "value", placeholders)


def _value_edits(found: re.Match[str], group: str, placeholders: Placeholders) -> Iterator[Edit]:
    value = found[group].strip()
    if value and not HARMLESS.match(value) and not is_secret_name(value):
        start = found.start(group) + found[group].index(value)
        yield Edit(start, start + len(value), placeholders.of(value))

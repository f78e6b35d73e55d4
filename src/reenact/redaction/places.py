"""Where a name or a place in text tells that a value is secret: assignments, URLs, pairs, options.

Text is where false alarms hurt: code, prose and documentation speak of passwords all the time. So a value
counts only where its surroundings or its look say that it is one.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import unquote, unquote_plus

from reenact.lazy_regex import LazyRegex
from reenact.redaction.edits import Edit
from reenact.redaction.names import (
    CORES,
    HARMLESS,
    core_spans,
    holds_numbers,
    is_secret_name,
    is_secret_query_name,
)
from reenact.redaction.nearby import is_mixed, nearby_value, value_before
from reenact.redaction.placeholder import Placeholders

# The value below a secret name

_SCHEME: Final = LazyRegex(
    r"(?P<scheme>bearer|basic|digest|token|api-?key|negotiate|ntlm|aws4-hmac-sha256)(?: +|%20)(?P<rest>.+)",
    re.DOTALL | re.IGNORECASE,
)
_PAIR: Final = LazyRegex(r"(?:\A|;)\s*[^=;\s]+=(?P<value>[^;]*)")


def member_edits(value: str, placeholders: Placeholders) -> Iterator[Edit]:
    """The edits that take the secret out of *value*; scheme words stay."""
    if scheme := _SCHEME.fullmatch(value):
        rest = scheme["rest"]
        plain = basic_password(rest) if scheme["scheme"].lower() == "basic" else None
        yield Edit(*scheme.span("rest"), placeholders.of(plain or rest))
    elif not HARMLESS.match(value):
        yield Edit(0, len(value), placeholders.of(value))


def cookie_edits(value: str, placeholders: Placeholders, *, first_only: bool) -> Iterator[Edit]:
    """Edits for the values of all cookies; ``Set-Cookie`` has one, its attributes follow."""
    for number, pair in enumerate(_PAIR.finditer(value)):
        if first_only and number:
            return
        if not pair["value"].strip("="):  # no name and value, but base64 and what fills it up
            yield Edit(
                pair.start() + len(pair[0]) - len(pair[0].lstrip("; ")), pair.end(), placeholders.of(pair[0])
            )
        else:
            yield Edit(*pair.span("value"), placeholders.of(pair["value"]))


def basic_password(credentials: str) -> str | None:
    """The password of HTTP basic credentials, or the user if there is none; None if it is no such thing."""
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
"""A password with ``/``, ``?``, ``#`` or ``@`` in it, as people write them; a port is none."""
_WEB: Final = frozenset({"http", "https", "ws", "wss"})
_PARAMETER: Final = LazyRegex(r"(?<=[?&#;])(?P<name>[^=&#;?\s]+)=(?P<value>[^&#\s]+)")
_API_KEY: Final = LazyRegex(r"(?=[^&]*\d)[A-Za-z0-9_.~+/-]{16,}")


def url_edits(url: str, placeholders: Placeholders) -> Iterator[Edit]:
    """Edits for what is secret in *url* by its place."""
    users = list(_USER.finditer(url))
    is_web = url.partition("://")[0].lower() in _WEB
    for user in users if users and is_web else list(_ODD_USER.finditer(url)) or users:
        group = "password" if user["password"] else "user"
        # A user without a password is a token more often than a name; with one it is a name.
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
    """The edits of every URL in *text*."""
    for url in _urls(text):
        for start, end, new in edits_of(url[0]):
            yield Edit(url.start() + start, url.start() + end, new)


def _urls(text: str) -> Iterator[re.Match[str]]:
    """What ``URL`` finds, from the sign on by which a URL is found faster."""
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
"""No value, but the sign of YAML's that one follows."""


def scheme_edits(text: str, placeholders: Placeholders) -> Iterator[Edit]:
    """``Bearer …``, ``Basic …``, and ``_auth=…`` of npm."""
    lowered = text.lower()
    for bearer in _BEARER.finditer(text) if "bearer" in lowered else ():
        token = bearer["secret"]
        if len(token) >= 16 or re.search(r"\d", token):
            yield Edit(*bearer.span("secret"), placeholders.of(token))
    for basic in _AUTH.finditer(text) if "auth" in lowered else ():
        if password := basic_password(basic["secret"]):
            yield Edit(*basic.span("secret"), placeholders.of(password))
    for basic in _BASIC.finditer(text) if "basic" in lowered else ():
        if password := basic_password(basic["secret"]):
            yield Edit(*basic.span("secret"), placeholders.of(password))


def header_line_edits(text: str, placeholders: Placeholders) -> Iterator[Edit]:
    """``Cookie:`` lines, and lines like ``X-Session-Id: …``."""
    for cookies in _COOKIES.finditer(text) if "cookie" in text.lower() else ():
        first_only = cookies["name"].lower().startswith("set")
        for start, end, new in cookie_edits(cookies["value"], placeholders, first_only=first_only):
            yield Edit(cookies.start("value") + start, cookies.start("value") + end, new)
    is_http = "HTTP/" in text
    for line in _HEADER_LINE.finditer(text) if is_http or "X-" in text or "x-" in text else ():
        is_header = is_http or line["name"][:2] in ("X-", "x-")
        if (
            is_header
            and not _BLOCK_MARK.match(line["value"])
            and is_secret_name(line["name"], in_header=True)
            and "cookie" not in line["name"].lower()
        ):
            for start, end, new in member_edits(line["value"].rstrip(), placeholders):
                yield Edit(line.start("value") + start, line.start("value") + end, new)


# Command lines

_OPTION: Final = LazyRegex(r"(?:--?[A-Za-z][\w.\-]*(?:=.*)?|--?)\Z")
_ODD_OPTION: Final = LazyRegex(r"-(?=\w*[a-z])(?=\w*[A-Z])(?=\w*\d)\w{6}")
"""No option is called so: a value that begins with a dash."""
_USER_OPTION: Final = frozenset({"-u", "--user", "--proxy-user", "-U"})
_HEADER_OPTION: Final = frozenset({"-H", "--header", "--proxy-header"})
_HTTP_CLIENT: Final = LazyRegex(r"(?:\A|[\s/;|&(])(?:curl|wget|https?|xh)(?=\s)")
_OPTION_VALUE: Final = LazyRegex(
    r"(?:[ \t]+|[\"'],\s*)(?:(?P<quote>[\"'])(?P<quoted>[^\"'\n]{1,4096})(?P=quote)"
    r"|(?P<bare>(?!--?(?:[A-Za-z]|\s|\Z))[^\s\"'`\\;&<>(){}|]{1,1024}+))"
)
_SETS_VARIABLE: Final = LazyRegex(
    r"(?:\A|[\n;&|({\"'`>$]|\b(?i:run|sudo)\b)[ \t]*(?i:setx|setenv|set[ \t]+-\w{1,4}|env)[ \t]+\Z"
)
"""Commands that give a variable the word behind its name."""
_GOES_ON: Final = LazyRegex(r"\s*(?:\Z|[-|&;>\n]|\S*[/.=\d])")
_USER_IN_TEXT: Final = LazyRegex(
    r"(?<!\S)(?:-u|-U|--user|--proxy-user)[ =]*[\"']?(?P<user>[^\s:\"']{1,256}):(?P<secret>[^\s\"']{1,256})"
)


def argument_name(before: str | None, argument: str) -> tuple[str | None, bool]:
    """The name that the argument *before* gives to *argument*, and whether a header follows."""
    is_option = _OPTION.match(argument) is not None and not _ODD_OPTION.match(argument)
    if before is None or is_option or not before.startswith("-"):
        return None, False
    return before.lstrip("-"), before in _HEADER_OPTION


def option_edits(text: str, placeholders: Placeholders) -> Iterator[Edit]:
    """``curl -u name:password``."""
    for user in _USER_IN_TEXT.finditer(text) if "-u" in text or "-U" in text else ():
        secret = user["secret"]
        if _HTTP_CLIENT.search(text[: user.start()]) or (looks_secret(secret) and not secret.isdigit()):
            yield Edit(*user.span("secret"), placeholders.of(secret))


def user_option_edits(before: str | None, argument: str, *, is_http_client: bool) -> tuple[int, str] | None:
    """Where the password begins in an argument behind ``-u``, and the password."""
    if before not in _USER_OPTION:
        return None
    user, colon, password = argument.partition(":")
    if not (user and colon and password) or not (is_http_client or looks_secret(password)):
        return None
    return len(user) + 1, password


def is_http_client(program: str) -> bool:
    """Whether ``-u`` means credentials to the *program*."""
    return program.rpartition("/")[2] in ("curl", "wget", "http", "https", "xh", "curl.exe")


# A name beside a value, without a sign of assignment

_PAIR_IN_TEXT: Final = LazyRegex(
    r"(?P<open>[(\[])\s*(?P<raw>b?)(?P<quote>[\"'])[#.$@:]?(?P<name>[\w.\-]{1,100})"
    r"(?P=quote)\s*,\s*b?(?P<mark>[\"'])(?P<value>[^\"'\n]{1,4096}+)(?P=mark)\s*[)\]]"
)
"""Pairs of bytes are raw headers."""
_BEFORE_PAIR: Final = LazyRegex(r"(?:[\w.]|[\[({,]\s{0,20})\Z")
_SETTER: Final = LazyRegex(r"(?:(?<![A-Za-z])(?i:set|put|fill|type)|[a-z_](?:Set|Put|Fill))[A-Za-z_]{0,20}\Z")
"""The function that is called gives a name its value: ``putenv``, ``setItem``, ``fill``."""
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
    (_QUOTED_AFTER, ("passw", "identified")),
    (_LOGIN, ("login",)),
    (_BASIC_AUTH, ("auth(",)),
)
"""With the words in lowercase of which one is in each match: they are faster to look for."""
_NAMED: Final = LazyRegex(
    r"(?<![\w])[\"']?(?:\w*(?i:name|key|field|header|param|parameter|variable|property|label|option|setting))[\"']?"
    r"[ \t]*[:=][ \t]*[\"']?(?P<name>[\w./\-]{1,100})[\"']?(?=[\s,;}]|\Z)"
)
"""One member of two, ``name: password``; the other one is the value."""
_NAMED_VALUE: Final = LazyRegex(
    r"(?<![\w])[\"']?\w*(?i:value|val)[\"']?[ \t]*[:=][ \t]*"
    r"(?:b?(?P<quote>[\"'`])(?P<quoted>[^\"'`\n]{1,4096})(?P=quote)|(?P<bare>[^\s\"'`#|>{\[,$][^\n#,}]{0,1024}))"
)
_MEMBERS_END: Final = LazyRegex(r"[{}]|\n[ \t]*\n|\n[ \t]*-[ \t]")
_NEAR: Final = 500
_FAR: Final = 2000
"""Further away no setting begins or ends; lines of minified programs have a megabyte."""
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
    """``("password", "…")``, ``PASSWORD '…'`` of SQL, ``password …`` of netrc, rows of tables, YAML."""
    for pair in _PAIR_IN_TEXT.finditer(text):
        if _is_pair(pair):
            yield from _beside(pair, "value", placeholders)
    lowered = text.lower()
    for pattern, words in _ANNOUNCED:
        for found in pattern.finditer(text) if any(word in lowered for word in words) else ():
            yield from _beside(found, "value", placeholders)
    for row in _TABLE_ROW.finditer(text):
        if is_secret_name(row["name"]) and is_lone_value(row["value"]):
            yield from _beside(row, "value", placeholders)
    for start, end in _lines_with_cores(text):
        yield from _setting_edits(text, start, end, placeholders)


def _setting_edits(text: str, start: int, end: int, placeholders: Placeholders) -> Iterator[Edit]:
    """Those for a setting that begins with the line from *start* to *end*."""
    for pattern in (_YAML_QUESTION, _QUOTED_LINES):
        setting = pattern.match(text, start)
        if setting is not None and is_secret_name(setting["name"]):
            yield from _beside(setting, "value", placeholders)
    for keyword in _KEYWORD.finditer(text, start, end):
        if is_secret_name(keyword["name"]):
            yield from _beside(keyword, "value", placeholders)
    block = _YAML_BLOCK.match(text, start)
    if block is not None and is_secret_name(block["name"]):
        yield from _block_edits(block, placeholders)
    for named in _NAMED.finditer(text, start, end):
        value = _value_of(named) if is_secret_name(named["name"]) else None
        if value is not None:
            yield from _beside(value, "quoted" if value["quote"] else "bare", placeholders)


def _lines_with_cores(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each line in which a secret name may stand; of a long one, what is near the name."""
    done = -1
    for start, _ in core_spans(text):
        if start > done:
            end = text.find("\n", start, start + _FAR)
            done = end if end >= 0 else min(start + _FAR, len(text))
            yield text.rfind("\n", max(0, start - _FAR), start) + 1 or max(0, start - _FAR), done


def _is_pair(pair: re.Match[str]) -> bool:
    value = pair["value"]
    in_header = bool(pair["raw"]) or "-" in pair["name"]
    if not is_secret_name(pair["name"], in_header=in_header):
        return False
    start = pair.start()
    found = _BEFORE_PAIR.search(pair.string, max(0, start - 21), start)
    before = found[0][0] if found else ""
    if pair["open"] == "(" and before.isidentifier():
        # A call has names of many kinds for arguments: only what looks like nothing else is a value there.
        if _SETTER.search(pair.string, max(0, start - 40), start):
            return len(value) >= 4 and not re.search(r"\s", value)
        return looks_secret(value) and is_lone_value(value)
    return before in ("[", "(", "{", ",") or is_lone_value(value)


def _value_of(named: re.Match[str]) -> re.Match[str] | None:
    """The value behind a name, or before it, in the same object or item of a list."""
    text, before, behind = named.string, named.start(), named.end()
    end = _MEMBERS_END.search(text, behind, behind + _NEAR)
    value = _NAMED_VALUE.search(text, behind, end.start() if end else behind + _NEAR)
    if value is not None:
        return value
    start = max(0, before - _NEAR)
    start = max([start, *(found.end() for found in _MEMBERS_END.finditer(text, start, before))])
    return _NAMED_VALUE.search(text, start, before)


def _block_edits(block: re.Match[str], placeholders: Placeholders) -> Iterator[Edit]:
    """The value of a block of YAML; without a mark it is one word on the next line, or a list of some."""
    if block["mark"].strip("!tr \t"):
        yield from _beside(block, "value", placeholders)
        return
    lines = block["value"].strip().splitlines()
    items = list(_YAML_ITEM.finditer(block.string, block.start("value"), block.end("value")))
    if len(items) == len(lines):
        for item in items:
            yield from _beside(item, "value", placeholders)
    elif len(lines) == 1 and re.fullmatch(r"[^\s:#{}\[\]\"']{4,1024}", lines[0].strip()):
        yield from _beside(block, "value", placeholders)


def _beside(found: re.Match[str], group: str, placeholders: Placeholders) -> Iterator[Edit]:
    value = found[group].strip()
    if value and not HARMLESS.match(value) and not is_secret_name(value):
        start = found.start(group) + found[group].index(value)
        yield Edit(start, start + len(value), placeholders.of(value))


# Assignments

_HEAD: Final = LazyRegex(r"[A-Za-z0-9_\-]*\Z")
_TAIL: Final = LazyRegex(r"[A-Za-z0-9_\-]{0,200}+")
_ESCAPE: Final = LazyRegex(r"[0-9A-Fa-f]{2}")
_MAX_NAME: Final = 100
_ASSIGNED: Final = LazyRegex(
    r"""(?P<closed>\\*["'])?\]?\*{0,2}
    (?P<joint>(?<=-)>[ \t]*|[ \t]*(?:=>|->|→|==|:=|:[ \t]*[A-Za-z][\w.\[\]|!]{0,40}[ \t]*=|[:=])\*{0,2}[ \t]*)
    (?:(?:[bru]{0,2}|(?:\w{0,20}Secret\w{0,20}|Some|Just|String|str|bytes)\(b?)
        (?P<quote>(?P<mark>\\*["'`])(?P<triple>(?P=mark){2})?)
        (?P<quoted>(?(triple)[\s\S]{0,4096}?|.{0,4096}?))(?:(?<!\\)(?P=quote)|\Z)
      |(?P<bare>(?!-(?:-|\s|\Z))[^\s"'`\\,;&<>(){}\[\]|]{1,1024}+)(?![(\[{]))""",
    re.VERBOSE,
)
_BARE_REST: Final = LazyRegex(r"[^\s\"'`\\,;&<>(){}\[\]|]*+")
_FIELD_START: Final = LazyRegex(r"(?P<joint>\A|[&?#])(?:-D|[\w.\-\[\]%]{1,100}(?:\[|%5[Bb]|\.))?\Z")
_FIELD: Final = LazyRegex(
    r"(?:%5[Dd]|\]|(?:\[|%5[Bb])\d*(?:\]|%5[Dd]))?=(?P<value>[^&\s#\"'<>\\]{1,1024}+)(?P<joint>[&#\s]|\Z|)"
)
_AMONG_SETTINGS: Final = LazyRegex(
    r"(?:\A|[;\s\"'])[A-Za-z][\w. ]{0,40}=(?:[^;\n=\"'(){}]{0,200};[ \t]*|[^\s;=\"'(){}]{0,200}[ \t]+)\Z"
)
"""A setting of the same line before this one, as in ``Server=h;Password=`` and ``host=h password=``."""
_SETTING_OF_LINE: Final = LazyRegex(
    r"=(?:(?P<value>[^;\s\"'(){}<>\\]{1,1024})|\{(?P<braced>[^{}\"\n]{1,256})\})(?=[;\s\"']|\Z)"
)
"""ODBC puts a value into braces that may hold any sign; so do templates a name."""
_FIELD_REST: Final = LazyRegex(r"[^&\s#\"'<>\\]*+")
_MAX_JOINT: Final = 3
"""What can stand between a name and its value inside another value: ``]:=``."""
_JUDGED_CHARS: Final = 1024
"""A value is judged by its beginning. In ``secret=secret=…`` each value holds all that follow, and reading
each to its end would take time quadratic in the text; what is replaced is read to its end once."""
_BEHIND_OPTION: Final = LazyRegex(r"(?<!\S)--?[A-Za-z][\w\-]{0,30}[ =]?[\"']?(?:[\w\-]+\.)*\Z")
"""``-d password=…``, ``-Dpassword=…``, ``--set db.password=…``: options of which each takes a setting."""
_CALL_START: Final = LazyRegex(r"[({,]\s{0,20}[\"']?\Z")
_SETTING: Final = LazyRegex(
    r"\s*(?:[#;].*|```\w*|\[[^\]]+\]|(?:-\s+)*(?:export\s+)?(?://\S+?:)?[\w.\-]+\s*[=:](?:\s+\S.*|\S.*)?)\Z"
)
_BEFORE_NAME: Final = LazyRegex(r"[ \t\-]*(?:export[ \t]+)?(?://\S*:)?(?:[\w\-]+\.)*\Z")
_VARIABLE: Final = LazyRegex(r"(?:\A|(?<=\n))[ \t]*(?:(?:export|set|ENV)[ \t]+)?\Z")
_VARIABLE_VALUE: Final = LazyRegex(r"=(?!\$\()(?P<value>[^\s\"'`]{1,1024}+)(?=\s|\Z)")
_FUNCTION_CALL: Final = LazyRegex(r"[\w.]+\(.*\)\Z")
_CODE: Final = LazyRegex(r"[(){}]|;\s*\Z|\b(?:await|new|const|let|var|def|return|self|this)\b")
_SETTING_VALUE: Final = LazyRegex(
    r"[ \t]*[=:][ \t]*(?P<value>[^\s\"'#;\[{][^\n#]{0,1024}?)[ \t]*(?:#.*)?\r?$", re.M
)
_MAX_BLOCK: Final = 2000
_REFERENCE: Final = LazyRegex(r"[\w\-]*(?:/[\w.\-]*)+|\w*(?:\.\w+(?:-\w+)*)+\.?|[\w\-]+(?:\.\w+(?:-\w+)*)+")
"""A path, or names joined by dots."""

AFTER_NAME: Final = (
    rb"[\w\-]{0,200}+(?:%(?:25)*+(?:22|27|5d|5b|20))*+(?:\[\d*\])?[\]\\\"'`*\stnr]{0,100}+(?:[:=]|(?<=-)>|->|\xe2\x86\x92|(?<=\\)u2192|%(?:25)*+3[ad])"
    rb"(?!\s*(?:\[(?!\s*\\*\")|\{(?!\"\$py\"|[^{}\s\"]{6,256}\}(?:[;\"\\\s]|\Z)|[^{}]{0,300}"
    rb"(?:value|val|plain|plaintext|string|text|raw|current|content|data|new|old|\"v|\"s)\\*\")))"
)
"""What follows a core in a text with an assignment, for the prefilter; in lowercase."""


def assignment_edits(text: str, placeholders: Placeholders, *, strict: bool) -> Iterator[Edit]:
    """Edits for the values that *text* assigns to secret names."""
    has_logprobs = "logprob" in text
    done = 0
    for start, end in _names(text):
        name = text[start:end]
        is_inside = end + _MAX_JOINT < done
        if is_inside or not is_secret_name(name) or (has_logprobs and name == "token"):
            continue
        span = (
            _field_value(text, start, end)
            or _variable_value(text, start, end)
            or _value_among_settings(text, start, end)
            or _assigned_value(text, start, end, strict=strict)
            or _option_value(text, start, end)
            or _setting_value(text, start, end)
            or nearby_value(text, start, end)
            or value_before(text, start)
        )
        if span is not None:
            done = span[1]
            yield Edit(*span, placeholders.of(_plain(text[slice(*span)])))


def _names(text: str) -> Iterator[tuple[int, int]]:
    done = 0
    for core_start, core_end in core_spans(text):
        if core_start >= done:
            head = _HEAD.search(text[max(done, core_start - _MAX_NAME) : core_start])
            tail = _TAIL.match(text, core_end)
            assert head is not None
            assert tail is not None
            start, done = core_start - len(head[0]), tail.end()
            # The digits of an escape before the name are none of it: ``user%5Bpassword%5D=``. Nor is ``-D``.
            is_escape = text[start - 1 : start] == "%" and _ESCAPE.match(head[0])
            yield start + (2 if is_escape or text.startswith("-D", start) else 0), done


def _field_value(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The value of a form field or query parameter: it stands between separators, so it is a value."""
    before = _FIELD_START.search(text, max(0, start - _MAX_NAME), start)
    field = _FIELD.match(text, end) if before is not None else None
    if before is None or field is None or HARMLESS.match(field["value"]):
        return None
    is_long = len(field["value"]) == _JUDGED_CHARS
    if not (is_long or before["joint"] or field["joint"] or field.end() == len(text)):
        return None
    is_call = not before["joint"] and (field["joint"].isspace() or "(" in field["value"])
    return None if is_call else _whole(text, field.span("value"), _FIELD_REST)


def _variable_value(text: str, start: int, end: int) -> tuple[int, int] | None:
    """``export DB_PASSWORD=…`` on a line of its own: all of it, whatever signs it holds."""
    if not text[start:end].isupper():
        return None
    found = _VARIABLE_VALUE.match(text, end)
    line_start = text.rfind("\n", 0, start) + 1
    if found is None or not _VARIABLE.match(text[line_start:start]):
        return None
    value = found["value"]
    is_value = (looks_secret(value) or _is_word(value)) and not _FUNCTION_CALL.match(value)
    return found.span("value") if is_value and not HARMLESS.match(value) else None


def _value_among_settings(text: str, start: int, end: int) -> tuple[int, int] | None:
    """``Server=h;Password=letmein;`` and ``host=h password=letmein``: settings of one line."""
    found = _SETTING_OF_LINE.match(text, end)
    if found is None or not _AMONG_SETTINGS.search(text, max(0, start - 250), start):
        return None
    if found["braced"]:
        return found.span("braced") if is_lone_value(found["braced"]) else None
    value = found["value"]
    is_value = looks_secret(value) or _is_word(value)
    return found.span("value") if is_value and not HARMLESS.match(value) else None


def _assigned_value(text: str, start: int, end: int, *, strict: bool) -> tuple[int, int] | None:
    found = _ASSIGNED.match(text, end)
    if found is None:
        return None
    name = text[start:end]
    group = "quoted" if found["quoted"] is not None else "bare"
    value = found[group]
    if HARMLESS.match(value):
        return None
    if "==" in found["joint"] and not is_lone_value(value):  # parsers compare tokens with words
        return None
    if group == "quoted":
        is_value = found["closed"] is not None or (len(value) >= 4 and not re.search(r"\s", value.strip()))
        is_value = is_value or (
            bool(value) and _CALL_START.search(text, max(0, start - 25), start) is not None
        )
    elif found["closed"] is not None:
        is_value = value.isdigit() and holds_numbers(name)
    else:
        is_certain = strict or name.isupper() or name.startswith("--") or is_lone_value(value)
        is_setting = _BEHIND_OPTION.search(text, max(0, start - 40), start) is not None
        is_variable = found["joint"] == "=" and (is_certain or is_setting)
        is_value = looks_secret(value) or (is_variable and _is_word(value, may_refer=not is_setting))
    if not is_value:
        return None
    return found.span("quoted") if group == "quoted" else _whole(text, found.span("bare"), _BARE_REST)


def _option_value(text: str, start: int, end: int) -> tuple[int, int] | None:
    """``--password letmein``, ``setx PASSWORD letmein``: the next word of a command line, no sentence's."""
    is_option = text[start] == "-" and len(text[start:end].strip("-")) > 1
    is_variable = text[start:end].isupper() and _SETS_VARIABLE.search(text, max(0, start - 40), start)
    found = _OPTION_VALUE.match(text, end) if is_option or is_variable else None
    if found is None:
        return None
    group = "quoted" if found["quoted"] is not None else "bare"
    value = found[group]
    is_value = group == "quoted" or looks_secret(value)
    is_value = is_value or (_is_word(value) and _GOES_ON.match(text, found.end(group)) is not None)
    return found.span(group) if is_value and not HARMLESS.match(value) else None


def _setting_value(text: str, start: int, end: int) -> tuple[int, int] | None:
    """``password = letmein`` among other lines of the same form: INI, dotenv, YAML."""
    value = _SETTING_VALUE.match(text, end)
    line_start = text.rfind("\n", 0, start) + 1
    if (
        value is None
        or start - line_start > _MAX_BLOCK
        or not _BEFORE_NAME.match(text[line_start:start])
        or HARMLESS.match(value["value"])
    ):
        return None
    if "=" in value[0][: value.start("value") - value.start()] and not _is_word(value["value"]):
        return None
    block = _block(text, line_start, end)
    if not all(_SETTING.match(line) for line in block) or any(map(_CODE.search, block)):
        return None
    is_alone = len(block) == 1
    if is_alone and (len(text.strip()) > _MAX_NAME or not _is_word(value["value"]) or " " in value["value"]):
        return None
    return value.span("value")


def _block(text: str, line_start: int, end: int) -> list[str]:
    """The lines around a place up to the next empty ones, as far as they are near."""
    before = text[max(0, line_start - _MAX_BLOCK) : line_start]
    after = text[line_start : end + _MAX_BLOCK]
    lines = [*re.split(r"\n\s*\n", before)[-1].splitlines()[1 if len(before) == _MAX_BLOCK else 0 :]]
    rest = re.split(r"\n\s*\n", after)[0].splitlines()
    return [line for line in (*lines, *(rest[:-1] if len(after) > _MAX_BLOCK else rest)) if line.strip()]


def _whole(text: str, span: tuple[int, int], rest: LazyRegex[str]) -> tuple[int, int]:
    """The span of a value whose beginning was judged, to its end."""
    found = rest.match(text, span[1])
    assert found is not None
    return span[0], found.end()


def looks_secret(value: str) -> bool:
    """Whether a word without quotes is a value rather than prose or an expression of a program."""
    return len(value) >= 6 and (bool(re.search(r"\d", value)) or is_mixed(value))


def is_lone_value(value: str) -> bool:
    """Whether the second string of a pair that stands alone is a value: it may be the next of some names."""
    is_name = value.isidentifier() or re.search(r"\s", value) is not None
    return looks_secret(value) or (len(value) >= 6 and not is_name and not is_secret_name(value))


def _is_word(value: str, *, may_refer: bool = True) -> bool:
    """Whether a word without digits is a value: no reference to something that has a secret name."""
    is_reference = may_refer and _REFERENCE.fullmatch(value) is not None
    return len(value) >= 4 and not is_reference and not re.search(rf"(?i:{CORES})", value)


def _plain(value: str) -> str:
    """The value behind the escapes of JSON and of forms."""
    if "\\" in value:
        try:
            value = json.loads(f'"{value}"')
        except ValueError:
            return value
    return unquote_plus(value) if "%" in value else value

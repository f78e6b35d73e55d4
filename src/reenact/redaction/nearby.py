"""Finds a value near a secret name in any notation: the next word that looks generated.

Other modules know notations in which any value counts. Here the value itself must look like a secret: it has
letters and digits and is neither a known word with digits (``sha256``) nor a reference in a program.
Punctuation and a few words may come between name and value (``password is``, ``token for bob:``).
"""

from __future__ import annotations

import re
from typing import Final

from reenact.lazy_regex import LazyRegex
from reenact.redaction.names import CORES

_MIN_CHARS: Final = 6
_MAX_CHARS: Final = 1000
_MIN_MIXED: Final = 8
_MAX_LINKS: Final = 6
_LINKS: Final = (
    r"a|actual|an|answer|are|as|be|body|byte|bytes|changed|char|code|confirm|const|content|"
    r"current|data|default|description|equals|field|fill|input|is|label|must|my|new|now|of|"
    r"password|payload|q|ref|response|result|s|send|send_keys|set|should|str|string|test|text|the|"
    r"to|type|use|used|using|val|value|was|will|with|your"
)
"""Words that may come between a name and its value: of sentences, types and members."""
_LINK: Final = rf"(?:(?:{_LINKS}|\d{{1,4}})(?![\w.\-]|\((?![\"'\d]))|for[ \t]+[\w.@\-]{{1,40}}(?=:))"
_SIGN: Final = (
    r"(?:</?(?:h[1-6]|[a-z]{1,10})(?:[\s/](?:(?!value)[^<>\n]){0,200}+)?>"  # a tag
    r"|&[a-z]\w{0,20}+(?=[ \t])|\[(?:[^\[\]\n\d]{0,40}+|\w{1,20}=[^\[\]\n]{0,40}+)\]|[^\w\n\\]"
    r"|\\{1,8}+(?:u[0-9a-f]{4}|[nrt\"'/]|(?![nrtux])))"  # as JSON and languages write one
)
# Possessive, since backtracking over a text that is only signs would take very long.
_BETWEEN: Final = rf"{_SIGN}{{0,40}}+(?:\n{_SIGN}{{0,40}}+){{0,2}}+"
_NEXT_LINK: Final = LazyRegex(rf"{_BETWEEN}{_LINK}", re.IGNORECASE)
_NEXT_WORD: Final = LazyRegex(
    rf"(?P<joint>{_BETWEEN})(?P<word>[^\W_][^\s\"'`´’”»,;()<>{{}}\[\]|\\│→]{{{_MIN_CHARS - 1},256}}+)"
    r"(?![(\[{=]|\\*[\"'`]\s*[:=](?!=)|[ \t]*(?:=(?!=)|\())",
    re.IGNORECASE,
)
"""Excludes the name of a further value and a called function. Some tools put ``14→`` before a line."""
_PLAIN: Final = LazyRegex(
    r"(?i:(?:[a-z]{1,12}[-_/+])*(?:[a-z]*sha|md|utf|base|b|aes|rsa|dsa|ecdsa|hs|rs|es|ps|ed|x|curve|oauth|https?"
    r"|ipv?|pbkdf|argon|rfc|iso|cp|latin|u?int|float|win|python|sigv|tls|ssl|ssh|step|version|part|line|level"
    r"|node|java|aws|gpt|claude|gemini|llama|o)[-_/]?[\d.]+[a-z]{0,12}(?:[-_/.]\w{1,12})*"
    r"|v?\d+(?:[._\-]\d+)*(?:[-._]?(?:a|b|rc|dev|post|alpha|beta|x)\d*)?"  # versions
    r"|\d{4}-\d\d-\d\d.*|\d\d?:\d\d.*"  # times
    r"|[+\-]?\d[\d.,_]*(?:e[+\-]?\d+)?[a-z%]{0,12}"  # numbers with their unit
    r"|\d+-[a-z]+(?:-[a-z]+)*"  # 2-tuple
    r"|0x[0-9a-f]+|#[0-9a-f]+|\d+(?:st|nd|rd|th)"
    r"|(?:your|my|some|example|test|dummy|fake|sample|placeholder|changeme)[-_.].*"
    r"|.*(?:a-z|0-9|\.\.\.|…|%[sdr(]|xxxx).*"
    r"|[\w.+\-]+@[\w.\-]+|[\w\-]+(?:\.[\w\-]+)*\.(?:com|org|net|io|dev|ai|example|local|html?|py|js|json|ya?ml|md"
    r"|txt|csv|toml|pem|sh|xml|png|svg|rst|lock|cfg|ini|log|zip|gz|whl))(?::\d+)?\Z"
)
"""Words with digits that are not secrets: algorithms, versions, times, sizes, patterns, hosts, files."""
_REFERENCE: Final = LazyRegex(
    r"\W*+[A-Za-z]*+\d{0,5}+[A-Za-z]*+(?:[._/:]++[A-Za-z]*+\d{0,5}+[A-Za-z]*+)++\W*+\Z"
)
"""Names joined as in programs and paths: ``s3_server``, ``base64.b64encode``."""
_HUMPS: Final = LazyRegex(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_MIN_HUMP: Final = 3
_CORE: Final = LazyRegex(CORES, re.IGNORECASE)
_WORD: Final = LazyRegex(r"[^\s\"'`,;()<>{}\[\]|\\]++")
_SAYS_MORE: Final = LazyRegex(r"://|:!|=[^=]|Key\Z")
_CASE_CHANGE: Final = LazyRegex(r"[a-z](?=[A-Z])|[A-Z](?=[a-z])")
_ENDS_NAME: Final = LazyRegex(rf"(?i:{CORES})s?(?:[_\-]?(?:\d{{1,3}}|value|v\d))?\Z")
"""Excludes names such as ``HTTPPasswordMgr``, which only refer to a secret."""
_NUMBERED: Final = LazyRegex(r"[A-Za-z]+\d")
_SENTENCE_END: Final = ".:!?*_…"
_QUOTES: Final = frozenset("\"'`‘“«")

_BACK: Final = 120
_BEFORE_NAME: Final = (
    r"(?:is|was|as|into|for)[ \t]+(?:(?:the|your|my|a|an|new|our|this|its|correct)[ \t]+){0,2}[\"'`#*]{0,2}"
)
_BEFORE: Final = LazyRegex(
    rf"(?<![^\s\"'`(])(?P<quote>[\"'`])?(?P<word>[^\W_][^\s\"'`,;()<>{{}}\[\]|\\]{{{_MIN_CHARS - 1},100}})"
    rf"(?(quote)(?P=quote))[ \t)]{{1,3}}{_BEFORE_NAME}\Z",
    re.IGNORECASE,
)
_ENDS_BEFORE_NAME: Final = frozenset(" \t\"'`#*")
BEFORE_CORE: Final = re.compile(rf"\b{_BEFORE_NAME}[\w\-]*\Z".encode())
"""For the prefilter: the lowercase text before a core of a name where :func:`value_before` may match."""

_LETTERS: Final = r"[^\s\"'`,;()<>{}\[\]|\\]"
_MEMBER: Final = r"[^\w\"\\]{0,3}(?:[ ]?\w{1,12}:?)?\\*\"\s*,\s*\\*\"[\w\-. ]{1,40}\\*\"\s*:\s*\\*\""
"""From the value of one JSON member to the value of the next one."""
_LINK_OF_BYTES: Final = _LINK.replace(r"(?![\w.\-]", r"(?![\w.\-]|(?!\xe2\x86\x92)[\x80-\xff]")
"""For bytes, where a letter beyond ASCII would end a word; only the arrow after a number may end one."""
AFTER_CORE: Final = (
    rf"[\w\-]{{0,200}}+(?:(?:{_BETWEEN}{_LINK_OF_BYTES}){{0,{_MAX_LINKS}}}+{_BETWEEN}|{_MEMBER})"
    rf"(?={_LETTERS}{{0,256}}\d)(?={_LETTERS}{{0,256}}[a-z])[^\W_]{_LETTERS}{{{_MIN_CHARS - 1}}}"
)
"""For the prefilter: the lowercase text after a core of a name where this module may match."""


def nearby_value(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The span of the value near the secret name ``text[start:end]``, if one looks generated."""
    if not _ENDS_NAME.search(text, start, end):
        return None
    at = end
    for _ in range(_MAX_LINKS + 1):
        found = _NEXT_WORD.match(text, at)
        if found is not None and (found["joint"] or at > end) and _is_value(found):
            word = found["word"].rstrip(_SENTENCE_END)
            return found.start("word"), found.start("word") + len(word)
        link = _NEXT_LINK.match(text, at)
        if link is None:
            return None
        at = link.end()
    return None


def _is_value(found: re.Match[str]) -> bool:
    word, joint = found["word"].rstrip(_SENTENCE_END), found["joint"]
    if found["word"].endswith(":") or not looks_generated(word, is_quoted=joint[-1:] in _QUOTES):
        return False
    # In a list the next word is often another name; in a call an uppercase word is a constant.
    is_listed = "," in joint and _NUMBERED.fullmatch(word) is not None
    return not is_listed and not (joint[:1] == "(" and word.isupper())


def value_before(text: str, start: int) -> tuple[int, int] | None:
    """The span of the value before a secret name at *start*: ``hunter2x is the password``."""
    if text[max(0, start - 1) : start] not in _ENDS_BEFORE_NAME:
        return None
    found = _BEFORE.search(text, max(0, start - _BACK), start)
    if found is None or not looks_generated(found["word"], is_quoted=found["quote"] is not None):
        return None
    return found.span("word")


def looks_generated(word: str, *, is_quoted: bool = True) -> bool:
    """Whether *word* looks like a generated value: it has letters and digits and no meaning."""
    has_both = re.search(r"\d", word) is not None and re.search("[A-Za-z]", word) is not None
    if (
        not _MIN_CHARS <= len(word) <= _MAX_CHARS
        or not (has_both or is_mixed(word))
        or not _WORD.fullmatch(word)
    ):
        return False
    if _PLAIN.match(word) or _CORE.search(word) or _SAYS_MORE.search(word):
        return False
    return _REFERENCE.match(word) is None and (is_quoted or not _is_camel(word))


def is_mixed(word: str) -> bool:
    """Whether the case changes too often for a name in camel case: ``xKqPwLmZ``."""
    return len(word) >= _MIN_MIXED and len(_CASE_CHANGE.findall(word)) * 2 >= len(word)


def _is_camel(word: str) -> bool:
    """Whether *word* is a name in camel case, like ``Base64Encode``."""
    humps = [hump for hump in _HUMPS.findall(word) if len(hump) >= _MIN_HUMP and hump.isalpha()]
    return word.isalnum() and len(humps) > 1 and any(hump[0].isupper() for hump in humps)

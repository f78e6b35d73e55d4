"""Encoded secrets: the forms of registered values, and decoding of texts.

One expression matches all codes for a character: percent escapes and HTML entities, each also encoded
repeatedly, escapes of string literals, and terminal colours, which produce no character. :class:`View`
decodes them and maps each character to its original position.

Base64 encodes three bytes as four characters, so a secret has three forms, depending on the number of bytes
before it; its first and last character also depend on the neighbours and are left out.
"""

from __future__ import annotations

import binascii
import html
import json
import re
from base64 import b64decode, b64encode
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from html.entities import html5
from string import ascii_letters, digits
from typing import Final
from urllib.parse import quote, quote_plus, unquote, unquote_plus

from reenact.errors import UsageError
from reenact.formats.capture import PLACEHOLDER
from reenact.lazy_regex import LazyRegex
from reenact.redaction.edits import Edit, apply, narrow_edit
from reenact.redaction.literals import to_searched
from reenact.redaction.placeholder import unquoted_placeholders

MIN_RUN: Final = 20
"""Shorter runs of base64 characters count as words."""

RUN: Final = b"a" * MIN_RUN
TO_RUN: Final = bytes(97 if chr(code) in ascii_letters + digits + "+/_-" else 32 for code in range(256))
"""A translation table that maps base64 characters to ``a``, so that ``RUN`` is found at each long run."""

_BREAK: Final = r"(?:\\r)?\\n|\r?\n"
_RUN: Final = LazyRegex(rf"[A-Za-z0-9+/_\-]{{{MIN_RUN},}}(?:(?:{_BREAK})[A-Za-z0-9+/_\-]{{4,}})*+={{0,2}}")
_BREAKS: Final = LazyRegex(_BREAK)
_BYTES_RUN: Final = LazyRegex(rb"[A-Za-z0-9+/_\-]*+")
BYTES_URLSAFE: Final = bytes.maketrans(b"-_", b"+/")
_BYTES_TAIL: Final = LazyRegex(rb"[A-Za-z0-9+/_\-]*\Z")
_HEX_TEXT: Final = LazyRegex(rb"(?:0[xX])?((?:[2-7][0-9A-Fa-f]|0[9AaDd]){10,})")
_LOOKED_AT: Final = 16384
_LOOKED_BACK: Final = 64
_URLSAFE: Final = str.maketrans("-_", "+/")
_TO_URLSAFE: Final = str.maketrans("+/", "-_")


MAX_DEPTH: Final = 4
"""At most this many nested encodings are decoded, since each costs a pass."""

_ENTITIES: Final = {
    name: sign for name, sign in html5.items() if name[-1] == ";" and len(sign) == 1 and sign.isascii()
}
_COLOUR_END: Final = r"\[[0-9;:]{0,20}[mK]"
_COLOUR: Final = rf"\x1b{_COLOUR_END}|\\\\{{0,7}}(?:u001[bB]|x1[bB]|033|e){_COLOUR_END}"
# Each alternative begins with a different character, so that the search skips all others quickly.
_CODE: Final = (
    rf"%(?:25){{0,{MAX_DEPTH}}}(?P<percent>[0-7][0-9A-Fa-f])"
    rf"|&(?:amp;){{0,{MAX_DEPTH}}}(?:#(?P<decimal>[0-9]{{1,7}})|#[xX](?P<hex>[0-9A-Fa-f]{{1,6}})"
    rf"|(?P<entity>{'|'.join(name[:-1] for name in _ENTITIES)}));"
    rf"|{_COLOUR}"
    r"|\\\\{0,7}(?:u00|x)(?P<escape>[2-7][0-9A-Fa-f])"
)
_COLOUR_MARKS: Final = (b"\x1b[", b"1b[", b"1B[", b"033[", b"\\e[")
"""Every colour contains one of these marks, which are faster to find."""
_ESCAPE, _BACKSLASH = b"\x1b\\"
_CODES: Final = LazyRegex(_CODE)
_COLOURS: Final = LazyRegex(_COLOUR)
_UNRESERVED: Final = frozenset(ascii_letters + digits + "-._~")
"""RFC 3986: escaped and unescaped, these characters mean the same."""
_SYNTAX: Final = frozenset("&<>\"'\\`")
_SYNTAX_CODE: Final = LazyRegex(
    r"&(?:amp;)*+(?:lt|gt|quot|apos|LT|GT|QUOT|#0*(?:34|39|60|62)|#[xX]0*(?:22|27|3[cCeE]));"
)


def _decode_code(code: re.Match[str], colour: str, *, with_syntax: bool) -> str | None:
    """The character that *code* stands for; ``None`` if decoding it could join or split values."""
    if code["percent"]:
        sign = chr(int(code["percent"], 16))
        return sign if with_syntax or sign in _UNRESERVED else None
    number = code["decimal"] or code["hex"] or code["escape"]
    if number:
        value = int(number, 10 if code["decimal"] else 16)
        sign = chr(value) if value < 128 else ""
    elif code["entity"]:
        sign = _ENTITIES[code["entity"] + ";"]
    else:
        return colour
    return sign if sign and (with_syntax or sign not in _SYNTAX) else None


class View:
    """A decoded text, which can map positions back to the original.

    Codes of syntax characters stay unless *with_syntax*: decoded, ``&quot;`` would end a value and ``%26`` a
    field. *colour* replaces each change of colour: nothing, or a space between two words.
    """

    def __init__(self, text: str, *, colour: str = "", with_syntax: bool = False) -> None:
        self._joints: list[tuple[int, int]] = []
        """Positions in the view where the shift changes; the second member is true for a removed colour."""
        self._shifts = [0]
        pieces: list[str] = []
        done = length = 0
        for code in _CODES.finditer(text) if any(mark in text for mark in "%&\x1b\\") else ():
            sign = _decode_code(code, colour, with_syntax=with_syntax and not code["percent"])
            if sign is None:
                continue
            pieces += (text[done : code.start()], sign)
            length += code.start() - done + len(sign)
            done = code.end()
            self._joints.append((length, not sign))
            self._shifts.append(done - length)
        self.text: Final = "".join((*pieces, text[done:])) if pieces else text

    def to_original_edits(self, edits: Sequence[Edit]) -> list[Edit]:
        """Convert *edits* of this view to edits of the original; colours around a secret stay."""
        if not self._joints:
            return list(edits)
        return [Edit(*self._span(edit.start, edit.end), edit.new) for edit in edits]

    def _span(self, start: int, end: int) -> tuple[int, int]:
        first = start + self._shifts[bisect_right(self._joints, (start, True))]
        last = end + self._shifts[bisect_right(self._joints, (end, False))]
        return min(first, last), last


def _may_hold_colours(text: bytes) -> bool:
    """Whether there may be a colour, found faster than by the expression."""
    is_marked = _BACKSLASH in text or _ESCAPE in text
    return is_marked and b"[" in text and any(mark in text for mark in _COLOUR_MARKS)


def views(text: str) -> Iterator[Callable[[str], View]]:
    """The ways to decode *text*, as functions, because the text changes between them."""
    yield View
    if _may_hold_colours(to_searched(text)) and _COLOURS.search(text):
        yield lambda text: View(text, colour=" ")
    if "&" in text and _SYNTAX_CODE.search(text):
        yield lambda text: View(text, with_syntax=True)


def undo_codes(text: bytes) -> Iterator[bytes]:
    """Yield *text* fully decoded, once for each way to treat its colours."""
    plain = text.decode("latin-1")
    for colour in ("", " ") if _may_hold_colours(text) and _COLOURS.search(plain) else ("",):
        known: dict[str, str] = {}  # source code tables repeat a few codes hundreds of times

        def undo(code: re.Match[str], colour: str = colour, known: dict[str, str] = known) -> str:
            sign = known.get(code[0])
            if sign is None:
                sign = known[code[0]] = _decode_code(code, colour, with_syntax=True) or ""
            return sign

        undone = _CODES.sub(undo, plain)
        if undone != plain:
            yield undone.encode("latin-1")


_READABLE_CHARS: Final = 24


def is_readable(data: bytes) -> bool:
    """Whether the start of *data* is text."""
    head = data[: _READABLE_CHARS // 4 * 3].decode("latin-1")
    return len(head) >= 12 and head.isascii() and all(sign.isprintable() or sign in "\t\r\n" for sign in head)


def encoded_forms(secret: bytes) -> list[str]:
    """The base64 texts of *secret* that do not depend on its neighbours, in both alphabets."""
    return list(dict.fromkeys(form for form, _ in shifted_forms(secret)))


def shifted_forms(secret: bytes) -> Iterator[tuple[str, int]]:
    """The forms of *secret*, each with the number of bytes before it in its group of three bytes."""
    for before in range(3):
        padded = b"\0" * before + secret
        text = b64encode(padded + b"\0" * (-len(padded) % 3)).decode()
        form = text[-(-before * 8 // 6) : len(padded) * 8 // 6]
        yield from ((form, before), (form.translate(_TO_URLSAFE), before))


def decoded_around(text: bytes, start: int, before: int) -> tuple[bytes, int]:
    """Decode the base64 around a form found at *start*; also returns where the form's secret begins.

    *before* is the number of bytes before the secret in its group of three.
    """
    group = start + before * 8 // -6
    first = max(group % 4, group - _LOOKED_BACK)
    head = _BYTES_TAIL.search(text, first, group) if group >= 0 else None
    run = _BYTES_RUN.match(text, group, group + _LOOKED_AT) if group >= 0 else None
    if head is None or run is None:
        return b"", 0
    known = len(head[0]) // 4 * 4
    body = text[group - known : run.end()]
    body = body[: len(body) - (len(body) % 4 == 1)].translate(BYTES_URLSAFE)
    return b64decode(body + b"=" * (-len(body) % 4)), known // 4 * 3 + before


def decode_hex(run: bytes) -> bytes | None:
    """Decode a *run* of hexadecimal digits that stands for ASCII text; ``None`` if it does not."""
    found = _HEX_TEXT.fullmatch(run)
    return bytes.fromhex(found[1].decode()) if found else None


def base64_edits(
    text: str, is_suspect: Callable[[str], bool], redact: Callable[[str], str]
) -> Iterator[Edit]:
    """Edits for the runs of base64, or of hexadecimal digits, whose decoded text *redact* changes.

    A run that is only a secret becomes its placeholder; one with more content is encoded again, so that a
    replayed agent can still decode it.
    """
    for run in _runs(text):
        if is_suspect(_BREAKS.sub("", run[0])):
            new = _rewrite(run[0], redact)
            if new != run[0]:
                yield narrow_edit(run.start(), run[0], new) if new[:1] != "<" else Edit(*run.span(), new)


def _runs(text: str) -> Iterator[re.Match[str]]:
    """The matches of ``_RUN``; searching for marked runs first is faster."""
    marked = text.encode("ascii", "replace").translate(TO_RUN)
    start = marked.find(RUN)
    while start >= 0:
        run = _RUN.match(text, start)
        assert run is not None
        yield run
        start = marked.find(RUN, run.end())


def _rewrite(run: str, redact: Callable[[str], str]) -> str:
    if (plain := decode_hex(run.encode())) is not None:
        return _rewrite_hex(run, plain.decode(), redact)
    line_end = _BREAKS.search(run)
    joined = _BREAKS.sub("", run)
    for skipped in range(4):
        new = _redact_coded(joined[skipped:], redact)
        if new is not None:
            whole = joined[:skipped] + new
            return _wrap_lines(whole, line_end.start(), line_end[0]) if line_end and new[:1] != "<" else whole
    return run


def _rewrite_hex(run: str, plain: str, redact: Callable[[str], str]) -> str:
    new = redact(plain)
    if new == plain or PLACEHOLDER.fullmatch(new.strip()):
        return run if new == plain else new.strip()
    encoded = new.encode().hex()
    return run[: -2 * len(plain)] + (encoded.upper() if run.upper() == run else encoded)


def _redact_coded(text: str, redact: Callable[[str], str]) -> str | None:
    """Decode, redact and encode *text*; ``None`` if it is not base64 or has no secret."""
    body = text.rstrip("=")
    try:
        data = b64decode(body.translate(_URLSAFE) + "=" * (-len(body) % 4), validate=True)
    except binascii.Error:
        return None
    plain = data.decode("utf-8", "surrogateescape")
    new = redact(plain)
    if new == plain:
        return None
    if PLACEHOLDER.fullmatch(new.strip()):
        return new.strip()
    encoded = b64encode(new.encode("utf-8", "surrogateescape")).decode()
    encoded = encoded.translate(_TO_URLSAFE) if "-" in body or "_" in body else encoded
    return encoded if text != body or len(body) % 4 == 0 else encoded.rstrip("=")


def _wrap_lines(text: str, width: int, line_end: str) -> str:
    return line_end.join(text[at : at + width] for at in range(0, len(text), width))


_ESCAPED: Final = LazyRegex(r"[^\s\"'<>&=?#\\`]{4,}+")


def percent_edits(text: str, redact: Callable[[str], str]) -> Iterator[Edit]:
    """Edits for secrets in percent-encoded text: JSON in a parameter, a key in a form."""
    for run in _escaped_runs(text):
        if "%" in run[0]:
            plain = (unquote_plus if "%20" not in run[0] else unquote)(run[0], errors="surrogateescape")
            new = redact(plain) if plain != run[0] else plain
            if new != plain:
                quoted = quote(new, safe="", errors="surrogateescape")
                yield Edit(*run.span(), apply(quoted, unquoted_placeholders(quoted)))


def _escaped_runs(text: str) -> Iterator[re.Match[str]]:
    """The runs in lines that have a percent sign."""
    sign = text.find("%")
    while sign >= 0:
        end = text.find("\n", sign)
        end = end if end >= 0 else len(text)
        yield from _ESCAPED.finditer(text, text.rfind("\n", 0, sign) + 1, end)
        sign = text.find("%", end)


MIN_LENGTH: Final = 4

_JSON_LEVELS: Final = 3
"""The number of times JSON may be nested in JSON strings."""

_PERCENT: Final = LazyRegex(r"%[0-9A-F]{2}")


class Registered:
    """The registered secrets and all their forms."""

    def __init__(self, secrets: Sequence[str | bytes]) -> None:
        plain = [_as_text(secret) for secret in secrets]
        self.encoded: Final = {form: secret for secret in plain for form in encoded_forms(_as_bytes(secret))}
        """The secret for each base64 form; a secret has several, depending on the bytes before it."""
        self.forms: Final = self.encoded | {form: secret for secret in plain for form in _forms(secret)}
        """The secret for each form, including the base64 forms."""
        longest_first = sorted(self.forms, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if plain else None

    def find(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield start, end and plain value of every form in *text*; the longest form wins."""
        if self._pattern is not None:
            for match in self._pattern.finditer(text):
                yield *match.span(), self.forms[match[0]]


def _as_text(secret: str | bytes) -> str:
    text = secret.decode("utf-8", "surrogateescape") if isinstance(secret, bytes) else secret
    if len(text) < MIN_LENGTH:
        raise UsageError(
            f"secrets: one has {len(text)} characters and would be found in ordinary words; "
            f"register secrets of at least {MIN_LENGTH}"
        )
    return text


def _as_bytes(secret: str) -> bytes:
    return secret.encode("utf-8", "surrogateescape")


def _forms(secret: str) -> Iterator[str]:
    data = _as_bytes(secret)
    yield from (secret, data.hex(), data.hex().upper())
    for quoted in (quote(data, safe=""), quote(data), quote_plus(data), quote(data, safe="/:@!$&'()*+,;=~")):
        yield quoted
        yield _PERCENT.sub(lambda escape: escape[0].lower(), quoted)
    for escaped in (html.escape(secret), html.escape(secret, quote=False)):
        yield escaped
        yield escaped.replace("&#x27;", "&#39;").replace("&quot;", "&#34;")
    for ascii_only in (False, True):
        nested = secret
        for _ in range(_JSON_LEVELS):
            nested = json.dumps(nested, ensure_ascii=ascii_only)[1:-1]
            yield nested
            yield nested.replace("/", "\\/")


# Text in UTF-16 and UTF-32

_WIDE: Final = {  # the longer byte order marks first
    "utf-32-le": b"\xff\xfe\0\0",
    "utf-32-be": b"\0\0\xfe\xff",
    "utf-16-le": b"\xff\xfe",
    "utf-16-be": b"\xfe\xff",
}
_LOOKED_AT_BYTES: Final = 256
"""How many bytes are examined in a text without a byte order mark."""


def find_wide_coding(data: bytes) -> str | None:
    """Which form of UTF-16 or UTF-32 *data* seems to be, by its byte order mark or its characters, if any."""
    for coding, mark in _WIDE.items():
        if data.startswith(mark):
            return coding
    head = data[:_LOOKED_AT_BYTES]
    codings = _WIDE if b"\0" in head else ()
    return next((coding for coding in codings if _is_mostly_ascii(head, coding)), None)


def _is_mostly_ascii(head: bytes, coding: str) -> bool:
    signs = head.decode(coding, "ignore")
    known = sum(1 for sign in signs if " " <= sign <= "~" or sign in "\t\r\n")
    return len(signs) >= 4 and known >= len(signs) * 3 / 4


def redact_wide(data: bytes, coding: str, redact: Callable[[str], str]) -> bytes:
    """Redact text in UTF-16 or UTF-32."""
    size = 4 if "32" in coding else 2
    whole = len(data) - len(data) % size
    try:
        text = data[:whole].decode(coding, "surrogatepass")
    except UnicodeDecodeError:  # it only begins like such a text
        return data
    redacted = redact(text)
    return data if redacted == text else redacted.encode(coding, "surrogatepass") + data[whole:]


_WIDE_HEAD: Final = re.compile(rb"(?:.{4}){0,2}?A[A-H].A.{4}A[A-H].A|(?:.{4}){0,5}?AAAA")
"""Base64 of such a text with ASCII characters: every second, or three of four bytes are zero."""
_ZEROS: Final = ord("A")
"""What base64 writes for them."""


def decode_other(run: bytes) -> bytes | None:
    """Decode a *run* that is no base64 of ASCII: hexadecimal digits, or base64 of UTF-16 or UTF-32.

    ``None`` if it stands for no text.
    """
    if _HEX_TEXT.fullmatch(run):
        return decode_hex(run)
    if _ZEROS not in run or not _WIDE_HEAD.match(run):  # the first is for speed: most runs are names
        return None
    coding = find_wide_coding(b64decode(run[: _LOOKED_AT_BYTES // 3 * 4].translate(BYTES_URLSAFE) + b"==="))
    if coding is None:
        return None
    body = run.rstrip(b"=").translate(BYTES_URLSAFE)
    body = body[: len(body) - (len(body) % 4 == 1)]
    return b64decode(body + b"=" * (-len(body) % 4)).decode(coding, "replace").encode()

"""A fast check whether a text may contain a secret at all.

Every payload is checked, and nearly all are clean. One search finds the literals (anchors); every rule needs
at least one of them, and the rule's regular expression is tried only at these positions. Every edit that a
rule can make needs a trigger here, or the secret would stay; tests compare the rules with and without the
prefilter.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from string import ascii_letters, digits
from typing import Final, Literal, TypeAlias

from reenact.lazy_regex import LazyRegex
from reenact.redaction.assignments import AFTER_NAME
from reenact.redaction.coded import (
    BYTES_URLSAFE,
    MAX_DEPTH,
    MIN_RUN,
    RUN,
    TO_RUN,
    Registered,
    decode_hex,
    decode_other,
    decoded_around,
    is_readable,
    shifted_forms,
    undo_codes,
)
from reenact.redaction.families import (
    MIN_RANDOM,
    RANDOM_CHARACTERS,
    SHAPES,
    STRICT_SHAPES,
    SecretRule,
    Shapes,
)
from reenact.redaction.jsontext import escape
from reenact.redaction.literals import GROUP_SIZE, Search, literal_search
from reenact.redaction.names import AUTH_WORDS, KEY_WORDS, PLAIN_CORES
from reenact.redaction.nearby import AFTER_CORE, BEFORE_CORE
from reenact.redaction.tables import AMONG_COLUMNS, HEAD_AFTER, HEAD_BEFORE

_FINGERPRINT_BYTES: Final = 3
"""If no literal is shorter, the search uses fingerprints of this length: 1,460 instead of 370 MB/s."""

_SMALL_BYTES: Final = 1_000
"""For texts up to this size, one search for all anchors comes first: 0.7 instead of 1.5 µs for 300 bytes;
for larger texts it is slower."""

Confirm: TypeAlias = Callable[[bytes, int], object]
_CODED: Final = "coded"
_MARKS: Final = b"%&\x1b\\"
_PERCENT, _AMPERSAND, _ESCAPE, _BACKSLASH = _MARKS
"""As integers, because ``in`` finds an integer in bytes ten times as fast."""


@dataclass(frozen=True)
class Trigger:
    """Literal *anchors*, and a function that decides whether a rule may match at the position of one."""

    anchors: tuple[bytes, ...]
    confirm: Confirm
    lowered: bool = False
    """Whether anchors and pattern are in lowercase and match text in any case."""
    places: re.Pattern[bytes] | None = None
    """If given, finds only the anchors that can matter, because most do not."""


@dataclass(frozen=True)
class Check:
    """A check of the whole text, made if the text has the character *needs*, or always without one."""

    may_hold: Callable[[bytes], object]
    needs: str | None = None


class Prefilter:
    """Evaluates all triggers in one search, then runs of base64, then the checks."""

    def __init__(
        self,
        triggers: Sequence[Trigger],
        checks: Sequence[Check] = (),
        may_hold_in_run: Callable[[bytes, bytes, int, Callable[[bytes], bool]], bool] | None = None,
    ) -> None:
        self._reach = _REACH
        self._find_registered: Search | None = None
        self._checks = [(ord(check.needs) if check.needs else None, check.may_hold) for check in checks]
        self._exact = _make_groups([trigger for trigger in triggers if not trigger.lowered])
        self._lowered = _make_groups([trigger for trigger in triggers if trigger.lowered])
        self._may_hold_in_run = may_hold_in_run
        anchors = (anchor.lower() for trigger in triggers for anchor in trigger.anchors)
        self._find_any = literal_search(_without_longer(anchors))

    def with_registered(self, registered: Registered) -> Prefilter:
        """A copy that also finds *registered* secrets; making it is cheap, since the rules are shared."""
        other = copy(self)
        other.add_registered([form.encode("utf-8", "surrogateescape") for form in registered.forms])
        return other

    def add_registered(self, forms: Sequence[bytes]) -> None:
        """Also find each of *forms*."""
        if forms:
            self._find_registered = literal_search(forms)
            self._reach = _REACH + max(map(len, forms))

    def may_hold_secret(self, text: bytes, depth: int = 0) -> bool:
        """False only if no rule can match anywhere in *text* or in the decoded text.

        *depth* is the number of encodings that were already decoded.
        """
        if self._find_registered is not None and self._find_registered(text):
            return True
        lowered = text.lower()
        # In a small text one search for all anchors in any case comes first: nearly always it finds none.
        is_coded = False
        if len(text) > _SMALL_BYTES or self._find_any(lowered):
            for groups, searched in ((self._exact, text), (self._lowered, lowered)):
                verdict = _confirm(groups, searched)
                if verdict is True:
                    return True
                is_coded |= verdict is _CODED
        marked = text.translate(TO_RUN)
        start = marked.find(RUN)
        if start >= 0 and self._may_hold_in_run is not None:  # noqa: SIM102
            if self._may_hold_in_run(text, marked, start, lambda plain: self._may_hold_coded(plain, depth)):
                return True
        # Not a generator, for speed: this runs for every recorded event.
        for needed, may_hold in self._checks:
            if (needed is None or needed in text) and may_hold(text):
                return True
        # Escapes of string literals have their own trigger, since nearly every text has a backslash.
        if not (is_coded or _PERCENT in text or _AMPERSAND in text or _ESCAPE in text):
            return False
        near = _near_codes(text, _MARKS if is_coded else _MARKS[:-1], self._reach)
        return any(self._may_hold_coded(undone, depth) for undone in undo_codes(near)) if near else False

    def _may_hold_coded(self, plain: bytes, depth: int) -> bool:
        return depth < MAX_DEPTH and self.may_hold_secret(plain, depth + 1)


Groups: TypeAlias = list[tuple[Search, list[Confirm]]]


def _make_groups(triggers: Sequence[Trigger]) -> Groups:
    own = [(_search_by(trigger.places), [trigger.confirm]) for trigger in triggers if trigger.places]
    confirms = _merge_confirms([trigger for trigger in triggers if not trigger.places])
    # Anchors of two characters have their own group: they slow down a search, which then has more candidates.
    tiny = [anchor for anchor in confirms if len(anchor) < _FINGERPRINT_BYTES]
    rest = [anchor for anchor in confirms if len(anchor) >= _FINGERPRINT_BYTES]
    cuts = range(0, len(rest), GROUP_SIZE)
    groups = [*([tiny] if tiny else []), *(rest[at : at + GROUP_SIZE] for at in cuts)]
    searched = [
        (literal_search(group), [_with_hidden(anchor, group, confirms) for anchor in group])
        for group in groups
    ]
    return searched + own


def _search_by(places: re.Pattern[bytes]) -> Search:
    return lambda text: [(0, *found.span()) for found in places.finditer(text)]


def _with_hidden(anchor: bytes, group: Sequence[bytes], confirms: dict[bytes, Confirm]) -> Confirm:
    """Confirm *anchor* and those that begin inside it: the search continues after it and misses them."""
    confirm = confirms[anchor]
    hidden = [
        (shift, other, confirms[other])
        for shift in range(1, len(anchor))
        for other in group
        if other.startswith(anchor[shift:]) or anchor.startswith(other, shift)
    ]
    if not hidden:
        return confirm

    def confirm_all(text: bytes, start: int) -> object:
        verdict = confirm(text, start)
        for shift, other, confirm_other in hidden:
            if verdict and verdict is not _CODED:
                return verdict
            if text.startswith(other, start + shift):
                verdict = confirm_other(text, start + shift) or verdict
        return verdict

    return confirm_all


def _confirm(groups: Groups, text: bytes) -> object:
    """Whether a trigger is confirmed; ``_CODED`` if only an escape was found that may hide a secret."""
    verdict: object = False
    for search, confirms in groups:
        for number, start, _ in search(text):
            if found := confirms[number](text, start):
                if found is not _CODED:
                    return True
                verdict = _CODED
    return verdict


def _merge_confirms(triggers: Sequence[Trigger]) -> dict[bytes, Confirm]:
    """The confirmations of each anchor; a longer anchor is found through a shorter one that is its prefix."""
    patterns: dict[bytes, list[Confirm]] = {}
    pairs = [(anchor, trigger.confirm) for trigger in triggers for anchor in trigger.anchors]
    for anchor, pattern in sorted(pairs, key=lambda pair: len(pair[0])):
        shorter = next((known for known in patterns if anchor.startswith(known)), anchor)
        patterns.setdefault(shorter, []).append(pattern)
    return {anchor: _any_of(known) for anchor, known in patterns.items()}


def _without_longer(literals: Iterable[bytes]) -> list[bytes]:
    """Drop the literals that have another one as prefix, because that one is found at the same position."""
    kept: dict[bytes, None] = {}
    for literal in sorted(literals, key=len):
        if not any(prefix in kept for prefix in _prefixes(literal)):
            kept[literal] = None
    return list(kept)


def _prefixes(literal: bytes) -> Iterator[bytes]:
    return (literal[:length] for length in range(1, len(literal) + 1))


def _any_of(confirms: list[Confirm]) -> Confirm:
    if len(confirms) == 1:
        return confirms[0]

    def confirm_any(text: bytes, start: int) -> object:
        verdicts = [confirm(text, start) for confirm in confirms]
        return next(
            (verdict for verdict in verdicts if verdict and verdict is not _CODED), any(verdicts) and _CODED
        )

    return confirm_any


# The triggers of the rules

_QUOTE: Final = rb"\\*+[\"']"
_PAIRED: Final = (
    rb"[\w\-\]]{0,200}+"
    + _QUOTE
    + rb"\s*,\s*(?:\[\s*)?(?:-?\d[\d.]*+|"
    + _QUOTE
    + rb"[^\"]*+(?:(?<=\\)\"|\"))"
    rb"(?:(?<=\\\")|\s*\]\s*(?:\]|,\s*\[|\}\s*(?:\]|,\s*\{\\*\"\$py)))"
)
_PAIRED_ALONE: Final = (
    rb"[\w\-\]]{0,200}+" + _QUOTE + rb"\s*,\s*" + _QUOTE + rb"(?=[^\"]*[^\"a-z_])[^\"\s]{6,1024}+\"\s*[\],]"
)
_SPACE: Final = rb"(?:\s|\\+[nrt])"
_PAIRED_IN_TEXT: Final = (
    rb"[\w\-]{0,200}+" + _QUOTE + rb"\s*,\s*b?" + _QUOTE + rb"[^\"'\n]{1,4096}+[\"']\s*[)\]]"
)
_BESIDE: Final = rb"[\w\-]{0,200}+(?:<\\*/|[`*]*+%b*+\||%b++\\*[\"'])" % (_SPACE, _SPACE)
"""What may follow a name: the end of an element, the next cell of a table, a value in SQL."""
_CLOSED: Final = re.compile(rb"[\w\-\]]{0,200}+(?:" + _QUOTE + rb"|\s|\\+[nr]|\Z)")
_BESIDE_VALUE: Final = (
    AFTER_NAME,
    _PAIRED,
    _PAIRED_ALONE,
    _PAIRED_IN_TEXT,
    _BESIDE,
    AMONG_COLUMNS,
    AFTER_CORE.encode(),
)
_NAMED_BEFORE: Final = re.compile(
    rb"(?:name|key|field|header|param|parameter|variable|attribute|property|id|label|title|setting|option|env|var|path"
    rb"|\"k)(?:" + _QUOTE + rb")?\s*[:=]\s*(?:" + _QUOTE + rb")?[\w\-\[./]*\Z"
)
_OPTION_BEFORE: Final = re.compile(
    rb"(?:(?<![\w\-])-(?:[a-z][\w\-]*)?"
    rb"|(?:\b|(?<=\\n))(?:setx|setenv|set[ \t]+-\w{1,4}|env)[ \t]+[\w\-]*)\Z"
)
_IN_TAG_AFTER: Final = re.compile(rb"[^<>]{0,300}>")
_NEAR: Final = 400
_FAR: Final = 2000


class _Name:
    """Confirms a core of secret names that is part of a name with a value."""

    def __init__(self, core: str) -> None:
        head = b"(?:%b)" % core.encode()
        self._core = LazyRegex(head)
        self._beside_value = LazyRegex(head + b"(?:%b)" % b"|".join(_BESIDE_VALUE))
        self._heads_column = LazyRegex(head + HEAD_AFTER)
        self._before_word = LazyRegex(head + rb"[\w\-]{0,200}+[ \t]+\S")

    def __call__(self, text: bytes, start: int) -> bool:
        if self._beside_value.match(text, start):
            return True
        if self._heads_column.match(text, start) and HEAD_BEFORE.search(text, max(0, start - 400), start):
            return True
        if self._before_word.match(text, start) and _OPTION_BEFORE.search(text, max(0, start - 60), start):
            return True
        if BEFORE_CORE.search(text, max(0, start - 60), start):
            return True
        opened = text.rfind(b"<", max(0, start - 250), start)
        if opened >= 0 and text.rfind(b">", opened, start) < 0 and _IN_TAG_AFTER.match(text, start):
            return True
        core = self._core.match(text, start)
        is_closed = core is not None and _CLOSED.match(text, core.end()) is not None
        return is_closed and _NAMED_BEFORE.search(text, max(0, start - 100), start) is not None


_RAW_HEADER: Final = re.compile(rb"\bb[\"'][\w\-]*\Z")


class _HeaderName:
    """Confirms a word that is part of a header's name: with a dash, as bytes, or among headers."""

    def __init__(self, word: bytes) -> None:
        self._name = LazyRegex(word + rb"[\w\-]{0,200}+" + _QUOTE + rb"?\s*[:,](?!\s*[\[{])")

    def __call__(self, text: bytes, start: int) -> bool:
        found = self._name.match(text, start)
        if found is None:
            return False
        return (
            b"-" in text[max(0, start - 1) : found.end()]
            or _RAW_HEADER.search(text, max(0, start - 40), start) is not None
            or text.rfind(b"headers", max(0, start - _FAR), start) >= 0
        )


def _name(core: str, *anchors: str) -> Trigger:
    return Trigger(tuple(anchor.encode() for anchor in anchors), _Name(core), lowered=True)


def _join_words(words: Sequence[str], last: str) -> Iterator[Trigger]:
    for word in words:
        yield _name(f"{word}[_-]?{last}", f"{word}_{last}", f"{word}-{last}", f"{word}{last}")


def _header_word(word: str, *anchors: str) -> Trigger:
    return Trigger(tuple(anchor.encode() for anchor in anchors), _HeaderName(word.encode()), lowered=True)


def _place(pattern: bytes, *anchors: bytes, lowered: bool = False) -> Trigger:
    return Trigger(anchors, LazyRegex(pattern).match, lowered)


def _confirm_always(text: bytes, start: int) -> bool:  # noqa: ARG001 — the anchor alone is enough
    return True


def _is_behind_login(text: bytes, start: int) -> bool:
    """Whether a login comes before the word, as in a ``.netrc`` file."""
    return text.rfind(b"login", max(0, start - _NEAR), start) >= 0


# A text that JSON cannot represent, as hexadecimal digits; this is rare.
_HALF_CHARACTERS: Final = Trigger((b'"$py":"str"',), _confirm_always)
# Some writers escape & < > = ' in JSON; their text must be decoded first.
# So must text with zeros between its characters, which is UTF-16 that was read as something else.
_ESCAPED_ASCII: Final = _place(rb"\\u00(?:[2-7]|00)", b"\\u00")
_CODES: Final = {
    # Characters that need no escape, and the escape itself; other escapes are common in URLs.
    _PERCENT: re.compile(rb"%(?:2[5DEde]|3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa]|5[Ff]|7[Ee])"),
    _AMPERSAND: re.compile(rb"&(?:amp;)*+(?:#|(?!(?:amp|nbsp);)[A-Za-z]{2,16};)"),
    _ESCAPE: re.compile(rb"\x1b\["),
    _BACKSLASH: re.compile(rb"\\(?:x[2-7]|x1[bB]\[|u001[bB]\[|033\[|e\[)"),
}
"""By first byte, because one expression for all would be much slower."""
_REACH: Final = 2 * _FAR + 100
"""The farthest that triggers read, except over a value without quotes; escapes make a text longer."""
_BEHIND_QUOTE: Final = 300
"""The length of text after a value that the patterns may need to recognise it."""


def _near_codes(text: bytes, marks: Iterable[int], reach: int) -> bytes:
    """The parts of *text* around codes that begin with *marks*, where decoding may reveal a secret.

    Each part goes to the ends of the value with the code, *reach* bytes further, and to the end of the value
    there.
    """
    parts: list[bytes] = []
    start = end = 0
    for at in sorted(code.start() for mark in marks if mark in text for code in _CODES[mark].finditer(text)):
        opened = text.rfind(b'"', 0, max(0, text.rfind(b'"', 0, at) - reach)) - _BEHIND_QUOTE
        if opened > end:
            parts.append(text[start:end])
            start = opened
        closed = text.find(b'"', at)
        closed = text.find(b'"', closed + reach) if closed >= 0 else -1
        if closed < 0:
            return b"\n".join((*parts, text[start:]))
        end = max(end, closed + _BEHIND_QUOTE)
    return b"\n".join((*parts, text[start:end]))


_CODED_IN_LITERAL: Final = Trigger(
    (
        *(b"\\x%d" % digit for digit in range(2, 8)),
        b"\\x1b[",
        b"\\x1B[",
        b"\\u001b[",
        b"\\u001B[",
        b"\\033[",
        b"\\e[",
    ),
    lambda text, start: _CODED,  # noqa: ARG005
)
_OPTION_NAME: Final = (
    rb"[\w\-]{0,100}?"
    rb"(?:key|passw|passphrase|passcode|secret|credential|auth|token|pwd|jwt|user|header)[\w\-]{0,200}+"
)

_NAMES: Final[tuple[Trigger, ...]] = (
    *(_name(word, word) for word in PLAIN_CORES if word != "token"),
    *_join_words(
        tuple(dict.fromkeys(re.sub("^(?:de|en)(?=cryption)", "", word) for word in KEY_WORDS)), "key"
    ),
    *_join_words(AUTH_WORDS, "auth"),
    _name("passw(?:or)?d", "passw"),
    _name("[_-]pass(?![a-z])", "_pass", "-pass"),
    # Many texts are about tokens; one of these characters follows only a name that ends with the word. More
    # anchors would need another group, and another pass over every text.
    _name(
        "token",
        *(f"token{end}" for end in "\"\\'=:][%><\n\r\tv,)"),
        *("token ", "token|", "token`", "token*", "token/", "token_v", "token-v", "token->"),
    ),
    _place(rb"cookies?[\w\-]{0,200}+(?:" + _QUOTE + rb"\s*[:,]|\s*:)", b"cookie", lowered=True),
    _header_word("session", *(f"session{end}" for end in ('"', "\\", "'", ":", "-", "_", "i"))),
    _header_word("token-", "token-"),
    _header_word('[-"]auth', "-auth", '"auth'),
    _header_word("auth", "auth-", 'auth"', "auth\\"),
    _header_word('[-"]key', "-key", '"key'),
    _header_word("key", "key-", 'key"', "key\\"),
)

_PLACES: Final[tuple[Trigger, ...]] = (
    _place(rb"bearer(?: +|%20)[a-z0-9._~+/\-]{8}", b"bearer", lowered=True),
    _place(rb"(?<=[?&#;])sig=|(?<=[?&#;\-])signature=", b"sig=", b"signature=", lowered=True),
    _place(rb".asic(?: +|%20)(?=[A-Za-z0-9+/\\]{4}).[a-z]*(?:[A-Z0-9+/]|\\+/)", b"Basic", b"basic"),
    _place(rb".key=[^&#\s]{16}", b"?key=", b"&key=", b"#key=", b";key="),
    _place(
        rb"[\"_]auth(?:" + _QUOTE + rb")?\s*[:=]\s*(?:" + _QUOTE + rb")?[a-z0-9+/]{8}",
        *(b'"auth', b"_auth="),
        lowered=True,
    ),
    _place(rb"form-data;", b"form-data", lowered=True),
    Trigger(
        (b"--",),
        LazyRegex(rb"--" + _OPTION_NAME + rb"(?:" + _QUOTE + rb"\s*,|[ \t]+(?!--?(?:[a-z]|\s|$))\S|=)").match,
        lowered=True,
        # Only the first two dashes of a row: rulers in source code have dozens.
        places=re.compile(rb"-(?<!--)-"),
    ),
    _place(rb"\"-" + _OPTION_NAME + _QUOTE + rb"\s*,", b'"-', lowered=True),
    _place(rb"basic_?auth\(", b"basicauth", b"basic_auth", lowered=True),
    _place(
        rb"identified%b++(?:with%b++\w++%b++)?by(?:%b++password)?%b++\\*[\"']" % ((_SPACE,) * 5),
        b"identified",
        lowered=True,
    ),
    Trigger((b"passw",), _is_behind_login, lowered=True),
    # They are followed by a pair with a colon, as one word or in a list of arguments.
    _place(
        rb"-u(?:(?<![^\s\"']-u)|(?<=\\[nrt]-u))(?:\"\s*,|[ \t=]*+\\*[\"']?[^\s:\"']{1,1200}:)",
        b"-u",
        lowered=True,
    ),
    _place(
        rb".-h(?:\"\s*,|[ \t]+[^\s:][^\n:]{0,1200}:)",
        *(b'"-h"', b" -h "),
        lowered=True,
    ),
    _place(rb"%3a(?:%2f%2f|//)[^\s\"'&]{1,300}%40", b"%3a%2f%2f", b"%3a//", lowered=True),
)

_USER: Final = re.compile(rb"://[^\s\"'\\/?#@<>`:]*+(?::[^\s\"'\\<>`]{1,256})?@")
_TOKEN_TAG: Final = re.compile(rb"<[\w:.\-]*(?i:token)\s[^<>]{0,300}>")
_EMAIL: Final = re.compile(rb"@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2}")
_RANDOM_RUN: Final = b"a" * MIN_RANDOM
_TO_RANDOM_RUN: Final = bytes(97 if chr(code) in RANDOM_CHARACTERS else 32 for code in range(256))
_DOT: Final = ord(".")


def _sextets(is_possible: Callable[[int], bool]) -> str:
    alphabet = [*(ascii_letters[26:] + ascii_letters[:26] + digits), "+-", "/_"]
    return "[" + "".join(re.escape(signs) for value, signs in enumerate(alphabet) if is_possible(value)) + "]"


_READABLE: Final = re.compile(
    # ASCII bytes: none has its highest bit set, and the first of three is not a control character.
    (
        "(?:"
        + _sextets(lambda value: 8 <= value < 32 or value == 2)
        + _sextets(lambda value: not value & 8)
        + _sextets(lambda value: not value & 2)
        + r"[A-Za-z0-9+/_\-]){5}"
    ).encode()
)


_is_readable_run: Final = _READABLE.match


def _decode_text(run: bytes) -> bytes | None:
    """Decode a *run* of base64 or hexadecimal digits; ``None`` if the result is not text."""
    if not _is_readable_run(run):
        return decode_hex(run)
    body = run.rstrip(b"=").translate(BYTES_URLSAFE)
    body = body[: len(body) - (len(body) % 4 == 1)]
    plain = b64decode(body + b"=" * (-len(body) % 4))
    return plain if is_readable(plain) else None


class _Runs:
    """Checks runs of base64 characters: for encoded secrets, and for rules without an anchor."""

    def __init__(self, rules: Sequence[SecretRule]) -> None:
        self._forms: dict[bytes, list[tuple[int, LazyRegex[bytes]]]] = {}
        for rule in rules:
            pattern = LazyRegex((rule.from_anchor or rule.pattern).encode())
            for anchor in rule.anchors:
                for form, before in shifted_forms(anchor.encode()):
                    self._forms.setdefault(form.encode(), []).append((before, pattern))
        shortest = _without_longer(self._forms)
        self._search = literal_search(shortest)
        longer: dict[bytes, list[bytes]] = {literal: [] for literal in shortest}
        for each in self._forms:
            longer[next(prefix for prefix in _prefixes(each) if prefix in longer)].append(each)
        self._longer = list(longer.values())
        behind_dot = [rule.behind_dot for rule in rules if rule.behind_dot]
        self._behind_dot = LazyRegex(rf"\.(?:{'|'.join(behind_dot)})".encode()) if behind_dot else None

    def may_hold(
        self, text: bytes, marked: bytes, start: int, may_hold_secret: Callable[[bytes], bool]
    ) -> bool:
        """Whether a run in *text* may contain a secret; *marked* marks the runs.

        The first run is at *start*; *may_hold_secret* checks the runs that decode to text.
        """
        runs: list[bytes] = []
        while start >= 0:
            end = marked.find(b" ", start + MIN_RUN)
            run = text[start : end if end >= 0 else len(text)]
            if text[start - 1] == _DOT and self._behind_dot and self._behind_dot.match(text, start - 1):
                return True
            plain = _decode_text(run) if _is_readable_run(run) else decode_other(run)
            if plain is not None and may_hold_secret(plain):
                return True
            runs.append(run)
            start = marked.find(RUN, end) if end >= 0 else -1
        return self.may_hide(b" ".join(runs))

    def may_hide(self, run: bytes) -> bool:
        """Whether *run*, decoded, may match a rule with an anchor."""
        for number, start, _ in self._search(run):
            for form in self._longer[number]:
                if run.startswith(form, start):
                    for before, pattern in self._forms[form]:
                        if pattern.match(*decoded_around(run, start, before)):
                            return True
        return False


def _shape_trigger(rule: SecretRule) -> Trigger:
    if rule in SHAPES:
        pattern = rule.from_anchor or rule.pattern
        return _place(pattern.encode(), *(anchor.encode() for anchor in rule.anchors))
    # A user's pattern may match characters that JSON escapes, so the anchor alone is the trigger.
    forms = {form.encode() for anchor in rule.anchors for form in (anchor, escape(anchor))}
    return Trigger(tuple(forms), _confirm_always)


Profile: TypeAlias = Literal["none", "default", "strict"]

_REMEMBERED: Final = 8
"""Small, because a process rarely has more sets of rules, or of secrets, than those of its environment and of
one test."""


@dataclass(frozen=True)
class CompiledRules:
    """The rules of a profile, compiled, with their prefilter."""

    shapes: Shapes
    every_shape: Shapes
    """Includes those of other profiles, so that a secret's kind does not depend on the profile."""
    prefilter: Prefilter
    runs: _Runs

    def base64_search(self, registered: Registered) -> Callable[[bytes], bool]:
        """A function that decides whether a run of base64 may contain a secret, also a *registered* one."""
        encoded = [form.encode() for form in registered.encoded]
        find_encoded = literal_search(encoded) if encoded else None
        may_hide, may_hold_secret = (
            self.runs.may_hide,
            self.prefilter.with_registered(registered).may_hold_secret,
        )

        def may_hold(run: bytes) -> bool:
            if find_encoded is not None and find_encoded(run):
                return True
            return may_hide(run) or may_hold_secret(_decode_text(run) or b"")

        return may_hold


@lru_cache(maxsize=_REMEMBERED)
def compile_rules(profile: Profile, extra_rules: tuple[SecretRule, ...]) -> CompiledRules:
    """Compile the rules of *profile* and the caller's own."""
    for rule in extra_rules:
        re.compile(rule.pattern)  # raises for an invalid pattern now, not at the first match of its anchor
    by_name, strict = profile != "none", profile == "strict"
    rules = (*extra_rules, *(SHAPES if by_name else ()), *(STRICT_SHAPES if strict else ()))
    runs = _Runs(rules)
    triggers = [
        _HALF_CHARACTERS,
        _ESCAPED_ASCII,
        _CODED_IN_LITERAL,
        *(_shape_trigger(rule) for rule in rules if rule.anchors),
        *((*_NAMES, *_PLACES) if by_name else ()),
    ]
    is_always = any(not rule.anchors and not rule.behind_dot for rule in extra_rules)
    checks = [Check(lambda _: True)] if is_always else []
    if by_name:
        checks.append(Check(_USER.search, needs="@"))
        checks.append(Check(_TOKEN_TAG.search, needs="<"))
    if strict:
        checks.append(Check(_EMAIL.search, needs="@"))
        checks.append(Check(lambda text: _RANDOM_RUN in text.translate(_TO_RANDOM_RUN)))
    return CompiledRules(
        Shapes(rules),
        Shapes((*extra_rules, *SHAPES, *STRICT_SHAPES)),
        Prefilter(triggers, checks, runs.may_hold if rules else None),
        runs,
    )


@lru_cache(maxsize=_REMEMBERED)
def register(secrets: tuple[str | bytes, ...]) -> Registered:
    """All forms of *secrets*."""
    return Registered(secrets)

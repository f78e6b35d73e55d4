"""Which literal texts announce which rules.

Every edit that a rule can make needs a trigger here, or clean-looking text would keep its secret;
the tests compare the rules with and without the prefilter.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from reenact.redaction.assignments import AFTER_NAME
from reenact.redaction.base64text import RUN_AHEAD, encoded_forms
from reenact.redaction.jsontext import escaped
from reenact.redaction.prefilter import Check, Trigger
from reenact.redaction.registered import Registered
from reenact.redaction.rules import MIN_RANDOM, RANDOM_CHARACTERS, SHAPES, Rule

_ANYTHING: Final = re.compile(b"")

# Some writers escape & < > = ' in JSON; nothing can be said before that is undone.
_ESCAPED_ASCII: Final = Trigger((b"\\u00",), re.compile(rb"\\u00[2-7]"))

_NAMED_VALUE: Final = rb'[\w\-]*+\]*+","value":'


def _name(core: str, *anchors: str) -> Trigger:
    pattern = b"(?:%b)(?:%b|%b)" % (core.encode(), AFTER_NAME, _NAMED_VALUE)
    return Trigger(tuple(anchor.encode() for anchor in anchors), re.compile(pattern), lowered=True)


def _key(word: str) -> Trigger:
    return _name(f"{word}[_-]?key", f"{word}_key", f"{word}-key", f"{word}key")


def _place(pattern: bytes, *anchors: bytes, lowered: bool = False) -> Trigger:
    return Trigger(anchors, re.compile(pattern), lowered)


_NAMES: Final[tuple[Trigger, ...]] = (
    *(_name(word, word) for word in ("passphrase", "secret", "credential", "authorization", "pwd")),
    *(_key(word) for word in ("api", "access", "private", "account")),
    _name("passw(?:or)?d", "passw"),
    # Texts about tokens are everywhere; only a name that ends with the word is followed by one of these.
    _name("token", *(f"token{end}" for end in "\"\\'=:]% \t")),
    _place(rb"cookies?[\\\"']*\s*:", b"cookie", lowered=True),
)

_PLACES: Final[tuple[Trigger, ...]] = (
    _place(rb"bearer(?: +|%20)[a-z0-9._~+/\-]{8}", b"bearer", lowered=True),
    _place(rb"(?<=[?&#;])sig=|(?<=[?&#;\-])signature=", b"sig=", b"signature=", lowered=True),
    _place(rb".asic(?: +|%20)[A-Za-z0-9+/][a-z]*[A-Z0-9+/]", b"Basic", b"basic"),
    _place(rb".key=[^&#\s]{16}", b"?key=", b"&key=", b"#key=", b";key="),
)

_USER: Final = re.compile(rb"://[^\s\"'\\/?#@<>`]+@")
_EMAIL: Final = re.compile(rb"@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2}")
_RUN: Final = b"a" * MIN_RANDOM
_TO_RUN: Final = bytes(97 if chr(code) in RANDOM_CHARACTERS else 32 for code in range(256))


def checks(rules: Sequence[Rule], *, by_name: bool, strict: bool) -> list[Check]:
    """What no literal announces, or only a frequent one."""
    chosen = [Check(lambda _: True)] if any(not rule.anchors for rule in rules) else []
    if by_name:
        chosen.append(Check(_USER.search, needs="@"))
    if strict:
        chosen.append(Check(_EMAIL.search, needs="@"))
        chosen.append(Check(lambda text: _RUN in text.translate(_TO_RUN)))
    return chosen


def triggers(registered: Registered, rules: Sequence[Rule], *, by_name: bool) -> list[Trigger]:
    """What may announce a secret in any text."""
    forms = tuple(form.encode("utf-8", "surrogateescape") for form in registered.forms)
    return [
        _ESCAPED_ASCII,
        Trigger(forms, _ANYTHING),
        *(_shape(rule) for rule in rules if rule.anchors),
        *base64_triggers(registered, rules),
        *((*_NAMES, *_PLACES) if by_name else ()),
    ]


def base64_triggers(registered: Registered, rules: Sequence[Rule]) -> list[Trigger]:
    """What may announce a secret behind base64."""
    anchors = [
        form.encode() for rule in rules for anchor in rule.anchors for form in encoded_forms(anchor.encode())
    ]
    return [
        Trigger(tuple(anchors), RUN_AHEAD),
        Trigger(tuple(form.encode() for form in registered.encoded), _ANYTHING),
    ]


def _shape(rule: Rule) -> Trigger:
    if rule in SHAPES:
        return _place(rule.pattern.encode(), *(anchor.encode() for anchor in rule.anchors))
    # A foreign pattern may see what JSON escapes; its anchor alone must do.
    forms = {form.encode() for anchor in rule.anchors for form in (anchor, escaped(anchor))}
    return Trigger(tuple(forms), _ANYTHING)

"""Secrets inside base64: finding the runs that may hold one, and rewriting them.

Three bytes become four characters, so a secret looks in one of three ways, depending on how many
bytes stand before it; its first and last character also depend on its neighbours and are left out.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from typing import Final

from reenact.redaction.edits import Edit, narrowed
from reenact.redaction.placeholder import PLACEHOLDER

MIN_RUN: Final = 20
"""Shorter runs of base64 characters are taken for words."""

RUN_AHEAD: Final = re.compile(rb"[A-Za-z0-9+/_\-]{8}")
"""What follows from the first encoded character of a token."""

_BREAK: Final = r"(?:\\r)?\\n|\r?\n"
_RUN: Final = re.compile(rf"[A-Za-z0-9+/_\-]{{{MIN_RUN},}}(?:(?:{_BREAK})[A-Za-z0-9+/_\-]{{4,}})*+={{0,2}}")
_BREAKS: Final = re.compile(_BREAK)
_URLSAFE: Final = str.maketrans("-_", "+/")
_TO_URLSAFE: Final = str.maketrans("+/", "-_")


def encoded_forms(secret: bytes) -> list[str]:
    """The parts of base64 text that stand for *secret* whatever surrounds it, both alphabets."""
    forms = []
    for before in range(3):
        padded = b"\0" * before + secret
        text = b64encode(padded + b"\0" * (-len(padded) % 3)).decode()
        forms.append(text[-(-before * 8 // 6) : len(padded) * 8 // 6])
    return list(dict.fromkeys(forms + [form.translate(_TO_URLSAFE) for form in forms]))


def base64_edits(
    text: str, is_suspect: Callable[[str], bool], redact: Callable[[str], str]
) -> Iterator[Edit]:
    """Edits for the runs that *redact* changes when they are decoded.

    A run that is nothing but a secret becomes its placeholder; one with more in it is encoded again,
    so that an agent that is replayed can still decode it.
    """
    for run in _RUN.finditer(text):
        if is_suspect(_BREAKS.sub("", run[0])):
            new = _rewritten(run[0], redact)
            if new != run[0]:
                yield narrowed(run.start(), run[0], new) if new[:1] != "<" else Edit(*run.span(), new)


def _rewritten(run: str, redact: Callable[[str], str]) -> str:
    line_end = _BREAKS.search(run)
    joined = _BREAKS.sub("", run)
    for skipped in range(4):
        new = _redacted(joined[skipped:], redact)
        if new is not None:
            whole = joined[:skipped] + new
            return _wrapped(whole, line_end.start(), line_end[0]) if line_end and new[:1] != "<" else whole
    return run


def _redacted(text: str, redact: Callable[[str], str]) -> str | None:
    """*text* decoded, redacted and encoded again; None if it is no base64 or holds no secret."""
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


def _wrapped(text: str, width: int, line_end: str) -> str:
    return line_end.join(text[at : at + width] for at in range(0, len(text), width))

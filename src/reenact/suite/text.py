"""What an output says, taken apart: bullets, paragraphs, sentences, addresses, word stems."""

from __future__ import annotations

import re
from typing import Final

_BULLET: Final = re.compile(r"[ \t]*[-*][ \t]+(?P<text>\S.*?)\s*", re.ASCII)
_SENTENCE_END: Final = re.compile(r"[.!?](?=\s|$)", re.ASCII)
_URL: Final = re.compile(r"https?://\S+", re.IGNORECASE | re.ASCII)
_ENCLOSURES: Final = {"(": ")", "[": "]", "<": ">", '"': '"', "'": "'", "`": "`"}
_WORD: Final = re.compile(r"[a-z0-9]+")

_STOP_WORDS: Final = """
    the a an and or but if then than for with without from into onto over under by of on in to at is are
    was were be been being this that these those it its they them their there here as not no today latest
    short exactly useful help helps using used use more less earlier later can will should after before
    one two three
"""
STOP_WORDS: Final = frozenset(_STOP_WORDS.split())


def bullets(text: str) -> list[str]:
    """The texts of the lines that start with ``-`` or ``*`` and white space, without the sign."""
    return [found["text"] for line in text.split("\n") if (found := _BULLET.fullmatch(line))]


def paragraphs(text: str) -> list[str]:
    """The blocks between blank lines."""
    return [block.strip() for block in re.split(r"(?a)\n\s*\n", text.replace("\r\n", "\n")) if block.strip()]


def content_units(text: str) -> list[str]:
    """What makes a claim each: every bullet, and every paragraph, or part of one, beside bullets.

    An indented line goes on with its bullet. A line that ends in a colon right above a bullet only
    announces it.
    """
    return [unit for block in paragraphs(text) for unit in _units_of(block)]


def _units_of(block: str) -> list[str]:
    units: list[list[str]] = [[]]
    in_bullet = False
    for line in block.split("\n"):
        if bullet := _BULLET.fullmatch(line):
            if not in_bullet and units[-1] and units[-1][-1].rstrip().endswith(":"):
                units[-1].pop()
            units.append([bullet["text"]])
        elif in_bullet and not line[:1].isspace():
            units.append([line])
        else:
            units[-1].append(line)
        in_bullet = bullet is not None or (in_bullet and line[:1].isspace())
    return ["\n".join(unit) for unit in units if unit]


def sentence_count(text: str) -> int:
    """How many sentences end in *text*; at least 1."""
    return max(1, len(_SENTENCE_END.findall(text)))


def urls(text: str) -> list[str]:
    """The web addresses in *text* as written, each once: up to white space, or to what encloses them."""
    return list(
        dict.fromkeys(
            _enclosed(text[found.start() - 1 : found.start()], found[0]) for found in _URL.finditer(text)
        )
    )


def _enclosed(before: str, address: str) -> str:
    closing = _ENCLOSURES.get(before)
    return address.partition(closing)[0] if closing else address


def stems(text: str) -> list[str]:
    """The word stems that carry meaning, each once, in order."""
    stemmed = (_stem(word) for word in _WORD.findall(text.lower()))
    return list(dict.fromkeys(stem for stem in stemmed if len(stem) >= 3 and stem not in STOP_WORDS))


def _stem(word: str) -> str:
    if word.endswith("ies"):
        word = word[:-3] + "y"
    if len(word) > 5:
        word = word.removesuffix("ing") if word.endswith("ing") else word.removesuffix("ed")
    return word[:-1] if len(word) > 4 and word.endswith("s") else word


def contains(text: str, part: str, *, case_sensitive: bool = False) -> bool:
    """Whether *part* stands somewhere in *text*."""
    return part in text if case_sensitive else part.casefold() in text.casefold()

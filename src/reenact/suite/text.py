"""What an output says, taken apart: bullets, paragraphs, sentences, addresses, word stems."""

from __future__ import annotations

import re
from typing import Final

_BULLET: Final = re.compile(r"^[ \t]*[-*][ \t]*(?P<text>.*?)[ \t]*$", re.MULTILINE)
_SENTENCE_END: Final = re.compile(r"[.!?](?=\s|$)")
_URL: Final = re.compile(r"https?://[^\s<>\"'`\])}]+", re.IGNORECASE)
_WORD: Final = re.compile(r"[a-z0-9]+")

_STOP_WORDS: Final = """
    the a an and or but if then than for with without from into onto over under by of on in to at is are
    was were be been being this that these those it its they them their there here as not no today latest
    short exactly useful help helps using used use more less earlier later can will should after before
    one two three
"""
STOP_WORDS: Final = frozenset(_STOP_WORDS.split())


def bullets(text: str) -> list[str]:
    """The texts of the lines that start with ``-`` or ``*``, without the sign."""
    return [found["text"] for found in _BULLET.finditer(text)]


def paragraphs(text: str) -> list[str]:
    """The blocks between blank lines."""
    return [block.strip() for block in re.split(r"\n[ \t]*\n", text.replace("\r\n", "\n")) if block.strip()]


def content_units(text: str) -> list[str]:
    """What makes a claim each: the bullets, or the paragraphs where there are none."""
    return bullets(text) or paragraphs(text)


def sentence_count(text: str) -> int:
    """How many sentences end in *text*; at least 1."""
    return max(1, len(_SENTENCE_END.findall(text)))


def urls(text: str) -> list[str]:
    """The web addresses in *text*, each once, without the punctuation of the sentence around them."""
    return list(dict.fromkeys(found.rstrip(".,;:!?*_") for found in _URL.findall(text)))


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

"""Identifiers that look like a provider's and depend on nothing but their seed."""

from __future__ import annotations

from hashlib import sha512
from typing import Final

_ALPHABET: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def mint(seed: str, prefix: str, ordinal: int = 0, length: int = 24) -> str:
    """*prefix* and *length* letters and digits; equal arguments give equal ids."""
    number = int.from_bytes(sha512(f"{seed}\0{prefix}\0{ordinal}".encode()).digest(), "big")
    letters = []
    for _ in range(length):
        number, digit = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[digit])
    return prefix + "".join(letters)

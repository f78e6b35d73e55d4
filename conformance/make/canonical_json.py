"""Canonical JSON: values, their one text in each profile, and what has none."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final

_DEEPEST: Final = 254
_SAME: list[tuple[str, str, str]] = [
    ("nesting of 254 levels", "[" * _DEEPEST + "]" * _DEEPEST, "[" * _DEEPEST + "]" * _DEEPEST),
    ("an empty object", "{ }", "{}"),
    ("keys in order of their code points", '{"b": 1, "a": 2, "B": 3}', '{"B":3,"a":2,"b":1}'),
    ("at every level", '[{"b": {"d": 1, "c": 2}}]', '[{"b":{"c":2,"d":1}}]'),
    ("arrays keep their order", "[3, 1, 2]", "[3,1,2]"),
    ("text stays raw UTF-8", '"caf\\u00e9 \\u2615 /"', '"café ☕ /"'),
    (
        "only what must be escaped is",
        '"\\u0022\\u005c\\u0008\\u000c\\u000a\\u000d\\u0009"',
        r'"\"\\\b\f\n\r\t"',
    ),
    ("other controls in lower case", '"\\u001F\\u0000"', '"\\u001f\\u0000"'),
    ("DEL and U+2028 are raw", '"\\u007f\\u2028"', '"\u007f\u2028"'),
    ("keys are escaped too", '{"a\\"b": null}', '{"a\\"b":null}'),
    ("integers are exact", "[0, -1, 9007199254740991]", "[0,-1,9007199254740991]"),
]
_REPLAY: list[tuple[str, str, str | None]] = [
    ("exponents from 1e16 on", "[1e15, 1e16, 1E+16, 123e20]", "[1000000000000000.0,1e16,1e16,1.23e22]"),
    ("and below 1e-5", "[0.00001, 1e-6, 25e-8, 5e-324]", "[0.00001,1e-6,2.5e-7,5e-324]"),
    ("minus zero is kept, as an integer it is zero", "[-0.0, -0]", "[-0.0,0]"),
    ("the largest double", "1.7976931348623157e308", "1.7976931348623157e308"),
    ("1.0 stays 1.0", "[1.0, 0.80]", "[1.0,0.8]"),
    (
        "64-bit integers are exact",
        "[18446744073709551615, -9223372036854775808]",
        "[18446744073709551615,-9223372036854775808]",
    ),
    ("code points, not UTF-16 units", '{"\\ud83d\\ude00": 1, "\\uffe6": 2}', '{"￦":2,"😀":1}'),
    ("an integer beyond 64 bits has none", "18446744073709551616", None),
]
_JCS: list[tuple[str, str, str | None]] = [
    ("exponents from 1e21 on", "[1e16, 1e20, 1e21]", "[10000000000000000,100000000000000000000,1e+21]"),
    ("and below 1e-6", "[1e-6, 1e-7, 5e-324]", "[0.000001,1e-7,5e-324]"),
    (
        "what was written is read again",
        "[10000000000000000, 123456789012345680000]",
        "[10000000000000000,123456789012345680000]",
    ),
    ("2**53 is a double", "[9007199254740992, -9007199254740992]", "[9007199254740992,-9007199254740992]"),
    ("an integer of 21 digits that is no double has none", "123456789012345678901", None),
    ("1.0 is 1", "[1.0, 0.80]", "[1,0.8]"),
    (
        "exponents as ECMAScript writes them",
        "[1e21, 1e-7, 12345678901234568e4]",
        "[1e+21,1e-7,123456789012345680000]",
    ),
    ("UTF-16 units, not code points", '{"\\ud83d\\ude00": 1, "\\uffe6": 2}', '{"😀":1,"￦":2}'),
    ("minus zero is zero", "[-0.0, -0]", "[0,0]"),
    ("an integer beyond 2**53 - 1 has none", "9007199254740993", None),
]
_NEITHER: list[tuple[str, str, None]] = [
    ("a lone surrogate has none", '"\\ud800"', None),
    ("a repeated key has none", '{"a": 1, "a": 2}', None),
    ("NaN is no JSON", "[NaN]", None),
    ("a number beyond all doubles has none", "1e400", None),
    ("nesting beyond 254 levels has none", "[" * (_DEEPEST + 1) + "]" * (_DEEPEST + 1), None),
]


def vectors(profile: str) -> list[dict[str, Any]]:
    """The vectors of a profile; ``canonical`` is null for what has no canonical text."""
    own = _REPLAY if profile == "replay" else _JCS
    return [*_vectors(profile, [*_SAME, *own, *_NEITHER])]


def _vectors(profile: str, rows: list[Any]) -> Iterator[dict[str, Any]]:
    for about, text, wanted in rows:
        digest = None if wanted is None else sha256(wanted.encode()).hexdigest()
        written = digest if digest is None or profile == "jcs" else f"sha256:{digest}"
        yield {"about": about, "json": text, "canonical": wanted, "digest": written}

"""JSON text as a plain value, exactly: nothing is repeated, dropped or changed without a word."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import orjson

from reenact import canonical
from reenact.errors import FormatError

_decode = msgspec.json.Decoder().decode


def read_json(text: bytes, profile: canonical.Profile = "replay") -> Any:
    """The value of *text*; :class:`FormatError` for repeated keys, NaN, and what is not UTF-8 or too large.

    What the ``jcs`` profile writes it reads again: there an integer beyond 64 bits that is the text of a
    double is that double.

    Decoders keep the last of two equal keys. A key takes two quotes, so a text from which none was
    dropped has as many quotes as the value written again. Writing also refuses integers beyond 64 bits and
    nesting beyond the limit, which decoding lets through. A byte order mark is tolerated.
    """
    try:
        value = _decode(text)
        # In a list, because orjson writes one level more than we allow if that level is empty.
        if _quotes(orjson.dumps([value])) == _quotes(text):
            return value
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError):
        pass  # the exact way finds the reason and its place
    return read_json_exactly(text, profile)


def _quotes(text: bytes) -> int:
    """How many quotes of a valid JSON text begin or end a string."""
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    return text.count(b'"')


def read_json_exactly(text: bytes, profile: canonical.Profile = "replay") -> Any:
    """The same, slowly; it knows what is wrong and where."""
    try:
        value = json.loads(
            text.decode("utf-8-sig"),
            object_pairs_hook=_no_duplicates,
            parse_constant=_no_constants,
            parse_int=_integer_or_double if profile == "jcs" else int,
        )
    except UnicodeDecodeError as error:
        raise FormatError(f"not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}" if error.lineno > 1 else f"column {error.colno}"
        raise FormatError(f"not JSON: {error.msg} at {place}") from None
    except RecursionError:
        raise FormatError(f"nested deeper than {canonical.MAX_DEPTH} levels") from None
    except ValueError as error:  # integers of thousands of digits, and our own hooks
        raise FormatError(f"not JSON: {error}") from None
    _refuse_duplicates(value, "$")
    canonical.refuse_unholdable(value)
    return value


class _Duplicate(dict[str, Any]):
    """Stands where an object repeated a key, until the walk that knows the path finds it."""

    key = ""


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) == len(pairs):
        return value
    seen: set[str] = set()
    marked = _Duplicate(value)
    marked.key = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
    return marked


def _integer_or_double(text: str) -> int | float:
    value = int(text)
    return value if -(2**63) <= value < 2**64 or not canonical.is_double(value) else float(value)


def _no_constants(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _refuse_duplicates(value: Any, path: str) -> None:
    if isinstance(value, _Duplicate):
        raise FormatError(f"the key {value.key!r} appears twice", json_path=path)
    if isinstance(value, dict | list):
        for key, child in value.items() if isinstance(value, dict) else enumerate(value):
            _refuse_duplicates(child, canonical.child_path(path, key))

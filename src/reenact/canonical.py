"""Canonical JSON: its text in two profiles, exact reading, digests.

``replay``  keys in code-point order, no white space, raw UTF-8, minimal escapes, ``1.0`` stays
            ``1.0``, integers exact in 64 bits. Digests are written ``sha256:<64 hex>``.
``jcs``     RFC 8785, digests in bare hex. An integer beyond ±(2**53 - 1) is refused unless it is the text
            of a double, as 10000000000000000 is of 1e16; otherwise two integers would get the same text.

Both refuse values that JSON cannot represent; the error names the JSON path. As an exception, the ``replay``
profile writes UUIDs as text and enum members as their values.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from resource import RLIM_INFINITY, RLIMIT_AS, RLIMIT_DATA, getrlimit
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar, cast

import msgspec
import orjson

from reenact.errors import FormatError

Profile: TypeAlias = Literal["replay", "jcs"]
JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
"""Any JSON value."""
if TYPE_CHECKING:
    JsonField: TypeAlias = JsonValue
else:  # msgspec does not take a type that holds itself
    JsonField = Any
"""Any JSON value, as the type of a struct field."""

MAX_DEPTH: Final = 254
"""Deeper nesting is refused: the limit of the strictest JSON library that we use."""

_E = TypeVar("_E", bound=Callable[..., bytes])
_ROOM_PER_CHARACTER: Final = 20
"""orjson reserves eight bytes for each, up to twice that while it grows, besides the old buffer."""
_SMALL_BYTES: Final = 1 << 20


def _is_memory_limited() -> bool:
    return any(getrlimit(kind)[0] != RLIM_INFINITY for kind in (RLIMIT_AS, RLIMIT_DATA))


def with_memory_check(encode: _E) -> _E:
    """Return *encode*, or in a process with limited memory a function that allocates the memory first.

    The libraries abort the process without memory; the allocation raises :class:`MemoryError` instead.
    """
    if not _is_memory_limited():
        return encode

    def encode_if_it_fits(value: object, *options: object) -> bytes:
        room_bytes = _room_bytes(value)
        if room_bytes > _SMALL_BYTES:
            bytearray(room_bytes)
        return encode(value, *options)

    return cast("_E", encode_if_it_fits)


def _room_bytes(value: object) -> int:
    """Estimate the memory for encoding *value*."""
    characters, left = 0, [value]
    while left:
        found = left.pop()
        if isinstance(found, str | bytes | bytearray):
            characters += len(found)
        elif isinstance(found, msgspec.Raw):
            characters += memoryview(found).nbytes
        elif isinstance(found, dict):
            characters += 8 * len(found)
            left += found.values()
        elif isinstance(found, list | tuple):
            characters += 8 * len(found)
            left += found
        if characters * _ROOM_PER_CHARACTER > sys.maxsize:  # it contains itself
            break
    return characters * _ROOM_PER_CHARACTER


_decode = msgspec.json.Decoder().decode
_encoder = msgspec.json.Encoder(order="sorted")
_bits = msgspec.msgpack.Encoder().encode
dump: Final = with_memory_check(orjson.dumps)
"""Faster than our own encoder; but some numbers come in another notation (:func:`is_canonical`)."""
ORDERED: Final = (
    orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS
)
SORTED: Final = ORDERED | orjson.OPT_SORT_KEYS

PLUS: Final = ord("+")
_EXPONENT: Final = re.compile(rb"e\+(?<=[0-9]e\+)[0-9]")  # an expression that begins with letters is faster
_DIGEST: Final = re.compile("sha256:[0-9a-f]{64}")
_NAME: Final = re.compile(r"[^\W\d]\w*")
"""A key that needs no quotes in a path."""

encode_clean: Final[Callable[[object], bytes]] = with_memory_check(_encoder.encode)
"""The ``replay`` text of a value known to be plain JSON: decoded from JSON or checked before."""
encode_clean_lines: Final[Callable[[Sequence[object]], bytes]] = with_memory_check(_encoder.encode_lines)
"""The texts of many such values, each with a line end."""
encode_ordered: Final[Callable[[object], bytes]] = with_memory_check(msgspec.json.Encoder().encode)
"""The same, keeping the order of object members."""


def encode(value: object, profile: Profile = "replay") -> bytes:
    """The canonical text of *value*; :class:`FormatError` names the path of what JSON does not have."""
    if profile == "jcs":
        return "".join(_jcs(value, "$", 0)).encode()
    try:
        # Stricter than msgspec: it refuses bytes, sets, dates and huge integers.
        text: bytes = dump(value, None, SORTED)
    except TypeError as error:
        refuse_unholdable(value)
        raise FormatError(f"not JSON: {error}", json_path="$") from error
    # NaN becomes null here. MessagePack keeps its bits: a mark, then an exponent of all ones. To read the
    # text again and compare takes four times as long: 180 instead of 45 µs for a chat of 16 KB.
    if b"null" in text and _may_hold_non_finite(_bits(value)):
        refuse_unholdable(value)
    return encode_clean(value) if PLUS in text and not is_canonical(text) else text


def is_canonical(text: bytes) -> bool:
    """Whether all numbers in a sorted text are in our notation."""
    # One library writes 1e+16, the other 1e16; canonical is the latter.
    return PLUS not in text or _EXPONENT.search(text) is None


def _may_hold_non_finite(bits: bytes) -> bool:
    # Searching for one byte is many times faster than for two, and neither occurs in ordinary text.
    return (0x7F in bits and b"\xcb\x7f" in bits) or (0xFF in bits and b"\xcb\xff" in bits)


def digest(value: object, profile: Profile = "replay") -> str:
    """The SHA-256 of the canonical text, in the notation of the profile."""
    return digest_of_bytes(encode(value, profile), profile)


def digest_of_bytes(data: bytes, profile: Profile = "replay") -> str:
    """The digest of bytes that are canonical or opaque."""
    in_hex = sha256(data).hexdigest()
    return in_hex if profile == "jcs" else "sha256:" + in_hex


def is_digest(text: object) -> bool:
    """Whether *text* has the form ``sha256:<64 lowercase hex>``."""
    return isinstance(text, str) and _DIGEST.fullmatch(text) is not None


def are_digests(texts: Iterable[str]) -> bool:
    """Whether all of *texts* are digests, checked in one C loop."""
    return all(map(_DIGEST.fullmatch, texts))


def child_path(path: str, key: str | int) -> str:
    """The JSON path of a member or item below *path*: ``$.a[0]['odd key']``."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    if _NAME.fullmatch(key):
        return f"{path}.{key}"
    return f"{path}[{msgspec.json.encode(key.encode('utf-8', 'replace').decode()).decode()}]"


def refuse_unholdable(value: object) -> None:
    """Raise :class:`FormatError` for the first value in *value* that the ``replay`` profile cannot encode."""
    for path, reason in _find_unholdable(value, "$", 0):
        raise FormatError(reason, json_path=path)


def _find_unholdable(value: object, path: str, depth: int) -> Iterator[tuple[str, str]]:
    kind = type(value)
    if kind is not dict and kind is not list and kind is not tuple:
        reason = _scalar_problem(value)
        if reason:
            yield path, reason
    elif depth >= MAX_DEPTH:
        yield path, f"nested deeper than {MAX_DEPTH} levels"
    else:
        for key, child in _children(value):
            if kind is dict:
                _refuse_key(key, path)
            yield from _find_unholdable(child, child_path(path, key), depth + 1)


def _scalar_problem(value: Any) -> str | None:
    kind = type(value)
    if kind is str:
        return None if is_unicode(value) else "a lone surrogate is not Unicode text"
    if kind is int:
        return (
            None
            if -(2**63) <= value < 2**64
            else f"integer {_describe_integer(value)} does not fit into 64 bits"
        )
    if kind is float:
        return None if math.isfinite(value) else f"{value} is not a JSON number"
    return None if value is None or kind is bool else f"a {kind.__name__} is not a JSON value"


def _refuse_key(key: object, path: str) -> None:
    if type(key) is not str:
        raise FormatError(f"the key {key!r} is a {type(key).__name__}; keys are strings", json_path=path)
    if not is_unicode(key):
        raise FormatError(f"the key {key!r} holds a lone surrogate", json_path=path)


def _children(value: Any) -> Iterator[tuple[Any, Any]]:
    return iter(value.items()) if isinstance(value, dict) else iter(enumerate(value))


def is_unicode(text: str) -> bool:
    """Whether *text* can be encoded as UTF-8: it has no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def as_unicode(text: str) -> str:
    """*text* without lone surrogates: undecoded bytes are decoded as UTF-8 if possible, else escaped."""
    if is_unicode(text):
        return text
    try:
        return text.encode(errors="surrogateescape").decode(errors="backslashreplace")
    except UnicodeEncodeError:
        return text.encode(errors="backslashreplace").decode()


def _describe_integer(value: int) -> str:
    # Python refuses to print integers of thousands of digits.
    return str(value) if value.bit_length() < 200 else f"of {value.bit_length()} bits"


def _jcs(value: Any, path: str, depth: int) -> Iterator[str]:
    """RFC 8785, piece by piece; not optimized, because action records are small."""
    kind = type(value)
    if kind is dict or kind is list or kind is tuple:
        if depth >= MAX_DEPTH:
            raise FormatError(f"nested deeper than {MAX_DEPTH} levels", json_path=path)
        yield from (_jcs_object if kind is dict else _jcs_array)(value, path, depth)
    elif kind is int:
        if not is_double(value):
            shown = _describe_integer(value)
            raise FormatError(
                f"integer {shown} is beyond ±(2**53 - 1) and no double; write it as text", json_path=path
            )
        yield str(value)
    elif reason := _scalar_problem(value):
        raise FormatError(reason, json_path=path)
    elif kind is float:
        yield _jcs_number(value)
    else:
        yield msgspec.json.encode(value).decode()


def is_double(value: int) -> bool:
    """Whether a reader with doubles only, such as JavaScript, writes *value* with the same digits."""
    if -(2**53) < value < 2**53:
        return True
    return value.bit_length() <= _LONGEST_BITS and _jcs_number(float(value)) == str(value)


_LONGEST_BITS: Final = 70
"""Numbers from 10**21 on have an exponent."""


def _jcs_object(value: Any, path: str, depth: int) -> Iterator[str]:
    for key in value:
        _refuse_key(key, path)
    before = "{"
    for key in sorted(value, key=_encode_utf16):
        yield f"{before}{msgspec.json.encode(key).decode()}:"
        yield from _jcs(value[key], child_path(path, key), depth + 1)
        before = ","
    yield "{}" if before == "{" else "}"


def _jcs_array(value: Any, path: str, depth: int) -> Iterator[str]:
    before = "["
    for index, item in enumerate(value):
        yield before
        yield from _jcs(item, child_path(path, index), depth + 1)
        before = ","
    yield "[]" if before == "[" else "]"


def _encode_utf16(key: str) -> bytes:
    return key.encode("utf-16-be")


def _jcs_number(value: float) -> str:
    """ECMAScript's Number::toString, which RFC 8785 §3.2.2.3 prescribes, of a finite *value*."""
    if value == 0:
        return "0"
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    digits = (whole + fraction).lstrip("0")
    # The decimal point is `point` places after the first significant digit.
    point = len(whole.lstrip("0")) or len(digits) - len(fraction)
    point += int(exponent or 0)
    digits = digits.rstrip("0")
    return ("-" if value < 0 else "") + _place_point(digits, point)


def _place_point(digits: str, point: int) -> str:
    if len(digits) <= point <= 21:
        return digits.ljust(point, "0")
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"0.{'0' * -point}{digits}"
    head = digits[0] if len(digits) == 1 else f"{digits[0]}.{digits[1:]}"
    return f"{head}e{point - 1:+d}"


def read_json(text: bytes, profile: Profile = "replay") -> Any:
    """Decode *text*; :class:`FormatError` for repeated keys, NaN, invalid UTF-8 and too large integers.

    With the ``jcs`` profile, an integer beyond 64 bits that is the text of a double becomes that double.

    Decoders keep the last of two equal keys. Each key has two quotes, so a text without repeated keys has as
    many quotes as its value encoded again. Encoding also refuses integers beyond 64 bits and too deep
    nesting, which decoding accepts. A byte order mark is accepted.
    """
    try:
        value = _decode(text)
        # In a list, because orjson accepts one more level than we do if it is empty.
        if _quotes(orjson.dumps([value])) == _quotes(text):
            return value
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError):
        pass  # the exact reader finds the reason and its place
    return read_json_exactly(text, profile)


def _quotes(text: bytes) -> int:
    """The number of quotes in a valid JSON text that begin or end a string."""
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    return text.count(b'"')


def read_json_exactly(text: bytes, profile: Profile = "replay") -> object:
    """Like :func:`read_json`, slower, with the place of an error."""
    try:
        value = json.loads(
            text.decode("utf-8-sig"),
            object_pairs_hook=_mark_duplicates,
            parse_constant=_refuse_constant,
            parse_int=_integer_or_double if profile == "jcs" else int,
        )
    except UnicodeDecodeError as error:
        raise FormatError(f"not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}" if error.lineno > 1 else f"column {error.colno}"
        raise FormatError(f"not JSON: {error.msg} at {place}") from None
    except RecursionError:
        raise FormatError(f"nested deeper than {MAX_DEPTH} levels") from None
    except ValueError as error:  # integers with thousands of digits, and our hooks
        raise FormatError(f"not JSON: {error}") from None
    _refuse_duplicates(value, "$")
    refuse_unholdable(value)
    return value


class _Duplicate(dict[str, object]):
    """Marks an object with a repeated key; a later pass finds it and its path."""

    key = ""


def _mark_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) == len(pairs):
        return value
    seen: set[str] = set()
    marked = _Duplicate(value)
    marked.key = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
    return marked


def _integer_or_double(text: str) -> int | float:
    value = int(text)
    return value if -(2**63) <= value < 2**64 or not is_double(value) else float(value)


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not a JSON number")


def _refuse_duplicates(value: object, path: str) -> None:
    if isinstance(value, _Duplicate):
        raise FormatError(f"the key {value.key!r} appears twice", json_path=path)
    if isinstance(value, dict | list):
        for key, child in value.items() if isinstance(value, dict) else enumerate(value):
            _refuse_duplicates(child, child_path(path, key))

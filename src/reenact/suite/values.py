"""Looking into texts (bullets, sentences, word stems) and JSON values (paths, schemas, matchers).

A matcher is ``{contains: news}``, ``{min: 1, max: 10}``, or the value itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, Literal, TypeAlias

import msgspec

from reenact.canonical import JsonValue
from reenact.formats.json_schema import compile_schema, find_violations
from reenact.suite.params import Params, read_params
from reenact.suite.patterns import Searcher
from reenact.suite.verdict import quote, shorten

_BULLET: Final = re.compile(r"\s*[-*]\s+(?P<text>\S.*)", re.ASCII)
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
    """The texts of the lines that start with ``-`` or ``*`` and white space, without the mark."""
    return [found for line in text.split("\n") if (found := _bullet(line)) is not None]


def _bullet(line: str) -> str | None:
    found = _BULLET.fullmatch(line)
    return found["text"].rstrip(" \t\n\r\f\v") if found else None


def paragraphs(text: str) -> list[str]:
    """The blocks between blank lines."""
    return [block.strip() for block in re.split(r"(?a)\n\s*\n", text.replace("\r\n", "\n")) if block.strip()]


def content_units(text: str) -> list[str]:
    """Split a text into claims: each bullet, and each paragraph, or part of one, outside of bullets.

    An indented line continues its bullet. A line that ends in a colon above a bullet is not a claim.
    """
    return [unit for block in paragraphs(text) for unit in _units_of(block)]


def _units_of(block: str) -> list[str]:
    units: list[list[str]] = [[]]
    in_bullet = False
    for line in block.split("\n"):
        bullet = _bullet(line)
        if bullet is not None:
            if not in_bullet and units[-1] and units[-1][-1].rstrip().endswith(":"):
                units[-1].pop()
            units.append([bullet])
        elif in_bullet and not line[:1].isspace():
            units.append([line])
        else:
            units[-1].append(line)
        in_bullet = bullet is not None or (in_bullet and line[:1].isspace())
    return ["\n".join(unit) for unit in units if unit]


def sentence_count(text: str) -> int:
    """The number of sentences in *text*; at least 1."""
    return max(1, len(_SENTENCE_END.findall(text)))


def urls(text: str) -> list[str]:
    """The URLs in *text*, each once, up to white space or a closing bracket or quote."""
    return list(
        dict.fromkeys(
            _cut_at_closing(text[found.start() - 1 : found.start()], found[0])
            for found in _URL.finditer(text)
        )
    )


def _cut_at_closing(before: str, address: str) -> str:
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


_STEP: Final = re.compile(r"\[(?P<index>\d+|\*)\]|\.?(?P<key>[^.\[\]]+)")


def values_at(value: JsonValue, path: str) -> list[JsonValue]:
    """The values at a path such as ``filters.tags[0]`` or ``$.items[*].id``; none if it does not exist.

    A key that equals the whole path takes precedence.
    """
    if isinstance(value, dict) and path in value:
        return [value[path]]
    found = [value]
    for step in _STEP.finditer(path.removeprefix("$")):
        found = [child for parent in found for child in _children(parent, step["index"], step["key"])]
    return found


def has_key(value: JsonValue, key: str) -> bool:
    """Whether an object has the member *key*; a key that begins with ``$`` is a path."""
    if key.startswith("$") and not (isinstance(value, dict) and key in value):
        return any(found is not False for found in values_at(value, key))
    return isinstance(value, dict) and key in value


def _children(parent: JsonValue, index: str | None, key: str | None) -> Iterator[JsonValue]:
    if key == "*" or index == "*":
        yield from parent.values() if isinstance(parent, dict) else parent if isinstance(parent, list) else ()
    elif isinstance(parent, dict) and key in parent:
        yield parent[key]
    elif isinstance(parent, list):
        place = index if index is not None else key
        if place is not None and place.isdecimal() and int(place) < len(parent):
            yield parent[int(place)]


def is_same(a: object, b: object) -> bool:
    """Whether two JSON values are equal: 1 is 1.0, but true is not 1."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(is_same(child, b[key]) for key, child in a.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(is_same(one, other) for one, other in zip(a, b, strict=True))
    return bool(a == b)


def includes(value: JsonValue, part: JsonValue) -> bool:
    """Whether *value* includes *part*: objects may have more members; everything else must be equal."""
    if isinstance(value, dict) and isinstance(part, dict):
        return all(key in value and includes(value[key], child) for key, child in part.items())
    if isinstance(value, list) and isinstance(part, list):
        return len(value) == len(part) and all(
            includes(one, other) for one, other in zip(value, part, strict=True)
        )
    return is_same(value, part)


_SHOWN_PROBLEMS: Final = 20


def schema_problems(value: object, schema: object) -> list[str]:
    """Where *value* violates *schema*, with paths; :class:`UsageError` for an invalid schema."""
    return find_violations(compile_schema(schema, "params.schema"), value)[:_SHOWN_PROBLEMS]


TypeName: TypeAlias = Literal["string", "number", "integer", "boolean", "array", "object", "null"]


class Matcher(Params, frozen=True, kw_only=True):
    """Conditions that must all hold."""

    equals: Any = msgspec.UNSET
    one_of: list[Any] | None = None
    contains: Any = msgspec.UNSET
    """A part of a text, ignoring case, or an item of an array."""
    regex: str | None = None
    type: TypeName | None = None
    min: int | float | None = None
    max: int | float | None = None
    exists: bool | None = None


_TYPES: Final[dict[TypeName, tuple[type, ...]]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def matcher_problem(values: list[JsonValue], given: JsonValue, path: str, searcher: Searcher) -> str | None:
    """Why none of *values* satisfies the matcher *given* at *path*; ``None`` if one does."""
    matcher = read_params(Matcher, given if isinstance(given, dict) else {"equals": given}, path, strict=True)
    if matcher.exists is False:
        return f"should not be there, is {shorten(values[0])}" if values else None
    if not values:
        return "is missing"
    found = [[*_find_unmet(value, matcher, searcher)] for value in values]
    if not all(found):
        return None
    return f"should {found[0][0]}, is {' and '.join(shorten(value) for value in values)}"


def _find_unmet(value: JsonValue, matcher: Matcher, searcher: Searcher) -> Iterator[str]:
    if matcher.equals is not msgspec.UNSET and not is_same(value, matcher.equals):
        yield f"be {shorten(matcher.equals)}"
    if matcher.one_of is not None and not any(is_same(value, option) for option in matcher.one_of):
        yield f"be one of {shorten(matcher.one_of)}"
    if matcher.contains is not msgspec.UNSET and not _has(value, matcher.contains, searcher):
        yield f"contain {shorten(matcher.contains)}"
    if matcher.regex is not None and not (isinstance(value, str) and searcher.search(matcher.regex, value)):
        yield f"match {quote(matcher.regex)}"
    if matcher.type is not None and not _is_of_type(value, matcher.type):
        yield f"be of type {matcher.type}"
    yield from _out_of_range(value, matcher)


def _out_of_range(value: Any, matcher: Matcher) -> Iterator[str]:
    is_number = _is_of_type(value, "number")
    if matcher.min is not None and not (is_number and value >= matcher.min):
        yield f"be {matcher.min} or more"
    if matcher.max is not None and not (is_number and value <= matcher.max):
        yield f"be {matcher.max} or less"


def _has(value: JsonValue, part: JsonValue, searcher: Searcher) -> bool:
    if isinstance(value, str):
        return isinstance(part, str) and searcher.contains(value, part)
    return isinstance(value, list) and any(is_same(item, part) for item in value)


def _is_of_type(value: JsonValue, name: TypeName) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, _TYPES[name])

"""The shapes of values that differ from run to run, masks for them, and rules with these masks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Final, NamedTuple

import msgspec

from reenact.comparing.differences import Difference, common_prefix_length
from reenact.formats.json_paths import PathPattern, Wildcard
from reenact.formats.pattern import Pattern
from reenact.formats.record import ABSENT
from reenact.formats.volatile import VolatileRule
from reenact.lazy_regex import LazyRegex
from reenact.volatile.masking import MASKED

_CLOCK: Final = r"\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?[AaPp][Mm])?"
_ZONE: Final = r"(?: ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d))?"
_WEEKDAY: Final = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? "
_DAY: Final = rf"(?:{_WEEKDAY})?"
_MONTH: Final = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?"
_DATE: Final = rf"(?:{_MONTH} \d{{1,2}}|\d{{1,2}} {_MONTH})"
_AT: Final = rf"(?:(?:,? at|,)? {_CLOCK}(?: [A-Z]{{3,4}})?)?"
_UNIT: Final = r"(?:ns|µs|us|ms|s|seconds?)"
_UUID: Final = r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
_RANDOM: Final = r"(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{8,}"
_PREFIX: Final = r"(?<!\w)(?:[A-Za-z]{1,20}[_-]){0,4}"


class Shape(NamedTuple):
    """A known form of volatile values."""

    name: str
    mask: str
    """In RE2's syntax."""
    found_as: str = ""
    """In Python's syntax, if finding it in a text needs more than the mask."""
    is_strong: bool = True
    """Whether hardly anything else has this form; a plain number may be anything."""
    tells_time: bool = False


SHAPES: Final = (
    Shape("uuid", _UUID, f"{_PREFIX}{_UUID}|{_UUID}"),
    Shape("day", rf"{_WEEKDAY}\d{{4}}-\d\d-\d\d(?:[T ]{_CLOCK}{_ZONE})?", tells_time=True),
    Shape("time", rf"\d{{4}}-\d\d-\d\d[T ]{_CLOCK}{_ZONE}", tells_time=True),
    Shape("written time", rf"{_DAY}{_DATE}{_AT}(?:,? \d{{4}})?{_AT}", tells_time=True),
    Shape("date", r"\d{4}-\d\d-\d\d", tells_time=True),
    Shape("clock", _CLOCK + _ZONE, rf"(?<![\w.:]){_CLOCK}{_ZONE}(?![\w:])", tells_time=True),
    Shape("path", r"(?:/[\w.@+~-]+)+", r"(?<![\w/.])(?:/[\w.@+~-]+){2,}"),
    Shape("duration", rf"\d+(?:\.\d+)? ?{_UNIT}", rf"(?<![\w.])\d+(?:\.\d+)? ?{_UNIT}\b"),
    Shape("moment", r"\d{10,}(?:\.\d+)?", r"(?<![\w.])\d{10,}(?:\.\d+)?(?!\w)", tells_time=True),
    Shape("number", r"-?\d+(?:[.,]\d+)*", r"(?<![\w.])-?\d+(?:[.,]\d+)*(?!\w)", is_strong=False),
    Shape("identifier", r"[\w-]{6,}", rf"{_PREFIX}{_RANDOM}(?!\w)"),
)

_FOUND: Final = LazyRegex("|".join(f"(?:{shape.found_as or shape.mask})" for shape in SHAPES))
_SPECIAL: Final = LazyRegex(r"[.^$*+?()\[\]{}|\\]")
_WORDS: Final = LazyRegex(r".*\W")
_CONTEXT_CHARACTERS: Final = 24
_LONG_CHARACTERS: Final = 100_000
"""Shapes are not searched in longer texts: a million characters take a second."""
_MARGIN_CHARACTERS: Final = 500
"""The length of text that is kept around a difference in a long text: more than any shape and context."""
_LINE_CHARACTERS: Final = 4
"""The shortest common prefix of two lines whose rest is masked."""


class Masks(NamedTuple):
    """Patterns for the parts in which two texts differ."""

    patterns: tuple[str, ...]
    """Empty if the whole text is one such part."""
    is_strong: bool


def masks_for(one: str, other: str) -> Masks | None:
    """Masks of known shapes that make two texts equal; ``None`` if there are none."""
    stretch, other_stretch = _differing_stretch(one, other)
    shapes = _differing_shapes(stretch, other_stretch)
    if shapes is None:
        return None
    between = _split(stretch)[0]
    is_strong = all(shape.is_strong for shape in shapes.values())
    if between == ["", ""]:
        # A value that is only a path may be the subject of the call.
        return Masks((), is_strong and all(shape.name != "path" for shape in shapes.values()))
    patterns = [
        _add_context(shape, between, number, is_next_masked=number + 1 in shapes)
        for number, shape in shapes.items()
    ]
    return _check_masks(one, other, [*dict.fromkeys(patterns)], is_strong=is_strong)


def line_masks_for(one: str, other: str) -> Masks | None:
    """Masks for the ends of the lines that differ; ``None`` if such masks do not make the texts equal."""
    lines, others = one.split("\n"), other.split("\n")
    if len(lines) != len(others) or len(lines) == 1:
        return None
    beginnings = [_common_words(*pair) for pair in zip(lines, others, strict=True) if pair[0] != pair[1]]
    if any(len(beginning) < _LINE_CHARACTERS for beginning in beginnings):
        return None
    patterns = [rf"(?m)^{_escape(beginning)}.*$" for beginning in dict.fromkeys(beginnings)]
    return _check_masks(one, other, patterns, is_strong=False)


def is_time_difference(one: str, other: str) -> bool:
    """Whether two texts differ only in dates and times."""
    shapes = _differing_shapes(*_differing_stretch(one, other)) or {}
    return bool(shapes) and all(shape.tells_time for shape in shapes.values())


def _differing_shapes(one: str, other: str) -> dict[int, Shape] | None:
    """The common shape of each part that differs, by the part's number; ``None`` if one has none."""
    if max(len(one), len(other)) > _LONG_CHARACTERS:
        return None
    (between, parts), (between_others, others) = _split(one), _split(other)
    if between != between_others:
        return None
    shapes: dict[int, Shape] = {}
    for number, (part, part_of_other) in enumerate(zip(parts, others, strict=True)):
        if part != part_of_other:
            shape = _common_shape(part, part_of_other)
            if shape is None:
                return None
            shapes[number] = shape
    return shapes


def _differing_stretch(one: str, other: str) -> tuple[str, str]:
    """Cut the common prefix and suffix of two long texts, except for a margin."""
    if max(len(one), len(other)) <= _LONG_CHARACTERS:
        return one, other
    start = max(0, common_prefix_length(one, other) - _MARGIN_CHARACTERS)
    one, other = one[start:], other[start:]
    behind = max(0, common_prefix_length(one[::-1], other[::-1]) - _MARGIN_CHARACTERS)
    return one[: len(one) - behind], other[: len(other) - behind]


def _split(text: str) -> tuple[list[str], list[str]]:
    """Split *text* into the parts that have a known shape; returns the texts between them, and the parts."""
    spans = [(0, 0), *(found.span() for found in _FOUND.finditer(text)), (len(text), len(text))]
    between = [text[before[1] : behind[0]] for before, behind in pairwise(spans)]
    return between, [text[start:end] for start, end in spans[1:-1]]


def _common_shape(one: str, other: str) -> Shape | None:
    fitting = (shape for shape in SHAPES if re.fullmatch(shape.mask, one) and re.fullmatch(shape.mask, other))
    return next(fitting, None)


def _add_context(shape: Shape, between: list[str], number: int, *, is_next_masked: bool) -> str:
    """The shape's mask with the words around it, so that it masks no other part of this shape."""
    _, has_begun, before = between[number].rpartition("\n")
    masked = _escape(_last_words(before).lstrip()) + shape.mask
    if before.strip():
        return masked
    behind, has_ended, _ = between[number + 1].partition("\n")
    begin = "(?m)^" if has_begun or number == 0 else ""
    if is_next_masked and not has_ended:
        return begin + masked  # the words between the two are context of the next mask
    is_whole = len(behind) <= _CONTEXT_CHARACTERS and (has_ended or number + 2 == len(between))
    return f"{begin}{masked}{_escape(behind[:_CONTEXT_CHARACTERS])}{'$' if is_whole and begin else ''}"


def _last_words(line: str) -> str:
    words = line[-_CONTEXT_CHARACTERS:]
    return words if len(words) == len(line) else words.partition(" ")[2] or words


def _common_words(one: str, other: str) -> str:
    """The common prefix of two lines, up to the end of a word."""
    found = _WORDS.match(one[: common_prefix_length(one, other)])
    return found[0] if found else ""


def _check_masks(one: str, other: str, patterns: list[str], *, is_strong: bool) -> Masks | None:
    for pattern in map(Pattern, patterns):
        one, other = pattern.replace(one, MASKED), pattern.replace(other, MASKED)
    return Masks(tuple(patterns), is_strong) if one == other else None


def _escape(text: str) -> str:
    return _SPECIAL.sub(r"\\\g<0>", text)


def suggest_rules(call: str, places: Iterable[Difference]) -> tuple[VolatileRule, ...]:
    """The rules for *places* if all of them look volatile; none if one may be a real difference."""
    rules: list[VolatileRule] = []
    for place in places:
        masks = _masks_of_texts(place)
        if masks is None or not masks.is_strong:
            return ()
        rules += _make_rules(call, place, masks)
    return _drop_repeated(rules)


def list_covering_rules(call: str, place: Difference) -> tuple[VolatileRule, ...]:
    """The rules for a place known to be volatile; none if a list has an item more or less."""
    if _is_item(place) and msgspec.UNSET in (place.expected, place.observed):
        return ()
    masks = _masks_of_texts(place)
    if masks is None and isinstance(place.expected, str) and isinstance(place.observed, str):
        masks = line_masks_for(place.expected, place.observed)
    if masks is not None:
        return _drop_repeated(_make_rules(call, place, masks))
    is_number = _is_number(place.expected) and _is_number(place.observed)
    return (VolatileRule(call=call_of_rule(call), path=any_item(place.path) if is_number else place.path),)


def any_item(path: str) -> str:
    """*path* with ``[*]`` for every index, since the item may have another index in another request."""
    steps = PathPattern.parse(path).steps
    return str(PathPattern([Wildcard.ANY if isinstance(step, int) else step for step in steps]))


def call_of_rule(call: str) -> str:
    """The call that a rule names: without the address of a network call, which may differ too."""
    return "network" if call.startswith("network ") else call


def _masks_of_texts(place: Difference) -> Masks | None:
    if not isinstance(place.expected, str) or not isinstance(place.observed, str):
        return None
    return masks_for(place.expected, place.observed)


def _make_rules(call: str, place: Difference, masks: Masks) -> list[VolatileRule]:
    patterns = masks.patterns or (ABSENT,)
    return [VolatileRule(call=call_of_rule(call), path=any_item(place.path), mask=mask) for mask in patterns]


def _is_item(place: Difference) -> bool:
    steps = PathPattern.parse(place.path).steps
    return bool(steps) and isinstance(steps[-1], int)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _drop_repeated(rules: list[VolatileRule]) -> tuple[VolatileRule, ...]:
    return tuple({str(rule): rule for rule in rules}.values())

"""Reads YAML as plain JSON values, by the core schema of YAML 1.2.

Plain scalars are null, true, false, integers and floats in the notation of the core schema; all others are
text, such as ``yes``, ``on``, ``2024-01-01``, ``12:30`` and ``1_000``. Refused with line and column are tags,
anchors, aliases, duplicate keys, keys that are not text, a second document, numbers that JSON cannot
represent, nesting beyond ``MAX_DEPTH``, and files beyond ``MAX_BYTES``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, Final, NamedTuple, NoReturn

import yaml

from reenact import canonical
from reenact.canonical import JsonValue
from reenact.errors import FormatError
from reenact.lazy_regex import LazyRegex

MAX_BYTES: Final = 1024 * 1024
MAX_DEPTH: Final = 100

# The C parser is 17 times as fast and in every PyYAML wheel. It accepts some texts that the other refuses (a
# tab inside plain text); texts that both accept have the same value.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_UNPRINTABLE = LazyRegex("[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")

_NULL: Final = r"~|null|Null|NULL|"
_CORE_SCHEMA: Final[tuple[tuple[str, Callable[[str], object]], ...]] = (
    (_NULL, lambda _: None),
    (r"true|True|TRUE", lambda _: True),
    (r"false|False|FALSE", lambda _: False),
    (r"[-+]?[0-9]+", int),
    (r"0o[0-7]+", lambda text: int(text, 8)),
    (r"0x[0-9a-fA-F]+", lambda text: int(text, 16)),
    (r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", float),
    (r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", lambda text: float(text.replace(".", ""))),
)
_MEANS_MORE: Final = frozenset(("", *"~nNtTfF+-.0123456789"))
"""The first characters of plain scalars that may be other than text."""
_RESOLVER: Final = re.compile("|".join(f"({pattern})" for pattern, _ in _CORE_SCHEMA))


class Place(NamedTuple):
    """A line and column, counted from 1."""

    line: int
    column: int


class YamlDocument:
    """A plain JSON value, and the places of its parts in the text."""

    def __init__(self, value: Any, text: str) -> None:
        self.value = value
        self._text = text

    @cached_property
    def places(self) -> dict[str, Place]:
        """By JSON path: the place of an item, or of the key of a member.

        Needs a second pass over the text, because most documents have no errors.
        """
        events = _events(self._text)
        next(events)  # the start of the stream
        next(events)  # and of the document
        return dict(reversed([*_places(events, next(events), "$")]))  # the key wins over its value

    def place(self, json_path: str) -> Place:
        """The place of *json_path*, or of the nearest existing value around it."""
        while json_path not in self.places and json_path != "$":
            shorter = _LAST_STEP.sub("", json_path)
            json_path = shorter if shorter != json_path else "$"
        return self.places[json_path]


_LAST_STEP = re.compile(r"(?:\.[^.\[\]]+|\[[^\[\]]*\])\Z")


def read_yaml(data: bytes, file: str) -> YamlDocument:
    """The single document of a YAML file; :class:`FormatError` with line and column."""
    try:
        text = _decode(data)
        try:
            return YamlDocument(_value(_events(text)), text)
        except (yaml.YAMLError, ValueError, OverflowError) as error:  # the latter two from chr(), in escapes
            raise _syntax_error(error, text) from None
    except FormatError as error:
        raise error.at(file=file) from None


def _events(text: str) -> Iterator[yaml.Event]:
    return iter(_LOADER(text).get_event, None)  # like yaml.parse, without a generator


def write_yaml(value: JsonValue) -> bytes:
    """*value* as YAML that readers of 1.1 and of 1.2 read as the same value."""
    canonical.refuse_unholdable(value)
    text = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=sys.maxsize)
    return text.encode()


def _decode(data: bytes) -> str:
    if len(data) > MAX_BYTES:
        raise FormatError(
            f"the file is larger than {MAX_BYTES} bytes; move large payloads into their own files"
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = _place_in(data[: error.start].decode("utf-8-sig"))
        _refuse(place, "not UTF-8; save the file as UTF-8")
    if found := _UNPRINTABLE.search(text):
        _refuse(
            _place_in(text[: found.start()]),
            f"U+{ord(found[0]):04X} is not allowed in YAML; write it as an escape in double quotes",
        )
    return text


def _place_in(before: str) -> Place:
    return Place(before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)


def _refuse(place: Place, reason: str) -> NoReturn:
    raise FormatError(f"column {place.column}: {reason}", line=place.line)


def _syntax_error(error: Exception, text: str) -> FormatError:
    mark = getattr(error, "problem_mark", None)
    reason = f"not YAML: {getattr(error, 'problem', error)}"
    if mark is None:
        return FormatError(reason)
    if text[mark.index : mark.index + 1] == "\t":
        reason = "a tab cannot indent YAML; use spaces"
    return FormatError(f"column {mark.column + 1}: {reason}", line=mark.line + 1)


def _value(events: Iterator[yaml.Event]) -> object:
    next(events)  # the start of the stream
    start = next(events)
    if isinstance(start, yaml.StreamEndEvent):
        _refuse(Place(1, 1), "the file holds no document")
    value = _node(events, next(events), 0)
    next(events)  # the end of the document
    after = next(events)
    if not isinstance(after, yaml.StreamEndEvent):
        _refuse(_place(after), "a second document starts here; keep one per file")
    return value


def _place(event: yaml.Event) -> Place:
    mark = event.start_mark
    assert mark is not None  # a parser always sets it
    return Place(mark.line + 1, mark.column + 1)


def _node(events: Iterator[yaml.Event], event: yaml.Event, depth: int) -> object:
    """The value that begins with *event*; reads the rest of it from *events*."""
    _refuse_machinery(event)
    if isinstance(event, yaml.ScalarEvent):
        return _scalar(event)
    if depth >= MAX_DEPTH:
        _refuse(_place(event), f"nested deeper than {MAX_DEPTH} levels")
    if isinstance(event, yaml.SequenceStartEvent):
        return [_node(events, item, depth + 1) for item in _read_until(events, yaml.SequenceEndEvent)]
    members: dict[str, Any] = {}
    for key_event in _read_until(events, yaml.MappingEndEvent):
        key = _key(key_event, members)
        members[key] = _node(events, next(events), depth + 1)
    return members


def _read_until(events: Iterator[yaml.Event], end: type[yaml.Event]) -> Iterator[yaml.Event]:
    while not isinstance(event := next(events), end):
        yield event


def _places(events: Iterator[yaml.Event], event: yaml.Event, path: str) -> Iterator[tuple[str, Place]]:
    """The places of *event* and everything inside it; for a member, first its key, then its value."""
    yield path, _place(event)
    if isinstance(event, yaml.SequenceStartEvent):
        for index, item in enumerate(_read_until(events, yaml.SequenceEndEvent)):
            yield from _places(events, item, canonical.child_path(path, index))
    elif isinstance(event, yaml.MappingStartEvent):
        for key_event in _read_until(events, yaml.MappingEndEvent):
            assert isinstance(key_event, yaml.ScalarEvent)  # other keys were refused when the value was read
            child = canonical.child_path(path, str(_scalar(key_event)))
            yield child, _place(key_event)
            yield from _places(events, next(events), child)


def _key(event: yaml.Event, members: dict[str, JsonValue]) -> str:
    _refuse_machinery(event)
    key = _scalar(event) if isinstance(event, yaml.ScalarEvent) else None
    if not isinstance(key, str):
        _refuse(_place(event), "a key must be text; put it in quotes")
    if key in members:
        _refuse(_place(event), f"the key {key!r} appears twice; keep one")
    return key


def _refuse_machinery(event: Any) -> None:
    if event.anchor is not None:  # for an alias, the name of its anchor
        _refuse(_place(event), "anchors and aliases are not read; write the value out")
    if event.tag is not None:
        _refuse(_place(event), "tags are not read; remove it, and quote the value if it is text")


def _scalar(event: yaml.ScalarEvent) -> object:
    text: str = event.value
    is_plain = event.implicit[0]
    if is_plain and text[:1] not in _MEANS_MORE:
        return text  # no escapes without quotes, so nothing that JSON cannot represent
    try:
        value = _resolve(text) if is_plain else text
        canonical.refuse_unholdable(value)
    except FormatError as error:
        _refuse(_place(event), f"{error.reason}; put it in quotes if it is text")
    except ValueError:  # Python reads no integer of thousands of digits
        _refuse(_place(event), "the number does not fit into 64 bits; put it in quotes if it is text")
    return value


def _resolve(text: str) -> object:
    found = _RESOLVER.fullmatch(text)
    if found is None or found.lastindex is None:
        return text
    _, meaning = _CORE_SCHEMA[found.lastindex - 1]
    return meaning(text)


class _Dumper(yaml.SafeDumper):
    """Writes no anchors, and quotes text that a reader of either version would not read as text."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - the name is the base class's
        return True

    def represent_text(self, text: str) -> yaml.ScalarNode:
        # Only double quotes keep all line breaks.
        style = None if text.isprintable() else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _Dumper.represent_text)
_Dumper.add_implicit_resolver(
    "tag:yaml.org,2002:core", re.compile(rf"(?:{'|'.join(pattern for pattern, _ in _CORE_SCHEMA)})\Z"), None
)

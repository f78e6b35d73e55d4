"""Cassettes of vcrpy and pytest-recording (YAML, JSON), of cassetter, Betamax, and VCR in Ruby, Go and PHP.

The first two store bodies as they were sent, as text or base64, or as values under ``parsed_body``; cassetter
stores JSON bodies as values. Older versions differ in names and kinds, not in content. A test that used the
cassette can replay the capture: a request is matched as a whole, not only by its address.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import date
from email.utils import parsedate_to_datetime
from functools import lru_cache, partial
from http import HTTPStatus
from io import BytesIO
from itertools import zip_longest
from typing import Any, BinaryIO, Final, NamedTuple

import yaml
from yaml.composer import Composer

from reenact.errors import FormatError
from reenact.importers.building import KnownFields, Line, RunBuilder, iso_ms
from reenact.importers.importing import Importer, Runs
from reenact.importers.source import (
    HALF_CHARACTER,
    ForeignSource,
    Losses,
    Unfit,
    encode_text,
    expect_list,
    expect_object,
    type_mismatch,
)
from reenact.seams.http.message import Head, Pairs
from reenact.seams.http.request import Sent

_VERSIONS: Final = (0, 1, 2)
"""Version 0 was a list alone; go-vcr writes 2."""
_INTERACTIONS: Final = ("interactions", "http_interactions")
_YAML_LIST: Final = re.compile(rb"^(?:http_)?interactions:", re.MULTILINE)
_YAML_ALONE: Final = re.compile(rb"(?:---[^\n]*\n|#[^\n]*\n|\s)*(?=-\s+(?:!\S+\s+)?request:)")
"""The text before an early cassette, which is a list alone."""
_YAML_TWO_LISTS: Final = re.compile(rb"^requests:\s*- ", re.MULTILINE)
_YAML_VERSION: Final = re.compile(rb"^version:", re.MULTILINE)
_ITEM: Final = re.compile(rb"^ *-[ \n]", re.MULTILINE)
_MEMBER: Final = re.compile(rb"^[^\s#-]", re.MULTILINE)
_OTHER_PROTOCOLS: Final = ("grpc_interactions", "ws_interactions", "websocket_interactions")
_TOP: Final = KnownFields(*_INTERACTIONS, *_OTHER_PROTOCOLS, "version", "recorded_with", metadata=None)
_INTERACTION: Final = frozenset({"request", "response", "recorded_at", "id", "index"})
_WIRE: Final = (
    "proto", "proto_major", "proto_minor", "content_length", "transfer_encoding", "trailer", "uncompressed",
)  # fmt: skip
"""What Go says of a message; its headers and body say it, too."""
_REQUEST: Final = KnownFields(
    "method", "uri", "url", "body", "headers", "parsed_body", "protocol", "host", "port", "path", *_WIRE,
    "remote_addr", "request_uri", form=None,
)  # fmt: skip
_STORED: Final = frozenset({"string", "base64_string", "encoding"})
_KINDS: Final = ("json", "text", "binary", "none")
_RESPONSE: Final = KnownFields(
    "body", "headers", "parsed_body", "protocol", "http_version", "status_code", "url", "uri", "content",
    *_WIRE, "code", "duration", status=KnownFields("code", "message", "http_version"),
    adapter_metadata=KnownFields("vcr_decompressed", "effective_url"),
)  # fmt: skip


_Numbered = list[tuple[int, int | None, object]]
"""Interactions with their numbers, and their lines if known."""


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # a dynamic base class
    """Reads the values of cassettes; it never runs code from the file.

    A plain scalar is a number, a boolean or null only if both YAML 1.1 and 1.2 agree: cassetter writes
    ``12:30`` and ``on`` without quotes for texts. Values are built from nodes directly, in two thirds of
    PyYAML's time; PyYAML's own constructors are used only for tags.
    """

    def descend_resolver(self, node: object, index: object) -> None:
        """Does nothing: no resolvers by path are used."""

    def ascend_resolver(self) -> None:
        """Does nothing: no resolvers by path are used."""

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:
        if kind is not yaml.ScalarNode:
            return _LIST_TAG if kind is yaml.SequenceNode else _MAP_TAG
        if implicit[0]:
            for tag, pattern in self.yaml_implicit_resolvers.get(value[:1], ()):
                if pattern.match(value):
                    return str(tag)
        return _TEXT_TAG

    def construct_document(self, node: object) -> object:
        self._built: dict[yaml.Node, tuple[object, int]] = {}
        """The values that aliases may refer to, with the number of values in each."""
        self._count = 0
        try:
            return self._build(node)
        finally:
            self._built = {}
            self.constructed_objects: dict[yaml.Node, object] = {}
            self.recursive_objects: dict[yaml.Node, object] = {}

    def _build(self, node: Any) -> Any:
        if type(node) is yaml.ScalarNode:
            return node.value if node.tag == _TEXT_TAG else self.construct_object(node, deep=True)
        if (found := self._built.get(node)) is not None:
            self._count += found[1]
            if self._count > _MAX_VALUES:
                raise ValueError(f"aliases stand for more than {_MAX_VALUES} values")
            return found[0]
        before = self._count
        self._count += len(node.value)
        value: object
        if node.tag == _MAP_TAG:
            if any(key.tag == _MERGE_TAG for key, _ in node.value):
                self.flatten_mapping(node)
            try:
                value = {self._build(key): self._build(child) for key, child in node.value}
            except TypeError:
                raise ValueError("the name of a member is not a text") from None
        elif node.tag == _LIST_TAG:
            value = [self._build(child) for child in node.value]
        else:
            value = self.construct_object(node, deep=True)
        self._built[node] = value, self._count - before
        return value


_TEXT_TAG: Final = "tag:yaml.org,2002:str"
_LIST_TAG: Final = "tag:yaml.org,2002:seq"
_MAP_TAG: Final = "tag:yaml.org,2002:map"
_SHORT_CHARACTERS: Final = 32
_MERGE_TAG: Final = "tag:yaml.org,2002:merge"
_MAX_NESTED: Final = 100
_MAX_VALUES: Final = 20_000_000
"""A limit for nested aliases; a cassette without aliases has fewer values than bytes."""
_CORE: Final = {
    "tag:yaml.org,2002:null": (re.compile(r"~|null|Null|NULL|"), ["~", "n", "N", ""]),
    "tag:yaml.org,2002:bool": (re.compile(r"true|True|TRUE|false|False|FALSE"), list("tTfF")),
    "tag:yaml.org,2002:int": (re.compile(r"[-+]?(?:0|[1-9][0-9]*)"), list("-+0123456789")),
    "tag:yaml.org,2002:float": (
        re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan"),
        list("-+0123456789."),
    ),
    "tag:yaml.org,2002:merge": (re.compile(r"<<"), ["<"]),
}
_Loader.yaml_implicit_resolvers = {}
for _tag, (_pattern, _first) in _CORE.items():
    _Loader.add_implicit_resolver(_tag, re.compile(rf"(?:{_pattern.pattern})\Z"), _first)


def _text_node(loader: Any, node: object) -> str:
    return str(loader.construct_scalar(node))


def _sequence_node(loader: Any, node: object) -> list[object]:
    return list(loader.construct_sequence(node, deep=True))


def _plain_node(loader: Any, _: str, node: Any) -> object:
    """The plain value of an object of Python or Ruby: its arguments, its state or its members."""
    if isinstance(node, yaml.ScalarNode):
        return str(loader.construct_scalar(node))
    if isinstance(node, yaml.SequenceNode):
        found = loader.construct_sequence(node, deep=True)
        return found[0] if len(found) == 1 else found
    members = loader.construct_mapping(node, deep=True)
    return next((members[name] for name in ("dictitems", "state") if name in members), members)


def _buffer_node(loader: Any, node: object) -> bytes:
    state = loader.construct_mapping(node, deep=True).get("state") or (b"",)
    content = state[0]
    return content.encode() if isinstance(content, str) else bytes(content)


def _iterator_node(loader: Any, node: object) -> list[object]:
    args = loader.construct_mapping(node, deep=True).get("args") or [[]]
    return list(args[0])


_Loader.add_constructor("tag:yaml.org,2002:python/str", _text_node)
_Loader.add_constructor("tag:yaml.org,2002:python/unicode", _text_node)
_Loader.add_constructor("tag:yaml.org,2002:python/tuple", _sequence_node)
_Loader.add_constructor("!binary", yaml.SafeLoader.construct_yaml_binary)
_Loader.add_multi_constructor("!ruby/", _plain_node)
_Loader.add_multi_constructor("tag:yaml.org,2002:python/object", _plain_node)
_Loader.add_constructor("tag:yaml.org,2002:python/object/new:_io.BytesIO", _buffer_node)
_Loader.add_constructor("tag:yaml.org,2002:python/object/apply:builtins.iter", _iterator_node)


class _Uncommon(Exception):
    """The text has aliases, merged or tagged members, which need the loader that composes nodes."""


def load_yaml(text: bytes) -> object:
    """The value of a YAML text, built directly from the parser's events.

    That takes half the time of composing nodes first, which is used only for uncommon features.
    """
    loader = _Loader(text)
    try:
        return _build_from_events(loader)
    except _Uncommon:
        return yaml.load(text, _Loader)
    finally:
        loader.dispose()


def _build_from_events(loader: Any) -> object:
    first_letters = loader.yaml_implicit_resolvers
    next_event = loader.get_event
    plain: dict[str, object] = {}
    """A cache for the values of plain scalars such as numbers, because most of them repeat."""
    items: list[object] = []
    """The items of the current list, or the alternating names and values of the current object."""
    outer: list[list[object]] = []
    while True:
        event = next_event()
        kind = type(event)
        if kind is yaml.ScalarEvent:
            text = event.value
            is_text = event.tag is None and (not event.implicit[0] or text[:1] not in first_letters)
            items.append(text if is_text and event.anchor is None else _scalar_value(loader, event, plain))
        elif kind is yaml.MappingEndEvent:
            made: object = _make_object(items)
            items = outer.pop()
            items.append(made)
        elif kind is yaml.SequenceEndEvent:
            made, items = items, outer.pop()
            items.append(made)
        elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
            if event.tag is not None or event.anchor is not None or len(outer) > _MAX_NESTED:
                raise _Uncommon
            outer.append(items)
            items = []
        elif kind is yaml.StreamEndEvent and len(items) == 1:
            return items[0]
        elif kind is yaml.AliasEvent or kind is yaml.StreamEndEvent:
            raise _Uncommon


def _scalar_value(loader: Any, event: Any, plain: dict[str, object]) -> object:
    is_plain = event.tag is None and event.anchor is None and event.implicit[0]
    if is_plain and event.value in plain:
        return plain[event.value]
    tag = event.tag or loader.resolve(yaml.ScalarNode, event.value, event.implicit)
    if event.anchor is not None or tag in (_MERGE_TAG, "!"):
        raise _Uncommon
    node = yaml.ScalarNode(tag, event.value, event.start_mark, event.end_mark)
    value = loader.construct_object(node, deep=True)
    if is_plain and len(event.value) <= _SHORT_CHARACTERS:
        plain[event.value] = value
    return value


def _make_object(items: list[object]) -> dict[object, object]:
    try:
        return dict(zip(items[::2], items[1::2], strict=True))
    except TypeError:
        raise ValueError("the name of a member is not a text") from None


def _recognises(source: ForeignSource) -> bool:
    head = source.head
    if head.lstrip().startswith((b"{", b"[")):
        is_alone = re.match(rb'\s*\[\s*{\s*"re(?:quest|sponse)"\s*:', head) is not None
        is_named = any(source.has(name) for name in _INTERACTIONS)
        return source.has("request") and (is_named or (is_alone and source.has("response", "method")))
    if _YAML_LIST.search(head) is not None:
        return b"request:" in head or re.search(rb"interactions: *\[ *\]", head) is not None
    is_list = _YAML_ALONE.match(head) is not None or _YAML_TWO_LISTS.search(head) is not None
    return is_list and b" method:" in head and b" headers:" in head


def _read(source: ForeignSource, runs: Runs) -> None:
    is_large = source.is_large
    if source.head.lstrip().startswith((b"{", b"[")):
        _read_json(source, runs, is_large=is_large)
        return
    if is_large:
        _read_stream(source, runs)
        return
    text = source.read()
    # If a name occurs twice, a parser keeps only the last. The count takes a tenth of the expression's time.
    if text.count(b"interactions:") > 1 and len(_YAML_LIST.findall(text)) > 1:
        _read_stream(source, runs)
        return
    try:
        document, lost, lines = _parse(text, source.name)
        found = next((document[name] for name in _INTERACTIONS if name in document), None)
        listed = expect_list("interactions", found)
    except RecursionError:
        raise FormatError("the cassette is nested too deeply", file=source.name) from None
    except Unfit as error:
        raise FormatError(f"no cassette: {error}", file=source.name) from None
    run = runs.open()
    for reason, line in lost:
        run.note_loss(reason, line)
    _check_members(run, document, is_whole=not lost, version_line=partial(_version_line, text))

    def line_of(number: int) -> int | None:
        known = lines or _interaction_lines(text)
        return known[number - 1] if number <= len(known) else None

    numbered: _Numbered = [(number, None, each) for number, each in enumerate(listed, 1)]
    for number, _, interaction in _in_order(numbered):
        _try_interaction(run, number, interaction, partial(line_of, number))


@lru_cache(maxsize=1)
def _interaction_lines(text: bytes) -> list[int]:
    """The line on which each interaction begins; the text is parsed again, only if one is lost."""
    lines: list[int] = []
    depth, name, list_depth = 0, "", 0
    for event in yaml.parse(text, _Loader):
        if isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
            list_depth = list_depth if depth >= list_depth else 0
        elif isinstance(event, yaml.NodeEvent):
            if list_depth and depth == list_depth:
                lines.append(_line_of(event))
            is_named = depth == 0 or (depth == 1 and name in _INTERACTIONS)
            if is_named and isinstance(event, yaml.SequenceStartEvent):
                list_depth = depth + 1
            if depth == 1:
                name = event.value if isinstance(event, yaml.ScalarEvent) else ""
            depth += isinstance(event, yaml.CollectionStartEvent)
    return lines


def _line_of(event: Any) -> int:
    return int(event.start_mark.line) + 1


def _read_json(source: ForeignSource, runs: Runs, *, is_large: bool) -> None:
    """Import interactions: those of a large file in file order, those of a small one in recorded order."""
    run = runs.open()
    members: dict[str, Any] = {}
    numbered: _Numbered = []
    lost: Losses = []
    number, version_line = 0, None
    # Before version 1 a cassette was the list alone.
    for path, line, value, is_item in source.members([*((name,) for name in _INTERACTIONS), ()], lost):
        if not is_item:
            version_line = line if path == ("version",) else version_line
            members |= {path[0]: value} if path else {"version": 0, "interactions": []} if value == [] else {}
            continue
        number += 1
        if is_large:
            _try_interaction(run, number, value, line)
        else:
            numbered.append((number, line, value))
    if not number and (lost or not any(isinstance(members.get(name), list) for name in _INTERACTIONS)):
        reason, at = lost[0] if lost else ("expected an object with interactions", None)
        raise FormatError(f"no cassette: {reason}", file=source.name, line=at)
    for reason, at in lost:
        run.note_loss(reason, at)
    _check_members(run, members, is_whole=not lost, version_line=version_line)
    for number, at, interaction in _in_order(numbered):
        _try_interaction(run, number, interaction, at)


def _version_line(text: bytes) -> int:
    """The line that says the version, or the last one."""
    stated = _YAML_VERSION.search(text)
    return text.count(b"\n", 0, stated.start() if stated else len(text.rstrip())) + 1


def _check_members(
    run: RunBuilder, document: dict[str, object], *, is_whole: bool, version_line: Line = None
) -> None:
    """Check the version of the cassette, and that it has only HTTP interactions."""
    run.check_fields("", document, _TOP)
    version = document.get("version")
    if version is not None and version not in _VERSIONS:
        reason = f"version {version!r} of cassettes is not known; it was read as version 1"
        run.note_loss(reason, version_line)
    elif version is None and "recorded_with" not in document and is_whole:
        run.note_loss(
            "the cassette does not say its version; it may have been cut off at its end", version_line
        )
    for name in _OTHER_PROTOCOLS:
        for _ in run.objects(name, document.get(name), version_line):
            run.note_loss(f"{name}: only HTTP can be imported")
    run.note_missing("boundaries of streamed chunks", "tasks that made the calls", "HTTP versions")


def _try_interaction(run: RunBuilder, number: int, interaction: object, line: Line) -> None:
    run.attempt(line, _import_interaction, run, interaction, what=f"interaction {number}")


class _StreamLoader(Composer, _Loader):
    """Composes one value at a time in Python from events that C parses, so that memory can be freed."""

    def __init__(self, stream: BinaryIO) -> None:
        _Loader.__init__(self, stream)  # type: ignore[call-arg]
        Composer.__init__(self)

    def next_value(self) -> object:
        return self.construct_document(self.compose_node(None, None))  # type: ignore[arg-type]

    def take(self, kind: type[yaml.Event]) -> None:
        """Skip an event of that kind; raises ``ValueError`` for any other event."""
        if not self.check_event(kind):
            raise ValueError("expected an object with interactions")
        self.get_event()


def _import_items(run: RunBuilder, loader: _StreamLoader) -> None:
    loader.take(yaml.SequenceStartEvent)
    number = 0
    while not loader.check_event(yaml.SequenceEndEvent):
        number += 1
        line = _line_of(loader.peek_event())
        _try_interaction(run, number, loader.next_value(), line)
    loader.take(yaml.SequenceEndEvent)


def _import_document(run: RunBuilder, loader: _StreamLoader) -> dict[str, object]:
    """Import the interactions of a document; returns its other members."""
    if loader.check_event(yaml.SequenceStartEvent):
        _import_items(run, loader)
        return {"version": 0}
    members: dict[str, object] = {}
    loader.take(yaml.MappingStartEvent)
    while not loader.check_event(yaml.MappingEndEvent):
        name = str(loader.next_value())
        if name in _INTERACTIONS and loader.check_event(yaml.SequenceStartEvent):
            members[name] = []
            _import_items(run, loader)
        else:
            members[name] = loader.next_value()
    loader.take(yaml.MappingEndEvent)
    return members


def _read_stream(source: ForeignSource, runs: Runs) -> None:
    """Import a large cassette, or several in one file, one interaction at a time, in file order."""
    run = runs.open()
    members: dict[str, object] = {}
    is_whole = False
    lost: tuple[str, int | None] = ("it holds no readable interaction", None)
    with source.stream() as stream:
        loader = _StreamLoader(stream)
        try:
            loader.take(yaml.StreamStartEvent)
            while not loader.check_event(yaml.StreamEndEvent):
                loader.take(yaml.DocumentStartEvent)
                members |= _import_document(run, loader)
                loader.take(yaml.DocumentEndEvent)
            is_whole = True
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            mark = getattr(error, "problem_mark", None)
            reason = getattr(error, "problem", None) or str(error).partition("\n")[0]
            lost = f"the rest is not YAML: {reason}", None if mark is None else mark.line + 1
            run.note_loss(*lost)
        finally:
            loader.dispose()
    if run.is_empty:
        raise FormatError(lost[0], file=source.name, line=lost[1])
    _check_members(run, members, is_whole=is_whole)


def _in_order(numbered: _Numbered) -> _Numbered:
    """Sort by recorded time: cassetter sorts interactions by address, but records their times."""
    times = {
        number: iso_ms(_time_of(each)) if isinstance(each, dict) else None for number, _, each in numbered
    }
    if any(time is None for time in times.values()):
        return numbered
    return sorted(numbered, key=lambda each: times[each[0]] or 0)


def _parse(text: bytes, name: str) -> tuple[dict[str, object], Losses, list[int]]:
    """Parse a cassette in YAML; of a damaged one, also the losses and the lines of its interactions."""
    try:
        # libyaml takes bytes; a decoded text would be copied for each look-ahead.
        return _as_document(load_yaml(text)), [], []
    except (yaml.YAMLError, ValueError) as error:
        document, lost, lines = _yaml_items(text)
        if not document["interactions"]:
            mark = getattr(error, "problem_mark", None)
            reason = getattr(error, "problem", None) or str(error).partition("\n")[0]
            line = None if mark is None else mark.line + 1
            raise FormatError(f"no cassette: {reason}", file=name, line=line) from None
        return document, lost, lines


def _as_document(value: object) -> dict[str, object]:
    if isinstance(value, list):  # before version 1 a cassette was the list alone
        return {"version": 0, "interactions": value}
    if not isinstance(value, dict):
        raise ValueError("expected an object with interactions")
    document = {str(name): child for name, child in value.items()}
    asked, answered = document.get("requests"), document.get("responses")
    if isinstance(asked, list) and isinstance(answered, list):
        # LangChain's tests keep requests and responses apart.
        both = [{"request": each, "response": answer} for each, answer in zip_longest(asked, answered)]
        kept = {name: child for name, child in document.items() if name not in ("requests", "responses")}
        return {"version": 0, **kept, "interactions": both}
    return document


def _yaml_items(text: bytes) -> tuple[dict[str, object], Losses, list[int]]:
    """The items of a damaged YAML list that can be read."""
    began = _YAML_LIST.search(text) or _YAML_ALONE.match(text)
    first = _ITEM.search(text, began.end()) if began else None
    if began is None or first is None:
        return {"interactions": []}, [], []
    mark = b"\n" + text[first.start() : first.end()]
    items: list[object] = []
    lines: list[int] = []
    lost: Losses = []
    line = text.count(b"\n", 0, first.start()) + 1
    # After the list, further members, or damaged parts of them, may begin at the start of a line.
    after = _MEMBER.search(text, first.end())
    for part in _split_before(text[first.start() : after.start() if after else len(text)], mark):
        try:
            value = load_yaml(part)
            items += value if isinstance(value, list) else []
            lines += [line] * (len(items) - len(lines))
        except (yaml.YAMLError, ValueError) as error:
            problem = getattr(error, "problem_mark", None)
            place = line + (problem.line if problem is not None else 0)
            lost.append((f"no YAML: {getattr(error, 'problem', None) or 'unreadable value'}", place))
        line += part.count(b"\n")
    return {"interactions": items}, lost or [("the end of the cassette is missing", line)], lines


def _split_before(text: bytes, mark: bytes) -> Iterator[bytes]:
    start = 0
    while (end := text.find(mark, start)) >= 0:
        yield text[start : end + 1]
        start = end + 1
    yield text[start:]


def _import_interaction(run: RunBuilder, interaction: Any) -> None:
    run.check_fields("interaction", interaction, _INTERACTION)
    request = expect_object("request", interaction.get("request"))
    response = expect_object("response", interaction.get("response"))
    run.check_fields("request", request, _REQUEST)
    run.check_fields("response", response, _RESPONSE)
    run.at(run.time_ms(_time_of(interaction)))
    headers = _headers(request.get("headers"))
    method = request.get("method")
    if not isinstance(method, str):
        raise type_mismatch("request.method", "a text", method)
    answer, asked = _body(response), _body(request)
    if any(map(_has_half_character, (response, request))):
        run.note_loss(HALF_CHARACTER)
    head = _head(response)
    if answer.is_remade:
        run.note_missing("exact bytes of JSON bodies")
    if answer.is_remade or (answer.is_decoded and head.content_encoding):
        # The recorded length is the one of the bytes that were sent.
        head = head.for_decoded_body(len(answer.content))
    # The first VCR in Ruby wrote symbols.
    sent = Sent(method.removeprefix(":").upper(), _address(request), headers, asked.content)
    run.exchange(sent, head, answer.content, is_decoded=answer.is_decoded)


def _address(request: dict[str, Any]) -> str:
    """The address of a request, which early cassettes have in parts."""
    url = request.get("uri", request.get("url"))
    if url is None and all(isinstance(request.get(name), str) for name in ("protocol", "host", "path")):
        scheme, port = request["protocol"], request.get("port")
        place = "" if port is None or str(port) == _PORTS.get(scheme) else f":{port}"
        return f"{scheme}://{request['host']}{place}{request['path']}"
    if not isinstance(url, str):
        raise Unfit("the request has no address")
    return url


_PORTS: Final = {"http": "80", "https": "443"}


def _head(response: dict[str, Any]) -> Head:
    status: Any = response.get("status", response.get("status_code"))
    code, phrase = (status.get("code"), status.get("message")) if isinstance(status, dict) else (status, None)
    if isinstance(code, str):  # Go writes "200 OK", PHP "200"
        code, _, phrase = code.partition(" ") if phrase is None else (code, "", phrase)
        code = int(code) if code.isdecimal() and len(code) == _CODE_DIGITS else None
    if not isinstance(code, int):
        raise Unfit("the response has no status; the cassette may have been cut off here")
    if not isinstance(phrase, str) or not phrase:
        phrase = HTTPStatus(code).phrase if code in HTTPStatus._value2member_map_ else ""
    version = response.get("http_version") or response.get("protocol") or response.get("proto")
    named = str(version) if isinstance(version, str) and version.startswith("HTTP/") else "HTTP/1.1"
    named = "HTTP/2" if named == "HTTP/2.0" else named
    return Head(code, phrase, named, _headers(response.get("headers")))


_CODE_DIGITS: Final = 3


def _headers(headers: object) -> Pairs:
    """Headers as pairs, from a mapping to values or lists of values, from pairs, or from lines."""
    if isinstance(headers, dict) and headers.keys() == {"_store"}:  # a mapping that ignores case, pickled
        stored = headers["_store"]
        headers = list(stored.values()) if isinstance(stored, dict) else [pair for _, pair in stored]
    pairs = headers.items() if isinstance(headers, dict) else expect_list("headers", headers)
    found: Pairs = []
    for each in pairs:
        pair = each.rstrip("\r\n").split(": ", 1) if isinstance(each, str) else each
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise Unfit("headers: expected an object, or pairs of a name and a value")
        name, value = pair
        named = _plain(name)
        for each in value if isinstance(value, list | tuple) else [value]:
            found.append((named, each if isinstance(each, str) else _plain(each)))
    return found


def _plain(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return "" if value is None else str(value)


class _Body(NamedTuple):
    content: bytes
    is_decoded: bool = False
    """Its content coding was removed before it was saved."""
    is_remade: bool = False
    """It was saved as a value, and these bytes are serialized from it."""


def _body(message: dict[str, Any]) -> _Body:
    if message.get("parsed_body") is not None:
        return _Body(_encode_json(message["parsed_body"]), is_decoded=True, is_remade=True)
    if "body" not in message and "content" in message:
        # vcrpy's first stubs for httpx: text that was decoded, or bytes.
        return _Body(_bytes(message["content"]), is_decoded=isinstance(message["content"], str))
    body = message.get("body")
    if not isinstance(body, dict):
        return _Body(_bytes(body))
    if "base64_string" in body and body.keys() <= _STORED:
        return _Body(_from_base64(body["base64_string"]))
    if "string" in body and body.keys() <= _STORED:
        return _Body(_bytes(body["string"]))
    if "type" in body and body.keys() <= {"type", "content"} and body["type"] in _KINDS:
        return _typed_body(body["type"], body.get("content"))
    return _Body(_encode_json(body), is_decoded=True, is_remade=True)  # for aiohttp, vcrpy saves the value


def _typed_body(kind: str, content: object) -> _Body:
    """A body of cassetter, which is saved without its content coding."""
    if kind == "json":
        return _Body(_encode_json(content), is_decoded=True, is_remade=True)
    if kind == "binary" and not isinstance(content, bytes):
        return _Body(_from_base64(content), is_decoded=True)
    return _Body(_bytes(content), is_decoded=True)


def _encode_json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def _has_half_character(message: dict[str, Any]) -> bool:
    body = message.get("body", message.get("content"))
    text = body.get("string", body.get("content")) if isinstance(body, dict) else body
    return isinstance(text, str) and not text.isascii() and not encode_text(text)[1]


def _from_base64(text: object) -> bytes:
    try:
        return base64.b64decode(_bytes(text), validate=False)
    except (binascii.Error, ValueError) as error:
        raise Unfit(f"a body is not base64: {error}") from None


def _bytes(body: object) -> bytes:
    if body is None:
        return b""
    if isinstance(body, bytes | bytearray):
        return bytes(body)
    if isinstance(body, BytesIO):
        return body.getvalue()
    if isinstance(body, str):
        return encode_text(body)[0]
    if isinstance(body, list | tuple):
        return b"".join(map(_bytes, body))
    return _encode_json(body)


def _time_of(interaction: dict[str, Any]) -> Any:
    """When it was recorded; YAML may have values of dates."""
    recorded = interaction.get("recorded_at")
    if isinstance(recorded, str) and _WEEKDAY.match(recorded):
        with suppress(ValueError):
            return parsedate_to_datetime(recorded).isoformat()
    return recorded.isoformat() if isinstance(recorded, date) else recorded


_WEEKDAY: Final = re.compile("[A-Z][a-z]{2}, ")


IMPORTER: Final = Importer(
    name="vcr",
    title="cassettes of vcrpy, pytest-recording, cassetter, Betamax and VCR in Ruby, Go and PHP",
    version=1,
    fidelity="replayable",
    recognises=_recognises,
    read=_read,
)

"""Applies all rules to JSON values and text, repeatedly until nothing more is found."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeAlias, cast

import msgspec

from reenact.canonical import is_unicode
from reenact.redaction.assignments import assignment_edits, is_lone_value, looks_secret
from reenact.redaction.coded import (
    MAX_DEPTH,
    Registered,
    base64_edits,
    find_wide_coding,
    is_readable,
    percent_edits,
    redact_wide,
    views,
)
from reenact.redaction.edits import Edit, apply, move_cuts, move_spans, sort_edits
from reenact.redaction.families import Shapes
from reenact.redaction.jsontext import json_spans, leaves, scalar_edit, scalars
from reenact.redaction.markup import form_name, form_part_edits, markup_edits
from reenact.redaction.names import (
    HARMLESS,
    holds_numbers,
    is_cookie_name,
    is_headers_name,
    is_secret_name,
)
from reenact.redaction.nearby import looks_generated
from reenact.redaction.placeholder import Placeholders, placeholder_spans
from reenact.redaction.places import (
    argument_name,
    basic_password,
    beside_edits,
    cookie_edits,
    header_line_edits,
    is_http_client,
    member_edits,
    option_edits,
    scheme_edits,
    url_edits,
    urls_in_text,
    user_option_edits,
)
from reenact.redaction.tables import is_cell_value, secret_columns, table_edits
from reenact.values.tags import TAG

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

Text: TypeAlias = tuple[str, Sequence[int]]
"""A text, and ascending positions in it that are adjusted with it."""

_decode: Final = msgspec.json.Decoder().decode
_REMEMBERED_CHARS: Final = 200
"""Results for shorter texts, such as headers, are cached; longer ones hardly repeat."""

_TAGGED_BYTES: Final = ("bytes", "bytearray")
_TAGGED_TEXT: Final = "str"
"""A text with half characters, as the hexadecimal digits of its UTF-16."""
_TAGGED_SCALARS: Final = (
    *("Decimal", "UUID", "date", "datetime", "float", "int", "path", _TAGGED_TEXT, "time"),
)
_NAMING: Final = frozenset(
    (
        *(
            "name",
            "key",
            "field",
            "header",
            "param",
            "parameter",
            "variable",
            "attribute",
            "property",
            "id",
            "k",
        ),
        *("label", "title", "setting", "option", "env", "var", "path"),
    )
)
"""Last words of members whose value is the name of another member's value: ``ParameterKey``, ``path``."""
_VALUES: Final = frozenset({"value", "val", "values", "v"})
_CONTENTS: Final = frozenset({"content", "contents", "data", "default", "text"})
"""Members that may hold the value of a name, if it looks like one: messages and schemas have them, too."""
_OWN_VALUES: Final = frozenset({"value", "val", "v", "plaintext", "plain", "string", "s"})
"""Members that hold an object's value: ``{"password": {"stringValue": "…"}}``."""
_LIKELY_VALUES: Final = frozenset({"text", "raw", "current", "content", "data", "new", "old"})
"""Further members of this kind, whose value must look like one."""
_NAMING_TOOLS: Final = frozenset({"name", "tool", "function", "method"})
"""The values of these may be names of actions, such as ``reset_password``."""
_IDENTITIES: Final = frozenset({
    "id", "ids", "type", "kind", "url", "uri", "href", "model", "version", "date", "time",
    "timestamp", "at", "hash", "digest", "sha", "etag", "name", "role", "ref", "path",
    "file", "created", "updated", "object", "uuid", "selector", "target", "element",
    "locator", "pattern", "format", "class", "color", "encoding",
})  # fmt: skip
"""Members of a named object that do not hold its value."""
_ASKED_END: Final = re.compile(r"(?:\s+(?:field|input|box|textbox|here))?[\s:?.*]*\Z")
_MAX_ASKED: Final = 60
_LAST_WORD: Final = re.compile(r"(?:[A-Z]?[a-z]+|[A-Z]+)\Z")
_CLASS: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_][\w.<>]*")
"""A recorded class: ``app.tokens:Session`` is not the name ``tokens`` with a value."""
_COOKIE_HEADERS: Final = frozenset({"cookie", "cookie2", "set-cookie", "set-cookie2"})


@dataclass(frozen=True)
class TextRules:
    """All rules of one redactor, for texts that the prefilter suspects."""

    placeholders: Placeholders
    registered: Registered
    shapes: Shapes
    is_suspect: Callable[[str], bool]
    """The prefilter: false only if no rule can match."""
    is_base64_suspect: Callable[[str], bool]
    by_name: bool
    """Whether names and positions count; otherwise only registered secrets and shapes do."""
    strict: bool
    _redact_cached: Callable[[str | None, str, bool], str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_redact_cached", lru_cache(4096)(self._redact_member))

    # JSON values

    def redact_value(self, name: str | None, value: Json, *, in_header: bool = False) -> Json:
        """Redact the value of the member *name*; objects and arrays are walked, not replaced."""
        if isinstance(value, str):
            return self.redact_member(name, value, in_header=in_header)
        if isinstance(value, dict):
            return self._redact_object(name, value, in_header=in_header)
        if isinstance(value, list):
            return self._redact_items(name, value, in_header=in_header)
        if isinstance(value, int | float) and not isinstance(value, bool):
            text = str(value)
            redacted = self._redact_number(name, text)
            return value if redacted == text else redacted
        return value

    def redact_member(self, name: str | None, value: str, *, in_header: bool = False) -> str:
        """Redact the string value of the member *name*, or an item of an array."""
        is_short = len(value) <= _REMEMBERED_CHARS
        return (self._redact_cached if is_short else self._redact_member)(name, value, in_header)

    def redact_arguments(self, arguments: Sequence[str]) -> list[str]:
        """Redact the arguments of a program; any value after ``--api-key`` is secret."""
        redacted = []
        is_client = any(map(is_http_client, arguments[:3]))
        for before, argument in zip((None, *arguments), arguments, strict=False):
            name, in_header = argument_name(before, argument) if self.by_name else (None, False)
            user = user_option_edits(before, argument, is_http_client=is_client) if self.by_name else None
            if user is not None:
                argument = argument[: user[0]] + self.placeholders.of(user[1])
            elif in_header and ":" in argument:
                argument = self._redact_header_line(argument)
            redacted.append(self.redact_member(name, argument))
        return redacted

    def _redact_header_line(self, line: str) -> str:
        name, _, value = line.partition(":")
        start = len(line) - len(value.lstrip())
        return line[:start] + self.redact_member(name.strip(), line[start:], in_header=True)

    def _redact_member(self, name: str | None, value: str, in_header: bool) -> str:
        redacted = self._redact_named(name, value, in_header)
        if "\0" not in redacted:
            return redacted
        # Zeros between characters: it may be UTF-16 that was read as something else.
        plain = redacted.replace("\0", "")
        found = self._redact_named(name, plain, in_header)
        return redacted if found == plain else found

    def _redact_named(self, name: str | None, value: str, in_header: bool) -> str:
        if self.by_name and name is not None:
            is_cookie = name.lower() in _COOKIE_HEADERS if in_header else is_cookie_name(name)
            if is_cookie and "=" in value:
                edits = cookie_edits(value, self.placeholders, first_only=name.lower().startswith("set"))
                value = apply(value, sort_edits(edits, placeholder_spans(value)))
            elif is_secret_name(name, in_header=in_header) and not (in_header and _is_count(name, value)):
                return apply(value, sort_edits(member_edits(value, self.placeholders)))
            elif _last_word(name) == "auth" and (password := basic_password(value)):
                return self.placeholders.of(password)
        if name == "type" and _CLASS.fullmatch(value):
            module, _, kind = value.partition(":")
            return f"{self.redact(module)}:{self.redact(kind)}"
        return self.redact(value)

    def _redact_number(self, name: str | None, text: str) -> str:
        if self.by_name and name is not None and is_secret_name(name) and holds_numbers(name):
            return self.placeholders.of(text)
        return apply(text, sort_edits(self._redact_registered(text)))

    def _redact_object(self, name: str | None, value: dict[str, Json], *, in_header: bool) -> Json:
        if _is_tagged_scalar(value):
            return self._redact_tagged(
                value, lambda text: self.redact_member(name, text, in_header=in_header)
            )
        content = value.get("value")
        if TAG in value and isinstance(content, list):
            return value | {"value": self._redact_items(name, content, in_header=in_header)}
        members = {self.redact_member(None, key): member for key, member in value.items()}
        # Next to log probabilities, "token" is a piece of text.
        ordinary = "token" if "logprob" in members else None
        holds_headers = in_header or (name is not None and is_headers_name(name))
        holds_cookies = self.by_name and name is not None and is_cookie_name(name)
        redacted = {
            key: self.redact_value(None if key == ordinary else key, member, in_header=holds_headers)
            for key, member in members.items()
        }
        if self.by_name:
            if name is not None and is_secret_name(name, in_header=in_header):
                redacted |= {
                    key: self.redact_value(name, member, in_header=in_header)
                    for key, member in members.items()
                    if isinstance(member, str)
                    and (
                        _last_word(key) in _OWN_VALUES
                        or (_last_word(key) in _LIKELY_VALUES and is_lone_value(member))
                    )
                }
            self._redact_announced(members, redacted, in_header=holds_headers)
            redacted |= self._redact_rows(members)
            if holds_cookies:
                redacted |= self._redact_cookies(members)
        return cast(Json, redacted)

    def _redact_announced(
        self, members: dict[str, Json], redacted: dict[str, Json], *, in_header: bool
    ) -> None:
        """Redact named values, ``{"name": "X_API_KEY", "value": "…"}``, and the parts of forms."""
        words = {key: _last_word(key) for key in members}
        names = [
            name
            for key, name in members.items()
            if words[key] in _NAMING and isinstance(name, str) and is_secret_name(name, in_header=in_header)
        ]
        for key in words if names else ():
            member = members[key]
            is_content = words[key] in _CONTENTS and "role" not in members and isinstance(member, str)
            if words[key] in _VALUES or (is_content and is_lone_value(cast(str, member))):
                redacted[key] = self.redact_value(names[0], member, in_header=in_header)
        self._redact_asked(members, words, redacted)
        headers = members.get("headers")
        if isinstance(headers, dict) and "content" in members:
            disposition = headers.get("content-disposition")
            field_name = form_name(disposition) if isinstance(disposition, str) else None
            if field_name is not None:
                redacted["content"] = self.redact_value(field_name, members["content"])

    def _redact_asked(
        self, members: dict[str, Json], words: dict[str, str], redacted: dict[str, Json]
    ) -> None:
        """Redact ``{"question": "password", "answer": "…"}``, ``{"selector": "#password", "text": "…"}``."""
        asked = [
            key
            for key, name in members.items()
            if isinstance(name, str)
            and len(name) <= _MAX_ASKED
            and words[key] not in _NAMING_TOOLS
            and is_secret_name(_ASKED_END.sub("", name))
        ]
        for key, member in members.items() if asked and "role" not in members else ():
            if key not in asked and words[key] not in _IDENTITIES and isinstance(member, str):  # noqa: SIM102
                if looks_generated(member):
                    redacted[key] = self.redact_value(_ASKED_END.sub("", str(members[asked[0]])), member)

    def _redact_cookies(self, members: dict[str, Json]) -> dict[str, Json]:
        chosen = {"value": members["value"]} if {"name", "value"} <= members.keys() else members
        return {
            name: self.placeholders.of(value)
            for name, value in chosen.items()
            if isinstance(value, str) and value and not HARMLESS.match(value)
        }

    def _redact_items(self, name: str | None, items: list[Json], *, in_header: bool) -> Json:
        if not self.by_name or not items:
            return [self.redact_value(None, item) for item in items]
        heads = items[0] if isinstance(items[0], list) else []
        columns = secret_columns(heads)
        if columns and len(heads) > 2:  # rows of two are pairs, whose values may look like names
            return [
                self.redact_value(None, heads),
                *(self._redact_row(heads, columns, row) for row in items[1:]),
            ]
        pairs = [_as_pair(item) for item in items]
        if all(pair is not None for pair in pairs):
            holds_headers = in_header or (name is not None and is_headers_name(name))
            both = zip(items, cast("list[tuple[str, Json]]", pairs), strict=True)
            return [self._redact_pair(item, *pair, in_header=holds_headers) for item, pair in both]
        if all(isinstance(item, str) for item in items):
            return cast(Json, self._redact_strings(name, cast("list[str]", items), in_header=in_header))
        below = name if name is not None and (is_headers_name(name) or is_cookie_name(name)) else None
        return [
            self.redact_value(None, item, in_header=in_header)
            if isinstance(item, str)
            else self.redact_value(below, item, in_header=in_header)
            for item in items
        ]

    def _redact_rows(self, members: dict[str, Json]) -> Iterator[tuple[str, Json]]:
        """Redact ``{"columns": ["user", "password"], "rows": [["bob", "…"]]}``."""
        heads = [names for names in members.values() if isinstance(names, list) and secret_columns(names)]
        for key, rows in members.items() if heads else ():
            if isinstance(rows, list) and rows and all(isinstance(row, list) for row in rows):
                yield key, [self._redact_row(heads[0], secret_columns(heads[0]), row) for row in rows]

    def _redact_row(self, names: list[Json], columns: list[int], row: Json) -> Json:
        """Redact one row of a table; *columns* are the positions of the secret *names*."""
        redacted = self.redact_value(None, row)
        if isinstance(row, list) and isinstance(redacted, list) and len(row) == len(names):
            for at in columns:
                value, name = row[at], cast(str, names[at])
                if isinstance(value, str) and is_cell_value(name, value, is_lone_value):
                    redacted[at] = self.redact_member(name, value)
        return redacted

    def _redact_pair(self, item: Json, name: str, value: Json, *, in_header: bool) -> Json:
        redacted: list[Json] = [
            self.redact_member(None, name),
            self.redact_value(name, value, in_header=in_header),
        ]
        return item | {"value": redacted} if isinstance(item, dict) else redacted

    def _redact_strings(self, name: str | None, items: list[str], *, in_header: bool) -> list[str]:
        if name is not None and is_secret_name(name, in_header=in_header):
            return [self.redact_member(None if is_secret_name(item) else name, item) for item in items]
        redacted = self.redact_arguments(items)
        is_value = is_lone_value if len(items) == 2 else looks_secret
        for at in range(0, len(items) if len(items) % 2 == 0 else 0, 2):
            # Names of constants may have digits, too.
            is_constant = len(items) > 2 and items[at + 1].isupper()
            if is_secret_name(items[at]) and is_value(items[at + 1]) and not is_constant:
                redacted[at + 1] = self.redact_member(items[at], items[at + 1])
        return redacted

    def _redact_tagged(self, value: dict[str, Json], redact: Callable[[str], str]) -> Json:
        """Redact a value of a Python type: bytes stay bytes, anything else becomes a text."""
        text = cast(str, value["value"])
        if value[TAG] in _TAGGED_BYTES:
            return value | {"value": _redact_bytes(text, redact)}
        if value[TAG] == _TAGGED_TEXT:
            return _redact_half_characters(value, text, redact)
        new = redact(text)
        return value if new == text else new

    # Text

    def redact(self, text: str, depth: int = 0) -> str:
        """Redact *text*; *depth* is the number of encodings around it that were decoded."""
        return self.redact_with_cuts(text, (), depth)[0]

    def redact_with_cuts(self, text: str, cuts: Sequence[int], depth: int = 0) -> Text:
        """Redact *text*, and also return the new positions of *cuts*."""
        while self.is_suspect(text):
            before = text
            text, cuts = self._redact_once(text, cuts, depth)
            if text == before:
                break
        return text, cuts

    def _redact_once(self, text: str, cuts: Sequence[int], depth: int) -> Text:
        for make_view in views(text):
            view = make_view(text)
            spans = json_spans(view.text)
            edits = sort_edits(self._json_edits(view.text, spans))
            if edits:
                text, cuts = _apply_edits(text, cuts, view.to_original_edits(edits))
                view = make_view(text)
                spans = json_spans(view.text)
            for stage in self._stages(depth) if spans != [(0, len(view.text))] else ():
                found = list(stage(view.text))
                edits = sort_edits(found, [*spans, *placeholder_spans(view.text)]) if found else []
                if edits:
                    text, cuts = _apply_edits(text, cuts, view.to_original_edits(edits))
                    view, spans = make_view(text), move_spans(spans, edits)
        # Decoding may have split an encoded form: in "%3132…" the digits 31 are an escape and part of a form.
        left = list(self._redact_registered(text))
        spans = [*json_spans(text), *placeholder_spans(text)] if left else []
        return _apply_edits(text, cuts, sort_edits(left, spans))

    def _json_edits(self, text: str, spans: Sequence[tuple[int, int]]) -> Iterator[Edit]:
        for start, end in spans:
            value = _decode(text[start:end])
            places = list(scalars(text, start, end))
            before, after = list(leaves(value)), list(leaves(self.redact_value(None, value)))
            if not len(places) == len(before) == len(after):  # an object has a duplicate name
                before = [place.value for place in places]
                after = [self.redact_member(None if p.is_name else p.name, p.value) for p in places]
            for place, old, new in zip(places, before, after, strict=True):
                if old != new:
                    yield scalar_edit(text, place, str(new))

    def _stages(self, depth: int) -> Iterator[Callable[[str], Iterable[Edit]]]:
        """The rules for plain text, the most certain first."""
        if depth < MAX_DEPTH:
            yield lambda text: base64_edits(
                text, self.is_base64_suspect, lambda plain: self._redact_decoded(plain, depth + 1)
            )
            yield lambda text: percent_edits(text, lambda plain: self.redact(plain, depth + 1))
        yield self._redact_registered
        if self.by_name:
            yield lambda text: urls_in_text(text, lambda url: url_edits(url, self.placeholders))
        yield self._redact_shapes
        if self.by_name:
            found_by: tuple[Callable[[str, Placeholders], Iterator[Edit]], ...] = (
                scheme_edits,
                header_line_edits,
                lambda text, placeholders: markup_edits(text, placeholders, is_lone_value),
                form_part_edits,
                lambda text, placeholders: table_edits(text, placeholders, is_lone_value),
                option_edits,
                beside_edits,
                lambda text, placeholders: assignment_edits(text, placeholders, strict=self.strict),
            )
            for edits in found_by:
                yield lambda text, edits=edits: edits(text, self.placeholders)  # type: ignore[misc]

    def _redact_decoded(self, text: str, depth: int) -> str:
        """Redact decoded base64; names count only if it is text, since they occur by chance in other data."""
        if is_readable(text.encode("utf-8", "surrogateescape")):
            return self.redact(text, depth)
        for stage in (self._redact_registered, self._redact_shapes):
            text = apply(text, sort_edits(stage(text), placeholder_spans(text)))
        return text

    def _redact_registered(self, text: str) -> Iterator[Edit]:
        for start, end, secret in self.registered.find(text):
            yield Edit(start, end, self.placeholders.of(secret))

    def _redact_shapes(self, text: str) -> Iterator[Edit]:
        for start, end in self.shapes.find(text):
            yield Edit(start, end, self.placeholders.of(text[start:end]))


def _apply_edits(text: str, cuts: Sequence[int], edits: Sequence[Edit]) -> Text:
    return (apply(text, edits), move_cuts(cuts, edits)) if edits else (text, cuts)


@lru_cache(4096)
def _last_word(name: str) -> str:
    """The last word in lowercase: ``value`` for ``stringValue``, ``string_value`` and ``VALUE``."""
    found = _LAST_WORD.search(name)
    return found[0].lower() if found else ""


def _is_count(name: str, value: str) -> bool:
    """Whether a header counts tokens: ``x-usage-tokens: 12``."""
    return value.isdigit() and name.lower().endswith("tokens")


def _as_pair(item: Json) -> tuple[str, Json] | None:
    """A name and its value, as forms and some dictionaries are encoded: ``["password", "…"]``."""
    items = item.get("value") if isinstance(item, dict) and item.get(TAG) in ("tuple", "list") else item
    if isinstance(items, list) and len(items) == 2 and isinstance(items[0], str):
        return items[0], items[1]
    return None


def _is_tagged_scalar(value: dict[str, Json]) -> bool:
    """Whether an object encodes one Python value as text."""
    kind = value.get(TAG)
    return kind in (*_TAGGED_BYTES, *_TAGGED_SCALARS) and isinstance(value.get("value"), str)


def _redact_half_characters(value: dict[str, Json], text: str, redact: Callable[[str], str]) -> Json:
    """Redact a text that JSON cannot hold; without its half characters it is one that JSON can."""
    try:
        plain = bytes.fromhex(text).decode("utf-16-le", "surrogatepass")
    except ValueError:
        return redact(text)
    new = redact(plain)
    if new == plain:
        return value
    return new if is_unicode(new) else value | {"value": new.encode("utf-16-le", "surrogatepass").hex()}


def _redact_bytes(text: str, redact: Callable[[str], str]) -> str:
    try:
        data = b64decode(text, validate=True)
    except binascii.Error:
        return redact(text)
    if (wide := find_wide_coding(data)) is not None:
        data = redact_wide(data, wide, redact)
        text = b64encode(data).decode()
    plain = data.decode("utf-8", "surrogateescape")
    new = redact(plain)
    return text if new == plain else b64encode(new.encode("utf-8", "surrogateescape")).decode()

"""Secret names with values in XML, HTML and multipart forms."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

from reenact.lazy_regex import LazyRegex
from reenact.redaction.edits import Edit
from reenact.redaction.literals import to_lowered
from reenact.redaction.names import HARMLESS, is_secret_name
from reenact.redaction.placeholder import Placeholders

_TOKEN: Final = LazyRegex(
    r"<!--[^-]*+(?:-(?!->)[^-]*+)*+(?:-->|\Z)"
    r"|<!\[CDATA\[(?P<cdata>[^\]]*+(?:\](?!\]>)[^\]]*+)*+)(?:\]\]>|\Z)"
    r"|<(?P<close>/?)(?P<tag>[A-Za-z_][\w.:\-]{0,100})"
    r"(?P<attributes>(?:\s(?:[^<>\"'/]|/(?!>)|\"[^\"<]{0,4096}+\"|'[^'<]{0,4096}+')*+)?)(?P<empty>/?)>"
    r"|(?P<text>[^<]++)"
)
_ATTRIBUTE: Final = LazyRegex(
    r"(?P<name>[\w.:\-]+)\s*=\s*(?:\"(?P<double>[^\"<]{0,4096})\"|'(?P<single>[^'<]{0,4096})'"
    r"|(?P<bare>[^\s\"'<>=`]{1,4096}))"
)
_NAMING_ATTRIBUTES: Final = frozenset({"name", "key", "id", "property"})
_VALUE_ATTRIBUTES: Final = frozenset({"value", "content"})
_NAMING_ELEMENTS: Final = frozenset({"key", "name", "property", "param"})
_CELLS: Final = {"td": "td", "th": "td", "dt": "dd"}
"""The tag of the cell with a value, by the tag of the cell with its name."""
_VALUE_ELEMENTS: Final = frozenset({"value", "val", "string", "text", "plaintext", "code", "b", "i", "span"})
_VOID: Final = frozenset({"br", "hr", "img", "input", "meta", "link", "wbr"})


def markup_edits(
    text: str, placeholders: Placeholders, is_lone_value: Callable[[str], bool]
) -> Iterator[Edit]:
    """Edits for ``<password>…</password>``, ``<user password="…">``, ``<add key="password" value="…"/>``.

    And for ``<key>password</key><string>…</string>``. A table cell after a name must look like a value.
    """
    if "<" not in text or ">" not in text:
        return
    reader = _Reader(text, is_lone_value)
    for token in _TOKEN.finditer(text):
        for start, end in reader.read(token):
            value = text[start:end].strip()
            if value and not HARMLESS.match(value):
                start = text.index(value, start)
                yield Edit(start, start + len(value), placeholders.of(value))


@dataclass
class _Reader:
    """The state while reading a document: the open elements, and whether a secret name came before."""

    text: str
    is_lone_value: Callable[[str], bool]
    open: list[tuple[str, bool]] = field(default_factory=list)
    """The open elements since the first secret one, each with whether its text is secret."""
    tag: str = ""
    """The last start tag."""
    named: str = ""
    """The tag of an element whose text is the name of a secret."""

    def read(self, token: re.Match[str]) -> Iterator[tuple[int, int]]:
        """The spans of secrets in the next *token*."""
        if token["tag"]:
            yield from self._read_tag(token)
        elif token["text"] is not None or token["cdata"] is not None:
            yield from self._read_text(token, "text" if token["text"] is not None else "cdata")

    def _read_tag(self, token: re.Match[str]) -> Iterator[tuple[int, int]]:
        tag = token["tag"].rpartition(":")[2]
        lowered = tag.lower()
        if token["close"]:
            if any(name == tag for name, _ in self.open):
                while self.open.pop()[0] != tag:
                    pass
            return
        attributes = list(_ATTRIBUTE.finditer(token["attributes"])) if token["attributes"] else []
        names = [_value(each)[0] for each in attributes if _local_name(each).lower() in _NAMING_ATTRIBUTES]
        is_announced = any(map(is_secret_name, names))
        for attribute in attributes:
            name = _local_name(attribute)
            if is_secret_name(name) or (is_announced and name.lower() in _VALUE_ATTRIBUTES):
                start, end = attribute.span(_value(attribute)[1])
                yield token.start("attributes") + start, token.start("attributes") + end
        self.tag = lowered
        if not token["empty"] and lowered not in _VOID:
            is_secret = is_announced or is_secret_name(tag)
            if is_secret or self.open:
                inherits = bool(self.open) and self.open[-1][1] and lowered in _VALUE_ELEMENTS
                self.open.append((tag, is_secret or inherits))

    def _read_text(self, token: re.Match[str], group: str) -> Iterator[tuple[int, int]]:
        value = token[group].strip()
        if not value:
            return
        if self.named:
            is_next = self.tag != self.named if self.named not in _CELLS else self.tag == _CELLS[self.named]
            if is_next and (self.named not in _CELLS or self.is_lone_value(value)):
                yield token.span(group)
        self.named = ""
        if self.open and self.open[-1][1]:
            is_closed = self.text.startswith(("</", "]]></"), token.end(group)) or group == "cdata"
            if is_closed or not re.search(r"[\s>]", value):
                yield token.span(group)
        elif self.tag in _NAMING_ELEMENTS or self.tag in _CELLS:
            is_name = (
                len(value) <= 100
                and re.fullmatch(r"[\w.\- ]+:?", value)
                and is_secret_name(value.rstrip(":"))
            )
            if is_name and self.text.startswith("</", token.end(group)):
                self.named = self.tag


def _local_name(attribute: re.Match[str]) -> str:
    return attribute["name"].rpartition(":")[2]


def _value(attribute: re.Match[str]) -> tuple[str, str]:
    """The value of an attribute, and the group it is in."""
    group = next(name for name in ("double", "single", "bare") if attribute[name] is not None)
    return attribute[group], group


# Multipart forms

_FORM_NAME: Final = (
    r"\bname(?:\*=[\w\-]*'[\w\-]*'(?P<coded>[^;\s]{1,300})|=[\"']?(?P<name>[^\"';\r\n]{1,100})[\"']?)"
)
_FORM_PART: Final = LazyRegex(
    r"(?:(?:\A|\n)(?P<boundary>--[^\r\n]{1,100})\r?\n(?:[^\r\n]+\r?\n){0,10}?[^\r\n]*)?"
    rf"form-data;(?:[^\r\n]|\r?\n[ \t]){{0,300}}?{_FORM_NAME}(?:[^\r\n]|\r?\n[ \t])*+"
    r"(?:\r?\n[^\r\n]+)*\r?\n\r?\n",
    re.IGNORECASE,
)
_DISPOSITION: Final = LazyRegex(rf"form-data;.*?{_FORM_NAME}", re.IGNORECASE | re.DOTALL)
_LINE_WITH_DASHES: Final = LazyRegex(r"\r?\n--|\Z")


def form_part_edits(text: str, placeholders: Placeholders) -> Iterator[Edit]:
    """Edits for the fields of a multipart form."""
    if b"form-data" not in to_lowered(text):
        return
    for part in _FORM_PART.finditer(text):
        name = part["name"] or unquote(part["coded"])
        if is_secret_name(name):
            end = _part_end(text, part.end(), part["boundary"])
            value = text[part.end() : end]
            if value and not HARMLESS.match(value):
                yield Edit(part.end(), end, placeholders.of(value))


def _part_end(text: str, start: int, boundary: str | None) -> int:
    """The end of a part's content: before its boundary, or any line like one if the boundary is unknown."""
    end = text.find(f"\n{boundary}", start) if boundary else -1
    if end >= 0:
        return end - (text[end - 1] == "\r")
    found = _LINE_WITH_DASHES.search(text, start)
    assert found is not None
    return found.start()


def form_name(disposition: str) -> str | None:
    """The field name in a ``content-disposition`` header."""
    found = _DISPOSITION.search(disposition)
    return (found["name"] or unquote(found["coded"])) if found else None

"""The viewer's own files, read once, and its modules as one script for a page that carries its own.

A request names a key of the table of files, never a path. In the script each module becomes a function that
is called once and returns what the module exports; an import becomes a look at what an earlier one returned.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Final

INDEX: Final = "index.html"
PROGRAM: Final = "main.js"

MEDIA_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


def styles() -> list[str]:
    """The names of the style sheets, in the order in which the page takes them."""
    return re.findall(r'<link rel="stylesheet" href="([\w.]+)">', static_files()[INDEX].decode())


@cache
def static_files() -> dict[str, bytes]:
    """Every file of ``static/`` by its name."""
    folder = files("reenact.viewer") / "static"
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def media_type(name: str) -> str:
    """What a browser is told that the file *name* is."""
    return MEDIA_TYPES[name[name.rindex(".") :]]


_IMPORT: Final = re.compile(r'^import (\{[^}]*\}) from "\./(\w+)\.js";$', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export ((?:async )?(?:function|class|const) (\w+))", re.MULTILINE)


def bundle(files: Mapping[str, bytes], entry: str) -> str:
    """The module *entry* with all it imports, directly or not."""
    return "\n".join(_wrapped(name, files) for name in _order(files, entry.removesuffix(".js"), set()))


def _order(files: Mapping[str, bytes], name: str, seen: set[str]) -> Iterator[str]:
    """Every module once, behind those it imports."""
    if name in seen:
        return
    seen.add(name)
    for _, imported in _IMPORT.findall(files[f"{name}.js"].decode()):
        yield from _order(files, imported, seen)
    yield name


def _wrapped(name: str, files: Mapping[str, bytes]) -> str:
    module = files[f"{name}.js"].decode()
    exports = ", ".join(found for _, found in _EXPORT.findall(module))
    body = _EXPORT.sub(r"\1", _IMPORT.sub(r"const \1 = module_\2;", module))
    return f"const module_{name} = (() => {{\n{body}return {{ {exports} }};\n}})();"

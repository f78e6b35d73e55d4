"""The viewer's own files, read once; a request names a key of this table, never a path."""

from __future__ import annotations

import re
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

"""The static files of the viewer, read once, and the bundled program of a self-contained page.

A request names a key of the table of files, never a path. esbuild makes the program from the modules in
``static/`` (``make viewer``); it is kept in the package, so that writing a page needs no JavaScript tool. Its
first line identifies the modules.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Final

INDEX: Final = "index.html"
PROGRAM: Final = "page.js"

MEDIA_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@cache
def static_files() -> dict[str, bytes]:
    """All files of ``static/``, by name."""
    folder = files("reenact.viewer") / "static"
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def media_type(name: str) -> str:
    """The content type of the file *name*."""
    return MEDIA_TYPES[name[name.rindex(".") :]]


def page_program() -> str:
    """The bundled program."""
    return (files("reenact.viewer") / PROGRAM).read_text("utf-8")


def modules_mark() -> str:
    """The first line of a program that was bundled from the current modules."""
    running = sha256()
    for name, content in sorted(static_files().items()):
        if name.endswith(".js"):
            running.update(b"%b\n%d\n%b" % (name.encode(), len(content), content))
    return f"// made of static/*.js by make viewer: sha256:{running.hexdigest()}"

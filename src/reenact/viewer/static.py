"""The viewer's own files, read once, and the program of a page that carries its own.

A request names a key of the table of files, never a path. The program is made of the modules in ``static/``
by esbuild (``make viewer``) and kept beside them, so that a page can be written where there is no JavaScript
tool; its first line says of which modules.
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
    """Every file of ``static/`` by its name."""
    folder = files("reenact.viewer") / "static"
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def media_type(name: str) -> str:
    """What a browser is told that the file *name* is."""
    return MEDIA_TYPES[name[name.rindex(".") :]]


def page_program() -> str:
    """All modules as one."""
    return (files("reenact.viewer") / PROGRAM).read_text("utf-8")


def modules_mark() -> str:
    """The first line of a program that was made of the modules as they are."""
    running = sha256()
    for name, content in sorted(static_files().items()):
        if name.endswith(".js"):
            running.update(b"%b\n%d\n%b" % (name.encode(), len(content), content))
    return f"// made of static/*.js by make viewer: sha256:{running.hexdigest()}"

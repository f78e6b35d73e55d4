"""Paths without the names of the people whose machines they are on."""

from __future__ import annotations

import re
from typing import Final

_POSIX: Final = re.compile(r"/(?:Users|home)/[^/\s\"'<>|:;,]+(?:/|(?=[\s\"'<>|:;,]|\Z))")
# A name may hold spaces there, as far as a separator follows it.
_SEPARATOR: Final = r"(?:\\{1,2}|/)"
_WINDOWS: Final = re.compile(
    rf"[A-Za-z]:{_SEPARATOR}Users{_SEPARATOR}"
    rf"(?:[^\\/\"'<>|:;,\r\n]+{_SEPARATOR}|[^\\/\s\"'<>|:;,]+)"
)
_FOLDERS: Final = re.compile(r"/var/folders/[^/\s]+/[^/\s]+/")


def without_users(text: str) -> str:
    """*text* with homes as ``/workspace/`` and macOS's private temporary folders as ``/tmp/``."""
    for private, public in ((_POSIX, "/workspace/"), (_WINDOWS, "/workspace/"), (_FOLDERS, "/tmp/")):
        text = private.sub(public, text)
    return text

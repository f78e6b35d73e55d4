"""What is not looked at in a folder: as ``.gitignore`` files say, and secrets and captures by their names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

IGNORE_FILE: Final = ".gitignore"
_MAX_BYTES: Final = 1 << 20
_SECRET_FILE: Final = re.compile(
    r"""\.env(?!\.(?:example|sample|template|dist|defaults)$)(?:\..*)?
    | .*\.(?:pem|key|p12|pfx|jks|keystore|kdbx|ppk|p8)
    | id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?
    | \.netrc | _netrc | \.pypirc | \.git-credentials | \.htpasswd | \.pgpass | \.my\.cnf
    | credentials(?:\.json)? | service[-_]account.*\.json | .*\.tfvars | \.vault-token""",
    re.VERBOSE | re.IGNORECASE,
)
_SECRET_FOLDERS: Final = frozenset({".ssh", ".gnupg", ".aws", ".kube"})


def is_secret_name(name: str, *, is_folder: bool) -> bool:
    """Whether what has this *name* is left out because keys and passwords are kept in such."""
    return name in _SECRET_FOLDERS if is_folder else _SECRET_FILE.fullmatch(name) is not None


class _Pattern(NamedTuple):
    matches: re.Pattern[str]
    is_negated: bool
    is_for_folders: bool
    is_of_names: bool
    """Whether it is compared with the name alone, at any depth."""


class IgnoreRules:
    """The patterns of one ignore file, which hold below its folder, and those of the folders *above*."""

    def __init__(self, text: str, above: IgnoreRules | None = None, prefix: str = "") -> None:
        """*prefix* is the path to where a caller's paths begin, from this file's folder."""
        self._patterns = _read_patterns(text)[::-1]
        self._above = above
        self._prefix = prefix

    def ignores(self, path: str, *, is_folder: bool) -> bool:
        """Whether *path*, from the file's own folder, is left out; the last pattern that matches decides."""
        own = self._prefix + path
        name = own.rpartition("/")[2]
        for pattern in self._patterns:
            if pattern.is_for_folders and not is_folder:
                continue
            if pattern.matches.fullmatch(name if pattern.is_of_names else own):
                return not pattern.is_negated
        return self._above is not None and self._above.ignores(path, is_folder=is_folder)

    def below(self, name: str) -> IgnoreRules:
        """The same rules for paths that begin in the subfolder *name*."""
        return _Below(self, f"{name}/") if self._patterns or self._above else self


class _Below(IgnoreRules):
    """Rules of the folder above."""

    def __init__(self, above: IgnoreRules, prefix: str) -> None:
        super().__init__("", above, prefix)

    def ignores(self, path: str, *, is_folder: bool) -> bool:
        assert self._above is not None
        return self._above.ignores(self._prefix + path, is_folder=is_folder)


def rules_above(root: Path) -> list[tuple[str, str]]:
    """What the repository around *root* says of it, if there is one: its excludes, and the files above.

    Each text comes with the path of *root* from its folder; the last one is the nearest.
    """
    parents = [root, *root.parents]
    top = next((place for place in parents if (place / ".git").exists()), None)
    if top is None:
        return []
    above = reversed(parents[1 : parents.index(top) + 1])
    files = [(top, top / ".git" / "info" / "exclude"), *((folder, folder / IGNORE_FILE) for folder in above)]
    found = [(folder, read_ignore_file(file)) for folder, file in files]
    return [(_path_from(folder, root), text) for folder, text in found if _read_patterns(text)]


def _path_from(folder: Path, root: Path) -> str:
    return "".join(f"{part}/" for part in root.relative_to(folder).parts)


def make_rules(above: Iterable[tuple[str, str]]) -> IgnoreRules:
    """The rules that :func:`rules_above` found."""
    rules: IgnoreRules | None = None
    for prefix, text in above:
        rules = IgnoreRules(text, rules, prefix)
    return rules or IgnoreRules("")


def read_ignore_file(file: Path) -> str:
    """What *file* says; nothing where it cannot be read, as git takes it."""
    try:
        fd = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(fd, "rb") as stream:
            return os.fsdecode(stream.read(_MAX_BYTES))
    except OSError:
        return ""


@lru_cache(256)
def _read_patterns(text: str) -> tuple[_Pattern, ...]:
    found = (_read_pattern(line) for line in text.removeprefix("\ufeff").split("\n"))
    return tuple(pattern for pattern in found if pattern is not None)


def _read_pattern(line: str) -> _Pattern | None:
    line = _without_trailing_spaces(line.removesuffix("\r"))
    if not line or line.startswith("#"):
        return None
    is_negated = line.startswith("!")
    line = line[1:] if is_negated else line
    is_for_folders = line.endswith("/")
    line = line.removesuffix("/")
    is_of_names = "/" not in line
    line = line.removeprefix("/")
    if not line:
        return None
    try:
        return _Pattern(re.compile(_translate(line), re.DOTALL), is_negated, is_for_folders, is_of_names)
    except (re.error, RecursionError):
        return None  # a pattern that git could not match either


def _without_trailing_spaces(line: str) -> str:
    while line.endswith(" ") and not line.endswith("\\ "):
        line = line[:-1]
    return line


def _translate(pattern: str) -> str:
    """The regular expression of git's *pattern*."""
    words, place = [], 0
    while place < len(pattern):
        rest = pattern[place:]
        is_at_start = place == 0 or pattern[place - 1] == "/"
        if is_at_start and rest.startswith("**/"):
            words.append("(?:[^/]+/)*")
            place += 3
        elif is_at_start and rest == "**":
            words.append(".+")
            place += 2
        elif rest[0] == "*":
            words.append("[^/]*")
            place += len(rest) - len(rest.lstrip("*"))
        elif rest[0] == "?":
            words.append("[^/]")
            place += 1
        elif rest[0] == "[" and (found := _CLASS.match(rest)) is not None:
            words.append(_translate_class(found))
            place += found.end()
        else:
            is_escape = rest[0] == "\\" and len(rest) > 1
            words.append(re.escape(rest[1] if is_escape else rest[0]))
            place += 2 if is_escape else 1
    return "".join(words)


_CLASS: Final = re.compile(
    r"\[(?P<not>[!^]?)(?P<members>(?:\[:[a-z]+:\]|\\.|(?<=[\[!^])\]|[^\]\\])+)\]", re.DOTALL
)
_NAMED: Final = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": " \\t",
    "digit": "0-9",
    "lower": "a-z",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\s",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}


def _translate_class(found: re.Match[str]) -> str:
    members = re.sub(r"\[:([a-z]+):\]", lambda named: _NAMED.get(named[1], ""), found["members"])
    if members == found["members"]:
        members = members.replace("[", r"\[").replace("]", r"\]").replace("^", r"\^")
        members = members.replace("&&", r"&\&").replace("||", r"|\|").replace("~~", r"~\~")
    return f"(?!/)[{'^' if found['not'] else ''}{members}]"

"""Which files of a folder are left out: those that ``.gitignore`` files name, and secrets by their names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from reenact.errors import FormatError

IGNORE_FILE: Final = ".gitignore"
_HEX: Final = "hex"
_ABOVE: Final = "$.data.workspace.above"
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
    """Whether files or folders of this *name* usually hold keys and passwords, and are left out."""
    return name in _SECRET_FOLDERS if is_folder else _SECRET_FILE.fullmatch(name) is not None


class _Pattern(NamedTuple):
    matches: re.Pattern[str]
    is_negated: bool
    is_for_folders: bool
    is_of_names: bool
    """Whether it matches the file name alone, at any depth."""


class IgnoreRules:
    """The patterns of one ignore file, which apply below its folder, and the rules of the folders *above*."""

    def __init__(self, text: str, above: IgnoreRules | None = None, prefix: str = "") -> None:
        """*prefix* is the path from this file's folder to the one that callers' paths are relative to."""
        self._patterns = _read_patterns(text)[::-1]
        self._above = above
        self._prefix = prefix

    def ignores(self, path: str, *, is_folder: bool) -> bool:
        """Whether *path*, relative to the file's folder, is ignored; the last matching pattern decides."""
        own = _to_byte_characters(self._prefix + path)
        name = own.rpartition("/")[2]
        for pattern in self._patterns:
            if pattern.is_for_folders and not is_folder:
                continue
            if pattern.matches.fullmatch(name if pattern.is_of_names else own):
                return not pattern.is_negated
        return self._above is not None and self._above.ignores(path, is_folder=is_folder)

    def for_subfolder(self, name: str) -> IgnoreRules:
        """The same rules for paths that begin in the subfolder *name*."""
        return _Below(self, f"{name}/") if self._patterns or self._above else self


class _Below(IgnoreRules):
    """The rules of the folder above, for paths in a subfolder."""

    def __init__(self, above: IgnoreRules, prefix: str) -> None:
        super().__init__("", above, prefix)

    def ignores(self, path: str, *, is_folder: bool) -> bool:
        assert self._above is not None
        return self._above.ignores(self._prefix + path, is_folder=is_folder)


def find_repository(root: Path) -> Path | None:
    """The top folder of the git working tree around *root*, if there is one."""
    return next((place for place in (root, *root.parents) if (place / ".git").exists()), None)


def rules_above(root: Path, excludes: Iterable[Path] = ()) -> list[tuple[str, ...]]:
    """The ignore rules from outside *root* in its git repository: *excludes*, and ignore files above.

    Each item is the path from the rule's folder to *root*, and the text of the rules; the nearest comes last.
    If they are not UTF-8, both are in hex, and a third member says so.
    """
    top = find_repository(root)
    if top is None:
        return []
    parents = [root, *root.parents]
    above = reversed(parents[1 : parents.index(top) + 1])
    files = [*((top, file) for file in excludes), *((folder, folder / IGNORE_FILE) for folder in above)]
    found = [(folder, read_ignore_file(file)) for folder, file in files]
    return [_as_utf8(_path_from(folder, root), text) for folder, text in found if _read_patterns(text)]


def _as_utf8(*texts: str) -> tuple[str, ...]:
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return (*(os.fsencode(text).hex() for text in texts), _HEX)
    return texts


def _path_from(folder: Path, root: Path) -> str:
    return "".join(f"{part}/" for part in root.relative_to(folder).parts)


def make_rules(above: Iterable[tuple[str, ...]]) -> IgnoreRules:
    """Parse the result of :func:`rules_above`; raises :class:`FormatError` for anything else."""
    rules: IgnoreRules | None = None
    for texts in above:
        try:
            is_hex = texts[2:] == (_HEX,)
            prefix, text = (os.fsdecode(bytes.fromhex(each)) for each in texts[:2]) if is_hex else texts
        except ValueError:
            raise FormatError("is not a path and the text of an ignore file", json_path=_ABOVE) from None
        rules = IgnoreRules(text, rules, prefix)
    return rules or IgnoreRules("")


def read_ignore_file(file: Path) -> str:
    """The text of *file*; empty if it cannot be read, as for git."""
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
        matches = re.compile(_translate(_to_byte_characters(line)), re.DOTALL)
    except _NeverMatches:
        return None
    return _Pattern(matches, is_negated, is_for_folders, is_of_names)


def _to_byte_characters(text: str) -> str:
    """*text* with one character per byte, since git compares bytes."""
    return text if text.isascii() else os.fsencode(text).decode("latin-1")


def _without_trailing_spaces(line: str) -> str:
    place = end = 0
    while place < len(line):
        place += 2 if line[place] == "\\" else 1
        if line[place - 1 : place] != " " or line[place - 2 : place - 1] == "\\":
            end = place
    return line[:end] if end < place else line


class _NeverMatches(Exception):
    """The pattern is invalid, so it matches nothing in git."""


_STAR: Final = "*"
_FOLDERS: Final = "**/"
_ALL: Final = "**"


def _translate(pattern: str) -> str:
    """Translate a pattern of git to a regular expression.

    What a star has matched is not tried again, because the pattern may be hostile: the first place where the
    text behind a star matches leaves most to the next star, and the first folder that matches leaves most to
    the next ``**``. Only the last of each may need a later place.
    """
    words = _read_words(pattern)
    end = ".*" if words[-1:] == [_ALL] else ""
    first, *others = _split(words[:-1] if end else words, _FOLDERS)
    text = _join_at_stars(first, is_last=not others and not end)
    for number, section in enumerate(others, 1):
        is_last = number == len(others) and not end
        inside = _join_at_stars(section, is_last=is_last)
        text += f"(?:.*/)?{inside}" if is_last else f"(?>(?:.*?/)??{inside})"
    return text + end


def _join_at_stars(words: list[str], *, is_last: bool) -> str:
    first, *others = map("".join, _split(words, _STAR))
    last = [f"[^/]*{others.pop()}"] if is_last and others else []
    return "".join([first, *(f"(?>[^/]*?{behind})" for behind in others), *last])


def _split(words: list[str], at: str) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for word in words:
        if word == at:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def _read_words(pattern: str) -> list[str]:
    """The words of a pattern: a star of one of three kinds, or an expression for one character."""
    words, place = [], 0
    while place < len(pattern):
        rest = pattern[place:]
        is_at_start = place == 0 or pattern[place - 1] == "/"
        stars = len(rest) - len(rest.lstrip("*"))
        if stars > 1 and is_at_start and rest[stars : stars + 1] in ("", "/"):
            words.append(_FOLDERS if rest[stars:] else _ALL)
            place += stars + 1
        elif stars:
            words.append(_STAR)
            place += stars
        elif rest[0] == "?":
            words.append("[^/]")
            place += 1
        elif rest[0] == "[":
            word, length = _translate_class(rest)
            words.append(word)
            place += length
        else:
            is_escape = rest[0] == "\\"
            if rest == "\\":
                raise _NeverMatches
            words.append(re.escape(rest[1] if is_escape else rest[0]))
            place += 2 if is_escape else 1
    return words


_NAMED: Final = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": " \\t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r" \t\n\r",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}


def _translate_class(text: str) -> tuple[str, int]:
    """Translate the character class at the start of *text* by git's rules; also returns its length."""
    place = 1
    is_negated = text[1:2] in ("!", "^")
    place += is_negated
    members: list[str] = []
    before = ""
    is_first = True
    while is_first or text[place : place + 1] != "]":
        is_first = False
        one = text[place : place + 1]
        if not one:
            raise _NeverMatches
        if one == "-" and before and text[place + 1 : place + 2] not in ("", "]"):
            place += 2 if text[place + 1] == "\\" else 1
            last = text[place : place + 1]
            if not last:
                raise _NeverMatches
            members += [f"{re.escape(before)}-{re.escape(last)}"] if before <= last else []
            before = ""
        elif one == "[" and text[place + 1 : place + 2] == ":":
            end = text.find("]", place + 2)
            name = text[place + 2 : end - 1]
            if end < 0 or (text[end - 1] == ":" and end > place + 2 and name not in _NAMED):
                raise _NeverMatches
            if text[end - 1] == ":" and end > place + 2:
                members.append(_NAMED[name])
                place, before = end, ""
            else:
                members.append(re.escape(one))
                before = one
        else:
            place += one == "\\"
            before = text[place : place + 1]
            if not before:
                raise _NeverMatches
            members.append(re.escape(before))
        place += 1
    sign = "^" if is_negated else ""
    inside = "".join(members)
    return (f"(?!/)[{sign}{inside}]" if inside else "[^/]" if is_negated else "(?!)"), place + 1

"""An event of a replay log as it may be published, under one of three policies.

Each member has a kind, and a policy says what becomes of each kind. What is not listed stays at home: the
parameters, and whatever this version does not know and cannot judge.

open      texts stay, without credentials, user names in paths and words of what was removed
private   texts are gone; names and hashes stay
paranoid  names and hashes are blinded as well: equal ones stay equal, and nobody can try out guesses
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any, Final, Literal, TypeAlias, get_args

from reenact import canonical
from reenact.formats.dialects import Event
from reenact.formats.dialects.common import UnknownEvent
from reenact.formats.hashes import BLINDED
from reenact.formats.record import ABSENT, Absent
from reenact.redaction import Redactor

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


PolicyName: TypeAlias = Literal["open", "private", "paranoid"]
POLICIES: Final[tuple[PolicyName, ...]] = get_args(PolicyName)

WITHHELD: Final = "<withheld>"
"""Stands where the format requires a text that is not published."""

_SIDE_EFFECTS: Final = frozenset({"fs_read", "fs_write", "network", "process_spawn", "deploy", "payment"})


class MemberKind(Enum):
    """What a member is, as far as publishing cares."""

    PLAIN = "numbers, times and words of the format"
    NUMBER = "a number that names something"
    NAME = "names: of tools, sessions, steps, errors"
    HASH = "unsalted hashes: what they cover can be guessed if it has few forms"
    TEXT = "free text that the format requires"
    DETAIL = "free text that may be absent"


def _members(kind: MemberKind, names: str) -> dict[str, MemberKind]:
    return dict.fromkeys(names.split(), kind)


KINDS: Final[Mapping[str, MemberKind]] = {
    **_members(MemberKind.PLAIN, "type event ts t created_at replay_version latency_ms ok status confidence"),
    **_members(MemberKind.PLAIN, "step_utility exit_code exit_codes duration_ms verification_delta"),
    **_members(MemberKind.PLAIN, "total_tool_calls total_latency_ms step_count iterations"),
    **_members(MemberKind.NUMBER, "issue_number"),
    **_members(MemberKind.NAME, "producer session_id step_id id lane tool policy_bundle_id policy_version"),
    **_members(MemberKind.NAME, "side_effects error.name"),
    **_members(MemberKind.HASH, "params_hash output_hash plan_hash"),
    **_members(MemberKind.TEXT, "command commands error.message"),
    **_members(MemberKind.DETAIL, "cwd summary error.stack repo.remote repo.branch repo.commit"),
}
"""Members by their path; those of ``error`` and ``repo`` are judged one by one."""

Word: TypeAlias = Callable[[str], str | Absent]
Wording: TypeAlias = Mapping[MemberKind, Word]
"""What becomes of the strings of each kind."""


class Cleaner:
    """Takes credentials, and the names of people in paths, out of what stays."""

    def __init__(self, key: bytes) -> None:
        self._in_names = Redactor("default", salt=key)
        self._in_texts = Redactor("strict", salt=key)

    def name(self, text: str) -> str:
        """A name, which keeps what only looks like a secret."""
        return self._in_names.redact_text(without_users(text))

    def text(self, text: str) -> str:
        """A free text."""
        return self._in_texts.redact_text(without_users(text))


def wording(policy: PolicyName, key: bytes, cleaner: Cleaner, masked: Callable[[str], str]) -> Wording:
    """The words of *policy*; *key* blinds, and *masked* takes the words of removed values out of a text."""

    def clean_text(text: str) -> str:
        return masked(cleaner.text(text))

    kept: Wording = {
        MemberKind.PLAIN: _same,
        MemberKind.NUMBER: _same,
        MemberKind.NAME: cleaner.name,
        MemberKind.HASH: cleaner.name,
    }
    if policy == "open":
        return {**kept, MemberKind.TEXT: clean_text, MemberKind.DETAIL: clean_text}
    hidden: Wording = {MemberKind.TEXT: _withheld, MemberKind.DETAIL: _dropped}
    if policy == "private":
        return {**kept, **hidden}
    blinded: Wording = {
        MemberKind.NAME: _blinder(key, "name-", 16),
        MemberKind.HASH: _blinder(key, f"{BLINDED}sha256:", 64),
    }
    return {MemberKind.PLAIN: _same, MemberKind.NUMBER: _dropped, **blinded, **hidden}


def publish_event(event: Event, line: Mapping[str, Any], words: Wording) -> dict[str, Any] | None:
    """*event*, which stands on *line*, in *words*; ``None`` for one that this version does not know."""
    if isinstance(event, UnknownEvent):
        return None
    names = (event.__struct_config__.tag_field or "", *event.__struct_fields__)
    known = {name: line[name] for name in names if name in line}
    derived = {"derived": True} if event.extra.get("derived") is True else {}
    return _present({name: _publish_member(name, value, words) for name, value in known.items()}) | derived


def _publish_member(path: str, value: Any, words: Wording) -> Any:
    kind = KINDS.get(path)
    if kind is not None:
        return _apply_word(value, words[kind])
    if not isinstance(value, dict):
        return ABSENT
    return (
        _present({name: _publish_member(f"{path}.{name}", member, words) for name, member in value.items()})
        or ABSENT
    )


def _present(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not ABSENT}


def _apply_word(value: Any, word: Word) -> Any:
    if isinstance(value, list):
        return [_apply_word(item, word) for item in value]
    if isinstance(value, str):
        return value if value in _SIDE_EFFECTS else word(value)
    return ABSENT if word is _dropped else value


def _same(text: str) -> str:
    return text


def _withheld(_: str) -> str:
    return WITHHELD


def _dropped(_: str) -> Absent:
    return ABSENT


def _blinder(key: bytes, prefix: str, digits: int) -> Callable[[str], str]:
    def blinded(text: str) -> str:
        return prefix + hmac.digest(key, (prefix + text).encode(), "sha256").hex()[:digits]

    return blinded


def fields_of(value: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an event by their JSON paths.

    A field is a member that is no object, at any depth; an array and an empty object are one field.
    """
    return dict(_fields(value, "$"))


def _fields(value: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    for key, child in value.items():
        name = canonical.child_path(path, key)
        if isinstance(child, dict) and child:
            yield from _fields(child, name)
        else:
            yield name, child

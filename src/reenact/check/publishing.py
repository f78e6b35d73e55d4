"""The parts of a run that may be published: events under one of three policies, sealed logs, lists of files.

Each member of an event has a kind, and a policy decides about each kind. Members that are not listed are
never published: the parameters, and members that this version does not know.

open      texts stay, without credentials, user names in paths, and words of removed values
private   texts are removed; names and hashes stay
paranoid  names and hashes are blinded too: equal ones stay equal, and guesses cannot be tested

Words of removed values are masked in the texts that stay, because error messages often repeat parameters. A
word that the log also uses as a name is not masked.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import Enum
from itertools import pairwise
from typing import Any, Final, Literal, TypeAlias, get_args

from reenact import canonical
from reenact.canonical import JsonValue
from reenact.formats.dialects import Event
from reenact.formats.dialects.common import Dialect, UnknownEvent
from reenact.formats.hashes import BLINDED
from reenact.formats.record import ABSENT, Absent
from reenact.formats.seal import SealedLine
from reenact.formats.workspace import TreeEntry
from reenact.redaction import Redactor
from reenact.workspace.compare import compare_trees, printable_path, walk
from reenact.workspace.history import WorkspaceHistory

_POSIX: Final = re.compile(r"/(?:Users|home)/[^/\s\"'<>|:;,]+(?:/|(?=[\s\"'<>|:;,]|\Z))")
# A user name may have spaces if a separator follows it.
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
"""Replaces an unpublished text that the format requires."""

_SIDE_EFFECTS: Final = frozenset({"fs_read", "fs_write", "network", "process_spawn", "deploy", "payment"})


class MemberKind(Enum):
    """The kinds of members that policies distinguish."""

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
"""Members by their path; the members of ``error`` and ``repo`` are listed one by one."""

Word: TypeAlias = Callable[[str], str | Absent]
Wording: TypeAlias = Mapping[MemberKind, Word]
"""How the strings of each kind are changed."""


class Cleaner:
    """Removes credentials, and user names in paths, from published strings."""

    def __init__(self, key: bytes) -> None:
        self._in_names = Redactor("default", salt=key)
        self._in_texts = Redactor("strict", salt=key)

    def name(self, text: str) -> str:
        """A name without credentials; values that only look like a secret stay."""
        return self._in_names.redact_text(without_users(text))

    def text(self, text: str) -> str:
        """A free text without credentials and user names."""
        return self._in_texts.redact_text(without_users(text))


def make_wording(policy: PolicyName, key: bytes, cleaner: Cleaner, masked: Callable[[str], str]) -> Wording:
    """The changes that *policy* makes; *key* blinds, and *masked* masks words of removed values in a text."""

    def clean_text(text: str) -> str:
        return masked(cleaner.text(text))

    kept: Wording = {
        MemberKind.PLAIN: _keep,
        MemberKind.NUMBER: _keep,
        MemberKind.NAME: cleaner.name,
        MemberKind.HASH: cleaner.name,
    }
    if policy == "open":
        return {**kept, MemberKind.TEXT: clean_text, MemberKind.DETAIL: clean_text}
    hidden: Wording = {MemberKind.TEXT: _withhold, MemberKind.DETAIL: _drop}
    if policy == "private":
        return {**kept, **hidden}
    blinded: Wording = {
        MemberKind.NAME: _blinder(key, "name-", 16),
        MemberKind.HASH: _blinder(key, f"{BLINDED}sha256:", 64),
    }
    return {MemberKind.PLAIN: _keep, MemberKind.NUMBER: _drop, **blinded, **hidden}


def publish_event(event: Event, line: Mapping[str, JsonValue], words: Wording) -> dict[str, JsonValue] | None:
    """*event* of *line* with *words* applied; ``None`` for an event that this version does not know."""
    if isinstance(event, UnknownEvent):
        return None
    names = (event.__struct_config__.tag_field or "", *event.__struct_fields__)
    known = {name: line[name] for name in names if name in line}
    derived = {"derived": True} if event.extra.get("derived") is True else {}
    return _present({name: _publish_member(name, value, words) for name, value in known.items()}) | derived


def _publish_member(path: str, value: object, words: Wording) -> object:
    kind = KINDS.get(path)
    if kind is not None:
        return _apply_word(value, words[kind])
    if not isinstance(value, dict):
        return ABSENT
    return (
        _present({name: _publish_member(f"{path}.{name}", member, words) for name, member in value.items()})
        or ABSENT
    )


def _present(members: dict[str, Any]) -> dict[str, JsonValue]:
    return {name: value for name, value in members.items() if value is not ABSENT}


def _apply_word(value: object, word: Word) -> object:
    if isinstance(value, list):
        return [_apply_word(item, word) for item in value]
    if isinstance(value, str):
        return value if value in _SIDE_EFFECTS else word(value)
    return ABSENT if word is _drop else value


def _keep(text: str) -> str:
    return text


def _withhold(_: str) -> str:
    return WITHHELD


def _drop(_: str) -> Absent:
    return ABSENT


def _blinder(key: bytes, prefix: str, digits: int) -> Callable[[str], str]:
    def blind(text: str) -> str:
        return prefix + hmac.digest(key, (prefix + text).encode(), "sha256").hex()[:digits]

    return blind


def fields_of(value: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The fields of an event by their JSON paths.

    A field is a member that is no object, at any depth; an array and an empty object are one field.
    """
    return dict(_fields(value, "$"))


def _fields(value: Mapping[str, JsonValue], path: str) -> Iterator[tuple[str, JsonValue]]:
    for key, child in value.items():
        name = canonical.child_path(path, key)
        if isinstance(child, dict) and child:
            yield from _fields(child, name)
        else:
            yield name, child


MIN_WORD_CHARS: Final = 8
MANY_WORDS: Final = 20_000
_WORD: Final = re.compile(r"\w+")
_SPACED: Final = re.compile(r"\S+")
MASK: Final = "…"


def words_of(value: JsonValue) -> Iterator[str]:
    """The words of a JSON value and its keys that are long enough to reveal something.

    A word is a sequence of letters, digits and underscores, or of all but white space, or a whole string.
    """
    if isinstance(value, dict):
        for key, child in value.items():
            yield from words_of(key)
            yield from words_of(child)
    elif isinstance(value, list):
        for child in value:
            yield from words_of(child)
    elif value is not None and not isinstance(value, bool):
        text = str(value)
        for word in (text.strip(), *_SPACED.findall(text), *_WORD.findall(text)):
            if len(word) >= MIN_WORD_CHARS:
                yield word


def masker(words: Iterable[str], names: Iterable[str]) -> Callable[[str], str]:
    """A function that masks *words* in a text, in any case, except those that are *names*."""
    patterns = set(map(_lower, words)).difference(map(_lower, names))
    if not patterns:
        return lambda text: text
    find = _finder_by_prefix(patterns) if len(patterns) > MANY_WORDS else _finder_by_automaton(patterns)

    def mask(text: str) -> str:
        pieces, done = [], 0
        for start, end in find(_lower(text)):
            pieces += [text[done:start], MASK]
            done = end
        return "".join([*pieces, text[done:]])

    return mask


def _lower(text: str) -> str:
    """*text* in lower case with the same length."""
    small = text.lower()
    if len(small) == len(text):
        return small
    return "".join(letter.lower() if len(letter.lower()) == 1 else letter for letter in text)


_Find: TypeAlias = Callable[[str], Iterable[tuple[int, int]]]
"""Returns the places of words in a text, from left to right; the longest word at each place."""


def _finder_by_automaton(words: set[str]) -> _Find:
    from ahocorasick_rs import AhoCorasick, MatchKind

    matcher = AhoCorasick(sorted(words), matchkind=MatchKind.LeftmostLongest)
    return lambda text: ((start, end) for _, start, end in matcher.find_matches_as_indexes(text))


def _finder_by_prefix(words: set[str]) -> _Find:
    """The same by the first characters of the words; building an automaton of many words takes minutes."""
    beginnings: dict[str, set[int]] = {}
    for word in words:
        beginnings.setdefault(word[:MIN_WORD_CHARS], set()).add(len(word))
    lengths = {beginning: sorted(found, reverse=True) for beginning, found in beginnings.items()}

    def find(text: str) -> Iterator[tuple[int, int]]:
        start = 0
        while start <= len(text) - MIN_WORD_CHARS:
            known = lengths.get(text[start : start + MIN_WORD_CHARS], ())
            length = next((size for size in known if text[start : start + size] in words), 0)
            if length:
                yield start, start + length
            start += length or 1

    return find


class Publisher:
    """Publishes the events of one log; the blinding of names and hashes can be undone with *seed*.

    Only the policy ``open`` reads *events*, the whole log, beforehand.
    """

    def __init__(
        self,
        events: Iterable[Event],
        dialect: Dialect[Any],
        seed: bytes,
        policies: Collection[PolicyName] = POLICIES,
        outputs: Iterable[JsonValue] = (),
    ) -> None:
        """*outputs* are the full outputs of tools, if they are known; a log has only their hashes."""
        self._to_json = dialect.to_json
        key = hmac.digest(seed, b"reenact-seal-blinding-v1", "sha256")
        cleaner = Cleaner(key)
        masked: Callable[[str], str] = str
        if "open" in policies:
            masked = _masker(events, dialect, make_wording("open", key, cleaner, str), outputs)
        self._words: dict[PolicyName, Wording] = {
            policy: make_wording(policy, key, cleaner, masked) for policy in policies
        }

    def publish(self, event: Event, policy: PolicyName) -> dict[str, JsonValue] | None:
        """*event* under *policy*; ``None`` if it must not be published."""
        return publish_event(event, self._to_json(event), self._words[policy])

    def seal_line(self, event: Event) -> SealedLine:
        """*event* in the form of each policy."""
        line = self._to_json(event)
        forms = {policy: publish_event(event, line, words) for policy, words in self._words.items()}
        known = {policy: form for policy, form in forms.items() if form is not None}
        return SealedLine(original=line, **known)


def _masker(
    events: Iterable[Event], dialect: Dialect[Any], unmasked: Wording, outputs: Iterable[JsonValue]
) -> Callable[[str], str]:
    """A function that masks the words of all removed values of the log in a text."""
    words = {word for output in outputs for word in words_of(output)}
    names: set[str] = set()
    for event in events:
        line = dialect.to_json(event)
        kept = fields_of(publish_event(event, line, unmasked) or {})
        for path, value in fields_of(line).items():
            shown = set(words_of(kept.get(path)))
            words.update(word for word in words_of(value) if word not in shown)
            if path not in kept:
                words.update(words_of(path))
            if KINDS.get(path.removeprefix("$.")) is MemberKind.NAME:
                names |= shown
    return masker(words, names)


FILES_VERSION: Final = 1


def publish_files(history: WorkspaceHistory, policy: PolicyName, seed: bytes) -> dict[str, object]:
    """The names and hashes of a run's files and of each step's changes, as *policy* publishes them."""
    key = hmac.digest(seed, b"reenact-seal-blinding-v1", "sha256")
    listing = _Listing(history, make_wording(policy, key, Cleaner(key), str))
    trees = [*((state.seq, state.tree) for state in history.states), (0, history.end_tree)]
    steps = [
        {"event": seq, "tree": listing.publish_hash(after)} | listing.changes(before, after)
        for (_, before), (seq, after) in pairwise(trees)
        if before != after
    ]
    start = listing.files(history.start.tree)
    end = {"tree": listing.publish_hash(history.end_tree)}
    return {"version": FILES_VERSION, "policy": policy, "start": start, "steps": steps, "end": end}


class _Listing:
    """Trees of files as a policy publishes them."""

    def __init__(self, history: WorkspaceHistory, words: Wording) -> None:
        self._read = history.read_tree
        self._words = words

    def publish_hash(self, digest: str) -> object:
        return self._words[MemberKind.HASH](digest)

    def files(self, tree: str) -> dict[str, object]:
        entries = [self._entry(path, entry) for path, entry in walk(self._read, tree)]
        return {"tree": self.publish_hash(tree), "files": entries}

    def changes(self, before: str, after: str) -> dict[str, object]:
        found = []
        for change in compare_trees(self._read, before, after):
            entry = change.after or change.before
            assert entry is not None
            came_from = {"from": self._path(change.came_from)} if change.came_from else {}
            fields = self._entry(change.path, entry) if change.after else {"path": self._path(change.path)}
            found.append({"how": change.how} | fields | came_from)
        return {"changes": found}

    def _entry(self, path: bytes, entry: TreeEntry) -> dict[str, object]:
        fields: dict[str, object] = {"path": self._path(path), "kind": entry.kind}
        if entry.kind in ("file", "folder"):
            fields |= {"hash": self.publish_hash(entry.digest), "mode": f"{entry.mode:03o}"}
        if entry.kind == "file":
            fields |= _present({"bytes": _apply_word(entry.size_bytes, self._words[MemberKind.NUMBER])})
        if entry.kind == "link":
            fields["target"] = self._path(entry.target)
        return (
            fields | ({"why": entry.why} if entry.why else {}) | ({"hidden": True} if entry.is_hidden else {})
        )

    def _path(self, path: bytes) -> str:
        """A path whose parts are blinded one by one, so that files of one folder stay together."""
        word = self._words[MemberKind.NAME]
        if self._words[MemberKind.NUMBER] is not _drop:
            return str(word(printable_path(path)))
        return "/".join(str(word(printable_path(part))) if part else "" for part in path.split(b"/"))

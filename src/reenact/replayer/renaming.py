"""Requests that are equal up to what chance drew: generated names, and times that were now.

Frameworks draw ids and read clocks in code that is not recorded, so these differ in every run and mean
nothing. Two requests are the same if one becomes the other by a one-to-one renaming of generated names that
holds for the whole run, and by telling another now. A name may be renamed only where it is *fresh*: neither
side had it from an answer or was given it. :class:`DrawnNames` tells which ones were generated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise, zip_longest
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias
from uuid import UUID

import msgspec

from reenact.canonical import child_path
from reenact.comparing.differences import are_same, common_prefix_length
from reenact.formats.capture import PLACEHOLDER
from reenact.lazy_regex import LazyRegex
from reenact.volatile.places import Neutral, Places
from reenact.volatile.times import FOUND, Window, are_both_now, was_now_number

Forms: TypeAlias = Literal["none", "unique", "any"]


class DrawnNames(Protocol):
    """What is known of where this run's names come from."""

    forms: Forms
    """Whose form alone tells that they were generated, unless they were given: none, UUIDs and the like, or
    all that look as if drawn by lot. Where sources of chance are watched, what they gave is known instead."""
    began_s: float
    """When the run began, in seconds since 1970."""

    def now_s(self) -> float:
        """What a clock says that nobody recorded."""

    def is_drawn(self, name: str) -> bool:
        """Whether a source of chance gave it to this run."""

    def is_drawn_word(self, word: str) -> bool:
        """Whether it was chosen by lot among others."""

    def is_given(self, name: str) -> bool:
        """Whether it stands in what this run was given: words of the command, environment, files."""

    def is_own_port(self, port: int) -> bool:
        """Whether a server listens there, on this machine."""

    def is_drawn_port(self, port: int) -> bool:
        """Whether the system gave it to this run, which asked for any that is free."""

    def places(self) -> Mapping[str, str]:
        """The folders that are this run's own, by what they are to it."""


class Unknown:
    """No evidence: no name may be renamed, and no time is now."""

    forms: Forms = "none"
    began_s = 0.0

    def now_s(self) -> float:
        return -1.0

    def is_drawn(self, name: str) -> bool:  # noqa: ARG002
        return False

    is_drawn_word = is_drawn

    def is_given(self, name: str) -> bool:  # noqa: ARG002
        return False

    def is_own_port(self, port: int) -> bool:  # noqa: ARG002
        return False

    is_drawn_port = is_own_port

    def places(self) -> Mapping[str, str]:
        return {}


class Renamed(msgspec.Struct, frozen=True):
    """A generated name of the recorded run, what it is called in this one, and where that was seen first."""

    recorded: str
    live: str
    seq: int
    path: str


class TimeRead(msgspec.Struct, frozen=True):
    """A time that was now when the recorded call was made, and the one told in its place."""

    recorded: Any
    live: Any
    seq: int
    path: str


class Unlike(Exception):
    """Two requests differ in what no renaming explains, first at *path*."""

    def __init__(self, path: str, recorded: object, live: object, earlier: Renamed | None = None) -> None:
        self.path = path
        self.recorded = recorded
        self.live = live
        self.earlier = earlier
        """What one of the two was paired with before, where that is the reason."""

    def describe(self) -> str:
        """What differs beside names and times; both places, where a name is paired with two."""
        if self.earlier is None:
            is_short = max(len(str(self.recorded)), len(str(self.live))) <= _SHOWN_CHARACTERS
            return f"{self.recorded} became {self.live}" if is_short else ""
        one = (
            f"{self.earlier.recorded} was {self.earlier.live} at event {self.earlier.seq} {self.earlier.path}"
        )
        return f"{one}, and at {self.path} {self.recorded} would be {self.live}"


class Likeness(NamedTuple):
    """What two requests differ in that does not matter."""

    renamed: list[Renamed]
    times: list[TimeRead]
    moved: list[Renamed]
    """Folders of the run's own, which are elsewhere."""


class Facts(NamedTuple):
    """What a comparison of a recorded call's request with a live one has to know of both runs."""

    seq: int
    there: Window
    """The recorded run up to that call."""
    here: Window
    evidence: DrawnNames
    is_known_there: Callable[[str], bool]
    """Whether the recorded run had the name from an answer, or was given it."""
    is_known_here: Callable[[str], bool]
    """Whether an answer of the recording, which this run may have been served, has the name."""
    places: Places


_DASHED: Final = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
_SEPARATED: Final = LazyRegex(rf"({_DASHED}|[A-Za-z0-9]+)")
_MKTEMP: Final = r"(?P<temporary>/tmp\.[A-Za-z0-9]{10}(?![A-Za-z0-9]))"
"""What mktemp(1) makes, which has digits in it or not."""
_ATOMS: Final = LazyRegex(
    # One UUID in forty begins with eight digits, as a date may.
    rf"(?P<hidden>{PLACEHOLDER.pattern})|{_MKTEMP}|(?P<time>(?!{_DASHED})(?:{FOUND}))|(?P<word>[A-Za-z0-9_-]+)"
)
_TIMES: Final = LazyRegex(FOUND)
_WORDS: Final = LazyRegex(rf"(?P<hidden>{PLACEHOLDER.pattern})|{_MKTEMP}|(?P<word>[A-Za-z0-9_-]+)")
_UUID: Final = LazyRegex(
    r"[0-9a-f]{8}(-?)[0-9a-f]{4}\1(?P<version>[1-8])[0-9a-f]{3}\1[89ab][0-9a-f]{3}\1[0-9a-f]{12}"
)
_ULID: Final = LazyRegex(r"[0-7][0-9A-HJKMNP-TV-Z]{25}", re.IGNORECASE)
_CROCKFORD: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_HEX: Final = LazyRegex(r"[0-9a-f]+|[0-9A-F]+")
_LOOPBACK: Final = LazyRegex(r"(?:127\.0\.0\.1|localhost|\[::1\]|0\.0\.0\.0):$")
_DIGEST_CHARACTERS: Final = (32, 40, 56, 64, 96, 128)
"""So long is the hex text of a digest, which tells what was digested."""
_TIMED_VERSIONS: Final = ("1", "6", "7")
_MEANINGFUL: Final = frozenset({"model", "role", "type"})
"""Members whose values are never names that somebody generated."""
_MIN_DRAWN: Final = 6
_MIN_RANDOM: Final = 8
_MIN_WHOLE: Final = 16
_LONG_CHARACTERS: Final = 100_000
"""Of longer texts the words are not counted first: the first that differs decides."""
_MIN_NUMBER: Final = 10**6
_TIME_CHARACTERS: Final = 80
"""More than any text of a time has."""
_SHOWN_CHARACTERS: Final = 60
_UNIX_1582_S: Final = 12219292800


class RenamedNames:
    """Which name of the recorded run is which of this one; both ways at most one."""

    def __init__(self) -> None:
        self.by_recorded: dict[str, Renamed] = {}
        self.by_live: dict[str, Renamed] = {}

    def add(self, renamed: Renamed) -> None:
        self.by_recorded[_key(renamed.recorded)] = renamed
        self.by_live[_key(renamed.live)] = renamed

    def __iter__(self) -> Iterator[Renamed]:
        return iter(self.by_recorded.values())

    def __len__(self) -> int:
        return len(self.by_recorded)


def compare(recorded: object, live: object, names: RenamedNames, facts: Facts) -> Likeness:
    """How two requests are the same, *names* given; raises :class:`Unlike` where they are not."""
    comparison = _Comparison(recorded, live, names, facts)
    comparison.compare(recorded, live, "$")
    comparison.compare_ports()
    return Likeness(comparison.renamed, comparison.times, comparison.moved)


class _Comparison:
    """One comparison of two requests."""

    def __init__(self, recorded: object, live: object, names: RenamedNames, facts: Facts) -> None:
        self._whole = recorded, live
        self._names = names
        self._facts = facts
        self._evidence = facts.evidence
        self._tried = RenamedNames()
        self._maybe_ports: list[tuple[str, str, str]] = []
        """Numbers that are alike if they are ports which an address elsewhere in the requests names."""
        self.renamed: list[Renamed] = []
        self.times: list[TimeRead] = []
        self.moved: list[Renamed] = []

    def compare(self, one: object, other: object, path: str) -> None:
        """Raise where the values at *path* are not alike."""
        if isinstance(one, str) and isinstance(other, str):
            self._compare_texts(one, other, path)
        elif isinstance(one, dict) and isinstance(other, dict):
            self._compare_objects(one, other, path)
        elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
            for index, (item, others_item) in enumerate(zip(one, other, strict=True)):
                if not self._may_skip(item, others_item):
                    self.compare(item, others_item, child_path(path, index))
        elif type(one) is not type(other):
            raise Unlike(path, one, other)
        elif one != other:
            self._compare_numbers(one, other, path)

    def _may_skip(self, one: object, other: object) -> bool:
        """Equal values hold nothing to look at, unless a name in them means another one by now."""
        return not self._names and not self._tried and are_same(one, other)

    def compare_ports(self) -> None:
        """Raise where a number that differs is no port of the run; asked once all addresses were seen."""
        for one, other, path in self._maybe_ports:
            if not self._are_bound(one, other, path):
                is_drawn = self._evidence.is_drawn_port(int(other))
                if not is_drawn or not self._are_fresh(f":{one}", f":{other}"):
                    raise Unlike(path, int(one), int(other))
                self._bind(one, other, path)

    # Objects and numbers

    def _compare_objects(self, one: dict[str, object], other: dict[str, object], path: str) -> None:
        for key in (key for key in one if key in other):
            if not self._may_skip(one[key], other[key]):
                self.compare(one[key], other[key], child_path(path, key))
        only_one = [key for key in one if key not in other]
        left = [key for key in other if key not in one]
        if len(only_one) != len(left):
            raise Unlike(path, one, other)
        for key in only_one:
            found = next(
                (key_here for key_here in left if self._is_member(one, key, other, key_here, path)), None
            )
            if found is None:
                raise Unlike(child_path(path, key), one[key], None)
            left.remove(found)

    def _is_member(
        self, one: dict[str, object], key: str, other: dict[str, object], key_here: str, path: str
    ) -> bool:
        """Whether two members are the same whose keys are generated names; if so, from now on."""
        before = self._snapshot()
        try:
            self._compare_texts(key, key_here, child_path(path, key))
            self.compare(one[key], other[key_here], child_path(path, key))
            if len(self._maybe_ports) > before[3]:
                raise Unlike(path, one[key], other[key_here])
        except Unlike as unlike:
            if unlike.earlier is not None:
                raise
            self._restore(before)
            return False
        return True

    def _compare_numbers(self, one: Any, other: Any, path: str) -> None:
        if not isinstance(one, int | float) or isinstance(one, bool):
            raise Unlike(path, one, other)
        if was_now_number(one, self._facts.there) and was_now_number(other, self._facts.here):
            self.times.append(TimeRead(one, other, self._facts.seq, path))
            return
        names = str(one), str(other)
        if self._are_bound(*names, path):
            return
        if type(one) is int and type(other) is int and _is_port(one) and _is_port(other):
            self._maybe_ports.append((*names, path))
            return
        is_drawn = (
            isinstance(one, int) and min(one, other) >= _MIN_NUMBER and self._evidence.is_drawn(names[1])
        )
        if not is_drawn or not self._are_fresh(*names):
            raise Unlike(path, one, other)
        self._bind(*names, path)

    # Texts

    def _compare_texts(self, one: str, other: str, path: str) -> None:
        if one == other:
            self._refuse_bound(one, path)
            return
        neutral = self._facts.places.neutral(one, other) if self._facts.places.are_moved else None
        if neutral is None:
            self._compare_plain_texts(one, other, path)
            return
        self._compare_neutral(neutral, path)
        self.moved += [Renamed(*pair, self._facts.seq, path) for pair in neutral.pairs if pair[0] != pair[1]]

    def _compare_neutral(self, neutral: Neutral, path: str) -> None:
        try:
            if neutral.recorded != neutral.live:
                self._compare_plain_texts(neutral.recorded, neutral.live, path)
        except Unlike as unlike:
            unlike.recorded = neutral.restore(unlike.recorded, is_live=False)
            unlike.live = neutral.restore(unlike.live, is_live=True)
            raise

    def _compare_plain_texts(self, one: str, other: str, path: str) -> None:
        before = self._snapshot()
        parts = differing_parts(one, other)
        failures: list[Unlike] = []
        for atoms in (_ATOMS, _WORDS):
            try:
                self._compare_atoms(atoms, *parts, path)
            except Unlike as unlike:
                self._restore(before)
                failures.append(unlike)
            else:
                return
        # A reading that names what differs says more than one that only says that all of it does.
        failed = next((each for each in failures if (each.recorded, each.live) != parts), failures[0])
        self._compare_inner_json(one, other, path, failed)

    def _compare_inner_json(self, one: str, other: str, path: str, failed: Unlike) -> None:
        """The members of an object that is written in a text may stand in another order."""
        if failed.earlier is None and one[:1] in ("{", "[") and one[:1] == other[:1]:
            try:
                values = msgspec.json.decode(one), msgspec.json.decode(other)
            except (msgspec.DecodeError, RecursionError):
                raise failed from None
            self.compare(*values, path)
            return
        raise failed

    def _compare_atoms(self, atoms: LazyRegex[str], one: str, other: str, path: str) -> None:
        ends = 0, 0
        for mine, theirs in _pairs_of_atoms(atoms, one, other, path):
            is_between_equal = one[ends[0] : mine.start()] == other[ends[1] : theirs.start()]
            if not is_between_equal or mine.lastgroup != theirs.lastgroup:
                raise Unlike(path, one, other)
            ends = mine.end(), theirs.end()
            if mine[0] == theirs[0]:
                self._refuse_bound(mine[0], path)
            elif mine.lastgroup == "time":
                self._compare_times(mine[0], theirs[0], path)
            elif mine.lastgroup == "hidden" or _is_meaningful(path):
                raise Unlike(path, mine[0], theirs[0])
            elif mine.lastgroup == "temporary":
                self._compare_wholes(mine[0], theirs[0], path)
            elif not self._are_ports(mine, theirs, path):
                self._compare_words(mine[0], theirs[0], path)
        if one[ends[0] :] != other[ends[1] :]:
            raise Unlike(path, one, other)

    def _compare_times(self, one: str, other: str, path: str) -> None:
        if not are_both_now(one, other, self._facts.there, self._facts.here):
            raise Unlike(path, one, other)
        self.times.append(TimeRead(one, other, self._facts.seq, path))

    def _are_ports(self, one: re.Match[str], other: re.Match[str], path: str) -> bool:
        """Whether both are ports: this run was given the live one, or has a server of this machine there."""
        if not (one[0].isdigit() and other[0].isdigit() and 4 <= len(one[0]) <= 5 >= len(other[0])):
            return False
        before = (
            _LOOPBACK.search(found.string[max(0, found.start() - 12) : found.start()])
            for found in (one, other)
        )
        is_drawn = self._evidence.is_drawn_port(int(other[0]))
        if not is_drawn and not all(before):
            return False
        if not self._are_bound(one[0], other[0], path):
            is_own = is_drawn or self._evidence.is_own_port(int(other[0]))
            if not is_own or not self._are_fresh(f":{one[0]}", f":{other[0]}"):
                raise Unlike(path, one[0], other[0])
            self._bind(one[0], other[0], path)
        return True

    # RenamedNames

    def _compare_words(self, one: str, other: str, path: str) -> None:
        """Words are names, or have names in them, beside what both have."""
        if self._are_bound(one, other, path):
            return
        one, other = self._without_times(one, other, path)
        before = self._snapshot()
        try:
            self._compare_units(one, other, path)
        except Unlike as unlike:
            begin = max(one.rfind(mark, 0, common_prefix_length(one, other)) for mark in "-_") + 1
            if unlike.earlier is not None or not self._is_one_name(one[begin:], other[begin:]):
                raise
            self._restore(before)
            self._compare_wholes(one[begin:], other[begin:], path)

    def _compare_units(self, one: str, other: str, path: str) -> None:
        """Words in parts: names, and what both have beside them."""
        units, others = _SEPARATED.split(one), _SEPARATED.split(other)
        if len(units) != len(others) or units[::2] != others[::2]:
            raise Unlike(path, one, other)
        pairs = [pair for pair in zip(units[1::2], others[1::2], strict=True) if pair[0] != pair[1]]
        if any(_is_word(unit) and not self._is_drawn_text(*pair) for pair in pairs for unit in pair):
            if not self._is_slug(pairs):
                raise Unlike(path, one, other)
            self._compare_wholes(one, other, path)
            return
        for pair in pairs:
            self._compare_names(*pair, path)

    def _is_one_name(self, one: str, other: str) -> bool:
        """Whether the marks within two words were drawn as their letters were."""
        is_random = self._evidence.forms == "any" and _are_random(one, other, at_least=_MIN_WHOLE)
        return is_random or self._is_drawn_text(one, other)

    def _without_times(self, one: str, other: str, path: str) -> tuple[str, str]:
        """Two words without the times in them that were now."""
        found, others = list(_TIMES.finditer(one)), list(_TIMES.finditer(other))
        if len(found) == len(others):
            for mine, theirs in zip(reversed(found), reversed(others), strict=True):
                if are_both_now(mine[0], theirs[0], self._facts.there, self._facts.here):
                    self.times.append(TimeRead(mine[0], theirs[0], self._facts.seq, path))
                    one = one[: mine.start()] + one[mine.end() :]
                    other = other[: theirs.start()] + other[theirs.end() :]
        return one, other

    def _compare_names(self, one: str, other: str, path: str) -> None:
        if self._are_bound(one, other, path):
            return
        if not self._is_generated(one, other):
            raise Unlike(path, one, other)
        self._compare_wholes(one, other, path)

    def _compare_wholes(self, one: str, other: str, path: str) -> None:
        if not self._are_bound(one, other, path):
            if not self._are_fresh(one, other):
                raise Unlike(path, one, other)
            self._bind(one, other, path)

    def _is_generated(self, one: str, other: str) -> bool:
        """Whether both have the form of generated names, and there is evidence that they are."""
        found, found_other = (_UUID.fullmatch(name.lower()) for name in (one, other))
        if found and found_other and found[1] == found_other[1]:
            versions = found["version"], found_other["version"]
            return versions[0] == versions[1] and self._is_uuid_generated(one, other, versions[0])
        if (
            _ULID.fullmatch(one)
            and _ULID.fullmatch(other)
            and self._were_made_now(_ulid_s(one), _ulid_s(other), 1e-3)
        ):
            return True
        if self._is_drawn_text(one, other):
            return True
        if self._evidence.forms != "any":
            return False
        if _HEX.fullmatch(one) and _HEX.fullmatch(other):
            both = one + other
            is_mixed = not both.isdigit() and not both.isalpha()
            return len(one) == len(other) >= _MIN_RANDOM and len(one) not in _DIGEST_CHARACTERS and is_mixed
        return _are_random(one, other, at_least=_MIN_RANDOM)

    def _is_uuid_generated(self, one: str, other: str, version: str) -> bool:
        if version in _TIMED_VERSIONS:
            return self._were_made_now(_uuid_s(one), _uuid_s(other), 1e-3)
        if version not in ("4", "8"):
            return False  # made of what they name
        return self._evidence.forms != "none" or self._evidence.is_drawn(other)

    def _were_made_now(self, one_s: float, other_s: float, length_s: float) -> bool:
        """Whether both were made within their runs, by what they tell of the time themselves."""
        return self._facts.there.meets(one_s, length_s) and self._facts.here.meets(other_s, length_s)

    def _is_drawn_text(self, one: str, other: str) -> bool:
        """Whether the live one was drawn, be it behind a beginning that both have."""
        shared = common_prefix_length(one, other)
        if abs(len(one) - len(other)) > (2 if len(one) >= _MIN_WHOLE else 0):
            return False
        is_hex = _HEX.fullmatch(other[shared:]) is not None
        if is_hex and not _HEX.fullmatch(one[shared:]):
            return False
        ends = range(min(shared, len(other) - _MIN_DRAWN) + 1)
        return any(self._evidence.is_drawn(other[begin:]) for begin in ends)

    def _is_slug(self, pairs: list[tuple[str, str]]) -> bool:
        """Words by lot, mostly with something drawn behind them: ``plain-hypatia-77a9a98b``."""
        *words, last = pairs
        if not any(map(_is_word, last)):
            if not self._is_generated(*last):
                return False
        else:
            words.append(last)
        if not words or not all(one.isalpha() and other.isalpha() for one, other in words):
            return False
        if all(self._evidence.is_drawn_word(other) for _, other in words):
            return True
        # Such words mean nothing where they stand nowhere else.
        is_proper = self._evidence.forms == "any" and len(words) >= 2 and len(words) < len(pairs)
        return is_proper and not any(
            len(re.findall(rf"(?i){re.escape(unit)}", text)) > 1
            for pair in words
            for unit, text in zip(pair, map(str, self._whole), strict=True)
        )

    def _are_fresh(self, one: str, other: str) -> bool:
        facts = self._facts
        return not (facts.is_known_there(one) or facts.is_known_here(other) or self._evidence.is_given(other))

    def _are_bound(self, one: str, other: str, path: str) -> bool:
        """Whether these are paired already; raises where one of them is paired with another."""
        for names in (self._names, self._tried):
            there, here = names.by_recorded.get(_key(one)), names.by_live.get(_key(other))
            if there is not None and here is there:
                return True
            if there is not None or here is not None:
                raise Unlike(path, one, other, there or here)
        return False

    def _refuse_bound(self, name: str, path: str) -> None:
        """What is equal must not be a name that was renamed before."""
        if (self._names or self._tried) and len(name) >= _MIN_DRAWN - 2:
            self._are_bound(name, name, path)

    def _bind(self, one: str, other: str, path: str) -> None:
        renamed = Renamed(one, other, self._facts.seq, path)
        self._tried.add(renamed)
        self.renamed.append(renamed)

    def _snapshot(self) -> tuple[int, int, int, int]:
        return len(self.renamed), len(self.times), len(self.moved), len(self._maybe_ports)

    def _restore(self, before: tuple[int, int, int, int]) -> None:
        del self.renamed[before[0] :]
        del self.times[before[1] :]
        del self.moved[before[2] :]
        del self._maybe_ports[before[3] :]
        self._tried = RenamedNames()
        for renamed in self.renamed:
            self._tried.add(renamed)


def forms_of(renamed: Renamed) -> Iterator[tuple[str, str]]:
    """How the name may be written, in the recording and here: UUIDs with their dashes and without."""
    yield from zip(spellings(renamed.recorded), spellings(renamed.live), strict=False)


def spellings(name: str) -> tuple[str, ...]:
    """How a name may be written."""
    if not _UUID.fullmatch(name.lower()):
        return (name,)
    uuid = UUID(name)
    return name, str(uuid), uuid.hex


def _key(name: str) -> str:
    """What is one name in whichever way it is written."""
    return name.replace("-", "").lower() if _UUID.fullmatch(name.lower()) else name


def _pairs_of_atoms(
    atoms: LazyRegex[str], one: str, other: str, path: str
) -> Iterator[tuple[re.Match[str], re.Match[str]]]:
    """Both texts atom by atom; :class:`Unlike` where one has more."""
    found, others = atoms.finditer(one), atoms.finditer(other)
    if max(len(one), len(other)) <= _LONG_CHARACTERS:
        pairs = list(found), list(others)
        if len(pairs[0]) != len(pairs[1]):
            raise Unlike(path, one, other)
        yield from zip(*pairs, strict=True)
        return
    for mine, theirs in zip_longest(found, others):
        if mine is None or theirs is None:
            raise Unlike(path, one, other)
        yield mine, theirs


def differing_parts(one: str, other: str) -> tuple[str, str]:
    """Both texts without what they begin and end with together, but for whole words and times."""
    shared = common_prefix_length(one, other)
    begin = _blank_before(one, shared)
    end = common_prefix_length(one[begin:][::-1], other[begin:][::-1])
    blank = one.find(" ", len(one) - end + _TIME_CHARACTERS) if end > _TIME_CHARACTERS else -1
    behind = len(one) - blank if blank >= 0 else 0
    return one[begin : len(one) - behind], other[begin : len(other) - behind]


def _blank_before(text: str, position: int) -> int:
    return text.rfind(" ", 0, max(0, position - _TIME_CHARACTERS)) + 1


def _is_port(number: int) -> bool:
    return 1024 <= number <= 65535


def _is_word(unit: str) -> bool:
    return unit.isalpha() and not _HEX.fullmatch(unit)


def _is_meaningful(path: str) -> bool:
    return path.rpartition(".")[2] in _MEANINGFUL


def _are_random(one: str, other: str, *, at_least: int) -> bool:
    """Whether two texts change between letters, cases and digits so often that nobody wrote them."""
    if min(len(one), len(other)) < at_least or abs(len(one) - len(other)) > (2 if at_least < len(one) else 0):
        return False
    if _HEX.fullmatch(one) or _HEX.fullmatch(other):
        return False
    changes = [
        sum(before != behind for before, behind in pairwise(map(_class, name))) for name in (one, other)
    ]
    return min(changes) >= 2 and sum(changes) >= max(5, (len(one) + len(other)) // 4)


def _class(character: str) -> int:
    return 0 if character.isdigit() else 1 if character.islower() else 2 if character.isupper() else 3


def _uuid_s(name: str) -> float:
    """When a UUID was made that tells it, in seconds since 1970."""
    uuid = UUID(name)
    if uuid.version == 7:
        return (uuid.int >> 80) / 1000
    if uuid.version == 6:
        ticks = (uuid.int >> 80) << 12 | (uuid.int >> 64) & 0xFFF
        return ticks / 10**7 - _UNIX_1582_S
    return uuid.time / 10**7 - _UNIX_1582_S


def _ulid_s(name: str) -> float:
    number = 0
    for character in name[:10].upper():
        number = number * 32 + _CROCKFORD.index(character)
    return number / 1000

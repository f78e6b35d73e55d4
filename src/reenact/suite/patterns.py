"""Ruby's regular expressions, with a time limit.

Test authors write Ruby patterns. They are translated into the syntax of the ``regex`` library, which has a
timeout: the standard ``re`` blocks the interpreter until it is done, and a linear engine such as RE2 has no
lookaround and no back-references. A construct without an equivalent is refused with a hint.
"""

from __future__ import annotations

from functools import lru_cache
from time import thread_time
from typing import Final, NamedTuple, NoReturn

import regex

from reenact.errors import UsageError
from reenact.suite.verdict import quote

BUDGET_S: Final = 0.7
"""Processor time for all searches of one assertion together."""
MAX_PATTERN_CHARACTERS: Final = 5_000
MAX_NESTING: Final = 100
_MAX_REPEAT: Final = 100_000
_MAX_COPIES: Final = 200_000
"""The product of nested repetition counts; the library expands many of them."""
_MAX_LITERAL: Final = 200
"""Longer literals are split: the library's table for one takes cubic time."""
_BREAK: Final = r"(?!\b\B)"
"""Matches everywhere, and the library does not optimize it away."""


class Searcher:
    """Searches with one time limit for all patterns of an assertion."""

    def __init__(self, budget_s: float = BUDGET_S) -> None:
        self._budget_s = budget_s
        self._deadline = thread_time() + budget_s
        self._folded: tuple[str, str] | None = None

    def search(self, pattern: str, text: str, *, ignore_case: bool = True) -> regex.Match[str] | None:
        """The first match; :class:`UsageError` for an invalid pattern, or one that takes too long."""
        compiled = _compile(pattern, ignore_case)
        remaining_s = self._deadline - thread_time()
        try:
            if remaining_s <= 0:
                raise TimeoutError
            return compiled.search(text, timeout=remaining_s)
        except TimeoutError:
            raise UsageError(
                f"the pattern {quote(pattern)} was given up after {self._budget_s} s on "
                f"{len(text)} characters; it backtracks, so simplify its nested repetitions"
            ) from None
        except (MemoryError, RecursionError):
            raise UsageError(
                f"the pattern {quote(pattern)} needs too much memory; simplify its repetitions"
            ) from None

    def contains(self, text: str, part: str, *, case_sensitive: bool = False) -> bool:
        """Whether *text* contains the literal *part*; limited like a search."""
        if thread_time() > self._deadline:
            raise UsageError(
                f"the text {quote(part)} was given up after {self._budget_s} s on {len(text)} characters; "
                "look for fewer texts in one assertion"
            )
        if case_sensitive:
            return part in text
        if self._folded is None or self._folded[0] is not text:
            self._folded = (text, text.casefold())
        return part.casefold() in self._folded[1]


@lru_cache(maxsize=256)
def _compile(pattern: str, ignore_case: bool) -> regex.Pattern[str]:
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        raise UsageError(f"the pattern {quote(pattern)} is longer than {MAX_PATTERN_CHARACTERS} characters")
    flags = regex.VERSION1 | regex.MULTILINE | (regex.IGNORECASE if ignore_case else 0)
    try:
        return regex.compile(translate(pattern, ignore_case=ignore_case), flags)
    except UsageError:
        raise
    except Exception as error:  # its own error, and others: nested too deeply, too large, a set of everything
        raise UsageError(f"the pattern {quote(pattern)} cannot be compiled: {error}") from None


def translate(pattern: str, *, ignore_case: bool) -> str:
    """Translate Ruby's *pattern* to the syntax of ``regex``, version 1, or raise :class:`UsageError`."""
    options = _PatternOptions(ignore_case=ignore_case)
    scout = _Translator(pattern, _Groups())
    scout.read(options)
    return _Translator(pattern, _Groups(scout.group_count, scout.names)).read(options)


class _Groups(NamedTuple):
    """The groups of a pattern, found in a first pass: a reference may come before its group."""

    total: int | None = None
    """``None`` during the first pass."""
    names: dict[str, list[int]] | None = None
    """The numbers of the groups of each name."""


class _PatternOptions(NamedTuple):
    dot_all: bool = False
    extended: bool = False
    ignore_case: bool = False
    classes: str = "d"
    """``d``: ``\\w \\d \\s`` are ASCII, brackets are Unicode; ``a``: both ASCII; ``u``: both Unicode."""


_ASCII: Final = {"w": "0-9A-Z_a-z", "d": "0-9", "s": r"\ \t\n\v\f\r", "h": "0-9A-Fa-f"}
_UNICODE: Final = {
    "w": r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}",
    "d": r"\p{Nd}",
    "s": r"\p{White_Space}",
    "h": "0-9A-Fa-f",
}
_NAMED_CLASSES: Final = {
    "alnum": r"\p{Alphabetic}\p{Nd}",
    "alpha": r"\p{Alphabetic}",
    "any": r"\x00-\U0010FFFF",
    "ascii": r"\x00-\x7F",
    "blank": r"\p{Zs}\t",
    "cntrl": r"\p{Cc}",
    "digit": r"\p{Nd}",
    "graph": r"[^\p{White_Space}\p{Cc}\p{Cn}\p{Cs}]",
    "lower": r"\p{Lowercase}",
    "print": r"[^\p{White_Space}\p{Cc}\p{Cn}\p{Cs}]\p{Zs}",
    "punct": r"\p{P}\$\+\<\=\>\^\`\|\~",
    "space": r"\p{White_Space}",
    "upper": r"\p{Uppercase}",
    "word": r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}",
    "xdigit": "0-9A-Fa-f",
}
_OTHER_PROPERTIES: Final = {"punct": r"\p{P}"}
"""Properties that differ from the bracket class of the same name."""
_CONTROLS: Final = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13, "a": 7, "e": 27}
_ANCHORS: Final = {"A": r"\A", "z": r"\Z", "Z": r"(?=\n?\Z)", "G": r"\G", "K": r"\K", "X": r"\X"}
_LINE_BREAK: Final = r"(?>\r\n|[\n\v\f\r\x85\u2028\u2029])"
_HINTS: Final = {
    "P": "write a named group as (?<name>…) and refer to it as \\k<name>",
    "s": "(?m) lets . match line breaks in Ruby",
    "~": "the absence operator has no equal here; use a negative lookahead",
    "&": "write \\g<name> to call a group",
}
_NOTHING: Final = r"[0&&1]"
_HEX: Final = frozenset("0123456789abcdefABCDEF")


class _Translator:
    """Translates one pattern from left to right."""

    def __init__(self, pattern: str, groups: _Groups) -> None:
        self._pattern = pattern
        self._at = 0
        self._groups = groups
        self._depth = 0
        self._copies = 1
        """How often the innermost part of the last group is repeated."""
        self.group_count = 0
        self.names: dict[str, list[int]] = {}

    def read(self, options: _PatternOptions) -> str:
        text = self._alternatives(options)
        if self._at < len(self._pattern):
            self._refuse("a closing parenthesis without an opening one")
        return text

    def _refuse(self, reason: str) -> NoReturn:
        place = f" at character {self._at + 1}" if self._at else ""
        raise UsageError(
            f"the pattern {quote(self._pattern)} is not a regular expression of Ruby: {reason}{place}"
        )

    def _peek(self, length: int = 1) -> str:
        return self._pattern[self._at : self._at + length]

    def _take(self, length: int = 1) -> str:
        taken = self._peek(length)
        self._at += length
        return taken

    def _skip(self, text: str) -> bool:
        if not self._pattern.startswith(text, self._at):
            return False
        self._at += len(text)
        return True

    def _read_until(self, end: str, what: str) -> str:
        found = self._pattern.find(end, self._at)
        if found < 0:
            self._refuse(f"{what} is not closed with {end}")
        inside = self._pattern[self._at : found]
        self._at = found + len(end)
        return inside

    # Alternatives, groups and repetitions

    def _alternatives(self, options: _PatternOptions) -> str:
        """Translate up to the end of the group or pattern."""
        self._depth += 1
        if self._depth > MAX_NESTING:
            self._refuse(f"nested deeper than {MAX_NESTING} groups")
        pieces: list[str] = []
        copies: list[int] = []
        can_repeat = False
        while self._at < len(self._pattern) and self._peek() != ")":
            if options.extended and self._skip_comment():
                continue
            sign = self._peek()
            if sign == "|":
                pieces.append(self._take())
                copies.append(1)
                can_repeat = False
            elif (repeat := self._repeat()) is not None:
                if not can_repeat:
                    self._refuse("there is nothing to repeat")
                copies[-1] = self._multiply_copies(copies[-1], repeat[0])
                pieces[-1] = self._translate_repetition(pieces[-1], *repeat)
            elif sign == "(":
                group, switched = self._group(options)
                if switched is not None:  # for the rest of this group with its alternatives, as in Onigmo
                    pieces.append(f"(?{group}:{self._alternatives(switched)})")
                    break
                can_repeat = bool(group) or can_repeat
                pieces += [group] * bool(group)
                copies += [self._copies] * bool(group)
            else:
                is_long = len(pieces) % _MAX_LITERAL == _MAX_LITERAL - 1
                pieces += [_BREAK, self._atom(options)] if is_long else [self._atom(options)]
                copies += [1] * (len(pieces) - len(copies))
                can_repeat = True
        self._depth -= 1
        self._copies = max(copies, default=1)
        return "".join(pieces)

    def _skip_comment(self) -> bool:
        if self._peek() in " \t\n\v\f\r":
            self._at += 1
        elif self._peek() == "#":
            end = self._pattern.find("\n", self._at)
            self._at = len(self._pattern) if end < 0 else end + 1
        else:
            return False
        return True

    def _repeat(self) -> tuple[str, bool] | None:
        """A repetition and whether it has counts; ``None`` if there is none here."""
        if self._peek() in ("*", "+", "?"):
            return self._take(), False
        counts = regex.match(r"\{(\d*)(,?)(\d*)\}", self._pattern, pos=self._at)
        if counts is None or not (counts[1] or counts[3]):
            return None  # any other brace is literal text
        low, high = int(counts[1] or 0), int(counts[3]) if counts[3] else None
        if max(low, high or 0) > _MAX_REPEAT:
            self._refuse(f"a repetition of more than {_MAX_REPEAT} times")
        if high is not None and high < low:
            self._refuse("a repetition whose upper bound is below its lower one")
        self._at = counts.end()
        return counts[0], True

    def _multiply_copies(self, copies: int, sign: str) -> int:
        copies *= max(1, 1, *map(int, regex.findall(r"\d+", sign)))
        if copies > _MAX_COPIES:
            self._refuse(f"repetitions within each other of more than {_MAX_COPIES} times")
        return copies

    def _translate_repetition(self, atom: str, sign: str, is_counted: bool) -> str:
        if not is_counted:
            kind = self._take() if self._peek() in ("?", "+") else ""
            return f"(?:{atom}{sign}{kind})"
        if "," in sign and self._skip("?"):
            return f"(?:{atom}{sign}?)"
        return f"(?:{atom}{sign})"  # {n}? makes it optional, {n,m}+ repeats it; the next character decides

    def _group(self, options: _PatternOptions) -> tuple[str, _PatternOptions | None]:
        """A group, or only flags that apply to what follows."""
        self._take()
        if not self._skip("?"):
            has_names = self._groups.names if self._groups.total is not None else self.names
            if has_names:  # in a pattern with named groups, others do not capture
                return self._translate_group("(?:", options), None
            self.group_count += 1
            return self._translate_group("(", options), None
        for opening in (":", "=", "!", ">", "<=", "<!"):
            if self._skip(opening):
                return self._translate_group(f"(?{opening}", options), None
        if self._skip("#"):
            self._read_until(")", "a comment")
            return "", None
        if self._skip("("):
            return self._conditional(options), None
        if self._peek() in ("<", "'"):
            name = self._read_until(">" if self._take() == "<" else "'", "the name of a group")
            if not regex.fullmatch(r"[^\W\d]\w*", name):
                self._refuse(f"{name!r} is not the name of a group")
            self.group_count += 1
            self.names.setdefault(name, []).append(self.group_count)
            return self._translate_group(f"(?P<{self._identifier(name)}>", options), None
        return self._flags(options)

    def _identifier(self, name: str) -> str:
        """An ASCII name for a group, whose name may be in any script."""
        known = self._groups.names or self.names
        return (
            f"n{list(known).index(name)}" if name in known else self._refuse(f"no group is called {name!r}")
        )

    def _translate_group(self, opening: str, options: _PatternOptions) -> str:
        inside = self._alternatives(options)
        if not self._skip(")"):
            self._refuse("a group is not closed")
        return f"{opening}{inside})"

    def _flags(self, options: _PatternOptions) -> tuple[str, _PatternOptions | None]:
        start = self._at
        found = regex.match(r"([imxadu]*)(-[imx]*)?([:)])", self._pattern, pos=start)
        if found is None:
            sign = self._peek()
            self._refuse(f"(?{sign} opens no group" + (f"; {_HINTS[sign]}" if sign in _HINTS else ""))
        self._at = found.end()
        on, off = found[1], (found[2] or "")[1:]
        options = _PatternOptions(
            ("m" in on or options.dot_all) and "m" not in off,
            ("x" in on or options.extended) and "x" not in off,
            ("i" in on or options.ignore_case) and "i" not in off,
            next((flag for flag in reversed(on) if flag in "adu"), options.classes),
        )
        flags = "i" if "i" in on and "i" not in off else "-i" if "i" in off else ""
        if found[3] == ")":
            return flags, options
        return self._translate_group(f"(?{flags}:", options), None

    def _conditional(self, options: _PatternOptions) -> str:
        name = self._read_until(")", "a condition").strip("<>'")
        return self._translate_group(f"(?({self._number_or_name(name)})", options)

    # Atoms

    def _atom(self, options: _PatternOptions) -> str:
        sign = self._take()
        if sign == "[":
            return self._set(options)
        if sign == "\\":
            return self._escape(options)
        if sign == ".":
            return "(?s:.)" if options.dot_all else "."
        if sign == "^":
            return r"(?:^(?!\Z)|\A)"  # not after the last line break
        if sign == "$":
            return "$"
        return _literal(sign)

    def _escape(self, options: _PatternOptions) -> str:
        if self._at >= len(self._pattern):
            self._refuse("it ends with a backslash")
        sign = self._peek()
        if sign in _ANCHORS:
            return _ANCHORS[self._take()]
        if sign == "R":
            self._take()
            return _LINE_BREAK
        if sign in "bB":
            return self._boundary(self._take(), options)
        if sign in "kg" and self._peek(2)[1:] in ("<", "'"):
            return self._reference()
        if sign in "123456789" and (number := self._back_reference()) is not None:
            return rf"\g<{number}>"
        if found := self._class_escape(options):
            return f"(?-i:[{found}])" if sign.lower() in _ASCII else f"[{found}]"
        return "".join(_literal(chr(code)) for code in self._codes())

    def _boundary(self, sign: str, options: _PatternOptions) -> str:
        if options.classes != "a":
            return rf"\{sign}"  # word boundaries are Unicode, although \w is ASCII
        word = f"[{_ASCII['w']}]"
        sides = f"(?<={word})(?={word})|(?<!{word})(?!{word})"
        return f"(?:{sides})" if sign == "B" else f"(?:(?<={word})(?!{word})|(?<!{word})(?={word}))"

    def _back_reference(self) -> int | None:
        """The group of a numbered reference; ``None`` if the digits are an octal code."""
        digits = regex.match(r"\d+", self._pattern, pos=self._at)
        assert digits is not None
        number, count = int(digits[0]), self._groups.total
        if number > 9 and (count is None or number > count):
            if digits[0][0] in "89":
                self._refuse(f"there is no group {number}")
            return None
        if self._groups.names:
            self._refuse("groups that have names are referred to by name")
        if count is not None and number > count:
            self._refuse(f"there is no group {number}")
        self._at = digits.end()
        return number

    def _reference(self) -> str:
        kind, opening = self._take(), self._take()
        name = self._read_until(">" if opening == "<" else "'", "a reference")
        if kind == "g" and name == "0":
            return "(?0)"
        target = self._number_or_name(name)
        if kind == "g":
            return f"(?{target})" if target.isdecimal() else f"(?&{target})"
        return rf"\g<{target}>"

    def _number_or_name(self, name: str) -> str:
        if not regex.fullmatch(r"[-+]?\d+", name):
            return self._identifier(name) if self._groups.total is not None else "0"
        number = int(name)
        if name[0] in "+-":
            number += self.group_count + (1 if number < 0 else 0)
        if self._groups.names:
            self._refuse("groups that have names are referred to by name")
        if self._groups.total is not None and not 0 < number <= self._groups.total:
            self._refuse(f"there is no group {name}")
        return str(number)

    def _class_escape(self, options: _PatternOptions) -> str | None:
        """What ``\\w``, ``\\H`` or ``\\p{Alpha}`` stands for, as the inside of a set."""
        sign = self._peek()
        if sign.lower() in _ASCII:
            self._take()
            inside = (_UNICODE if options.classes == "u" else _ASCII)[sign.lower()]
            return inside if sign.islower() else f"[^{inside}]"
        if sign not in ("p", "P") or self._peek(2) != f"{sign}{{":
            return None
        self._at += 2
        name = self._read_until("}", "a property")
        negated = name.startswith("^") is (sign == "p")
        plain = name.removeprefix("^").replace("_", "").replace(" ", "").replace("-", "").lower()
        inside = (
            _OTHER_PROPERTIES.get(plain)
            or _NAMED_CLASSES.get(plain)
            or rf"\p{{{self._property(name.removeprefix('^'))}}}"
        )
        return f"[^{inside}]" if negated else inside

    def _property(self, name: str) -> str:
        try:
            regex.compile(rf"\p{{{name}}}", regex.VERSION1)
        except regex.error:
            self._refuse(f"no property of characters is called {name!r}")
        if "=" in name or ":" in name:
            self._refuse(f"no property of characters is called {name!r}")
        return name

    def _codes(self) -> list[int]:
        """The characters that an escape stands for."""
        sign = self._take()
        if sign in _CONTROLS:
            return [_CONTROLS[sign]]
        if sign == "x":
            return [int(self._digits(_HEX, 2) or self._refuse("\\x needs hexadecimal digits"), 16)]
        if sign == "u":
            return self._unicode()
        if sign in "01234567":
            return [int(sign + self._digits(frozenset("01234567"), 2), 8)]
        if sign == "c" or (sign == "C" and self._skip("-")):
            if self._at >= len(self._pattern):
                self._refuse("a control character is not named")
            return [ord(self._take()) & 0x1F]
        if sign == "M" and self._peek() == "-":
            self._refuse("\\M- means a byte, not a character")
        return [ord(sign)]

    def _digits(self, allowed: frozenset[str], most: int) -> str:
        taken = ""
        while len(taken) < most and self._peek() in allowed:
            taken += self._take()
        return taken

    def _unicode(self) -> list[int]:
        names = self._read_until("}", "\\u{").split() if self._skip("{") else [self._take(4).ljust(4)]
        if not names or not all(_HEX.issuperset(name) and int(name, 16) < 0x110000 for name in names):
            self._refuse("\\u needs four hexadecimal digits, or codes in braces")
        codes = [int(name, 16) for name in names]
        if any(0xD800 <= code < 0xE000 for code in codes):
            self._refuse("half of a surrogate pair is not a character")
        return codes

    # Sets

    def _set(self, options: _PatternOptions) -> str:
        """A set after its opening bracket, with inner sets and intersections."""
        self._depth += 1
        if self._depth > MAX_NESTING:
            self._refuse(f"nested deeper than {MAX_NESTING} groups")
        negated = self._skip("^")
        operands: list[list[str]] = [[]]
        if self._peek() == "]" and "]" in self._pattern[self._at + 1 :]:
            self._at += 1
            self._range(ord("]"), operands[-1], options)
        while not self._skip("]"):
            if self._at >= len(self._pattern):
                self._refuse("a set is not closed")
            if self._skip("&&"):
                operands.append([])
            else:
                self._item(operands[-1], options)
        self._depth -= 1
        if operands == [[]]:
            self._refuse("a set of no character")
        sets = ["".join(items) or _NOTHING for items in operands]
        inside = sets[0] if len(sets) == 1 else "&&".join(f"[{items}]" for items in sets)
        return f"[{'^' * negated}{inside}]"

    def _item(self, items: list[str], options: _PatternOptions) -> None:
        if self._peek(2) == "[:" and (named := self._bracket(options)):
            items.append(named)
            self._refuse_range()
        elif self._skip("["):
            items.append(self._set(options))
        elif not self._skip("\\"):
            self._range(ord(self._take()), items, options)
        elif self._at >= len(self._pattern):
            self._refuse("a set is not closed")
        elif found := self._class_escape(options):
            if options.ignore_case and found.startswith("[^0-9A-Z"):
                # ſ and K (Kelvin) fold to s and k, which must stay letters.
                found = found.replace("a-z]", r"a-z\u017F\u212A]")
            items.append(found)
            self._refuse_range()
        else:
            codes = [8] if self._skip("b") else self._codes()
            items += [_literal(chr(code)) for code in codes[:-1]]
            self._range(codes[-1], items, options)

    def _refuse_range(self) -> None:
        if self._peek() == "-" and self._peek(2) != "-]":
            self._refuse("a range cannot begin with a class of characters")

    def _range(self, low: int, items: list[str], options: _PatternOptions) -> None:
        """One character, or the range that it begins."""
        following = self._peek(2)
        if following[:1] != "-" or following in ("-", "-]") or self._peek(3) == "-&&":
            items.append(_literal(chr(low)))
            return
        if following == "-[":
            self._refuse("a range cannot end with a set; write \\- for a hyphen")
        self._take()
        if not self._skip("\\"):
            high = ord(self._take())
        elif self._class_escape(options):
            self._refuse("a range cannot end with a class of characters")
        else:
            high = 8 if self._skip("b") else self._codes()[0]
        if high < low:
            self._refuse("a range that ends before it begins")
        items.append(f"{_literal(chr(low))}-{_literal(chr(high))}")

    def _bracket(self, options: _PatternOptions) -> str | None:
        """``[:alpha:]`` inside a set; ``None`` if it is not a bracket class."""
        found = regex.match(r"\[:(\^?)(\w*):\]", self._pattern, pos=self._at)
        if found is None:
            return None
        if found[2] not in _NAMED_CLASSES or found[2] == "any":
            self._refuse(f"no class of characters is called {found[2]!r}")
        self._at = found.end()
        inside = _NAMED_CLASSES[found[2]]
        if options.classes == "a":
            inside = rf"[[{inside}]&&[\x00-\x7F]]"
        return f"[^{inside}]" if found[1] else inside


def _literal(character: str) -> str:
    code = ord(character)
    if character.isalnum() or code > 0x2FFF:
        return character
    return rf"\u{code:04x}"

"""Secrets that are known by their shape, wherever they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from string import ascii_letters, digits
from typing import Final

from reenact.redaction.placeholder import PRIVATE_KEY

# A token starts where no word goes on. Escapes of JSON and URLs and terminal colours end in a letter or
# digit and are no words.
_START: Final = (
    r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=\\u[0-9A-Fa-f]{4})|(?<=%[0-9A-Fa-f]{2})|(?<=\[\dm)|(?<=\[\d\dm))"
)


@dataclass(frozen=True)
class Rule:
    """One family of secrets; a match, or its group ``secret``, is what is replaced."""

    kind: str
    """Lowercase letters, digits and hyphens; it is written into the placeholder."""
    pattern: str
    anchors: tuple[str, ...] = ()
    """Texts of which one starts every match; without any the rule is tried on every text, slowly."""


def _rule(kind: str, anchors: str, rest: str) -> Rule:
    literals = tuple(anchors.split())
    return Rule(kind, f"{_START}(?:{'|'.join(map(re.escape, literals))}){rest}", literals)


_WIDE: Final = r"[A-Za-z0-9_\-]"

SHAPES: Final[tuple[Rule, ...]] = (
    Rule(
        PRIVATE_KEY,
        # Without its end the block was cut off, and all that follows belongs to it.
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?"
        r"(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
        ("-----BEGIN ",),
    ),
    _rule("anthropic-key", "sk-ant-", _WIDE + "{16,}"),
    _rule("openai-key", "sk-proj- sk-svcacct- sk-admin-", _WIDE + "{16,}"),
    _rule(
        "sk-key",
        "sk-",
        rf"(?:[A-Za-z0-9]{{1,10}}-){{0,3}}(?:[A-Za-z0-9_]{{20}}|(?=[A-Za-z_]*[0-9])[A-Za-z0-9_]{{16}}){_WIDE}*",
    ),
    _rule("google-key", "AIza", _WIDE + "{33,40}"),
    _rule("google-token", "ya29.", _WIDE + "{20,}"),
    _rule("aws-key-id", "AKIA ASIA", "[0-9A-Z]{16}(?![A-Za-z0-9])"),
    _rule("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", "[A-Za-z0-9]{20,}"),
    _rule("github-token", "github_pat_", "[A-Za-z0-9_]{20,}"),
    _rule("gitlab-token", "glpat-", _WIDE + "{16,}"),
    _rule("slack-token", "xox", "[abeprs]-[A-Za-z0-9-]{10,}"),
    _rule("stripe-key", "sk_live_ rk_live_ whsec_", "[A-Za-z0-9]{16,}"),
    _rule("huggingface-token", "hf_", "[A-Za-z0-9]{30,}"),
    _rule("npm-token", "npm_", "[A-Za-z0-9]{30,}"),
    _rule("pypi-token", "pypi-AgE", _WIDE + "{16,}"),
    _rule("groq-key", "gsk_", "[A-Za-z0-9]{20,}"),
    _rule("xai-key", "xai-", "[A-Za-z0-9]{32,}"),
    _rule("perplexity-key", "pplx-", "[A-Za-z0-9]{32,}"),
    _rule("tavily-key", "tvly-", _WIDE + "{16,}"),
    _rule("langsmith-key", "lsv2_", "[a-z]{2}_[A-Za-z0-9_]{20,}"),
    _rule("sendgrid-key", "SG.", rf"{_WIDE}{{16,}}\.{_WIDE}{{16,}}"),
    # Bounded and without a way back: a text of nothing but its anchor would be tried from each to its end.
    _rule("jwt", "eyJ", rf"{_WIDE}{{8,8192}}+\.eyJ{_WIDE}{{8,}}\.{_WIDE}*"),
)

MIN_RANDOM: Final = 32
RANDOM_CHARACTERS: Final = ascii_letters + digits + "+_-"

_RANDOM: Final = r"[A-Za-z0-9+_-]"

STRICT_SHAPES: Final[tuple[Rule, ...]] = (
    Rule("email", r"(?<![\w.%+-])[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}"),
    # Lowercase, uppercase and digits together: digests, UUIDs and long words lack one of them. What has
    # slashes is a path; what is longer is data: images, signatures of reasoning, encrypted state.
    Rule(
        "random",
        rf"(?<![A-Za-z0-9+/_=-])(?={_RANDOM}*[A-Z])(?={_RANDOM}*[a-z])(?=(?:{_RANDOM}*?[0-9]){{3}})"
        rf"{_RANDOM}{{{MIN_RANDOM},128}}+={{0,2}}(?![A-Za-z0-9+/_-])",
    ),
)


class Shapes:
    """Finds and names the secrets that some rules describe."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = [(rule, re.compile(rule.pattern)) for rule in rules]

    def kind_of(self, value: str) -> str | None:
        """The kind of a value that is one secret from end to end."""
        plain = value.strip()
        for rule, pattern in self._rules:
            if (not rule.anchors or plain.startswith(rule.anchors)) and pattern.fullmatch(plain):
                return rule.kind
        return None

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """The spans of all secrets, rule by rule."""
        for rule, pattern in self._rules:
            group = "secret" if "secret" in pattern.groupindex else 0
            for match in _matches(text, pattern, rule.anchors):
                yield match.span(group)


def _matches(text: str, pattern: re.Pattern[str], anchors: tuple[str, ...]) -> Iterator[re.Match[str]]:
    if not anchors:
        yield from pattern.finditer(text)
    for anchor in anchors:
        # A pattern that starts with a look-behind is slow to search for and fast to match.
        start = text.find(anchor)
        while start >= 0:
            match = pattern.match(text, start)
            if match:
                yield match
            start = text.find(anchor, match.end() if match else start + 1)

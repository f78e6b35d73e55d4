"""The options of ``@pytest.mark.reenact(...)``."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pytest

from reenact.errors import UsageError
from reenact.pytest_plugin.marker import MARKER
from reenact.replayer.allow import Allow, AllowLike, read_allow
from reenact.replayer.engine import Policy
from reenact.run.redact import Redact, profile_and_secrets
from reenact.seams.stdlib.chosen import Source

_KNOWN: Final = (
    "policy",
    "redact",
    "sources",
    "modules",
    "environ",
    "passthrough",
    "path",
    "allow",
    "workspace",
)
_LISTS: Final = ("sources", "modules", "environ", "passthrough")
_SHOWN: Final = f"@pytest.mark.{MARKER}"


@dataclass(frozen=True, slots=True)
class Options:
    """The options of one test, gathered from its marker and those around it; the nearest one counts."""

    policy: Policy | None = None
    """``None`` for what the environment or the project says, see :func:`reenact.replay`."""
    redact: Redact = None
    """The nearest profile counts; lists of secrets add up, so that a nearer marker never hides less."""
    sources: Collection[Source] | None = None
    """What of the standard library is recorded; ``None`` for what :func:`reenact.capture` chooses."""
    modules: Sequence[str] = ()
    """Which modules are the agent's; empty for all that are no library."""
    environ: Sequence[str] = ()
    """Variables of the environment that are recorded, by name."""
    passthrough: Sequence[str] = ()
    """Tools that really run in replay."""
    path: str | None = None
    """Where the capture is, from the test's folder; ``None`` for the place made from its name."""
    allow: AllowLike = ()
    """What a replay may still reach on this host; see :func:`allowed`."""
    workspace: str | bool = False
    """Whether the files of the test are recorded too; a text names the folder they are copied from."""


def options_of(item: pytest.Item) -> Options:
    """The options of *item*; :class:`~reenact.errors.UsageError` where they make no sense."""
    merged: dict[str, Any] = {}
    for mark in reversed(list(item.iter_markers(MARKER))):
        _refuse_unknown(mark)
        redact = _redact(merged.get("redact"), mark.kwargs.get("redact"))
        merged |= {**mark.kwargs, "redact": redact}
    for name in _LISTS:
        if isinstance(merged.get(name), str):
            raise UsageError(f"{_SHOWN}: {name}={merged[name]!r} is one text; give a list")
    if policy := item.config.getoption("reenact_policy"):
        merged["policy"] = policy
    return Options(**merged)


def _refuse_unknown(mark: pytest.Mark) -> None:
    unknown = [*map(repr, mark.args), *(name for name in mark.kwargs if name not in _KNOWN)]
    if unknown:
        raise UsageError(f"{_SHOWN}: {unknown[0]} is unknown; the options are {', '.join(_KNOWN)}")


def _redact(outer: Redact, nearer: Redact) -> Redact:
    outer_profile, outer_secrets = profile_and_secrets(outer)
    profile, secrets = profile_and_secrets(nearer)
    # Secrets mostly come from the environment, where they may be unset.
    return profile or outer_profile, (*outer_secrets, *filter(None, secrets))


def allowed(allow: AllowLike) -> Allow:
    """See :func:`~reenact.replayer.allow.read_allow`."""
    return read_allow(allow, f"{_SHOWN}: allow")

"""One artifact as another; what the target cannot hold is named, never dropped in silence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

from reenact.analysis.convert.actions import to_actions
from reenact.analysis.convert.logs import to_capture, to_current, to_legacy, to_receipt, to_summary
from reenact.analysis.convert.source import OnLoss, Source
from reenact.analysis.convert.traces import to_bundle, to_trace
from reenact.check.kinds import Kind
from reenact.errors import UsageError
from reenact.formats.dialects.common import DialectName

Target: TypeAlias = Literal[
    "replay-log", "replay-log-legacy", "receipt", "summary", "bundle", "trace", "actions", "capture"
]
TARGETS: Final[tuple[Target, ...]] = get_args(Target)

_Way: TypeAlias = Callable[[Source], Iterator[bytes]]
_LOGS: Final[Mapping[Target, _Way]] = {
    "replay-log": to_current,
    "replay-log-legacy": to_legacy,
    "receipt": to_receipt,
    "summary": to_summary,
    "bundle": to_bundle,
    "trace": to_trace,
}
_WAYS: Final[Mapping[Kind, Mapping[Target, _Way]]] = {
    "capture": {**_LOGS, "actions": to_actions},
    "replay log": _LOGS,
    "bundle": {"trace": to_trace},
    "trace": {"bundle": to_bundle},
}


def convert_artifact(
    path: str | Path,
    to: Target,
    *,
    on_loss: OnLoss,
    lenient: bool = False,
    dialect: DialectName | None = None,
) -> Iterator[bytes]:
    """The artifact in *path* as the text of *to*, piece by piece; logs and actions in constant memory.

    *dialect* chooses the shape of a receipt.

    :class:`UsageError` where no way leads from the one to the other. With *lenient*, a bad line of a
    log is a loss like any other.
    """
    source = Source(Path(path), on_loss=on_loss, lenient=lenient, dialect=dialect)
    way = _WAYS.get(source.kind, {}).get(to)
    if way is None:
        raise _no_way(source, to)
    return way(source)


def convert_to_capture(path: Path, out: Path, *, on_loss: OnLoss, lenient: bool = False) -> None:
    """The skeleton of the log in *path* as a capture in *out*, which must be new or empty."""
    source = Source(path, on_loss=on_loss, lenient=lenient)
    if source.kind != "replay log":
        raise _no_way(source, "capture")
    to_capture(source, out)


def _no_way(source: Source, to: Target) -> UsageError:
    known: list[str] = [*_WAYS.get(source.kind, ())]
    if source.kind == "replay log":
        known.append("capture")
    remedy = f"it can become {', '.join(known)}" if known else "nothing else can be made of it"
    if (source.kind, to) == ("replay log", "actions"):
        remedy = "it names neither the model nor what was asked; convert the capture it came from"
    return UsageError(f"{source.path}: a {source.kind} cannot become {to}; {remedy}")

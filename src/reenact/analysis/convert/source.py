"""An artifact to be converted, and where its losses go."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeAlias

from reenact.check.kinds import Kind, kind_of
from reenact.errors import FormatError
from reenact.formats.dialects import Event
from reenact.formats.dialects.common import DialectName
from reenact.formats.dialects.turn import Loss
from reenact.formats.lines import Line, OnError
from reenact.formats.replay_log import read_replay_log
from reenact.store.reader import CaptureReader

UNREADABLE: Final = "unreadable line"
"""The name under which a line is lost that no event could be read from."""

OnLoss: TypeAlias = Callable[[Loss], None]


class Source:
    """Read as often as its conversion needs."""

    def __init__(
        self, path: Path, *, on_loss: OnLoss, lenient: bool = False, dialect: DialectName | None = None
    ) -> None:
        """*dialect* is the one to write, where the target has several forms."""
        self.path = path
        self.dialect = dialect
        self.kind: Kind = kind_of(path)
        self.on_loss = on_loss
        self._lenient = lenient

    def capture(self) -> CaptureReader:
        return CaptureReader(self.path)

    def text(self) -> bytes:
        return self.path.read_bytes()

    def log(self) -> Iterator[tuple[Line, Event]]:
        """The lines of a log; in a lenient reading a bad one is a loss."""
        on_error: OnError | None = self._lose_line if self._lenient else None
        with self.path.open("rb") as stream:
            yield from read_replay_log(stream, file=str(self.path), on_error=on_error)

    def _lose_line(self, error: FormatError) -> None:
        self.on_loss(Loss(error.line, UNREADABLE, None, error.reason))

"""Replay receipts, found by the recording they are about."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from reenact.errors import ReenactError
from reenact.formats.replay_receipt import SCHEMA, ReplayReceipt, read_replay_receipt, receipt_codec

_LOOKED_AT_BYTES: Final = 64 * 1024 * 1024


class Receipts:
    """The receipts in *files*; those that cannot be read are passed over."""

    def __init__(self, files: Iterable[Path]) -> None:
        self._found = [(file, receipt) for file in files if (receipt := _read(file)) is not None]

    def count(self, capture_id: str | None) -> int:
        """How many differences and refused calls all receipts of one capture tell of."""
        own = self._own(capture_id)
        return sum(len(receipt.divergences) + len(receipt.liveCallsRefused) for _, receipt in own)

    def diverged(self, capture_id: str | None) -> list[int]:
        """The recorded events from which replays differed."""
        found = (each.get("eventSeq") for _, one in self._own(capture_id) for each in one.divergences)
        return sorted({seq for seq in found if isinstance(seq, int)})

    def of(self, capture_id: str | None) -> list[dict[str, Any]]:
        """The receipts of one capture, each with the name of its file, the latest first."""
        own = sorted(self._own(capture_id), key=lambda pair: _time(pair[1]), reverse=True)
        return [{"file": file.name, "receipt": receipt_codec.to_json(receipt)} for file, receipt in own]

    def _own(self, capture_id: str | None) -> list[tuple[Path, ReplayReceipt]]:
        return [(file, one) for file, one in self._found if one.capture.captureId == capture_id]


def receipts_in(folders: Iterable[Path]) -> list[Path]:
    """The files in *folders*, not below them, that are replay receipts."""
    files = (file for folder in folders for file in sorted(folder.glob("*.json")))
    return [file for file in files if not file.is_symlink() and is_receipt(file)]


def is_receipt(file: Path) -> bool:
    """Whether *file* looks like a replay receipt, by its name's end and its bytes."""
    if file.suffix != ".json" or not file.is_file():
        return False
    try:
        with file.open("rb") as stream:
            text = stream.read(_LOOKED_AT_BYTES)
    except OSError:
        return False
    return SCHEMA.encode() in text


def _read(file: Path) -> ReplayReceipt | None:
    try:
        return read_replay_receipt(file.read_bytes(), file=str(file))
    except (ReenactError, OSError):
        return None


def _time(receipt: ReplayReceipt) -> int:
    return receipt.replayedAt if isinstance(receipt.replayedAt, int) else 0

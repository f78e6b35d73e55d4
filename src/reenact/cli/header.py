"""What a capture says of itself, finished or not."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from reenact.formats.capture import read_manifest, read_seed
from reenact.formats.record import ABSENT
from reenact.store.rundir import RunDir, RunState


class Header(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A manifest, or of an unfinished run as much of one as there is."""

    path: str
    state: RunState
    capture_id: str
    run_id: str
    created_at_ms: int | float
    provider: str
    model: str
    redaction: str
    status: str | None = None
    """``None`` while the run is not finished, as all below."""
    completed_at_ms: int | float | None = None
    error: str | None = None
    exit_status: int | None = None
    warnings: tuple[str, ...] = ()

    @classmethod
    def read(cls, run: RunDir) -> Header:
        state = run.state
        if state in (RunState.OPEN, RunState.INTERRUPTED):
            return _of_seed(run, state)
        manifest = read_manifest(run.read_manifest(), file=str(run.path / "manifest.json"))
        return cls(
            path=str(run.path),
            state=state,
            capture_id=manifest.captureId,
            run_id=manifest.runId,
            created_at_ms=manifest.createdAt,
            provider=manifest.model.provider,
            model=manifest.model.model,
            redaction=manifest.redaction.profile,
            status=manifest.status,
            completed_at_ms=_or_none(manifest.completedAt),
            error=_or_none(manifest.error),
            exit_status=_or_none(manifest.exitStatus),
            warnings=tuple(_or_none(manifest.warnings) or ()),
        )

    @property
    def is_finished(self) -> bool:
        return self.status is not None

    @property
    def started(self) -> str:
        """When the run began, to the second."""
        return datetime.fromtimestamp(self.created_at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")

    def to_json(self) -> dict[str, Any]:
        value: dict[str, Any] = msgspec.to_builtins(self)
        return value


def _of_seed(run: RunDir, state: RunState) -> Header:
    seed = read_seed(run.read_manifest(), file=str(run.path / "manifest.open.json"))
    return Header(
        path=str(run.path),
        state=state,
        capture_id=seed.captureId,
        run_id=seed.runId,
        created_at_ms=seed.createdAt,
        provider=seed.model.provider,
        model=seed.model.model,
        redaction=seed.redaction.profile,
    )


def _or_none(value: Any) -> Any:
    return None if value is ABSENT else value

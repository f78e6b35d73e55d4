"""A recorded run put together by hand: any sink, any redaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from reenact import seams
from reenact.boundary import enter_context
from reenact.formats.capture import (
    NO_MODEL,
    CaptureEvent,
    CaptureSeed,
    Redaction,
    RedactionProfile,
    read_events,
)
from reenact.recorder.context import CaptureContext
from reenact.recorder.sink import FileCaptureSink
from reenact.redaction import Redactor
from reenact.values.objects import message_of

SALT = bytes(16)


def events_in(path: Path) -> list[CaptureEvent]:
    """The events of a capture, read strictly: typed, numbered, none missing."""
    with (path / "events.jsonl").open("rb") as stream:
        return [event for _, event in read_events(stream, file="events.jsonl")]


def seed_of(profile: RedactionProfile = "default", *, threshold_bytes: int = 16 * 1024) -> CaptureSeed:
    """The open manifest of a run with fixed ids."""
    return CaptureSeed(
        version=1,
        captureId="cap_1",
        runId="run_1",
        createdAt=1763190000000,
        mode="capture",
        model=NO_MODEL,
        eventLogPath="events.jsonl",
        redaction=Redaction(enabled=profile != "none", profile=profile, salt=SALT.hex()),
        blobThresholdBytes=threshold_bytes,
    )


@contextmanager
def recorded_by(
    path: Path,
    *,
    wrap: Callable[[Any], Any] = lambda sink: sink,
    profile: RedactionProfile = "default",
    secrets: Sequence[str] = (),
    on_warning: Callable[[str], None] | None = None,
    threshold_bytes: int = 16 * 1024,
) -> Iterator[CaptureContext]:
    """Record the block into *path* through the sink that *wrap* makes of a file sink."""
    seed = seed_of(profile, threshold_bytes=threshold_bytes)
    redactor = Redactor(profile, secrets=secrets, salt=SALT)
    context = CaptureContext(wrap(FileCaptureSink(path)), seed, redactor, on_warning=on_warning)
    context.start()
    try:
        with seams.attach_seams(), enter_context(context):
            yield context
    except BaseException as error:
        context.finalize("error", f"{type(error).__name__}: {message_of(error)}", None)
        raise
    context.finalize("ok", None, None)

"""The run inside the agent's own process: opened when its interpreter starts, closed when it ends.

It leaves no signal handler and no exception hook behind. A process that is killed leaves an interrupted
capture, which the command completes; one that ends by ``sys.exit`` ends with what the command sees.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn, Protocol
from urllib.parse import urlsplit

from reenact.errors import Diverged
from reenact.formats.capture import BLOB_THRESHOLD_BYTES
from reenact.gateway.lane import BELOW, is_of_process
from reenact.gateway.upstreams import variables
from reenact.injected.first_call import FirstCallSink
from reenact.injected.handover import (
    HANDOVER_VARIABLE,
    SITE,
    Diverted,
    Handover,
    Replayed,
    ToRecord,
    ToReplay,
)
from reenact.injected.subject import subject
from reenact.recorder.joining import part_of
from reenact.replayer.allow import Allow
from reenact.run import MODE_VARIABLE, CaptureRun, ReplayRun, Run
from reenact.seams import stdlib
from reenact.seams.http.request import left_to_gateway


class _Part(Protocol):
    """What this process does for the command."""

    def end(self, error: BaseException | None) -> None:
        """The program is over, with the *error* nobody caught."""


def begin(folder: str) -> None:
    """Open the run that the command ordered in *folder*, and have it closed when the program is over."""
    handover = Handover(Path(folder))
    orders = handover.orders()
    part: _Part = _Recorded(orders, handover) if isinstance(orders, ToRecord) else _Replayed(orders, handover)
    handover.note("started", subject(sys.orig_argv))
    left_to_gateway(orders.diverted.address)
    _hide(orders.diverted)
    if isinstance(orders, ToRecord):
        _divert_programs_below(orders.diverted)
    _at_the_end(part)


class _Recorded:
    def __init__(self, orders: ToRecord, handover: Handover) -> None:
        self._handover = handover
        self._path = Path(orders.path)
        self._sink = FirstCallSink(self._path, durability=orders.durability, beside=self._beside)
        self._run = CaptureRun(
            self._sink,
            redact=orders.redact,
            blob_threshold_bytes=BLOB_THRESHOLD_BYTES,
            stand_ins=stdlib.stand_ins(None, ()),
            volatile=orders.volatile,
            on_warning=None,
            identity=orders.identity,
        )
        self._run.__enter__()

    def _beside(self) -> Path | None:
        """Beside the gateway's capture; beside another process's there is no place for a second one."""
        is_gateways = self._handover.gateway_was_called and not part_of(self._path, "gateway").exists()
        return part_of(self._path, "process") if is_gateways else None

    def end(self, error: BaseException | None) -> None:
        if self._sink.is_open:
            _leave(self._run, error)
            return
        self._run.abandon()
        if self._sink.refusal is not None:
            self._handover.note("left-out", str(self._sink.refusal))


class _Replayed:
    def __init__(self, orders: ToReplay, handover: Handover) -> None:
        self._handover = handover
        port = urlsplit(orders.diverted.address).port
        self._run = ReplayRun(
            orders.path,
            policy=orders.policy,
            volatile=orders.volatile,
            allow=Allow(loopback_ports=[port] if port else []),
            is_ours=is_of_process,
        )
        self._run.__enter__()

    def end(self, error: BaseException | None) -> None:
        with suppress(Diverged):  # it is in the receipt, and the command has more room to explain it
            _leave(self._run, error)
        if self._run.receipt is not None:
            self._handover.report(Replayed(self._run.answered, self._run.receipt))


def _leave(run: Run, error: BaseException | None) -> None:
    run.__exit__(type(error) if error is not None else None, error, None)


def _hide(diverted: Diverted) -> None:
    """Leave the program the surroundings it would have without us; what it starts is not ours.

    With seams it goes to its upstreams by itself, so that no call is seen twice.
    """
    for name, value in diverted.before.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value
    os.environ.pop(HANDOVER_VARIABLE, None)
    entries = os.environ.pop("PYTHONPATH", "").split(os.pathsep)
    if rest := os.pathsep.join(entry for entry in entries if entry != str(SITE)):
        os.environ["PYTHONPATH"] = rest
    # A `with reenact.capture(...)` of the program's own stands back: the whole program is the run.
    os.environ[MODE_VARIABLE] = "off"


def _divert_programs_below(diverted: Diverted) -> None:
    """What the program starts is one call of it, but the model calls in there are worth seeing.

    ``putenv`` past ``os.environ``: the program itself must not be led there.
    """
    for name, value in variables(f"{diverted.address}/{BELOW}", os.environ).items():
        os.putenv(name, value)


def _at_the_end(part: _Part) -> None:
    """Registered before the program could register anything, so it comes after all of that."""
    home_pid = os.getpid()
    is_over = False

    def end() -> None:
        nonlocal is_over
        if os.getpid() == home_pid and not is_over:
            is_over = True
            # Where the interpreter has put the exception that it prints; none for sys.exit.
            part.end(getattr(sys, "last_value", None))

    atexit.register(end)
    os._exit = _ending_first(end, os._exit)  # type: ignore[assignment]  # mypy wants the very function


def _ending_first(end: Callable[[], None], leave: Callable[[int], NoReturn]) -> Callable[[int], NoReturn]:
    def _exit(status: int) -> NoReturn:
        try:
            end()
        finally:
            leave(status)

    return _exit

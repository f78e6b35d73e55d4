"""What a program finds around it while it is recorded or replayed: what it would find without us."""

from __future__ import annotations

import json
import os
from functools import partial

from reenact.gateway.lane import BELOW
from reenact.gateway.upstreams import led_below, variables
from reenact.injected.handover import (
    BEFORE_VARIABLE,
    HANDOVER_VARIABLE,
    SEED_VARIABLE,
    SITE,
    Diverted,
    hash_seed,
)
from reenact.run import MODE_VARIABLE
from reenact.seams.stdlib.process import lead_programs


def hide() -> str | None:
    """Leave the program the surroundings it would have without us; what it starts is not ours.

    With seams it goes to its upstreams by itself, so that no call is seen twice. What the variables of the
    upstreams held before is returned, for what the program starts.
    """
    text = os.environ.pop(BEFORE_VARIABLE, None)
    before: dict[str, str | None] = json.loads(text) if text else {}
    for name, value in before.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value
    os.environ.pop(HANDOVER_VARIABLE, None)
    seed = bytes.fromhex(os.environ.pop(SEED_VARIABLE, ""))
    if seed and os.environ.get("PYTHONHASHSEED") == hash_seed(seed):
        del os.environ["PYTHONHASHSEED"]
    entries = os.environ.pop("PYTHONPATH", "").split(os.pathsep)
    if rest := os.pathsep.join(entry for entry in entries if entry != str(SITE)):
        os.environ["PYTHONPATH"] = rest
    # A `with reenact.capture(...)` of the program's own stands back: the whole program is the run.
    os.environ[MODE_VARIABLE] = "off"
    return text


def divert_programs_below(diverted: Diverted, before: str | None) -> None:
    """What the program starts is one call of it, but the model calls in there are worth seeing.

    ``putenv`` past ``os.environ``: the program itself must not be led there. Who gives its programs an
    environment of their own has it from ``os.environ``, so there it is changed when they start.
    """
    for name, value in variables(f"{diverted.address}/{BELOW}", os.environ).items():
        os.putenv(name, value)
    if before is not None:
        os.putenv(BEFORE_VARIABLE, before)
    lead_programs(None, partial(led_below, diverted.address, is_whole=False))

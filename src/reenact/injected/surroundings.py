"""What a program finds around it while it is recorded or replayed: what it would find without us."""

from __future__ import annotations

import os

from reenact.gateway.lane import BELOW
from reenact.gateway.upstreams import variables
from reenact.injected.handover import HANDOVER_VARIABLE, SITE, Diverted
from reenact.run import MODE_VARIABLE


def hide(diverted: Diverted) -> None:
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


def divert_programs_below(diverted: Diverted) -> None:
    """What the program starts is one call of it, but the model calls in there are worth seeing.

    ``putenv`` past ``os.environ``: the program itself must not be led there.
    """
    for name, value in variables(f"{diverted.address}/{BELOW}", os.environ).items():
        os.putenv(name, value)

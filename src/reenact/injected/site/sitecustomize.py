"""Imported by every Python that starts below ``reenact record`` or ``reenact replay``: begins the run there.

Any Python 3 may import this, with reenact installed or without, so reenact is imported as late as possible.
If the run cannot begin, a recorded program runs unrecorded, and a replayed one is ended.
"""

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

_HERE = os.path.dirname(os.path.abspath(__file__))


def _run_hidden_sitecustomize() -> None:
    """Execute the user's own ``sitecustomize``, which this one hides, if there is one."""
    sys.path[:] = [entry for entry in sys.path if entry != _HERE]
    spec = PathFinder.find_spec("sitecustomize")
    if spec is not None and spec.loader is not None:
        sys.modules["sitecustomize"] = module = module_from_spec(spec)
        spec.loader.exec_module(module)


def _begin() -> None:
    folder = os.environ.get("REENACT_HANDOVER")
    mode = os.environ.get("REENACT_MODE")
    if not folder or os.path.exists(os.path.join(folder, "gateway-called")):
        return
    try:
        if sys.version_info < (3, 11):  # noqa: UP036 — any Python 3 may run this
            raise ImportError(f"Python {sys.version_info[0]}.{sys.version_info[1]} is too old for it")
        from reenact.injected.process import begin

        begin(folder)
    except Exception as error:
        _give_up(folder, error)
        if mode == "replay":
            os._exit(70)


def _give_up(folder: str, error: Exception) -> None:
    kind, why = "failed", str(error)
    if type(error).__module__ != "reenact.errors":
        why = f"reenact could not start: {type(error).__name__}: {error}"
    if isinstance(error, ImportError):
        kind = "absent"
        why = f"{sys.executable}: {error}; let the agent run in a Python where reenact is installed"
    try:
        with open(os.path.join(folder, f"{kind}-{os.getpid()}"), "w", encoding="utf-8") as note:
            note.write(why)
    except OSError:
        sys.stderr.write(f"reenact: {why}\n")


try:
    _run_hidden_sitecustomize()
finally:
    _begin()

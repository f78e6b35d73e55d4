"""For all tests: the same wherever they run, and a busy machine is no counterexample to a property."""

import compileall
import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Captures are redacted more strictly where it is set; a test that is about this sets it itself.
os.environ.pop("CI", None)

# A shell that runs us in the background has it ignored, and so would the programs that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", settings.get_profile("patient"), max_examples=10)
settings.load_profile("patient")


def pytest_configure(config: pytest.Config) -> None:
    """Have our bytecode made once, by whom the workers are started.

    Tests start thousands of processes, and where ``PYTHONDONTWRITEBYTECODE`` is set each would compile all
    of ours again, for half a second.
    """
    if not hasattr(config, "workerinput"):
        compileall.compile_dir(Path(__file__).parent.parent / "src", quiet=2)


@pytest.fixture
def collector_off() -> Iterator[None]:
    """Nothing is collected meanwhile: in a process with many tests that may take a second."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()

"""For all tests: the same wherever they run, and a busy machine is no counterexample to a property."""

import os
import signal

from hypothesis import HealthCheck, settings

# Captures are redacted more strictly where it is set; a test that is about this sets it itself.
os.environ.pop("CI", None)

# A shell that runs us in the background has it ignored, and so would the programs that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", settings.get_profile("patient"), max_examples=10)
settings.load_profile("patient")

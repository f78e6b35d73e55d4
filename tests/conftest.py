"""For all tests: the same wherever they run, and a busy machine is no counterexample to a property."""

import os

from hypothesis import HealthCheck, settings

# Captures are redacted more strictly where it is set; a test that is about this sets it itself.
os.environ.pop("CI", None)

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", settings.get_profile("patient"), max_examples=10)
settings.load_profile("patient")

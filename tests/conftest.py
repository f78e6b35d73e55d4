"""For all tests: the same wherever they run, and a busy machine is no counterexample to a property."""

import os

import pytest
from hypothesis import HealthCheck, settings

from tests.open_defects import OPEN_DEFECTS

# Captures are redacted more strictly where it is set; a test that is about this sets it itself.
os.environ.pop("CI", None)

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", settings.get_profile("patient"), max_examples=10)
settings.load_profile("patient")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of open defects are run, and expected to fail."""
    for item in items:
        for beginning, reason in OPEN_DEFECTS.items():
            if item.nodeid.startswith(beginning):
                item.add_marker(pytest.mark.xfail(reason=reason, strict=False))

"""Refuses the first tries of those who count them."""

from tests.frameworks.model import everything_said

from reenact.testing import Fail


def answer(request):
    said = everything_said(request)
    return Fail(429) if said.startswith("Try") and not said.startswith("Try 3") else None

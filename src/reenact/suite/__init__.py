"""Assertions over recorded behaviour, written in test.yaml."""

from reenact.suite.judge import assertion
from reenact.suite.params import Params
from reenact.suite.verdict import Verdict

__all__ = ["Params", "Verdict", "assertion"]

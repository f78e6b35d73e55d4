# ruff: noqa: A005 - imported as tests.trace, so the standard module stays in sight

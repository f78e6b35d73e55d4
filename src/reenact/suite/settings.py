"""The ``[test]`` table of ``reenact.toml``: the project's assertions, defaults, model prices.

[test]
assertions = ["checks/orders.py"]        # relative to this file

[test.defaults.cost_budget.prices]       # if a test.yaml does not give them
"gpt-5*" = { input = 1.25, output = 10 }
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from reenact.errors import FormatError
from reenact.store.project import find_project_file, read_project
from reenact.suite.params import Params, read_params


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The project's settings for tests."""

    assertions: tuple[str, ...] = ()
    """Python files; absolute paths after reading."""
    defaults: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)
    """Parameters by assertion type."""


def find_settings(start: Path) -> Settings:
    """The settings of the nearest ``reenact.toml`` in *start* or above it, else the defaults."""
    file = find_project_file(start)
    return read_settings(file) if file is not None else Settings()


def read_settings(file: Path) -> Settings:
    """The settings in *file*; other tables are ignored."""
    table = read_project(file).get("test", {})
    try:
        settings = msgspec.convert(table, Settings)
    except msgspec.ValidationError as error:
        raise FormatError(f"[test]: {error}", file=str(file)) from None
    files = tuple(str(file.parent / name) for name in settings.assertions)
    return msgspec.structs.replace(settings, assertions=files)


Amount = Annotated[int, msgspec.Meta(ge=0)] | Annotated[float, msgspec.Meta(ge=0)]

_MILLION: Final = 1_000_000


class Price(Params, frozen=True, kw_only=True):
    """Per million tokens, in any currency."""

    input: Amount
    output: Amount
    cached_input: Amount | None = None
    """For input tokens from a cache; if absent, the price of other input."""

    def cost(self, *, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> float:
        """The cost of a call; *cached_tokens* are part of the input."""
        cached_price = self.input if self.cached_input is None else self.cached_input
        fresh = max(0, input_tokens - cached_tokens)
        return (fresh * self.input + cached_tokens * cached_price + output_tokens * self.output) / _MILLION


def find_price(model: str, prices: Mapping[str, Price]) -> Price | None:
    """The price of *model*; a name that ends in ``*`` is a prefix, and the longest match wins."""
    if model in prices:
        return prices[model]
    patterns = [name for name in prices if name.endswith("*") and model.startswith(name[:-1])]
    return prices[max(patterns, key=len)] if patterns else None


def project_prices(start: str | Path = ".") -> dict[str, Price]:
    """The default prices in the nearest ``reenact.toml``, in *start* or above it; empty without one."""
    given = find_settings(Path(start)).defaults.get("cost_budget", {}).get("prices", {})
    if not given:
        return {}
    return read_params(dict[str, Price], given, "test.defaults.cost_budget.prices", strict=True)

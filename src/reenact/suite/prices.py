"""What tokens cost, by a table of the project's own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

import msgspec

from reenact.suite.params import Params, read_params
from reenact.suite.settings import find_settings

Amount = Annotated[int, msgspec.Meta(ge=0)] | Annotated[float, msgspec.Meta(ge=0)]

_MILLION: Final = 1_000_000


class Price(Params, frozen=True, kw_only=True):
    """For a million tokens, in a currency of the author's choice."""

    input: Amount
    output: Amount
    cached_input: Amount | None = None
    """Of input tokens that were read from a cache; as other input when absent."""

    def cost(self, *, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> float:
        """What a call with so many tokens cost; *cached_tokens* are some of the input."""
        cached_price = self.input if self.cached_input is None else self.cached_input
        fresh = max(0, input_tokens - cached_tokens)
        return (fresh * self.input + cached_tokens * cached_price + output_tokens * self.output) / _MILLION


def find_price(model: str, prices: Mapping[str, Price]) -> Price | None:
    """The price of *model*; a name that ends in ``*`` is for all models that start so, the longest wins."""
    if model in prices:
        return prices[model]
    patterns = [name for name in prices if name.endswith("*") and model.startswith(name[:-1])]
    return prices[max(patterns, key=len)] if patterns else None


def project_prices(start: Path) -> dict[str, Price]:
    """The table that the nearest ``reenact.toml`` gives assertions as their default; empty without one."""
    given = find_settings(start).defaults.get("cost_budget", {}).get("prices", {})
    return read_params(dict[str, Price], given, "test.defaults.cost_budget.prices", strict=True)

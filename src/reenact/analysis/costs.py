"""What tokens cost, where the project has a price for their model."""

from __future__ import annotations

from collections.abc import Mapping

from reenact.analysis.index import Tokens
from reenact.suite.prices import Price, find_price


def cost_of(model: str, tokens: Tokens, prices: Mapping[str, Price]) -> float | None:
    """``None`` for a model without a price."""
    price = find_price(model, prices)
    if price is None:
        return None
    return price.cost(
        input_tokens=tokens.input, output_tokens=tokens.output, cached_tokens=tokens.cached_input
    )


def total_cost(tokens: Mapping[str, Tokens], prices: Mapping[str, Price]) -> float | None:
    """Of the tokens of each model together; ``None`` where one of them has no price: half a sum misleads."""
    costs = [cost_of(model, used, prices) for model, used in tokens.items() if used.total]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known and len(known) == len(costs) else None

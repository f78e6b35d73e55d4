"""A small agent without a model: looks for what is wished for, and orders the cheapest.

Run it under reenact: ``reenact record -- python examples/shop.py lamp``
"""

import secrets
import sys

import reenact

STOCK = {"desk lamp": 31, "floor lamp": 74, "lantern": 19}


@reenact.tool
def search(query: str) -> dict[str, int]:
    """What the shop has, with prices."""
    return {item: price for item, price in STOCK.items() if query in item}


@reenact.tool
def order(item: str) -> str:
    """Orders one; the number of the order is another one each time."""
    if item not in STOCK:
        raise KeyError(item)
    return f"order-{secrets.token_hex(3)}"


def main(wish: str) -> None:
    """The agent."""
    found = search(wish)
    if not found:
        sys.exit(f"there is no {wish}")
    cheapest = min(found, key=found.__getitem__)
    print(f"{cheapest} for {found[cheapest]}: {order(cheapest)}")


if __name__ == "__main__":
    main(sys.argv[1])

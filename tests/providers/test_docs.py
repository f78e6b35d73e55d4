"""What docs/providers.md promises."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest

from reenact.providers import Provider, recognise

PAGE = (Path(__file__).parents[2] / "docs" / "providers.md").read_text()
MEMBERS: dict[str, Any] = {"messages": [], "contents": [], "input": "hi", "max_tokens": 1}


def _recognised() -> list[tuple[str, str, list[str]]]:
    """The rows of the first table: provider, path, members."""
    section = PAGE.partition("## Recognized calls")[2].partition("\n## ")[0]
    rows = [row.strip("|").split("|") for row in section.splitlines() if row.startswith("| `")]
    return [
        (provider.strip(" `"), path.strip(" `"), [name.strip(" `") for name in members.split(",")])
        for provider, path, members in rows
    ]


ROWS = _recognised()


@pytest.mark.parametrize(("provider", "path", "members"), ROWS)
def test_row(provider: str, path: str, members: list[str]) -> None:
    """Each row is recognised behind any prefix, and no longer when one of its members is missing."""
    body = {name: MEMBERS.get(name, "x") for name in members}
    assert recognise("POST", f"/any/prefix{path}?a=b", body) == provider
    for name in members:
        assert recognise("POST", path, {key: value for key, value in body.items() if key != name}) is None


def test_all_providers_are_described() -> None:
    """The table names every wire format."""
    assert {provider for provider, _, _ in ROWS} == set(get_args(Provider))

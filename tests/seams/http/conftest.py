from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.seams.http.clients import CLIENTS, Client
from tests.seams.http.site import Site, open_site


@pytest.fixture(scope="session")
def web() -> Iterator[Site]:
    with open_site() as site:
        yield site


@pytest.fixture(params=list(CLIENTS))
def client(request: pytest.FixtureRequest) -> Client:
    return CLIENTS[request.param]

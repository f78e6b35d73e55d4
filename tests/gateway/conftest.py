"""A gateway in front of the site, recording or replaying, and clients that speak to it without seams."""

from contextlib import contextmanager
from types import SimpleNamespace

import httpx2
import pytest

from reenact.injected.served import ServedCapture, ServedReplay
from reenact.run.capturing import Identity
from tests.seams.http.site import open_site


@pytest.fixture
def site():
    with open_site() as site:
        yield site


def capture_of(path, upstreams):
    return ServedCapture(
        path, ["agent"], upstreams, redact="none", durability="process", identity=Identity.new()
    )


@contextmanager
def recording(path, upstreams, *, on_call=lambda: None, **options):
    with capture_of(path, upstreams).serve(port=0, on_call=on_call, **options) as gateway:
        yield gateway


@contextmanager
def replaying(path, upstreams, **options):
    """The gateway; its receipt is there when the block is over."""
    run = ServedReplay(path, upstreams, policy="strict", **options)
    seen = SimpleNamespace(receipt=None)
    with run.serve(port=0, on_call=lambda: None) as gateway:
        seen.address = gateway.address
        yield seen
    seen.receipt = run.receipt


def both(path, upstreams, work):
    """What *work* makes of the gateway's address, recorded and replayed; the upstream is the same."""
    with recording(path, upstreams) as gateway:
        first = work(gateway.address)
    with replaying(path, upstreams) as seen:
        again = work(seen.address)
    assert seen.receipt.verdict == "reproduced", seen.receipt.divergences
    return first, again


@pytest.fixture
def client():
    with httpx2.Client(timeout=30, trust_env=False) as client:
        yield client

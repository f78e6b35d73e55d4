"""A request's body in pieces, cut anywhere."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from reenact.gateway.app import run_while_connected
from reenact.gateway.call import RequestBody


def client(pieces, *, is_end_apart):
    """A ``receive`` that gives *pieces* and then says nothing more."""
    messages = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    if is_end_apart or not messages:
        messages.append({"type": "http.request"})
    else:
        messages[-1]["more_body"] = False

    async def receive():
        return messages.pop(0) if messages else await asyncio.Future()

    return receive


@given(pieces=st.lists(st.binary(max_size=5), max_size=6), is_end_apart=st.booleans())
def test_all_but_the_last_byte_is_passed_on_before_it_is_recorded(pieces, is_end_apart):
    """All of it afterwards, whatever the pieces are and whether the last of them says so."""
    body = RequestBody(client(pieces, is_end_apart=is_end_apart))
    out, out_by_then = [], []

    async def record():
        assert await body.read_all() == b"".join(pieces)
        out_by_then.extend(out)

    async def work():
        await body.next_piece()
        out.extend([piece async for piece in body.forward(record)])

    asyncio.run(run_while_connected(body.listen(), work()))
    assert b"".join(out) == b"".join(pieces)
    assert len(b"".join(out_by_then)) < max(len(b"".join(pieces)), 1)


def test_nothing_more_is_taken_from_the_client_than_is_read():
    """But for the piece that is offered and the one behind it."""
    taken = []

    async def receive():
        taken.append(b"x")
        return {"type": "http.request", "body": b"x", "more_body": True}

    async def work():
        await body.next_piece()
        for _ in range(20):
            await asyncio.sleep(0)

    body = RequestBody(receive)
    asyncio.run(run_while_connected(body.listen(), work()))
    assert len(taken) == 3

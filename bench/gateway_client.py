"""A program without seams that asks a model directly and through the gateway, and prints how long it took.

Run isolated, below ``reenact record``; the only argument is the address of the model.
"""

import json
import sys
from collections.abc import Iterator
from http.client import HTTPConnection
from os import environ
from statistics import median
from threading import Barrier, Thread
from time import perf_counter, sleep, time
from urllib.parse import urlsplit

ROUND_TRIPS = 300
STREAMS = 200


class Model:
    """One of the two ways to the model, on a connection that is kept."""

    def __init__(self, base_url: str) -> None:
        self._place = urlsplit(base_url)
        self._connection = HTTPConnection(self._place.netloc, timeout=60)
        self.first_byte_s = 0.0

    def ask(self, question: str, *, stream: bool = False) -> float:
        """How long it took; :attr:`first_byte_s` is when the answer began."""
        body = {"model": "m", "max_tokens": 9, "stream": stream}
        text = json.dumps({**body, "messages": [{"role": "user", "content": question}]})
        started_s = perf_counter()
        path = f"{self._place.path}/v1/messages"
        self._connection.request("POST", path, text, {"Content-Type": "application/json"})
        answer = self._connection.getresponse()
        answer.read(1)
        self.first_byte_s = perf_counter() - started_s
        answer.read()
        assert answer.status == 200
        return perf_counter() - started_s


def all_at_once(base_url: str) -> float:
    """The time from the first question to the last word of many streams."""
    models = [Model(base_url) for _ in range(STREAMS)]
    barrier = Barrier(STREAMS + 1)

    def work(model: Model) -> None:
        barrier.wait()
        model.ask("slowly", stream=True)

    threads = [Thread(target=work, args=[model]) for model in models]
    for thread in threads:
        thread.start()
    barrier.wait()
    started_s = perf_counter()
    for thread in threads:
        thread.join()
    return perf_counter() - started_s


def upload() -> float:
    """The time of day at which a request began that took a while to say."""

    def pieces() -> Iterator[bytes]:
        for _ in range(20):
            yield b"word " * 1000
            sleep(0.02)

    connection = HTTPConnection(urlsplit(environ["REENACT_GATEWAY"]).netloc, timeout=60)
    started_s = time()
    headers = {"Transfer-Encoding": "chunked"}
    connection.request("POST", "/listener/", pieces(), headers, encode_chunked=True)
    assert connection.getresponse().read() == b"ok"
    return started_s


ways = {"direct": sys.argv[1], "through": environ["ANTHROPIC_BASE_URL"]}
models = {way: Model(base_url) for way, base_url in ways.items()}
took_s: dict[str, list[float]] = {way: [] for way in ways}
for number in range(ROUND_TRIPS):
    for way, model in models.items():
        took_s[way].append(model.ask(f"question {number}"))
whole_s = models["through"].ask("slowly", stream=True)
print(
    json.dumps(
        {
            **{f"{way}_s": median(durations[20:]) for way, durations in took_s.items()},
            "first_byte_s": models["through"].first_byte_s,
            "whole_s": whole_s,
            "upload_started_s": upload(),
            **{f"{way}_all_s": all_at_once(base_url) for way, base_url in ways.items()},
        }
    )
)

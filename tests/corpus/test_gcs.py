"""Runs in Google's storage: its interface is that of S3 but for conditions, which a server translates."""

import http.client
import json
import shutil
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from threading import Lock, Thread

import pytest
from moto.server import ThreadedMotoServer

import reenact
from reenact.errors import StoreError
from tests.analysis.recordings import search

SIGNED = (
    "AWS4-HMAC-SHA256 Credential=test/20260131/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
)
"""Moto wants a signature, and does not check it."""


class Storage(BaseHTTPRequestHandler):
    """An S3 server behind Google's headers: each version of an object has a generation, ``0`` means none."""

    protocol_version = "HTTP/1.1"
    upstream = ("", 0)
    generations: dict[str, int] = {}  # noqa: RUF012 — shared on purpose
    next_generation = count(1)
    lock = Lock()

    def handle_any(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        key = self.path.partition("?")[0]
        with self.lock:
            expected = self.headers.get("x-goog-if-generation-match")
            if expected is not None and int(expected) != self.generations.get(key, 0):
                return self.answer(412, [], b"<Error><Code>PreconditionFailed</Code></Error>")
            status, headers, content = self.hand_on(body)
            if status == 200 and self.command == "PUT":
                self.generations[key] = next(self.next_generation)
            elif self.command == "DELETE":
                self.generations.pop(key, None)
            if key in self.generations:
                headers.append(("x-goog-generation", str(self.generations[key])))
        return self.answer(status, headers, content)

    def hand_on(self, body):
        own = ("x-goog-", "authorization")
        headers = {name: value for name, value in self.headers.items() if not name.lower().startswith(own)}
        with closing(http.client.HTTPConnection(*self.upstream)) as connection:
            connection.request(self.command, self.path, body, headers | {"Authorization": SIGNED})
            answer = connection.getresponse()
            theirs = ("transfer-encoding", "connection", "date", "server")
            headers = [(name, value) for name, value in answer.getheaders() if name.lower() not in theirs]
            return answer.status, headers, answer.read()

    def answer(self, status, headers, content):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if "content-length" not in [name.lower() for name, _ in headers]:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = handle_any  # noqa: N815

    def log_message(self, *_):
        """Quiet."""


@pytest.fixture(scope="module")
def server():
    """The address of a storage with the bucket ``team``."""
    behind = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    behind.start()
    Storage.upstream = behind.get_host_and_port()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Storage)
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True).start()
    with closing(http.client.HTTPConnection(*Storage.upstream)) as connection:
        connection.request("PUT", "/team")
        assert connection.getresponse().status == 200
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    behind.stop()


@pytest.fixture
def runs(server, tmp_path, monkeypatch):
    """Two runs, in a folder that is the current one."""
    monkeypatch.chdir(tmp_path)
    account = {"gcs_base_url": server, "disable_oauth": True}
    account |= dict.fromkeys(("client_email", "private_key", "private_key_id"), "")
    (tmp_path / "account.json").write_text(json.dumps(account))
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT", str(tmp_path / "account.json"))
    monkeypatch.setenv("GOOGLE_ALLOW_HTTP", "true")
    for name in ("lamp", "sofa"):
        with reenact.capture(tmp_path / "runs" / name, redact="none"):
            search(name)
    return tmp_path / "runs"


def test_runs_go_there_and_come_back(runs):
    """Each once, and verified; another run under the same name is refused."""
    assert sorted(reenact.push("runs", to="gs://team/one").pushed) == ["lamp", "sofa"]
    assert reenact.push("runs", to="gs://team/one").pushed == []
    reenact.pull("gs://team/one", "back")
    assert (runs.parent / "back" / "lamp" / "events.jsonl").read_bytes() == (
        runs / "lamp" / "events.jsonl"
    ).read_bytes()
    assert reenact.query("select count(*) from calls", "gs://team/one").rows == [(2,)]
    shutil.rmtree(runs / "lamp")
    (runs / "sofa").rename(runs / "lamp")
    report = reenact.push("runs", to="gs://team/one")
    assert (report.pushed, len(report.problems)) == ([], 1)


def test_an_index_is_kept_there(runs):
    """Brought up to date on the condition that nobody else did; what is new is read, and nothing else."""
    reenact.push("runs", to="gs://team/two")
    assert reenact.index("gs://team/two", out="gs://team/corpus").added == 2
    assert reenact.index(out="gs://team/corpus").unchanged == 2
    with reenact.capture(runs / "new", redact="none"):
        search("new")
    reenact.push("runs", to="gs://team/two")
    assert reenact.index(out="gs://team/corpus").added == 1
    assert reenact.query("select count(*) from runs", "gs://team/corpus").rows == [(3,)]


def test_a_pack_is_read_in_place(runs):
    reenact.pack("runs", out="gs://team/all.pack")
    assert reenact.query("select count(*) from calls", "gs://team/all.pack#sofa").rows == [(1,)]
    with pytest.raises(StoreError, match="already"):
        reenact.pack("runs", out="gs://team/all.pack")


def test_a_bucket_that_is_not_there_is_one_line(runs):
    with pytest.raises(StoreError, match=r"^gs://nobody/runs: there is no such bucket") as refused:
        reenact.pull("gs://nobody/runs", "back")
    assert "\n" not in str(refused.value)


def test_credentials_that_are_not_there_are_one_line(runs, monkeypatch):
    """With the file that was named."""
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT", "nowhere.json")
    with pytest.raises(StoreError, match=r"^gs://team/one: .*nowhere\.json: No such file") as refused:
        reenact.pull("gs://team/one", "back")
    assert "\n" not in str(refused.value)

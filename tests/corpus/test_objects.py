"""Runs in object storage: an S3 server that really listens, and a line to it on which all goes wrong."""

import http.client
import os
import shutil
import socket
import struct
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import boto3
import pytest
from moto.server import ThreadedMotoServer

import reenact
from reenact.cli import main
from reenact.errors import StoreError, UsageError
from reenact.store import objects
from tests.analysis.recordings import fetch, record

KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}


class BadLine(BaseHTTPRequestHandler):
    """Hands requests on to the server; *faults* says what happens to the next ones."""

    protocol_version = "HTTP/1.1"
    faults: list[str] = []  # noqa: RUF012 — shared on purpose
    seen: list[str] = []  # noqa: RUF012
    upstream = ("", 0)
    stop_at = ""
    """A request with this in it is not handed on and never answered; *stopped* says that it came."""
    stopped = Event()
    released = Event()
    sent_bytes = 0

    def handle_any(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.seen.append(f"{self.command} {self.path}")
        if self.stop_at and self.stop_at in self.seen[-1]:
            self.stopped.set()
            self.released.wait(60)
            self.close_connection = True
            return None
        fault = self.faults.pop(0) if self.faults else ""
        if fault in ("500", "403"):
            return self.send_error(int(fault))
        if fault == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            return None
        upstream = http.client.HTTPConnection(*self.upstream)
        upstream.request(self.command, self.path, body, dict(self.headers))
        answer = upstream.getresponse()
        content = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "date", "server"):
                self.send_header(name, value)
        if answer.getheader("Content-Length") is None:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if fault == "changed":
            content = content.replace(b"lamp", b"pram")
        BadLine.sent_bytes += 0 if self.command == "HEAD" else len(content)
        if fault == "slow":
            return self.send_slowly(content)
        self.wfile.write(content[: len(content) // 2] if fault == "truncated" else content)
        if fault == "truncated":
            self.close_connection = True
        return None

    def send_slowly(self, content):
        for start in range(0, len(content), 1 + len(content) // 8):
            self.wfile.write(content[start : start + 1 + len(content) // 8])
            time.sleep(0.05)

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = handle_any  # noqa: N815

    def log_message(self, *_):
        """Quiet."""


@pytest.fixture(scope="module")
def line():
    """A bad line to an S3 server with the bucket ``team``."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    BadLine.upstream = server.get_host_and_port()
    proxy = ThreadingHTTPServer(("127.0.0.1", 0), BadLine)
    proxy.daemon_threads = True
    Thread(target=proxy.serve_forever, daemon=True).start()
    host, port = BadLine.upstream
    client = boto3.client(
        "s3",
        endpoint_url=f"http://{host}:{port}",
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    client.create_bucket(Bucket="team")
    yield f"http://127.0.0.1:{proxy.server_address[1]}", client
    client.close()
    proxy.shutdown()
    proxy.server_close()
    server.stop()


@pytest.fixture
def bucket(line, tmp_path, monkeypatch):
    """An address of its own for each test."""
    monkeypatch.chdir(tmp_path)
    for name, value in (KEYS | {"AWS_ENDPOINT_URL": line[0], "AWS_ALLOW_HTTP": "true"}).items():
        monkeypatch.setenv(name, value)
    BadLine.faults, BadLine.seen = [], []
    record(tmp_path / "runs" / "lamp", "lamp")
    with reenact.capture(tmp_path / "runs" / "deep" / "large", redact="none"):
        fetch(40_000)
    return f"s3://team/{tmp_path.name}"


def same(one, other):
    files = [file for file in Path(one).rglob("*") if file.is_file()]
    assert len(files) >= 2
    return all(file.read_bytes() == (Path(other) / file.relative_to(one)).read_bytes() for file in files)


def test_runs_go_there_and_come_back(bucket):
    """Byte for byte, blobs included; what is there or here already is left alone."""
    report = reenact.push("runs", to=bucket)
    assert (report.pushed, report.problems) == (["deep/large", "lamp"], [])
    assert reenact.push("runs", to=bucket).already_there == ["deep/large", "lamp"]
    assert [run.name for run in reenact.list_runs(bucket)] == ["deep/large", "lamp"]
    assert reenact.pull(bucket, "back").pulled == ["back/deep/large", "back/lamp"]
    assert same("runs", "back")
    assert reenact.verify_runs("back").is_good
    assert reenact.pull(bucket, "back").already_here == ["back/deep/large", "back/lamp"]


def test_pulling_one_run_reads_that_run_alone(bucket):
    """However many there are beside it."""
    reenact.push("runs", to=bucket)
    BadLine.seen.clear()
    assert reenact.pull(f"{bucket}/lamp", "back").pulled == ["back/lamp"]
    assert not [request for request in BadLine.seen if "large" in request]


@pytest.mark.parametrize("fault", ["500", "reset"])
def test_a_bad_line_is_tried_again(bucket, fault):
    """And what arrives is what was sent."""
    BadLine.faults = [fault, "", fault]
    assert reenact.push("runs", to=bucket).problems == []
    BadLine.faults = ["", fault, "", "", fault]
    report = reenact.pull(bucket, "back")
    assert report.problems == []
    assert same("runs", "back")


@pytest.mark.parametrize("fault", ["truncated", "changed"])
def test_an_answer_that_is_not_what_was_stored_is_no_run(bucket, fault):
    """It is reported, nothing of it is left, and the next try brings the run."""
    reenact.push("runs", to=bucket)
    BadLine.faults = ["", ""] + [fault] * 3
    report = reenact.pull(f"{bucket}/lamp", "back")
    if report.problems:
        assert os.listdir("back") == []
        assert bucket in report.problems[0]
    BadLine.faults = []
    assert reenact.pull(f"{bucket}/lamp", "back").problems == []
    assert same("runs/lamp", "back/lamp")


def test_an_upload_that_is_cut_off_is_no_run(bucket, line, monkeypatch):
    """Nobody sees half a run; pushing again completes it."""

    def fail(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(objects.ObjectStore, "put_new", fail)
        with pytest.raises(KeyboardInterrupt):
            reenact.push("runs", to=bucket)
    assert reenact.list_runs(bucket) == []
    with pytest.raises(StoreError, match="holds no run"):
        reenact.pull(bucket, "back")
    assert reenact.push("runs", to=bucket).problems == []
    assert len(reenact.list_runs(bucket)) == 2


def test_another_run_of_the_same_name_is_told(bucket):
    """Nothing is replaced, there or here."""
    reenact.push("runs", to=bucket)
    shutil.rmtree("runs/lamp")
    record(Path("runs/lamp").absolute(), "another lamp")
    report = reenact.push("runs", to=bucket)
    assert (report.already_there, len(report.problems)) == (["deep/large"], 1)
    assert "lamp: is another run" in report.problems[0]
    assert "holds a capture already" in reenact.pull(bucket, "runs").problems[0]


def test_of_two_who_push_one_name_one_is_told(bucket, monkeypatch):
    """The manifest is written only where there is none, whatever was seen before."""
    reenact.push("runs/lamp", to=bucket)
    shutil.rmtree("runs/lamp")
    record(Path("runs/lamp").absolute(), "another lamp")
    found = objects.ObjectStore.find
    monkeypatch.setattr(objects.ObjectStore, "find", _first_none(found))
    [problem] = reenact.push("runs/lamp", to=bucket).problems
    assert "another run came there meanwhile" in problem


def _first_none(find):
    calls = []

    def find_later(*words):
        calls.append(words)
        return None if len(calls) == 1 else find(*words)

    return find_later


WRONG = {
    "bucket": ("s3://nobody/x", "s3://nobody/x: there is no such bucket"),
    "scheme": ("ftp://x/y", "ftp://x/y: is not an address; write for example s3://BUCKET/FOLDER"),
    "path": ("runs", "runs: is not an address"),
    "secret": ("s3://me:hunter2@team/x", "s3://team/x: an address must not hold credentials"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_address_is_one_line(bucket, name, capsys):
    """For each verb; a secret in it is not repeated."""
    address, said = WRONG[name]
    for words in (("push", "runs", address), ("pull", address, "back"), ("ls", address)):
        assert main(list(words)) in (2, 3)
        err = capsys.readouterr().err
        assert err.startswith(f"reenact: {said}")
        assert err.count("\n") == 1
        assert "hunter2" not in err


def test_missing_credentials_are_one_line(bucket, monkeypatch):
    """Soon, and without asking the network for a role for long."""
    for name in KEYS:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(StoreError, match=r"there are no credentials|access is denied"):
        reenact.list_runs(bucket)


def test_a_clock_that_is_off_is_one_line(bucket):
    """A service refuses requests whose signature is of another time, as it refuses credentials."""
    BadLine.faults = ["403"]
    with pytest.raises(
        StoreError, match=r"^[^\n]*: access is denied; check [^\n]* the clock of this machine$"
    ):
        reenact.push("runs", to=bucket)
    assert reenact.push("runs", to=bucket).pushed == ["deep/large", "lamp"]


def test_a_run_that_is_not_finished_is_not_pushed(bucket):
    """Nothing is called stored before it is whole."""
    from tests.cli.commands import interrupted

    interrupted(Path("runs/torn").absolute(), lambda: fetch(1))
    report = reenact.push("runs", to=bucket)
    assert len(report.pushed) == 2
    assert report.problems == ["runs/torn: is interrupted; only finished runs are stored"]


def test_a_name_that_leads_out_of_the_run_is_refused(bucket, line):
    """Whoever can write to the storage cannot write beside what is pulled."""
    reenact.push("runs/lamp", to=bucket)
    key = f"{bucket.removeprefix('s3://team/')}/lamp/a\\..\\b"
    line[1].put_object(Bucket="team", Key=key, Body=b"x")
    [problem] = reenact.pull(bucket, "back").problems
    assert "is not a file name of a run" in problem
    assert not Path("back/lamp").exists()


def test_the_verbs_say_what_they_did(bucket, capsys):
    """In one line each."""
    assert main(["push", "runs", bucket]) == 0
    assert capsys.readouterr().out.startswith(f"{bucket}: 2 runs pushed, ")
    assert main(["ls", bucket]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "2 runs"
    assert main(["pull", bucket, "back", "--json"]) == 0
    assert '"pulled": [' in capsys.readouterr().out


def test_a_missing_library_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "obstore", None)
    with pytest.raises(
        UsageError, match=r"obstore is not installed; addresses take: pip install 'reenact\[s3\]'"
    ):
        reenact.list_runs("s3://team/x")

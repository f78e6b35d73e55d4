"""Runs in Azure's storage, as Azurite speaks it: a server that really listens; see `make test-azure`."""

import base64
import hmac
import os
import re
import shutil
import subprocess
import urllib.request
from email.utils import formatdate

import pytest

import reenact
from reenact.errors import StoreError
from tests.analysis.recordings import search

AZURITE = os.environ.get("REENACT_AZURITE")
pytestmark = pytest.mark.skipif(not AZURITE, reason="takes Azurite: make test-azure")
ACCOUNT = "devstoreaccount1"
# The key that Azurite and every document about it publish.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@pytest.fixture(scope="module")
def server():
    """The address of an Azurite with the container ``team``."""
    command = [AZURITE, "--inMemoryPersistence", "--blobHost", "127.0.0.1", "--blobPort", "0"]
    process = subprocess.Popen(
        [*command, "--skipApiVersionCheck", "--disableTelemetry"], stdout=subprocess.PIPE, text=True
    )
    try:
        said = next(line for line in process.stdout if "successfully listens" in line)
        address = re.search(r"http://127\.0\.0\.1:\d+", said)[0]
        make_container(address, "team")
        yield address
    finally:
        process.terminate()
        process.communicate()


def make_container(address, name):
    date, version = formatdate(usegmt=True), "2021-08-06"
    lines = ["PUT", *[""] * 11, f"x-ms-date:{date}", f"x-ms-version:{version}"]
    signed = "\n".join([*lines, f"/{ACCOUNT}/{ACCOUNT}/{name}", "restype:container"])
    mark = base64.b64encode(hmac.digest(base64.b64decode(KEY), signed.encode(), "sha256")).decode()
    request = urllib.request.Request(f"{address}/{ACCOUNT}/{name}?restype=container", method="PUT")
    for header, value in (("x-ms-date", date), ("x-ms-version", version)):
        request.add_header(header, value)
    request.add_header("Authorization", f"SharedKey {ACCOUNT}:{mark}")
    urllib.request.urlopen(request, timeout=30).close()


@pytest.fixture
def runs(server, tmp_path, monkeypatch):
    """Two runs, in a folder that is the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AZURE_STORAGE_USE_EMULATOR", "true")
    monkeypatch.setenv("AZURITE_BLOB_STORAGE_URL", server)
    for name in ("lamp", "sofa"):
        with reenact.capture(tmp_path / "runs" / name, redact="none"):
            search(name)
    return tmp_path / "runs"


def test_runs_go_there_and_come_back(runs):
    """Each once, and verified; another run under the same name is refused."""
    assert sorted(reenact.push("runs", to="az://team/one").pushed) == ["lamp", "sofa"]
    assert reenact.push("runs", to="az://team/one").pushed == []
    reenact.pull("az://team/one", "back")
    assert (runs.parent / "back" / "lamp" / "events.jsonl").read_bytes() == (
        runs / "lamp" / "events.jsonl"
    ).read_bytes()
    assert reenact.query("select count(*) from calls", "az://team/one").rows == [(2,)]
    shutil.rmtree(runs / "lamp")
    (runs / "sofa").rename(runs / "lamp")
    report = reenact.push("runs", to="az://team/one")
    assert (report.pushed, len(report.problems)) == ([], 1)


def test_an_index_is_kept_there(runs):
    """Brought up to date, and asked; what is new is read, and nothing else."""
    reenact.push("runs", to="az://team/two")
    assert reenact.index("az://team/two", out="az://team/corpus").added == 2
    assert reenact.index(out="az://team/corpus").unchanged == 2
    assert reenact.query("select count(*) from runs", "az://team/corpus").rows == [(2,)]


def test_a_pack_is_read_in_place(runs):
    reenact.pack("runs", out="az://team/all.pack")
    assert reenact.query("select count(*) from calls", "az://team/all.pack#sofa").rows == [(1,)]


def test_a_container_that_is_not_there_is_one_line(runs):
    with pytest.raises(StoreError, match=r"^az://nobody/runs: there is no such bucket or object") as refused:
        reenact.pull("az://nobody/runs", "back")
    assert "\n" not in str(refused.value)

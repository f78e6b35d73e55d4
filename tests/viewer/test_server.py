"""What the server answers, and to whom."""

import http.client
import json
import os
import shutil
import subprocess
import sys
from urllib.parse import quote

import pytest

from reenact.viewer.server import HEADERS


def ask(served, path="/", method="GET", host=None, **headers):
    """One request with exactly these headers."""
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    for name, value in {"Host": host or f"127.0.0.1:{served.port}", **headers}.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    response = connection.getresponse()
    answer = response.status, response.read(), response.headers
    connection.close()
    return answer


def question(served, what, **parameters):
    query = "&".join(f"{name}={quote(str(value))}" for name, value in parameters.items())
    status, text, _ = ask(served, f"/api/{what}?{query}")
    return status, json.loads(text)


def test_the_page_is_served(served):
    """Under every name that loopback has."""
    for host in ("127.0.0.1", "localhost", "[::1]"):
        status, text, _ = ask(served, host=f"{host}:{served.port}")
        assert status == 200
        assert b"<main" in text


FOREIGN_HOSTS = {
    "another name": "attacker.example:{port}",
    "a name that ends like ours": "localhost.attacker.example:{port}",
    "no port": "127.0.0.1",
    "another port": "127.0.0.1:1",
    "another address": "127.0.0.2:{port}",
    "credentials": "127.0.0.1:{port}@attacker.example",
    "nothing": " ",
}


@pytest.mark.parametrize("host", FOREIGN_HOSTS.values(), ids=FOREIGN_HOSTS.keys())
def test_other_hosts_are_refused(served, host):
    """A name of somebody else that resolves to loopback gets nothing."""
    status, text, _ = ask(served, "/api/runs", host=host.format(port=served.port))
    assert status in (400, 421)
    assert b"support" not in text


FOREIGN_SITES = {
    "another origin": {"Origin": "http://attacker.example"},
    "a sandboxed page": {"Origin": "null"},
    "our port over https": {"Origin": "https://127.0.0.1:{port}"},
    "a script of another site": {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "cors"},
    "another port of this machine": {"Sec_Fetch_Site": "same-site", "Sec_Fetch_Mode": "no-cors"},
    "a frame": {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "iframe"},
}


@pytest.mark.parametrize("headers", FOREIGN_SITES.values(), ids=FOREIGN_SITES.keys())
def test_other_sites_are_refused(served, headers):
    """Their pages may make the browser ask; it gets nothing."""
    status, text, _ = ask(
        served, "/api/runs", **{name: value.format(port=served.port) for name, value in headers.items()}
    )
    assert status == 403
    assert b"support" not in text


def test_a_link_from_another_site_works(served):
    """The reader followed it; the page then asks from its own origin."""
    headers = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "document"}
    assert ask(served, **headers)[0] == 200
    assert ask(served, "/api/runs", Origin=f"http://127.0.0.1:{served.port}")[0] == 200


ASKING = """
import sys, urllib.error, urllib.request
try:
    print(urllib.request.urlopen(sys.argv[1], timeout=30).status)
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
"""


PYTHON_FOR_ALL = shutil.which("python3", path="/usr/bin:/bin")
CAN_BE_ANOTHER = sys.platform == "linux" and os.getuid() == 0 and PYTHON_FOR_ALL is not None


@pytest.mark.skipif(not CAN_BE_ANOTHER, reason="only root can be somebody else")
def test_other_users_are_refused(served):
    """They can reach loopback; what is shown there is not theirs."""
    command = [PYTHON_FOR_ALL, "-I", "-c", ASKING, f"http://127.0.0.1:{served.port}/api/runs"]
    nobody = {"user": 65534, "group": 65534, "extra_groups": []}
    refused = subprocess.run(command, capture_output=True, text=True, check=True, **nobody)
    assert refused.stdout == "403 Other users get nothing from here.\n\n"
    asked = subprocess.run(command, capture_output=True, text=True, check=True)
    assert asked.stdout == "200\n"


@pytest.mark.skipif(not CAN_BE_ANOTHER, reason="only root can be somebody else")
def test_other_users_are_refused_by_whichever_address_they_come(served):
    """A connection to an IPv4 address through IPv6 stands in another table of the kernel's."""
    code = ASKING_BY_ADDRESS.format(port=served.port)
    nobody = {"user": 65534, "group": 65534, "extra_groups": []}
    command = [PYTHON_FOR_ALL, "-I", "-c", code]
    refused = subprocess.run(command, capture_output=True, text=True, check=True, **nobody)
    assert refused.stdout == "HTTP/1.1 403 Forbidden\n"
    asked = subprocess.run(command, capture_output=True, text=True, check=True)
    assert asked.stdout == "HTTP/1.1 200 OK\n"


ASKING_BY_ADDRESS = """
import socket
client = socket.create_connection(("::ffff:127.0.0.1", {port}))
client.sendall(b"GET /api/runs HTTP/1.1\\r\\nHost: 127.0.0.1:{port}\\r\\nConnection: close\\r\\n\\r\\n")
print(client.makefile().readline().strip())
"""


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"])
def test_nothing_can_be_changed(served, method):
    """Reading is all there is."""
    status, _, headers = ask(served, "/api/runs", method)
    assert status == 405
    assert headers["Allow"] == "GET, HEAD"


@pytest.mark.parametrize("path", ["/", "/main.js", "/run.css", "/api/runs", "/api/nothing", "/nothing"])
def test_every_answer_has_the_security_headers(served, path):
    """Errors too."""
    _, _, headers = ask(served, path)
    assert {name: headers[name] for name in HEADERS} == HEADERS


PATHS = [
    "/../pyproject.toml",
    "/..%2f..%2fpyproject.toml",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/static/../guard.py",
    "/guard.py",
    "//etc/passwd",
    "/....//....//etc/passwd",
    "/api/../../etc/passwd",
    "/index.html%00.js",
]


@pytest.mark.parametrize("path", PATHS)
def test_no_path_leads_to_a_file(served, path):
    """A file's name is a key of a table."""
    assert ask(served, path)[0] in (400, 404)


@pytest.mark.parametrize(
    "run", ["../support", "/etc", "support/..", "support/events.jsonl", "", ".", "..", "support\0", "supp"]
)
@pytest.mark.parametrize("what", ["run", "steps", "detail", "conversation", "check", "divergences"])
def test_only_runs_that_were_given_can_be_asked_for(served, what, run):
    """A run's name is a key of a table, too."""
    status, answer = question(served, what, run=run, seq=1)
    assert status == 404
    assert "there is no run" in answer["error"]


@pytest.mark.parametrize("number", ["-1", "x", "1e9", "９", "99999999999999999", "0x10"])
def test_numbers_are_numbers(served, number):
    """Anything else is refused by its name."""
    status, answer = question(served, "steps", run="support", count=number)
    assert status == 404
    assert "is not a number" in answer["error"]


def test_an_event_that_is_not_there_is_named(served):
    """With how many there are."""
    status, answer = question(served, "detail", run="support", seq=99)
    assert status == 404
    assert "choose 1 to 12" in answer["error"]

"""Who may use the gateway, and what for."""

import http.client
import socket
import subprocess
from contextlib import closing

import pytest

from tests.gateway.conftest import recording
from tests.viewer.test_server import CAN_BE_ANOTHER, PYTHON_FOR_ALL


def asked(address, target, headers=None, method="GET"):
    host = address.removeprefix("http://")
    with closing(http.client.HTTPConnection(host, timeout=20)) as connection:
        connection.putrequest(method, target)
        for name, value in (headers or {}).items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.read()


FOREIGN = {
    "another site": {"Origin": "https://evil.example"},
    "no site": {"Origin": "null"},
    "a name that looks like ours": {"Origin": "http://127.0.0.1.evil.example"},
    "a picture on another site": {"Sec-Fetch-Site": "cross-site"},
}


@pytest.mark.parametrize("headers", FOREIGN.values(), ids=FOREIGN)
def test_pages_of_other_sites_get_nothing(headers, site, tmp_path):
    with recording(tmp_path / "run", {"up": site.url}) as gateway:
        status, body = asked(gateway.address, "/up/page", headers)
    assert (status, b"refused_client" in body) == (403, True)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("headers", [{}, {"Origin": "http://localhost:3000"}, {"Sec-Fetch-Mode": "cors"}])
def test_programs_and_pages_of_this_machine_are_served(headers, site, tmp_path):
    with recording(tmp_path / "run", {"up": site.url}) as gateway:
        assert asked(gateway.address, "/up/page", headers)[0] == 200


OUTSIDE = [
    "/up/../secret",
    "/up/a/../../secret",
    "/up/%2e%2e/secret",
    "/up/%2E./secret",
    "/up/..%2fsecret",
    "/up/..%5csecret",
    "/up/..\\secret",
    "/up/%252e%252e/secret",
    "/up/a/%25252e%25252e/secret",
    "/up/%2525252525252e",
    "/up/..;/secret",
    "/up/%2e%2e%3bx=1/secret",
    "/up/%c0%ae%c0%ae/secret",
    "/up/%e0%80%ae%f0%80%80%ae/secret",
    "/up/..%c0%afsecret",
    "/up/..%c1%9csecret",
    "/up/..%ef%bc%8fsecret",
    "/up/..%e2%88%95secret",
    "/up/%ef%bc%8e%ef%bc%8e/secret",
    "/up/%e2%80%a5/secret",
    "/up/%u002e%u002e/secret",
    "/up/..%u2215secret",
    "/up/..#",
    "/up/a/..#x/..",
    "/up/..%23/secret",
    "/up/..%3fx/secret",
    "/up/..%00/secret",
    "/up/.%09./secret",
    "/up/%20../secret",
]


def test_a_path_stays_inside_its_upstream(site, tmp_path):
    """However it is written; each is asked for, and nothing is recorded."""
    with recording(tmp_path / "run", {"up": f"{site.url}/base"}) as gateway:
        answers = {target: asked(gateway.address, target) for target in OUTSIDE}
    served = [
        target
        for target, (status, body) in answers.items()
        if (status, b"outside_base" in body) != (400, True)
    ]
    assert served == []
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("form", ["http://other.example/up/x", "http://{here}/up/x", "//other.example/up/x"])
def test_an_absolute_target_names_no_upstream(form, site, tmp_path):
    with recording(tmp_path / "run", {"up": site.url}) as gateway:
        here = gateway.address.removeprefix("http://")
        host, port = here.split(":")
        with socket.create_connection((host, int(port)), timeout=20) as sock:
            sock.sendall(f"GET {form.format(here=here)} HTTP/1.1\r\nHost: {here}\r\n\r\n".encode())
            status = sock.recv(65536).split()[1]
    assert status == b"404"
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("target", ["/up/a..b", "/up/...", "/up/.a;..", "/up/models/a%2Fb", "/up/x?y=../.."])
def test_other_dots_are_passed_on(target, tmp_path):
    with recording(tmp_path / "run", {"up": "http://127.0.0.1:9"}) as gateway:
        assert asked(gateway.address, target)[0] == 502  # nobody is there, but it was asked


ASKING = """
import http.client, sys
client = http.client.HTTPConnection(sys.argv[1], int(sys.argv[2]), timeout=20)
client.request("GET", "/up/page", headers={"Host": "127.0.0.1"})
print(client.getresponse().status)
"""


@pytest.mark.skipif(not CAN_BE_ANOTHER, reason="only root can be somebody else")
@pytest.mark.parametrize("address", ["127.0.0.1", "::ffff:127.0.0.1"])
def test_other_users_are_refused(address, site, tmp_path):
    with recording(tmp_path / "run", {"up": site.url}) as gateway:
        command = [PYTHON_FOR_ALL, "-I", "-c", ASKING, address, gateway.address.rpartition(":")[2]]
        nobody = {"user": 65534, "group": 65534, "extra_groups": []}
        refused = subprocess.run(command, capture_output=True, text=True, check=True, **nobody)
        served = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (refused.stdout, served.stdout) == ("403\n", "200\n")

"""What libraries send by themselves, with a library of our own in a ``site-packages`` and a real receiver."""

import json
import socket
from textwrap import dedent

import pytest

from reenact.testing import Raw, Reply, ScriptedProvider
from tests.cli.commands import PYTHON, run

REPORTER = """
    import os, threading, time, urllib.parse, uuid
    import requests

    ADDRESS = os.environ["ADDRESS"]
    POSTS = int(os.environ.get("POSTS", "1"))

    def post(path="/events", **headers):
        body = f"{POSTS} {uuid.uuid4().hex}"
        return requests.post(ADDRESS + path, data=body, headers=headers, timeout=9).status_code

    def post_all(path="/events"):
        for _ in range(POSTS):
            post(path)

    def post_often(path="/events"):
        from urllib3.util import Retry
        session = requests.Session()
        retries = Retry(2, backoff_factor=0.02, allowed_methods=None, status_forcelist=[503])
        session.mount("http://", requests.adapters.HTTPAdapter(max_retries=retries))
        for _ in range(POSTS):
            try:
                session.post(ADDRESS + path, data=uuid.uuid4().hex, timeout=9)
            except requests.RequestException:
                pass

    def start(work=post_all):
        thread = threading.Thread(target=work)
        thread.start()
        return thread

    def get():
        requests.get(f"{ADDRESS}/news?{POSTS}", timeout=9)

    def ask_and_post():
        import asking
        post()
        asking.ask("from a thread of the library's")

    def in_a_pool():
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor() as pool:
            pool.submit(post).result()

    def in_a_loop():
        import asyncio
        async def main():
            post()
        thread = threading.Thread(target=lambda: asyncio.run(main()))
        thread.start()
        thread.join()
"""
ASKING = """
    import os, requests

    def ask(question):
        body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": question}]}
        url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
        return requests.post(url, json=body, timeout=9).json()["content"][0]["text"]
"""


class Place:
    """A folder with an agent and the library it uses, and the receiver to which that reports."""

    def __init__(self, folder, provider, receiver):
        self.folder, self.provider, self.receiver = folder, provider, receiver
        packages = folder / "site-packages"
        packages.mkdir()
        (packages / "reporter.py").write_text(dedent(REPORTER))
        (packages / "asking.py").write_text(dedent(ASKING))

    def do(self, verb, agent, posts=1, *options):
        """Run *verb* with that agent, where its library would send so many reports."""
        (self.folder / "agent.py").write_text(dedent(agent))
        where = ["-o", "run"] if verb in ("record", "doctor") else ["run", "--receipt", "receipt.json"]
        return run(
            *(verb, *where, *options, "--", PYTHON, "agent.py"),
            cwd=self.folder,
            PYTHONPATH=f"{self.folder / 'site-packages'}",
            ADDRESS=self.receiver.url,
            ANTHROPIC_BASE_URL=self.provider.base_url("anthropic"),
            POSTS=str(posts),
        )

    @property
    def receipt(self):
        return json.loads((self.folder / "receipt.json").read_bytes())


@pytest.fixture
def place(tmp_path):
    with (
        ScriptedProvider(lambda request: Reply(f"{request.user_text}!")) as provider,
        ScriptedProvider(lambda _: Raw(202)) as receiver,
    ):
        yield Place(tmp_path, provider, receiver)


IN_A_THREAD = """
    import asking, reporter
    print(asking.ask("one"))
    reporter.start().join()
    print(asking.ask("two"))
"""


@pytest.mark.parametrize("posts", [0, 1, 2, 5])
def test_reports_from_a_thread_of_a_library_may_differ(place, posts):
    """None, fewer or more of them, with other ids: the run is the same, and nothing goes out."""
    assert place.do("record", IN_A_THREAD, 2).returncode == 0
    received = place.receiver.connections
    done = place.do("replay", IN_A_THREAD, posts)
    assert (done.returncode, done.stdout) == (0, "one!\ntwo!\n"), done.stderr
    assert place.receiver.connections == received
    [told] = place.receipt["beside"]
    assert told == {
        "request": f"POST {place.receiver.url}/events",
        "what": "sent by reporter in a thread of its own",
        "recorded": 2,
        "made": posts,
    }


def test_reports_that_were_never_recorded_do_not_go_out(place):
    """The recorded run may have ended before the first was due."""
    assert place.do("record", IN_A_THREAD, 0).returncode == 0
    done = place.do("replay", IN_A_THREAD, 2)
    assert done.returncode == 0, done.stderr
    assert place.receiver.connections == 0
    assert [told["made"] for told in place.receipt["beside"]] == [2]


def test_a_report_that_failed_fails_again(place):
    """As recorded: the library may try again or say so."""
    agent = """
        import reporter
        try:
            reporter.post("/v1/traces", **{"content-type": "application/x-protobuf"})
        except Exception as error:
            print(type(error).__name__)
        import asking
        print(asking.ask("one"))
    """
    place.receiver.stop()
    assert place.do("record", agent).returncode == 0
    place.receiver.start()
    done = place.do("replay", agent)
    assert (done.returncode, done.stdout) == (0, "ConnectionError\none!\n"), done.stderr


STRICT = {
    "the agent's own code posts in a thread": """
        import os, threading, uuid, requests
        def post():
            requests.post(os.environ["ADDRESS"] + "/events", data=uuid.uuid4().hex[:0] + os.environ["POSTS"])
        thread = threading.Thread(target=post)
        thread.start()
        thread.join()
    """,
    "the agent's own code sends to a path of the table": """
        import os, requests
        headers = {"content-type": "application/x-protobuf"}
        requests.post(os.environ["ADDRESS"] + "/v1/traces", data=os.environ["POSTS"], headers=headers)
    """,
    "the agent asks for what a library asks for too": """
        import os, requests
        requests.get(os.environ["ADDRESS"] + "/pypi/aider-chat/json?" + os.environ["POSTS"])
    """,
    "a library posts where the agent called it": "import reporter; reporter.post()",
    "a library fetches in a thread of its own": "import reporter; reporter.start(reporter.get).join()",
    "the thread asks a model too": "import reporter; reporter.start(reporter.ask_and_post).join()",
    "a library's pool": "import reporter; reporter.in_a_pool()",
    "a library's event loop": "import reporter; reporter.in_a_loop()",
}


@pytest.mark.parametrize("agent", STRICT.values(), ids=STRICT)
def test_what_may_be_used_by_the_run_is_compared(place, agent):
    """Only what cannot be is beside it."""
    assert place.do("record", agent, 1).returncode == 0
    done = place.do("replay", agent, 2)
    assert done.returncode == 1, done.stderr
    assert "beside" not in place.receipt


def test_a_call_beside_the_run_is_marked(place):
    """In its first event."""
    place.do("record", IN_A_THREAD, 1)
    lines = map(json.loads, (place.folder / "run" / "events.jsonl").read_text().splitlines())
    marks = [event["data"].get("beside") for event in lines if event["data"].get("source") == "network"]
    assert marks == ["sent by reporter in a thread of its own", None]


# Hosts that a project names

OWN = """
    import os, uuid, requests
    requests.post(os.environ["ADDRESS"] + "/own", data=os.environ["POSTS"])
    import asking
    print(asking.ask("one"))
"""


def test_a_project_can_name_hosts(place):
    """Also for captures that were made before it did."""
    assert place.do("record", OWN, 1).returncode == 0
    assert place.do("replay", OWN, 2).returncode == 1
    (place.folder / "reenact.toml").write_text(f'[beside]\nhosts = ["127.0.0.1:{place.receiver.port}"]\n')
    done = place.do("replay", OWN, 2)
    assert done.returncode == 0, done.stderr
    assert [told["what"] for told in place.receipt["beside"]] == ["named in reenact.toml"]


def test_datagrams_to_named_hosts_are_refused_without_a_word(place):
    """Statistics go out by UDP too, past every seam."""
    agent = """
        import os, socket
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as statistics:
            try:
                statistics.sendto(b"asked:1|c", ("127.0.0.1", 8125))
            except Exception:
                pass
        import asking
        print(asking.ask("one"))
    """
    assert place.do("record", agent).returncode == 0
    assert place.do("replay", agent).returncode == 1
    (place.folder / "reenact.toml").write_text('[beside]\nhosts = ["127.0.0.1:8125"]\n')
    done = place.do("replay", agent)
    assert done.returncode == 0, done.stderr
    assert [told["request"] for told in place.receipt["beside"]] == ["connect 127.0.0.1:8125"]


@pytest.mark.parametrize("verb", ["record", "replay", "doctor"])
def test_hosts_that_cannot_be_read_are_said_before_anything_runs(place, verb):
    """With their place."""
    (place.folder / "reenact.toml").write_text("[beside]\nhosts = 1\n")
    done = place.do(verb, "print(1)")
    assert (done.returncode, done.stdout) == (2, "")
    assert "reenact.toml: $.beside.hosts: expected a list of names" in done.stderr


def test_the_doctor_names_them(place):
    """So that nobody wonders who sent what."""
    done = place.do("doctor", IN_A_THREAD, 2)
    assert done.returncode == 0, done.stderr
    said = f"POST {place.receiver.url}/events: sent by reporter in a thread of its own, 2 requests"
    assert f"telemetry and the like, not compared:\n  {said}\n" in done.stdout


# Programs in other languages

CURL = """
    for body in one two; do
      curl -s "$ANTHROPIC_BASE_URL/api/event_logging/batch" -d "[$RANDOM_ID]"
    done
    curl -s "$ANTHROPIC_BASE_URL/v1/messages" -H 'content-type: application/json' \\
      -d '{"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}'
"""


def test_the_gateway_tells_reports_apart_too(place):
    """By the table alone, since it sees nothing but requests."""
    (place.folder / "agent.sh").write_text(dedent(CURL))
    outputs = []
    for random_id, verb in ((1, ["record", "-o", "run"]), (2, ["replay", "run"])):
        done = run(
            *(*verb, "--", "sh", "agent.sh"),
            cwd=place.folder,
            ANTHROPIC_BASE_URL=place.provider.base_url("anthropic"),
            RANDOM_ID=str(random_id),
        )
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout)
    assert outputs[0] == outputs[1]


def test_reports_to_nobody_are_refused_again(place):
    """In the library's thread, whose traceback is on stderr both times."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
    place.receiver = type("Gone", (), {"url": address})()
    assert place.do("record", IN_A_THREAD, 1).returncode == 0
    assert place.do("replay", IN_A_THREAD, 3).returncode == 0


@pytest.mark.parametrize("posts", [0, 1, 2, 3])
def test_pauses_between_attempts_to_report_may_differ(place, posts):
    """They come and go with the reports."""
    place.receiver = type("Gone", (), {"url": "http://127.0.0.1:9"})()
    agent = IN_A_THREAD.replace("start()", "start(reporter.post_often)")
    done = place.do("record", agent, 2)
    assert done.returncode == 0, done.stderr
    done = place.do("replay", agent, posts)
    assert (done.returncode, done.stdout) == (0, "one!\ntwo!\n"), done.stderr

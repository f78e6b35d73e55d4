"""What a library chooses by lot, or takes from a set, decides what is asked: in replay it is the same."""

from __future__ import annotations

import pytest

from reenact.testing import Reply, ScriptedProvider
from tests.cli.commands import ENVIRONMENT, PYTHON, run

LIBRARY = """
import os, random
import httpx2

def ask(**body):
    url = f"{os.environ['OPENAI_BASE_URL']}/chat/completions"
    return httpx2.post(url, json={"messages": [{"role": "user", "content": "Hello"}], **body}).json()

def route(models):
    return random.choice(models)

def share():
    return round(random.gauss(1, 2), 6)

def share_of_its_own():
    return round(random.Random().gauss(1, 2), 6)

def share_of_numpy():
    import numpy
    return [round(numpy.random.rand(), 6), round(numpy.random.default_rng().random(), 6)]

def share_of_sqlite():
    import sqlite3
    rows = sqlite3.connect(":memory:")
    rows.execute("create table seen (of int default (random() % 99999), key default (hex(randomblob(4))))")
    rows.execute("insert into seen default values")
    return [*rows.execute("select of, key, length(randomblob(0)), typeof(random()) from seen").fetchone()]

def share_of_duckdb():
    import duckdb
    asked = "select random(), uuid()::text from range(3) using sample 2 rows"
    return [str(duckdb.connect().execute(asked).fetchall()), str(duckdb.sql(asked).fetchall())]
"""
ONE = """
import random
import framework
random.random()  # of the agent's own: recorded, and drawn from the same generator
for _ in range(4):
    framework.ask(model=framework.route(["small", "large", "other", "fourth"]), top_p=framework.share())
framework.ask(model="m", stop=list({"red", "green", "blue", "white", "black"}))
"""
FORKED = """
import multiprocessing
import framework
def work():
    framework.ask(model="m", seed=framework.share())
if __name__ == "__main__":
    multiprocessing.set_start_method("@HOW@")
    for _ in range(2):
        child = multiprocessing.Process(target=work)
        child.start()
        child.join()
    framework.ask(model="m", seed=framework.share())
"""


@pytest.fixture
def agent(tmp_path):
    """Records and replays a program twice, and says what was asked."""
    site = tmp_path / "site-packages"
    site.mkdir()
    (site / "framework.py").write_text(LIBRARY)

    def tried(text: str, **environment: str) -> list[dict]:
        (tmp_path / "agent.py").write_text(text)
        with ScriptedProvider(lambda _: Reply("Yes.")) as provider:
            given = {
                "PYTHONPATH": f"{ENVIRONMENT['PYTHONPATH']}:{site}",
                "OPENAI_BASE_URL": provider.base_url("openai"),
                **environment,
            }
            recorded = run("record", "-o", "run", "--", PYTHON, "agent.py", cwd=tmp_path, **given)
            assert recorded.returncode == 0, recorded.stderr
            asked = [request.body for request in provider.requests]
            for _ in range(2):
                replayed = run("replay", "run", "--", PYTHON, "agent.py", cwd=tmp_path, **given)
                assert replayed.returncode == 0, replayed.stderr
                assert replayed.stdout == recorded.stdout
            assert len(provider.requests) == len(asked)
        return asked

    return tried


def test_a_library_chooses_the_same_again(agent):
    agent(ONE)


@pytest.mark.parametrize("how", ["fork", "spawn"])
@pytest.mark.parametrize(
    "source",
    [
        "share",
        "share_of_its_own",
        "share_of_numpy",
        "share_of_sqlite",
        "share_of_duckdb",
    ],
)
def test_so_it_does_in_each_process(agent, how, source):
    """And no two of them draw alike."""
    asked = agent(FORKED.replace("@HOW@", how).replace("share", source))
    assert len({str(body["seed"]) for body in asked}) == 3


def test_what_the_agent_draws_by_numpy_is_the_same(agent):
    """In its own modules, and where it says itself what follows."""
    asked = agent("""
import numpy, framework
from numpy.random import default_rng
own = default_rng()
framework.ask(model="m", seed=[own.integers(0, 1000, 3).tolist(), numpy.random.default_rng(7).random()])
numpy.random.seed(3)
framework.ask(model="m", seed=numpy.random.rand())
""")
    assert asked[1]["seed"] == 0.5507979025745755


def test_two_recordings_draw_differently(agent, tmp_path):
    """Chance is chance where nothing is replayed."""
    text = "import framework\nframework.ask(model='m', seed=framework.share())"
    first = agent(text)
    (tmp_path / "run").rename(tmp_path / "earlier")
    assert agent(text) != first


def test_processes_with_the_same_words_draw_differently(agent, tmp_path):
    """As workers do that a shell starts alike."""
    (tmp_path / "worker.py").write_text("import random; print(random.random())")
    text = "import os, subprocess, sys\nimport framework\nframework.ask(model='m')\n"
    agent(text)
    words = ["sh", "-c", f"{PYTHON} worker.py; {PYTHON} worker.py"]
    told = run("record", "-o", "two", "--", *words, cwd=tmp_path).stdout.split()
    assert len(set(told)) == 2


def test_the_program_finds_the_environment_it_would_find(agent, tmp_path):
    """And what the user says of sets holds."""
    text = "import os, framework\nframework.ask(model='m', stop=os.environ.get('PYTHONHASHSEED', 'none'))"
    assert [body["stop"] for body in agent(text)] == ["none"]
    (tmp_path / "run").rename(tmp_path / "earlier")
    assert [body["stop"] for body in agent(text, PYTHONHASHSEED="7")] == ["7"]


def test_a_generator_more_elsewhere_changes_nothing(agent, tmp_path):
    """Another library, or the interpreter, makes one more in one of the runs."""
    (tmp_path / "site-packages" / "other.py").write_text(
        "import random, os\ndef sometimes(): [random.Random() for _ in range(os.path.exists('run'))]"
    )
    agent(
        "import framework, other\nother.sometimes()\n"
        "framework.ask(model='m', seed=framework.share_of_its_own())"
    )

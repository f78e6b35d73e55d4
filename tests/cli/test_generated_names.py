"""Programs whose libraries draw ids and read clocks: recorded and replayed as they are."""

from __future__ import annotations

import gzip
import json
import pickle
import shutil
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from reenact.testing import Reply, ScriptedProvider
from tests.cli.commands import ENVIRONMENT, PYTHON, run

NODE = shutil.which("node")

LIBRARY = '''
"""A framework: what it draws and when it asks is its own business."""

import datetime, os, random, secrets, sqlite3, string, time, uuid
import httpx2

SESSION = f"sess_{uuid.uuid4().hex}"
WORDS = ["plain", "gentle", "brave", "quiet"], ["hypatia", "turing", "noether", "curie"]


def native_time():
    """What C reads of the clock is not recorded."""
    return sqlite3.connect(":memory:").execute("select strftime('%Y-%m-%d %H:%M:%f', 'now')").fetchone()[0]


def ask(text, **more):
    now = f"{datetime.date.today():%A, %B %d, %Y}, {time.time():.3f}, {native_time()}"
    body = {
        "model": "m",
        "max_tokens": 9,
        "system": f"Run {SESSION}. Today is {now}.",
        "messages": [{"role": "user", "content": text}],
        "metadata": {"user_id": "u", "trace": more.pop("trace", None) or secrets.token_urlsafe(12)},
        **more,
    }
    url = f"{os.environ['ANTHROPIC_BASE_URL']}/v1/messages?request={uuid.uuid4()}"
    return httpx2.post(url, json=body).json()["content"][0]["text"]


def name():
    drawn = "".join(random.choice(string.ascii_lowercase + string.digits) for _ in range(12))
    return f"{random.choice(WORDS[0])}-{random.choice(WORDS[1])}-{uuid.uuid4().hex[:8]}", drawn
'''

PYTHON_AGENT = """
import os, sys
import framework

slug, drawn = framework.name()
order = os.environ.get("ORDER") or (sys.argv[1] if len(sys.argv) > 1 else "@ORDER@")
order = sys.stdin.read() if order == "-" else order
said = framework.ask(f"I am {slug} ({drawn}). Cancel the order {order}.")
print(slug in said and drawn in said and order in said)
print(framework.ask(f"You said: {said}") == f"You said: {said}!")
"""

ISOLATED_AGENT = """
import datetime, json, os, random, sys, time, uuid
from urllib.request import Request, urlopen

def ask(text, **more):
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}], **more}
    request = Request(f"{os.environ['ANTHROPIC_BASE_URL']}/v1/messages", json.dumps(body).encode(),
                      {"content-type": "application/json"})
    with urlopen(request, timeout=30) as response:
        return json.load(response)["content"][0]["text"]

order = os.environ.get("ORDER") or (sys.argv[1] if len(sys.argv) > 1 else "@ORDER@")
order = sys.stdin.read() if order == "-" else order
session, short = str(uuid.uuid4()), "%08x" % (random.getrandbits(31) | 0xa0000000)
now = datetime.datetime.now().isoformat()
said = ask(f"I am {session} in run-{short} at {now}. Cancel {order}.", at=time.time())
print(session in said and short in said)
print(ask(f"You said: {said}", session=session) == f"You said: {said}!")
"""

NODE_AGENT = """
import { randomUUID, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
const ask = async (text, more) => {
  const answer = await fetch(`${process.env.ANTHROPIC_BASE_URL}/v1/messages`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      model: "m", max_tokens: 9, stream: true, messages: [{ role: "user", content: text }], ...more
    }),
  });
  if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
  const deltas = (await answer.text()).match(/"text": ?"[^"]+"/g) ?? [];
  return deltas.map((delta) => JSON.parse(`{${delta}}`).text).join("");
};
const given = process.env.ORDER ?? process.argv[2] ?? "@ORDER@";
const order = given === "-" ? readFileSync(0, "utf8") : given;
const session = randomUUID(), call = `call_${randomBytes(12).toString("base64url")}`;
const now = new Date();
const times = `${now.toISOString()}, ${now.toUTCString()}`;
const said = await ask(`I am ${session}. It is ${times}. Cancel ${order}.`, { call, at: Date.now() });
console.log(said.includes(session));
console.log((await ask(`You said: ${said}`, { call })) === `You said: ${said}!`);
"""


@pytest.fixture
def provider() -> Iterator[ScriptedProvider]:
    """A model that repeats what it was asked."""
    with ScriptedProvider(lambda request: Reply(f"{request.user_text}!")) as provider:
        yield provider


class Agent:
    """One of the programs, in its folder; the order it is about stands in its source unless it is given."""

    def __init__(self, kind: str, folder: Path) -> None:
        self._folder = folder
        self._text = {"Python": PYTHON_AGENT, "isolated": ISOLATED_AGENT, "Node": NODE_AGENT}[kind]
        self._program = {"Python": [PYTHON], "isolated": [PYTHON, "-I"], "Node": [NODE or "node"]}[kind]
        self._file = folder / ("agent.mjs" if kind == "Node" else "agent.py")
        site = folder / "site-packages"
        site.mkdir()
        (site / "framework.py").write_text(LIBRARY)
        self.environment = {"PYTHONPATH": f"{ENVIRONMENT['PYTHONPATH']}:{site}"}
        self.input = ""
        self.write(str(uuid.uuid4()))

    def write(self, order: str) -> None:
        self._file.write_text(self._text.replace("@ORDER@", order))

    def run(self, *verb: str, words: tuple[str, ...] = (), **environment: str):
        command = [*self._program, self._file.name, *words]
        environment |= self.environment
        return run(*verb, "--", *command, cwd=self._folder, input=self.input, **environment)


KINDS = ["Python", "isolated", "Node"]


@pytest.fixture(params=KINDS)
def agent(request: pytest.FixtureRequest, tmp_path: Path) -> Agent:
    if request.param == "Node" and NODE is None:
        pytest.skip("node is not installed")
    return Agent(request.param, tmp_path)


def recorded(agent: Agent, provider: ScriptedProvider, *words: str, **environment: str) -> None:
    agent.environment["ANTHROPIC_BASE_URL"] = provider.base_url("anthropic")
    done = agent.run("record", "-o", "a", words=words, **environment)
    assert (done.returncode, done.stdout.lower()) == (0, "true\ntrue\n"), done.stderr
    provider.stop()


def test_what_libraries_draw_may_differ(agent: Agent, provider: ScriptedProvider, tmp_path: Path) -> None:
    """Ids and times in prompts and addresses; what the model repeats of them comes back as it is here."""
    recorded(agent, provider)
    done = agent.run("replay", "a", "--receipt", "r.json")
    assert (done.returncode, done.stdout.lower()) == (0, "true\ntrue\n"), done.stderr
    assert "generated name" in done.stderr
    assert "differed, as in every run" in done.stderr
    receipt = json.loads((tmp_path / "r.json").read_bytes())
    assert receipt["verdict"] == "reproduced"
    assert receipt["renamed"]
    assert receipt["times"]


GIVEN = ["source", "argument", "environment", "pipe"]


@pytest.mark.parametrize("way", GIVEN)
def test_an_id_that_was_given_may_not(agent: Agent, provider: ScriptedProvider, way: str) -> None:
    """Whether it stands in the source, on the command line or in the environment, or comes by a pipe."""
    orders = str(uuid.uuid4()), str(uuid.uuid4())
    words = [(order,) if way == "argument" else ("-",) if way == "pipe" else () for order in orders]
    environments = [{"ORDER": order} if way == "environment" else {} for order in orders]
    agent.input = orders[0]
    recorded(agent, provider, *words[0], **environments[0])
    agent.input = orders[1]
    if way == "source":
        agent.write(orders[1])
    done = agent.run("replay", "a", words=words[1], **environments[1])
    assert done.returncode == 1
    assert "what a model is asked differs" in done.stderr
    assert orders[1][:8] in done.stderr  # the end of a long question is cut off behind a long name


FILED = '''
"""A framework that reads the order itself."""

import gzip, os, pathlib, pickle, sqlite3
import httpx2

HOME = pathlib.Path.home()


def read(way):
    if way == "database":
        with sqlite3.connect(HOME / "orders.db") as database:
            [[order]] = database.execute("select id from orders")
            database.execute("create table told (at)")
        return order
    if way == "rewritten":
        order = (HOME / "order").read_text()
        (HOME / "new").write_text("none")
        os.replace(HOME / "new", HOME / "order")
        return order
    if way == "packed":
        return gzip.open(HOME / "order.gz").read().decode()
    return str(pickle.load(open(HOME / "order.pickle", "rb")))


def ask(text):
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}
    return httpx2.post(f"{os.environ['ANTHROPIC_BASE_URL']}/v1/messages", json=body).status_code
'''


def put_order(home: Path, order: uuid.UUID) -> None:
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    (home / "order").write_text(str(order))
    (home / "order.gz").write_bytes(gzip.compress(str(order).encode()))
    (home / "order.pickle").write_bytes(pickle.dumps(order))
    with closing(sqlite3.connect(home / "orders.db")) as database, database:
        database.execute("create table orders (id)")
        database.execute("insert into orders values (?)", (str(order),))


@pytest.mark.parametrize("way", ["database", "rewritten", "packed", "pickled"])
def test_an_id_in_a_file_that_was_opened_may_not(
    provider: ScriptedProvider, way: str, tmp_path: Path
) -> None:
    """Wherever it is, in whatever form, and although the program itself changes the file."""
    home, site = tmp_path / "home", tmp_path / "site-packages"
    site.mkdir()
    (site / "framework.py").write_text(FILED)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "agent.py").write_text(
        "import framework, sys\nprint(framework.ask(f'Cancel {framework.read(sys.argv[1])}'))\n"
    )
    known = {"HOME": str(home), "PYTHONPATH": f"{ENVIRONMENT['PYTHONPATH']}:{site}"}
    known["ANTHROPIC_BASE_URL"] = provider.base_url("anthropic")
    orders = uuid.uuid4(), uuid.uuid4()
    statuses = []
    for verb, order in zip(("record", "replay", "replay"), (orders[0], *orders), strict=True):
        put_order(home, order)
        words = ("-o", "../a") if verb == "record" else ("../a",)
        done = run(verb, *words, "--", PYTHON, "agent.py", way, cwd=tmp_path / "work", **known)
        statuses.append(done.returncode)
    assert statuses == [0, 0, 1]
    assert "what a model is asked differs" in done.stderr
    assert str(orders[1])[:8] in done.stderr

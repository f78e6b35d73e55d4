"""Record → replay → compare, for every way of writing a test."""

from __future__ import annotations

import pytest

from reenact.testing import Reply, ScriptedProvider
from tests.pytest_plugin.conftest import Suite, printed

pytest_plugins = ["pytester"]

PROGRAMS = {
    "threads": """
import threading

@pytest.mark.reenact
def test_it():
    answers = {}
    threads = [threading.Thread(target=lambda n=n: answers.update({n: search(n)})) for n in range(9)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    got(*(answers[n] for n in range(9)))
""",
    "an executor": """
from concurrent.futures import ThreadPoolExecutor

@pytest.mark.reenact
def test_it():
    with ThreadPoolExecutor(4) as pool:
        got(*pool.map(search, range(9)))
""",
    "asyncio.run in the body": """
@pytest.mark.reenact
def test_it():
    async def main():
        return await asyncio.gather(*map(ask, range(9)))
    got(*asyncio.run(main()))
""",
    "a module's mark": """
pytestmark = pytest.mark.reenact

class TestIt:
    def test_it(self):
        got(search("a"))
""",
    "the fixture alone": """
def test_it(reenact_run):
    got(search("a"))
""",
    "the fixture from within the body": """
def test_it(request):
    request.getfixturevalue("reenact_run")
    got(search("a"))
""",
    "own fixtures": """
@pytest.fixture(autouse=True)
def greeted():
    got(search("hello"))

@pytest.fixture
def primed(greeted, tmp_path):
    return search("primed")

@pytest.mark.reenact
def test_it(primed):
    got(primed, search("a"))
""",
    "setup_method": """
@pytest.mark.reenact
class TestIt:
    def setup_method(self):
        self.answer = search("first")

    def test_it(self):
        got(self.answer, search("a"))
""",
    "a fixture that requests the run": """
@pytest.fixture
def assistant(reenact_run):
    yield search("create")
    got(search("delete"))

@pytest.mark.reenact
def test_it(assistant):
    got(assistant, search("a"))
""",
    "unittest": """
import unittest

@pytest.mark.reenact
class TestIt(unittest.TestCase):
    def setUp(self):
        self.answer = search("first")

    def test_it(self):
        got(self.answer, search("a"))

    def tearDown(self):
        got(search("last"))
""",
    "unittest with asyncio": """
import unittest

@pytest.mark.reenact
class TestIt(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.answer = await ask("first")

    async def test_it(self):
        got(self.answer, *await asyncio.gather(*map(ask, range(9))))
""",
}


def record_replay_compare(suite: Suite, *arguments: str) -> None:
    recorded = suite.run("--reenact=record", *arguments)
    replayed = suite.run(*arguments)
    for result in (recorded, replayed):
        assert result.ret == 0
        assert result.parseoutcomes() == {"passed": 1}
    assert printed(recorded, "live") != []
    assert printed(replayed, "live") == []
    assert printed(recorded, "got") == printed(replayed, "got") != []


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_replay_repeats_the_recording(suite: Suite, program: str) -> None:
    """Every call gets its own answer, and none goes live."""
    suite.write(test_it=PROGRAMS[program])
    record_replay_compare(suite)


def test_model_calls_are_answered_without_their_server(suite: Suite) -> None:
    """The server of the recording is gone when the test replays."""
    with ScriptedProvider([Reply("one"), Reply("two")]) as provider:
        suite.write(
            test_it=f"""
import openai

@pytest.mark.reenact
def test_it():
    with openai.OpenAI(base_url={provider.base_url("openai")!r}, api_key="unused", max_retries=0) as client:
        for question in ("a", "b"):
            messages = [{{"role": "user", "content": question}}]
            got(client.chat.completions.create(model="any", messages=messages).choices[0].message.content)
"""
        )
        recorded = suite.run("--reenact=record")
    replayed = suite.run()
    replayed.assert_outcomes(passed=1)
    assert printed(replayed, "got") == printed(recorded, "got") == ["one", "two"]


ASYNC_BODY = """
async def test_it(begun):
    async def inner(n):
        return [await ask(n), await ask(-n)]
    answers = await asyncio.gather(*map(inner, range(1, 9)))
    got(begun, *answers, await ask("last"))
"""

ASYNC = {
    "auto": (
        ["-o", "asyncio_mode=auto"],
        """
@pytest.fixture
async def begun():
    yield await ask("first")

@pytest.mark.reenact
""",
    ),
    "strict": (
        ["-o", "asyncio_mode=strict"],
        """
import pytest_asyncio

@pytest_asyncio.fixture
async def begun():
    return await ask("first")

@pytest.mark.reenact
@pytest.mark.asyncio
""",
    ),
    "a loop for the module": (
        ["-o", "asyncio_mode=strict"],
        """
import pytest_asyncio

@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def server():
    yield asyncio.create_task(asyncio.sleep(30))

@pytest_asyncio.fixture(loop_scope="module")
async def begun(server):
    return await ask("first")

@pytest.mark.reenact
@pytest.mark.asyncio(loop_scope="module")
""",
    ),
}


@pytest.mark.parametrize("case", ASYNC)
def test_under_pytest_asyncio_the_run_is_current_in_the_coroutine(suite: Suite, case: str) -> None:
    """Although the plugin runs it in another context than fixtures and hooks."""
    options, heading = ASYNC[case]
    suite.write(test_it=heading + ASYNC_BODY)
    loops = ("-p", "pytest_asyncio.plugin", "-o", "asyncio_default_fixture_loop_scope=function")
    record_replay_compare(suite, *options, *loops)


ANYIO = """
import anyio

@reenact.tool
async def ask(query):
    await anyio.sleep(random.random() / 200)
    return search.__wrapped__(query)

@pytest.fixture{scope}
def anyio_backend():
    return "asyncio"

{wider}

@pytest.fixture
async def begun(anyio_backend):
    yield await ask("first")

@pytest.mark.reenact
@pytest.mark.anyio
async def test_it(begun{argument}):
    answers = {{}}
    async def inner(n):
        answers[n] = await ask(n), await ask("the same")
    async with anyio.create_task_group() as group:
        for n in range(9):
            group.start_soon(inner, n)
    got(begun, *(answers[n] for n in range(9)))
"""
WIDER = """
@pytest.fixture(scope="module")
async def shared(anyio_backend):
    yield
"""


BACKENDS = ["'asyncio'", "'trio'", "('trio', {'restrict_keyboard_interrupt_to_checkpoints': True})"]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("is_runner_older", [False, True])
def test_under_anyio_the_run_is_current_in_the_coroutine(
    suite: Suite, is_runner_older: bool, backend: str
) -> None:
    """Also where anyio's one task for all tests was started before the run."""
    parts = {"scope": '(scope="module")', "wider": WIDER, "argument": ", shared"}
    program = ANYIO.format(**(parts if is_runner_older else dict.fromkeys(parts, "")))
    suite.write(test_it=program.replace('"asyncio"', backend))
    record_replay_compare(suite, "-p", "anyio")


def test_fixtures_of_wider_scope_are_not_part_of_any_run(suite: Suite) -> None:
    """They are set up with whichever test comes first, so they run live, in replay too."""
    suite.write(
        test_it="""
@pytest.fixture(scope="module")
def shared():
    return search("shared")

pytestmark = pytest.mark.reenact

def test_one(shared):
    search("one")

def test_two(shared):
    search("two")
"""
    )
    suite.run("--reenact=record").assert_outcomes(passed=2)
    for arguments in ((), ("-k", "two"), ("test_it.py::test_two", "test_it.py::test_one")):
        result = suite.run(*arguments)
        assert result.ret == 0
        assert printed(result, "live") == ["shared"]


def test_a_mark_on_one_parameter_leaves_the_others_alone(suite: Suite) -> None:
    """Tests made from one function share much in pytest, but not this."""
    suite.write(
        test_it="""
@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.reenact), 3])
def test_it(n):
    search(n)
"""
    )
    suite.run("--reenact=record").assert_outcomes(passed=3)
    assert suite.captures() == ["captures/test_it/test_it[2]"]
    assert printed(suite.run(), "live") == ["1", "3"]

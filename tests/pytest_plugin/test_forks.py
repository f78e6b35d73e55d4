"""A test may be a fork of another test's capture: answered from there, with something changed."""

from __future__ import annotations

import shutil

import pytest

from tests.pytest_plugin.conftest import Suite

pytest_plugins = ["pytester"]

BASE = """
@reenact.tool
def weather(city):
    print("live: weather", city)
    return {"city": city, "degrees": [21]}

@reenact.tool
def advise(text):
    print("live: advise", text)
    return f"Take {text}"

def agent():
    try:
        degrees = weather("Oslo")["degrees"][0]
    except TimeoutError:
        return "I do not know"
    return advise("a coat" if degrees < 10 else "sunglasses")

@pytest.mark.reenact
def test_base(reenact_run):
    reenact_run.final_output = agent()
"""


@pytest.fixture
def recorded(suite: Suite) -> Suite:
    suite.write(test_it=BASE)
    suite.run("--reenact=record").stdout.fnmatch_lines("reenact: 1 recorded")
    return suite


def with_fork(suite: Suite, options: str, body: str) -> None:
    suite.write(
        test_it=f"{BASE}\n@pytest.mark.reenact(fork={options})\ndef test_fork(reenact_run):\n    {body}\n"
    )


def test_a_failing_tool_needs_no_recording(recorded: Suite) -> None:
    """Nothing is live, nothing is written, in any mode but off."""
    with_fork(
        recorded,
        "{'of': 'test_base', 'at': 2, 'change': {'error': 'TimeoutError'}}",
        "assert agent() == 'I do not know'",
    )
    for mode in ("replay", "once", "record", "update"):
        result = recorded.run(f"--reenact={mode}", "-k", "fork")
        result.assert_outcomes(passed=1, deselected=1)
        result.stdout.no_fnmatch_line("live:*")
        result.stdout.fnmatch_lines("reenact: 1 forked")
    assert recorded.captures() == ["captures/test_it/test_base"]


def test_what_is_missing_fails_the_test(recorded: Suite) -> None:
    """With the call, the fork's place, and how to go on; also where the agent swallows it."""
    with_fork(
        recorded,
        "{'of': 'captures/test_it/test_base', 'at': 2, 'change': {'set': {'$.degrees[0]': 3}}}",
        "agent()",
    )
    result = recorded.run()
    result.stdout.fnmatch_lines(
        [
            'tool advise differs at $.text*observed "a coat"; the recording does not have this call*',
            "  fork of      captures/test_it/test_base at event 2",
            "reenact: 1 replayed, 1 diverged",
        ]
    )
    result.stdout.no_fnmatch_line("live:*")


def test_the_nearest_answer_will_do_where_asked(recorded: Suite) -> None:
    with_fork(
        recorded,
        "{'of': 'test_base', 'at': 3, 'change': lambda was: was | {'degrees': [3]}, 'on_miss': 'nearest'}",
        "assert agent() == 'Take sunglasses'",
    )
    recorded.run().assert_outcomes(passed=2)


def test_a_fork_that_goes_live_is_recorded_once(recorded: Suite) -> None:
    """And replays from then on; it shares what came before with the other test's capture."""
    with_fork(
        recorded,
        "{'of': 'test_base', 'at': 2, 'change': {'set': {'$.degrees[0]': 3}}, 'on_miss': 'live'}",
        "assert agent() == 'Take a coat'",
    )
    missing = recorded.run()
    missing.stdout.fnmatch_lines("*there is no capture of this test; record it with:*--reenact=record*")
    made = recorded.run("--reenact=once")
    made.stdout.fnmatch_lines(["*live: advise a coat", "reenact: 1 replayed, 1 recorded"])
    again = recorded.run()
    again.assert_outcomes(passed=2)
    again.stdout.no_fnmatch_line("*live:*")
    fork = recorded.manifest("captures/test_it/test_fork")["fork"]
    assert (fork["parent"]["path"], fork["at"], fork["stored"]) == ("../test_base", 2, "suffix")
    recorded.run("--reenact=update", "-k", "fork").stdout.fnmatch_lines("reenact: 1 recorded")
    assert recorded.captures() == ["captures/test_it/test_base", "captures/test_it/test_fork"]
    shutil.rmtree(recorded.path / "captures/test_it/test_base")
    gone = recorded.run("-k", "fork")
    gone.stdout.fnmatch_lines("*a fork of capture cap_* in *test_base, which is not there*")


BAD = {
    "{'at': 2}": "*name the capture and the event*",
    "'test_base'": "*name the capture and the event*",
    "{'of': 'test_base', 'at': '2'}": "*'at' the number of an event*",
    "{'of': 'test_base', 'at': 2, 'chance': 1}": "*name the capture and the event*",
    "{'of': 'test_none', 'at': 2}": "*test_none: there is no capture to fork; record its test first*",
    "{'of': 'test_base', 'at': 1}": "*event 1 (run_start) is not a call*",
    "{'of': 'test_base', 'at': 2, 'change': {'set': {'$.x': 1}}}": "*there is no $.x; $ has city, degrees*",
    "{'of': 'test_base', 'at': 2}, workspace=True": "*a test with a workspace is not forked*",
}


def test_what_cannot_be_meant_is_said(recorded: Suite) -> None:
    """In one line, before the test runs."""
    bodies = [
        f"@pytest.mark.reenact(fork={options})\ndef test_{number}():\n    raise SystemExit('it ran')\n"
        for number, options in enumerate(BAD)
    ]
    recorded.write(test_it=BASE, test_bad="\n".join(bodies).replace("'test_base'", "PARENT"))
    module = recorded.path / "test_bad.py"
    module.write_text("PARENT = 'captures/test_it/test_base'\n" + module.read_text())
    result = recorded.run("test_bad.py")
    result.assert_outcomes(errors=len(BAD))
    for said in BAD.values():
        result.stdout.fnmatch_lines(said)
    result.stdout.no_fnmatch_line("*it ran*")

"""``--reenact=replay|record|once|update|off``."""

from __future__ import annotations

import re
import shlex
import subprocess

import pytest

from tests.pytest_plugin.conftest import Suite, printed

pytest_plugins = ["pytester"]

ONE = """
@pytest.mark.reenact
def test_one():
    got(search("a"), search("b"))
"""
PLACE = "captures/test_it/test_one"


def test_a_recorded_test_replays_offline(suite: Suite) -> None:
    """The agent gets the recorded answers, and no tool runs."""
    suite.write(test_it=ONE)
    recorded = suite.run("--reenact=record")
    replayed = suite.run()
    recorded.assert_outcomes(passed=1)
    replayed.assert_outcomes(passed=1)
    assert printed(recorded, "live") == ["a", "b"]
    assert printed(replayed, "live") == []
    assert printed(replayed, "got") == printed(recorded, "got") != []


ASKS_ABOUT_A_FILE = """
@pytest.mark.reenact
def test_one(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    search(f"what is in {tmp_path}/notes.txt?")
    search({"folder": str(tmp_path.parent)})
"""


def test_the_temporary_folder_of_a_test_may_have_another_name(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each run of pytest has another one, and an agent may be asked about the files in it."""
    suite.write(test_it=ASKS_ABOUT_A_FILE)
    suite.run("--reenact=record", f"--basetemp={suite.path.parent}/of-one").assert_outcomes(passed=1)
    monkeypatch.setenv("VARIANT", "offline")
    suite.run(f"--basetemp={suite.path.parent}/of-two").assert_outcomes(passed=1)
    suite.write(test_it=ASKS_ABOUT_A_FILE.replace("notes.txt?", "other.txt?"))
    suite.run(f"--basetemp={suite.path.parent}/of-three").assert_outcomes(failed=1)


MISSING = {
    "a function": ONE,
    "a parameter": """
@pytest.mark.reenact
@pytest.mark.parametrize("city", ["St. John's / Ωκύ", "x" * 300])
def test_one(city):
    search(city)
""",
    "a method": """
class TestIt:
    @pytest.mark.reenact
    def test_one(self):
        search("a")
""",
}


@pytest.mark.parametrize("case", MISSING)
def test_a_missing_capture_fails_with_the_command_that_records_it(suite: Suite, case: str) -> None:
    """The command, taken from the message as a shell takes it, records this very test."""
    suite.write(test_it=MISSING[case])
    failed = suite.run()
    failed.assert_outcomes(errors=2 if case == "a parameter" else 1)
    assert printed(failed, "live") == []
    assert "Traceback" not in failed.stdout.str()
    command = re.search(
        r"^captures/\S+: there is no capture .*; record it with: pytest (.*)$", str(failed.stdout), re.M
    )
    assert command is not None
    suite.run(*shlex.split(command[1])).assert_outcomes(passed=1)
    again = suite.run()
    assert again.parseoutcomes()["passed"] == 1


def test_the_command_is_written_for_where_pytest_was_started(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below the root, paths are those of the folder one is in."""
    suite.write(test_it=ONE)
    suite.path.joinpath("pytest.ini").write_text("[pytest]\n")
    below = suite.pytester.mkdir("below")
    monkeypatch.chdir(below)
    suite.run("..").stdout.fnmatch_lines(["../captures/*record it with: pytest ../test_it.py::test_one *"])


def test_once_records_what_is_missing_and_replays_the_rest(suite: Suite) -> None:
    """A capture that is there is never replaced."""
    suite.write(test_it=ONE)
    suite.run("--reenact=once").stdout.fnmatch_lines(["reenact: 1 recorded"])
    before = suite.content(PLACE)
    suite.run("--reenact=once").stdout.fnmatch_lines(["reenact: 1 replayed"])
    assert suite.content(PLACE) == before


def test_once_does_not_take_a_damaged_capture_for_a_missing_one(suite: Suite) -> None:
    """What is broken is reported, not recorded over."""
    suite.write(test_it=ONE)
    suite.run("--reenact=record")
    (suite.path / PLACE / "manifest.json").unlink()
    result = suite.run("--reenact=once")
    result.assert_outcomes(errors=1)
    assert printed(result, "live") == []


def test_a_changed_capture_is_refused_without_a_traceback(suite: Suite) -> None:
    """Events that are not those that were recorded are no recording."""
    suite.write(test_it=ONE)
    suite.run("--reenact=record")
    events = suite.path / PLACE / "events.jsonl"
    events.write_bytes(events.read_bytes().replace(b'"b"', b'"c"'))
    result = suite.run()
    result.stdout.fnmatch_lines(["*events.jsonl: the events are not those that were recorded*"])
    assert "Traceback" not in str(result.stdout)
    assert "reenact_run(" not in str(result.stdout)


def test_off_runs_live_and_writes_nothing(suite: Suite) -> None:
    """Neither the recorder nor the guard is there."""
    suite.write(test_it=ONE)
    result = suite.run("--reenact=off")
    result.stdout.fnmatch_lines(["reenact: off", "reenact: 1 ran live"])
    assert printed(result, "live") == ["a", "b"]
    assert suite.captures() == []


def test_the_fixture_is_the_open_run(suite: Suite) -> None:
    """Its clock, its random numbers and its final output are the test's."""
    suite.write(
        test_it="""
def test_one(reenact_run):
    reenact_run.final_output = [reenact_run.clock.now(), str(reenact_run.uuid4())]
    print("mode:", reenact_run.mode)
    got(*reenact_run.final_output)
"""
    )
    recorded, replayed, off = suite.run("--reenact=record"), suite.run(), suite.run("--reenact=off")
    modes = [printed(result, "mode") for result in (recorded, replayed, off)]
    assert modes == [["capture"], ["replay"], ["off"]]
    assert printed(recorded, "got") == printed(replayed, "got") != printed(off, "got")
    assert suite.captures() == [PLACE]


def test_an_unknown_mode_is_refused(suite: Suite) -> None:
    """pytest lists the known ones."""
    result = suite.run("--reenact=rewind")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--reenact*replay*record*once*off*"])


AGAIN = """
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    for item.round in (1, 2):
        runtestprotocol(item, nextitem=nextitem)
    return True

def pytest_runtest_setup(item):
    assert item.round == 1
"""


@pytest.mark.parametrize("mode", ["record", "replay"])
def test_a_plugin_may_run_a_test_again(suite: Suite, mode: str) -> None:
    """What became of the first run has nothing to do with the second."""
    suite.write(test_it=ONE)
    suite.run("--reenact=record").assert_outcomes(passed=1)
    suite.pytester.makeconftest(AGAIN)
    result = suite.run(f"--reenact={mode}")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["reenact: 1 recorded" if mode == "record" else "reenact: 1 replayed"])


# Recording again


def test_recording_again_replaces_the_capture(suite: Suite) -> None:
    """The new one is whole, and nothing lies beside it."""
    suite.write(test_it=ONE)
    suite.run("--reenact=record")
    before = suite.manifest(PLACE)
    suite.run("--reenact=record").stdout.fnmatch_lines(["reenact: 1 recorded", f"  recorded  {PLACE}"])
    assert suite.manifest(PLACE)["captureId"] != before["captureId"]
    assert suite.captures() == [PLACE]
    suite.run().assert_outcomes(passed=1)


FAILING = {
    "the body fails": "search('a')\n    assert VARIANT == ''",
    "the body is skipped": "search('a')\n    if VARIANT: pytest.skip('not now')",
    "the body fails as expected": "search('a')\n    if VARIANT: pytest.xfail('known')",
    "a call is cut off": "search('a')\n    if VARIANT: raise SystemExit(3)",
}


@pytest.mark.parametrize("case", FAILING)
def test_the_old_capture_stays_unless_the_test_passes(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    """Byte for byte, and the summary says that nothing was recorded."""
    suite.write(test_it=f"@pytest.mark.reenact\ndef test_one():\n    {FAILING[case]}\n")
    suite.run("--reenact=record").assert_outcomes(passed=1)
    before = suite.content(PLACE)
    monkeypatch.setenv("VARIANT", "other")
    suite.run("--reenact=record").stdout.fnmatch_lines(["reenact: 1 not recorded"])
    assert suite.content(PLACE) == before
    assert suite.captures() == [PLACE]


def test_a_failing_test_says_what_became_of_its_capture(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside its own failure, which stays what it was."""
    suite.write(test_it="@pytest.mark.reenact\ndef test_one():\n    search('a')\n    assert VARIANT\n")
    first = suite.run("--reenact=record")
    first.stdout.fnmatch_lines(
        [">*assert VARIANT", f"{PLACE}: nothing was recorded, because the test failed"]
    )
    assert suite.captures() == []
    monkeypatch.setenv("VARIANT", "good")
    suite.run("--reenact=record").assert_outcomes(passed=1)
    monkeypatch.delenv("VARIANT")
    again = suite.run("--reenact=record", "-q")
    again.stdout.fnmatch_lines([f"{PLACE}: the old capture was kept, because the test failed"])


@pytest.mark.parametrize("phase", ["setup", "teardown"])
def test_a_failing_fixture_keeps_the_old_capture(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, phase: str
) -> None:
    """The test as a whole must pass."""
    suite.write(
        test_it="""
@pytest.fixture
def strained(request):
    assert VARIANT != "setup"
    yield
    assert VARIANT != "teardown"

@pytest.mark.reenact
def test_one(strained):
    search("a")
"""
    )
    suite.run("--reenact=record").assert_outcomes(passed=1)
    before = suite.content(PLACE)
    monkeypatch.setenv("VARIANT", phase)
    result = suite.run("--reenact=record")
    result.stdout.fnmatch_lines([f"{PLACE}: the old capture was kept, because the test failed"])
    result.stdout.fnmatch_lines(["reenact: 1 not recorded"])
    assert suite.content(PLACE) == before
    assert suite.captures() == [PLACE]


def test_a_recording_that_is_not_whole_fails_the_test(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk gave out; the old capture stays."""
    suite.write(
        test_it="""
import resource

@pytest.mark.reenact
def test_one():
    search("a")
    if VARIANT == "full":
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))
        reenact.tool(lambda: None, name="quiet")()
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
"""
    )
    suite.run("--reenact=record").assert_outcomes(passed=1)
    before = suite.content(PLACE)
    monkeypatch.setenv("VARIANT", "full")
    result = suite.run("--reenact=record")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"{PLACE}: recording failed, the run goes on unrecorded: *"])
    assert suite.content(PLACE) == before
    assert suite.captures() == [PLACE]


def test_a_killed_recording_leaves_the_old_capture(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it wrote lies apart, and goes when the test is next recorded."""
    suite.write(
        test_it="""
import os, signal

@pytest.mark.reenact
def test_one():
    search("a")
    if VARIANT == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
"""
    )
    suite.run("--reenact=record").assert_outcomes(passed=1)
    before = suite.content(PLACE)
    monkeypatch.setenv("VARIANT", "killed")
    suite.run_apart("--reenact=record")
    assert suite.content(PLACE) == before
    assert len(suite.captures()) == 2
    monkeypatch.delenv("VARIANT")
    suite.run_apart("--reenact=record").assert_outcomes(passed=1)
    assert suite.captures() == [PLACE]


def test_a_test_without_calls_warns_when_recorded_and_passes_when_replayed(suite: Suite) -> None:
    """The mark does nothing for it, which its author may not know."""
    suite.write(test_it="@pytest.mark.reenact\ndef test_one():\n    pass\n")
    recorded = suite.run("--reenact=record")
    recorded.assert_outcomes(passed=1, warnings=1)
    recorded.stdout.fnmatch_lines(["*ReenactWarning: the test made no call that is recorded*"])
    suite.run().assert_outcomes(passed=1, warnings=0)


def test_a_test_without_calls_is_not_recorded_where_warnings_are_errors(suite: Suite) -> None:
    """The warning is the test's own."""
    suite.write(test_it="@pytest.mark.reenact\ndef test_one():\n    pass\n")
    suite.run("--reenact=record", "-W", "error").assert_outcomes(failed=1)
    assert suite.captures() == []


def test_an_update_asks_for_what_differs_alone(suite: Suite) -> None:
    """The rest is answered from the capture, and the test replays from then on."""
    suite.write(test_it=ONE)
    suite.run("--reenact=record")
    before = (suite.path / PLACE / "events.jsonl").read_bytes().splitlines()
    suite.write(test_it=ONE.replace('"b"', '"c"'))
    failed = suite.run()
    failed.assert_outcomes(failed=1)
    failed.stdout.fnmatch_lines(["  accept it    pytest test_it.py::test_one --reenact=update"])
    updated = suite.run("--reenact=update")
    updated.assert_outcomes(passed=1)
    updated.stdout.fnmatch_lines(["reenact: 1 updated", f"  updated   {PLACE}"])
    assert printed(updated, "live") == ["c"]
    after = (suite.path / PLACE / "events.jsonl").read_bytes().splitlines()
    assert after[:3] == before[:3]
    replayed = suite.run()
    replayed.assert_outcomes(passed=1)
    assert printed(replayed, "live") == []


def test_an_update_of_what_did_not_change_changes_nothing(suite: Suite) -> None:
    """And says so."""
    suite.write(test_it=ONE)
    suite.run("--reenact=record")
    updated = suite.run("--reenact=update")
    updated.stdout.fnmatch_lines(["reenact: 1 unchanged"])
    assert printed(updated, "live") == []


def test_a_test_that_fails_is_not_updated(suite: Suite) -> None:
    """Its capture stays as it was."""
    suite.write(test_it=ONE)
    suite.run("--reenact=record")
    before = (suite.path / PLACE / "events.jsonl").read_bytes()
    suite.write(test_it=ONE.replace('search("b"))', 'search("c"))\n    assert False'))
    failed = suite.run("--reenact=update")
    failed.assert_outcomes(failed=1)
    failed.stdout.fnmatch_lines(
        ["*the old capture was kept, because the test failed", "reenact: 1 not updated"]
    )
    assert (suite.path / PLACE / "events.jsonl").read_bytes() == before
    assert [each.name for each in (suite.path / PLACE).parent.iterdir()] == ["test_one"]


def test_only_what_failed_is_updated(suite: Suite) -> None:
    """``--lf`` chooses as ever."""
    two = ONE + ONE.replace("test_one", "test_two").replace('"b"', '"d"')
    suite.write(test_it=two)
    suite.run("--reenact=record", "-p", "cacheprovider")
    suite.write(test_it=two.replace('"d"', '"e"'))
    suite.run("-p", "cacheprovider").assert_outcomes(passed=1, failed=1)
    updated = suite.run("--lf", "--reenact=update", "-p", "cacheprovider")
    updated.assert_outcomes(passed=1)
    assert printed(updated, "live") == ["e"]


def test_a_repository_is_told_once_how_to_keep_captures(suite: Suite) -> None:
    """Until it says itself how: the events are folded, but not what is there to be read."""
    suite.write(test_it=ONE)
    assert ".gitattributes" not in str(suite.run("--reenact=record").stdout)
    subprocess.run(["git", "init", "-q", str(suite.path)], check=True)
    told = [
        "**/captures/** -text",
        "**/captures/**/*.jsonl linguist-generated diff=reenact",
        "**/captures/**/manifest.json linguist-generated",
    ]
    textconv = '  to read them in git diff: git config diff.reenact.textconv "reenact show --transcript"'
    lines = suite.run("--reenact=record").outlines
    start = lines.index("  to commit captures, add to .gitattributes:")
    assert lines[start + 1 : start + 5] == [*(f"    {line}" for line in told), textconv]
    assert ".gitattributes" not in str(suite.run().stdout)
    (suite.path / ".gitattributes").write_text("\n".join(told))
    assert ".gitattributes" not in str(suite.run("--reenact=record").stdout)


ELSEWHERE = """
@pytest.mark.reenact(path="my runs/night[1]")
def test_elsewhere():
    got(search("a"))
"""


def test_the_attributes_hold_for_captures_in_any_folder(suite: Suite) -> None:
    """Git itself is asked, so it counts what holds there, wherever it was written."""
    subprocess.run(["git", "init", "-q", str(suite.path)], check=True)
    (suite.path / ".gitattributes").write_text("captures/** -text\n")
    (suite.path / "tests" / "unit").mkdir(parents=True)
    suite.write(test_it=ELSEWHERE)
    (suite.path / "test_it.py").rename(suite.path / "tests" / "unit" / "test_here.py")
    suite.write(test_it=ONE)
    heading = "import pytest, reenact\nfrom agent import *\n"
    (suite.path / "tests" / "unit" / "test_there.py").write_text(heading + ONE)
    lines = suite.run("--reenact=record").outlines
    start = lines.index("  to commit captures, add to .gitattributes:")
    told = [line.strip() for line in lines[start + 1 : start + 7]]
    assert {line.split("/**")[0] for line in told} == {"**/captures", "tests/unit/my?runs/night?1?"}
    (suite.path / ".gitattributes").write_text("\n".join(told))
    assert ".gitattributes" not in str(suite.run("--reenact=record").stdout)


def test_a_capture_says_nothing_of_the_machine(suite: Suite) -> None:
    """Neither where the test ran, nor how pytest was called."""
    suite.write(test_it=ONE)
    suite.run("--reenact=record")
    events = (suite.path / PLACE / "events.jsonl").read_text()
    assert str(suite.path) not in events
    assert "pytest" not in events

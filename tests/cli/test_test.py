"""``reenact test``: what is printed, what is written, and how it ends."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import reenact
from reenact.cli import main
from tests.suite.runs import table
from tests.suite.test_runner import CALLS_SEARCH, write_test

ROOT = Path(__file__).parents[2]
FAILS = "{id: no, type: must_not_call_tool, params: {tool: search}}"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Run where no settings and no files are."""
    monkeypatch.chdir(tmp_path)


def run(capsys, *arguments):
    status = main(["test", *map(str, arguments)])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_all_pass(tmp_path, capsys):
    """One line per test, one at the end, exit 0."""
    write_test(tmp_path / "a", name="one")
    write_test(tmp_path / "b", name="two")
    status, out, err = run(capsys, "a", "b")
    lines = out.splitlines()
    assert (status, err) == (0, "")
    assert lines[:3] == [
        "pass   a/test.yaml  one  (1 assertion)",
        "pass   b/test.yaml  two  (1 assertion)",
        "",
    ]
    assert lines[3].startswith("2 tests: 2 passed in 0.")


def test_a_failure_is_shown_in_full(tmp_path, capsys):
    """Exit 1; message, parameters, observation and the events looked at."""
    write_test(tmp_path / "a", FAILS)
    status, out, _ = run(capsys, "a")
    assert status == 1
    assert out.splitlines()[:8] == [
        "FAIL   a/test.yaml  one  (1 assertion, 1 failed)",
        "",
        "FAIL a/test.yaml: Test one",
        "  no  must_not_call_tool, critical, a/test.yaml:10",
        "    search: expected no call, found 1 call at evt-1",
        '    params    {"tool":"search"}',
        '    observed  {"calls":1}',
        '    evt-1     tool_call {"args":{"q":"tea"},"call_id":"c1","tool":"search"}',
    ]


def test_an_error_wins_over_a_failure(tmp_path, capsys):
    """Exit 2, and the tests behind it still run."""
    write_test(tmp_path / "a", FAILS)
    write_test(tmp_path / "b", source="replay_file: gone.json")
    write_test(tmp_path / "c")
    status, out, _ = run(capsys, ".")
    assert status == 2
    assert [line[:5] for line in out.splitlines()[:3]] == ["FAIL ", "ERROR", "pass "]
    assert "b/test.yaml:8: $.adapter_input.replay_file: b/gone.json does not exist" in out
    assert "3 tests: 1 passed, 1 failed, 1 could not be run" in out


USAGE = {
    "no path": ([], "Missing argument 'PATH...'; see: reenact test --help"),
    "no tests": (["empty"], "empty: no test.yaml found"),
    "none chosen": (["a", "-k", "zzz"], "a: no test has this name or tag"),
    "bad jobs": (["a", "-j", "x"], "Invalid value for '-j'"),
    "two tests to write": (["--init", "a", "b", "c"], "--init writes one test; name one PATH"),
    "a test to write that is there": (["--init", "a", "a"], "a/test.yaml: exists already"),
}


@pytest.mark.parametrize(("arguments", "said"), **table(USAGE))
def test_wrong_usage_is_three(arguments, said, tmp_path, capsys):
    """One line on stderr."""
    write_test(tmp_path / "a")
    (tmp_path / "empty").mkdir()
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (3, "")
    assert said in err
    assert err.count("\n") == 1


def test_a_bad_settings_file_is_named(tmp_path, capsys):
    """It is input that cannot be read."""
    write_test(tmp_path / "a")
    (tmp_path / "reenact.toml").write_text("[test")
    status, _, err = run(capsys, "a")
    assert status == 2
    assert "reenact.toml: not TOML" in err


def test_reports_are_written(tmp_path, capsys):
    """JSON, JUnit and result files from one run, directories made as needed."""
    write_test(tmp_path / "a", FAILS)
    status, _, _ = run(capsys, "a", "--json", "r/all.json", "--junit", "r/junit.xml", "--out", "r/files")
    assert status == 1
    assert json.loads((tmp_path / "r/all.json").read_text())["results"][0]["status"] == "fail"
    assert ET.parse(tmp_path / "r/junit.xml").getroot().get("failures") == "1"
    assert json.loads((tmp_path / "r/files/summary.json").read_text())["failed"] == 1
    artifacts = json.loads((tmp_path / "r/files/0001-one/result.json").read_text())["artifacts"]
    assert sorted(artifacts) == ["replay_file", "result", "trace"]
    assert all(Path(path).is_file() for path in artifacts.values())


def test_json_on_stdout_is_alone(tmp_path, capfdbinary):
    """What people read goes to stderr."""
    write_test(tmp_path / "a")
    assert main(["test", "a", "--json", "-"]) == 0
    out, err = capfdbinary.readouterr()
    assert json.loads(out)["passed"] == 1
    assert err.startswith(b"pass   a/test.yaml")


def test_github_annotations_follow(tmp_path, capsys):
    """After all else."""
    write_test(tmp_path / "a", FAILS)
    _, out, _ = run(capsys, "a", "--github")
    assert out.splitlines()[-1].startswith("::error file=a/test.yaml,line=10,title=one%3A no")


def test_jobs_change_nothing_but_time(tmp_path, capsys):
    """The same lines in the same order."""
    for index in range(6):
        write_test(tmp_path / str(index), FAILS if index % 2 else CALLS_SEARCH, name=f"t{index}")
    alone = run(capsys, ".", "-j", "1")
    beside = run(capsys, ".", "-j", "2")
    assert alone[0] == beside[0] == 1
    assert alone[1].splitlines()[:-1] == beside[1].splitlines()[:-1]


def test_a_hostile_name_does_not_steer_the_terminal(tmp_path, capsys):
    """Titles and ids come from files."""
    write_test(tmp_path / "a", FAILS, name='"x\\e[31m\\u009b"')
    _, out, _ = run(capsys, "a")
    assert "\x1b" not in out
    assert "\x9b" not in out


def test_projects_settings_are_found(tmp_path, capsys):
    """Own types and defaults, from reenact.toml."""
    (tmp_path / "own.py").write_text(
        "from reenact.suite import Verdict, assertion\n"
        "@assertion\n"
        "def has_word(trace, params):\n"
        "    return Verdict(passed=params['word'] in trace.final_output.content, message='looked for it')\n"
    )
    (tmp_path / "reenact.toml").write_text(
        '[test]\nassertions = ["own.py"]\n[test.defaults.has_word]\nword = "well"\n'
    )
    write_test(tmp_path / "a", "{id: w, type: has_word}")
    assert run(capsys, "a", "--allow-code")[0] == 0


def test_no_setting_runs_code_unasked(tmp_path, capsys, monkeypatch):
    """A folder that was cloned may name any file."""
    (tmp_path / "own.py").write_text("raise SystemExit('ran')")
    (tmp_path / "reenact.toml").write_text('[test]\nassertions = ["own.py"]\n')
    write_test(tmp_path / "a", "{id: w, type: output_contains, params: {text: well}}")
    status, _, err = run(capsys, "a")
    assert status == 3
    assert "own.py" in err
    assert "--allow-code" in err


def test_a_first_test_is_written_and_holds(tmp_path, capsys):
    """--init, then run it; the capture's path is relative to the test."""

    @reenact.tool
    def search(q):
        return [q]

    with reenact.capture(tmp_path / "runs" / "one") as recorded:
        search("tea")
        recorded.final_output = "tea"
    (tmp_path / "tests").mkdir()
    status, out, _ = run(capsys, "--init", "runs/one", "tests")
    assert (status, out) == (0, "tests/test.yaml: written; trim it, then run: reenact test tests/test.yaml\n")
    assert "capture: ../runs/one" in (tmp_path / "tests" / "test.yaml").read_text()
    assert run(capsys, "tests")[0] == 0


def test_a_missing_capture_is_not_written_about(capsys):
    """Exit 2."""
    assert run(capsys, "--init", "nowhere")[0] == 2
    assert not Path("test.yaml").exists()


def test_watching_runs_again_when_a_file_changes(tmp_path):
    """Until it is interrupted."""
    file = write_test(tmp_path / "a")
    command = [sys.executable, "-u", "-m", "reenact", "test", "a", "--watch"]
    watcher = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert watcher.stdout.readline().startswith("pass")
        watcher.stderr.readline()
        assert "watching 2 files" in watcher.stderr.readline()
        file.write_text(file.read_text().replace("tool: search", "tool: fly"))
        seen = []
        deadline = time.monotonic() + 30
        while not any(line.startswith("FAIL ") for line in seen) and time.monotonic() < deadline:
            seen.append(watcher.stdout.readline())
        assert seen[-1].startswith("FAIL   a/test.yaml")
    finally:
        watcher.terminate()
        watcher.communicate()


def test_the_examples_run_from_the_projects_root(tmp_path):
    """As the documents show it; a copy, so that nothing is written into the project."""
    shutil.copytree(ROOT / "examples" / "suites", tmp_path / "suites")
    done = subprocess.run(
        [sys.executable, "-m", "reenact", "test", "suites"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONUTF8": "1"},
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout.splitlines()[-1].startswith("15 tests: 5 passed, 5 failed, 5 could not be run")

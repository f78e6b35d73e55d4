"""Tests that work among files: the mark ``workspace`` and the fixture ``reenact_workspace``."""

from __future__ import annotations

import pytest

from reenact.pytest_plugin import lifetime
from tests.pytest_plugin.conftest import Suite

pytest_plugins = ["pytester"]
assert lifetime  # kept loaded, as the other modules of the plugin are

TEST = """
import pytest, reenact

@reenact.tool
def write(folder, path, text):
    print("live:", path)
    with open(f"{folder}/{path}", "w") as file:
        file.write(text)

@pytest.mark.reenact(workspace="project")
def test_it(reenact_workspace):
    folder = reenact_workspace.folder
    write(folder, "src/app.py", "print('hello')")
    reenact_workspace.file_exists("src/app.py", kind="file")
    reenact_workspace.file_exists("gone", exists=False)
    reenact_workspace.file_contains("src/app.py", "hello")
    reenact_workspace.file_contains("README", pattern="^A pro")
    reenact_workspace.file_unchanged("README")
    reenact_workspace.files_changed_only("src/*")
"""


@pytest.fixture
def project(suite: Suite) -> Suite:
    (suite.path / "project" / "src").mkdir(parents=True)
    (suite.path / "project" / "README").write_text("A project.\n")
    return suite


def test_a_test_works_in_a_copy_and_is_replayed_without_it(project: Suite) -> None:
    """The folder that it names is copied to record, and is not needed, nor touched, to replay."""
    project.write(test_it=TEST)
    result = project.run("--reenact=record", "-s")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*live: src/app.py*"])
    assert not (project.path / "project" / "src" / "app.py").exists()
    (project.path / "project" / "README").unlink()
    result = project.run("-s")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*live:*")
    (project.path / "project" / "README").write_text("A project.\n")
    project.run("--reenact=off").assert_outcomes(passed=1)


FAILING = {
    "file_exists('nowhere')": "expected nowhere to be there at the end, found nothing",
    "file_exists('src', kind='file')": "expected src to be a file at the end, found a folder",
    "file_contains('README', 'else')": "expected README to contain 'else', found 11 characters without it",
    "file_unchanged('src')": "expected src never to change, it was another at the end",
    "files_changed_only('docs/*')": "expected changes only in docs/*, found 1 other: src/app.py",
    "command_succeeds('true')": "'true' was not run: commands are run only with --reenact-allow-commands",
}


def test_what_does_not_hold_fails_with_what_was_found(project: Suite) -> None:
    """In one line, as the assertions of a test.yaml say it."""
    body = TEST.partition("    reenact_workspace.file_exists")[0]
    calls = "".join(
        f"    with pytest.raises(AssertionError) as found: reenact_workspace.{call}\n"
        f"    assert str(found.value) == {message!r}\n"
        for call, message in FAILING.items()
    )
    project.write(test_it=body + calls)
    project.run("--reenact=record").assert_outcomes(passed=1)
    project.run().assert_outcomes(passed=1)


def test_a_command_runs_in_a_copy_where_that_is_allowed(project: Suite) -> None:
    """What it writes is not there afterwards."""
    body = TEST.partition("    reenact_workspace.file_exists")[0]
    body += "    reenact_workspace.command_succeeds('sh', '-c', 'grep -r hello src && rm -r src')\n"
    body += "    reenact_workspace.file_exists('src/app.py')\n"
    project.write(test_it=body)
    project.run("--reenact=record", "--reenact-allow-commands").assert_outcomes(passed=1)
    project.run("--reenact-allow-commands").assert_outcomes(passed=1)
    project.run().assert_outcomes(failed=1)


def test_files_that_are_others_fail_the_test(project: Suite) -> None:
    """What the test itself does to them is compared with the recorded run."""
    project.write(test_it=TEST)
    project.run("--reenact=record").assert_outcomes(passed=1)
    late = "    import os; os.close(os.open(folder / 'README', os.O_WRONLY | os.O_TRUNC))\n"
    body = TEST.replace("    reenact_workspace.file_contains('README', pattern='^A pro')\n", "")
    project.write(test_it=body.partition("    reenact_workspace.file_exists")[0] + late)
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*the files at the end are not as recorded: changed README*"])


WRONG = {
    "no such folder": (
        "workspace='nowhere'",
        "*workspace=*nowhere*: * is not a folder; name one*",
    ),
    "no workspace": ("", "*the test has no workspace; mark it with @pytest.mark.reenact(workspace=True)*"),
}


@pytest.mark.parametrize(("option", "message"), WRONG.values(), ids=WRONG)
def test_a_wrong_mark_is_said(project: Suite, option: str, message: str) -> None:
    """In one line."""
    project.write(test_it=TEST.replace('workspace="project"', option))
    result = project.run("--reenact=record")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([message])


def test_files_are_updated_with_the_calls(project: Suite) -> None:
    """What the capture still has is answered, with what it did to files; the rest is made and recorded."""
    project.write(test_it=TEST)
    project.run("--reenact=record").assert_outcomes(passed=1)
    result = project.run("--reenact=update", "-s")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*live:*")
    result.stdout.fnmatch_lines(["*1 unchanged*"])
    more = '    write(folder, "src/more.py", "1")\n    reenact_workspace.file_exists("src/app.py")\n'
    project.write(test_it=TEST + more)
    result = project.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*accept it * --reenact=update*"])
    result = project.run("--reenact=update", "-s")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*live: src/more.py*"])
    result.stdout.no_fnmatch_line("*live: src/app.py*")
    result.stdout.fnmatch_lines(["*1 updated*"])
    result = project.run("-s")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*live:*")

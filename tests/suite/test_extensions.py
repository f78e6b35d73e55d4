"""Assertion types that users add."""

import sys
from importlib.metadata import EntryPoint

import pytest

from reenact.errors import FormatError, UsageError
from reenact.suite import judge
from reenact.suite.judge import BUILT_IN, all_kinds
from reenact.suite.settings import Settings, find_settings, read_settings
from tests.suite.runs import table

OWN = """\
from reenact.suite import Params, Verdict, assertion

class MentionsOrder(Params, frozen=True, kw_only=True):
    number: int

@assertion
def mentions_order(trace, params: MentionsOrder):
    return Verdict(passed=str(params.number) in trace.final_output.content, message="m")

@assertion(name="is_polite")
def politeness(trace, params):
    return Verdict(passed=True, message="m")
"""


def test_marked_functions_of_a_file_are_types(tmp_path):
    """Under their own names or the ones they were given."""
    file = tmp_path / "checks.py"
    file.write_text(OWN)
    kinds = all_kinds([file])
    assert kinds.keys() - BUILT_IN.keys() == {"mentions_order", "is_polite"}


BAD_FILES = {
    "missing": (None, "no Python file"),
    "empty": ("", "no function is marked; use @reenact.suite.assertion"),
    "raises": ("1/0", "cannot be loaded: ZeroDivisionError"),
    "no python": ("def", "cannot be loaded: SyntaxError"),
    "name is taken": (OWN.replace("is_polite", "no_errors"), "the assertion type 'no_errors' exists already"),
}


@pytest.mark.parametrize(("text", "said"), **table(BAD_FILES))
def test_a_bad_file_is_wrong_usage(text, said, tmp_path):
    """Before any test runs, with the file's name."""
    file = tmp_path / "checks.py"
    if text is not None:
        file.write_text(text)
    with pytest.raises(UsageError, match=r"checks\.py: ") as caught:
        all_kinds([file])
    assert said in str(caught.value)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A distribution with entry points, as pip would leave it."""

    def install(**points):
        info = tmp_path / "own-1.0.dist-info"
        info.mkdir()
        lines = "".join(f"{name} = {value}\n" for name, value in points.items())
        (info / "entry_points.txt").write_text(f"[{judge.GROUP}]\n{lines}")
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1.0\n")
        (tmp_path / "own_checks.py").write_text(OWN)
        monkeypatch.syspath_prepend(tmp_path)

    yield install
    sys.modules.pop("own_checks", None)


def test_installed_packages_add_types(installed):
    """By entry point, under the point's name."""
    installed(mentions_an_order="own_checks:mentions_order")
    assert "mentions_an_order" in all_kinds()


def test_an_entry_point_that_cannot_be_loaded_is_named(installed):
    """What and why."""
    installed(gone="own_checks:gone")
    with pytest.raises(UsageError, match="own_checks:gone: cannot be loaded: AttributeError"):
        all_kinds()
    assert EntryPoint("gone", "own_checks:gone", judge.GROUP)


def test_settings_come_from_the_nearest_file_above(tmp_path):
    """Files are relative to it; other tables are not ours."""
    (tmp_path / "reenact.toml").write_text(
        '[test]\nassertions = ["checks.py"]\n[test.defaults.cost_budget]\nmax_cost = 1\n[volatile]\nx = 1\n'
    )
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    settings = find_settings(below)
    assert settings.assertions == (str(tmp_path / "checks.py"),)
    assert settings.defaults == {"cost_budget": {"max_cost": 1}}


def test_without_a_file_there_are_defaults(tmp_path):
    """Nothing is required."""
    (tmp_path / "reenact.toml").write_text("[volatile]\n")
    assert find_settings(tmp_path) == Settings()


BAD_SETTINGS = {
    "not toml": ("[test", "not TOML"),
    "unknown key": ("[test]\nassertion = 1\n", "unknown field `assertion`"),
    "wrong type": ("[test]\nassertions = 1\n", "Expected `array`"),
}


@pytest.mark.parametrize(("text", "said"), **table(BAD_SETTINGS))
def test_bad_settings_are_format_errors(text, said, tmp_path):
    """With the file's name."""
    file = tmp_path / "reenact.toml"
    file.write_text(text)
    with pytest.raises(FormatError, match=r"reenact\.toml: ") as caught:
        read_settings(file)
    assert said in str(caught.value)

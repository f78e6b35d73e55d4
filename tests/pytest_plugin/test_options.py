"""What the marker's options do."""

from __future__ import annotations

import pytest

from tests.pytest_plugin.conftest import Suite, printed

pytest_plugins = ["pytester"]

PLACE = "captures/test_it/test_one"
SECRET = "correct-horse-battery-staple"


def test_a_lenient_replay_goes_on_and_tells_at_the_end(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test passes, the summary names the difference."""
    suite.write(
        test_it="""
@pytest.mark.reenact(policy="lenient")
def test_one():
    got(search("a" + VARIANT), search("b"))
"""
    )
    recorded = suite.run("--reenact=record")
    monkeypatch.setenv("VARIANT", "x")
    replayed = suite.run()
    replayed.assert_outcomes(passed=1)
    assert printed(replayed, "got") == printed(recorded, "got")
    lines = ["reenact: 1 diverged", f"  lenient   {PLACE}: event_payload_mismatch: event 2: *"]
    replayed.stdout.fnmatch_lines(lines)


def test_the_rules_in_force_are_named_at_the_end(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads that nothing differs must see what was let differ."""
    suite.write(test_it="@pytest.mark.reenact\ndef test_one():\n    search('a ' + VARIANT)\n")
    suite.run("--reenact=record").assert_outcomes(passed=1)
    rule = "[[volatile]]\ncall = 'tool search'\npath = '$.query'\nmask = 'a .*'\n"
    (suite.pytester.path / "reenact.toml").write_text(rule)
    monkeypatch.setenv("VARIANT", "x")
    replayed = suite.run()
    replayed.assert_outcomes(passed=1)
    replayed.stdout.fnmatch_lines(
        ["reenact: 1 replayed", "  rule      tool search $.query =~ a .[*] (used in 1)"]
    )


def test_code_that_a_replay_never_entered_is_named_at_the_end(suite: Suite) -> None:
    """The same calls can be made without it, and then nothing of it is tested."""
    suite.pytester.makepyfile(shop="def polite(text):\n    return text\n")
    for word in ("shop.polite('a')", "'a'"):
        suite.write(test_it=f"import shop\n@pytest.mark.reenact\ndef test_one():\n    search({word})\n")
        result = suite.run(*(["--reenact=record"] if "shop" in word else []))
        result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["reenact: 1 replayed", f"  not run   {PLACE}: nothing of shop.py ran in this *"]
    )


@pytest.mark.parametrize("mark", [f"redact=[{SECRET!r}]", f"redact=[{SECRET!r}, '']"])
def test_listed_secrets_never_reach_the_disk(suite: Suite, mark: str) -> None:
    """And the capture replays, because both sides are redacted; unset ones are left out."""
    suite.write(test_it=f"@pytest.mark.reenact({mark})\ndef test_one():\n    search({SECRET!r})\n")
    suite.run("--reenact=record").assert_outcomes(passed=1)
    assert not any(SECRET.encode() in content for content in suite.content(PLACE).values())
    suite.run().assert_outcomes(passed=1)


def test_secrets_of_several_markers_add_up(suite: Suite) -> None:
    """A nearer marker hides more, never less."""
    suite.write(
        test_it="""
pytestmark = pytest.mark.reenact(redact=["outer-secret-value"])

@pytest.mark.reenact(redact=["inner-secret-value"])
def test_one():
    search("outer-secret-value")
    search("inner-secret-value")
"""
    )
    suite.run("--reenact=record").assert_outcomes(passed=1)
    assert not any(b"secret-value" in content for content in suite.content(PLACE).values())
    suite.run().assert_outcomes(passed=1)


@pytest.mark.parametrize(("ci", "profile"), [("", "default"), ("true", "strict")])
def test_redaction_is_strict_in_ci(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, ci: str, profile: str
) -> None:
    """As everywhere in the library."""
    monkeypatch.setenv("CI", ci)
    suite.write(test_it="@pytest.mark.reenact\ndef test_one():\n    search('a')\n")
    suite.run("--reenact=record").assert_outcomes(passed=1)
    assert suite.manifest(PLACE)["redaction"]["profile"] == profile


def test_a_profile_can_be_named(suite: Suite) -> None:
    """The nearest marker's counts."""
    suite.write(
        test_it="""
pytestmark = pytest.mark.reenact(redact="none")

@pytest.mark.reenact(redact="strict")
def test_one():
    search("a")
"""
    )
    suite.run("--reenact=record").assert_outcomes(passed=1)
    assert suite.manifest(PLACE)["redaction"]["profile"] == "strict"


@pytest.mark.parametrize(
    ("options", "times"),
    [
        ("", 2),
        ("sources=['time']", 2),
        ("sources=['uuid']", 0),
        ("modules=['clockwork']", 1),
        ("modules=['none']", 0),
    ],
)
def test_what_of_the_standard_library_is_recorded_and_where_can_be_chosen(
    suite: Suite, options: str, times: int
) -> None:
    """As in a capture of one's own."""
    suite.pytester.makepyfile(clockwork="import time\n\ndef now():\n    return time.time()\n")
    suite.write(
        test_it=f"""
import time
from clockwork import now

@pytest.mark.reenact({options})
def test_one():
    now()
    time.time()
"""
    )
    suite.run("--reenact=record").assert_outcomes(passed=1, warnings=int(not times))
    events = suite.content(PLACE)["events.jsonl"]
    assert events.count(b'"source":"clock"') == times
    suite.run().assert_outcomes(passed=1)


def test_tools_that_pass_through_really_run(suite: Suite) -> None:
    """The others are answered from the capture."""
    suite.write(
        test_it="""
@reenact.tool
def clock(): print("live: clock")

@pytest.mark.reenact(passthrough=["clock"])
def test_one():
    clock()
    search("a")
"""
    )
    suite.run("--reenact=record").assert_outcomes(passed=1)
    replayed = suite.run()
    replayed.assert_outcomes(passed=1)
    assert printed(replayed, "live") == ["clock"]


def test_a_capture_can_be_elsewhere(suite: Suite) -> None:
    """The path starts at the test's folder; tests may share a capture that they only replay."""
    suite.write(
        test_it="@pytest.mark.reenact(path='runs/last-night')\ndef test_one():\n    got(search('a'))\n"
    )
    recorded = suite.run("--reenact=record")
    recorded.stdout.fnmatch_lines(["  recorded  runs/last-night"])
    suite.write(
        test_it="""
@pytest.mark.reenact(path="runs/last-night")
@pytest.mark.parametrize("n", [1, 2])
def test_one(n):
    got(search("a"))
"""
    )
    replayed = suite.run()
    replayed.assert_outcomes(passed=2)
    assert printed(replayed, "got") == printed(recorded, "got") * 2
    again = suite.run("--reenact=record")
    again.assert_outcomes(errors=2)
    again.stdout.fnmatch_lines(
        ["runs/last-night: several tests would record into it; give each its own path"]
    )


@pytest.mark.parametrize("has_been_mended", [False, True])
def test_a_run_that_failed_can_be_replayed_by_a_test_that_passes(suite: Suite, has_been_mended: bool) -> None:
    """Last night's failure: the test expects it, or shows that it is gone."""
    agent = """
import reenact

@reenact.tool
def search(query):
    return "nothing"

def agent(is_mended):
    if search("a") == "nothing" and not is_mended:
        raise LookupError("nothing")
"""
    suite.pytester.makepyfile(
        night=f"{agent}\nwith reenact.capture('runs/last-night'):\n    agent(False)\n",
        test_it=f"""{agent}
import pytest

@pytest.mark.reenact(path="runs/last-night")
def test_one():
    if {has_been_mended}:
        agent(True)
    else:
        with pytest.raises(LookupError):
            agent(False)
""",
    )
    assert suite.pytester.runpython("night.py").ret == 1
    result = suite.run()
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["reenact: 1 replayed"])


def test_the_nearest_marker_counts_option_by_option(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it does not say is taken from those around it."""
    suite.write(
        test_it="""
@pytest.mark.reenact(path="outer", policy="lenient")
class TestIt:
    @pytest.mark.reenact(path="inner")
    def test_one(self):
        search("a" + VARIANT)
"""
    )
    suite.run("--reenact=record").stdout.fnmatch_lines(["  recorded  inner"])
    monkeypatch.setenv("VARIANT", "x")
    suite.run().assert_outcomes(passed=1)


BAD = {
    "recrod=1": "@pytest.mark.reenact: recrod is unknown; the options are policy, redact, *",
    "'runs/a'": "@pytest.mark.reenact: 'runs/a' is unknown; the options are policy, redact, *",
    "policy='loose'": "policy 'loose' is unknown; choose strict or lenient",
    "redact='all'": "redact='all' is unknown; name a profile, or give a list of secrets",
    "passthrough='search'": "@pytest.mark.reenact: passthrough='search' is one text; give a list",
    "modules='agent'": "@pytest.mark.reenact: modules='agent' is one text; give a list",
    "allow='localhost'": "@pytest.mark.reenact: allow has 'localhost'; give ports, *",
    "allow=[8080.0]": "@pytest.mark.reenact: allow has 8080.0; give ports, *",
}


@pytest.mark.parametrize("options", BAD)
def test_options_that_make_no_sense_are_refused(suite: Suite, options: str) -> None:
    """Before anything runs, in one line."""
    test = "def test_one():\n    search('a')\n"
    suite.write(test_it=f"@pytest.mark.reenact\n{test}")
    suite.run("--reenact=record").assert_outcomes(passed=1)
    suite.write(test_it=f"@pytest.mark.reenact({options})\n{test}")
    result = suite.run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([BAD[options], "reenact: 1 not started"])


def test_a_profile_and_secrets_of_several_marks_go_together(suite: Suite) -> None:
    """The nearest profile, and the secrets of all."""
    suite.write(
        test_it="""
pytestmark = pytest.mark.reenact(redact=("none", ["outer-secret-value"]))

@pytest.mark.reenact(redact="strict")
class TestIt:
    @pytest.mark.reenact(redact=["inner-secret-value"])
    def test_one(self):
        search("outer-secret-value inner-secret-value")
"""
    )
    suite.run("--reenact=record").assert_outcomes(passed=1)
    [place] = suite.captures()
    assert suite.manifest(place)["redaction"]["profile"] == "strict"
    assert not any(b"secret-value" in data for data in suite.content(place).values())

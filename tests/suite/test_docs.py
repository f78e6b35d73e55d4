"""docs/assertions.md: every type is there, and every example holds."""

import re
from pathlib import Path

import pytest

from reenact.formats.bundle import read_bundle
from reenact.formats.testcase import Assertion
from reenact.formats.yaml_text import read_yaml
from reenact.rerun import run_in_files
from reenact.suite.files import allow_commands, command_succeeds_in_workspace
from reenact.suite.judge import BUILT_IN, all_kinds, judge, params_type
from reenact.trace.normalize import normalize
from tests.suite.runs import START
from tests.suite.test_files import trace_with_files
from tests.suite.test_replayed import replayed

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "assertions.md").read_text()
SECTIONS = dict(re.findall(r"^### (\w+)\n(.*?)(?=^##)", PAGE, re.MULTILINE | re.DOTALL))
EXAMPLE = re.compile(r'^Run: (.*)\n```yaml title="assertion"\n(.*?)```', re.MULTILINE | re.DOTALL)


def trace_of_run(name, folder=None):
    if name == "a replay without divergences":
        return replayed()
    if name == "a capture with its files":
        return trace_with_files(folder)
    file = ROOT / "examples" / "suites" / name.strip("`") / "replay.json"
    return normalize(
        read_bundle(file.read_bytes(), str(file)), trace_id="t", test_run_id="r", started_at=START
    )


def test_every_type_has_a_section():
    """No more, no fewer."""
    assert SECTIONS.keys() == BUILT_IN.keys()


@pytest.mark.parametrize("kind", BUILT_IN)
def test_an_example_holds(kind, tmp_path):
    """As it is printed, over the run it names."""
    ((run, text),) = EXAMPLE.findall(SECTIONS[kind])
    example = read_yaml(text.encode(), "docs/assertions.md").value
    assert example["type"] == kind
    kinds = BUILT_IN | {command_succeeds_in_workspace.__name__: allow_commands(run_in_files)}
    assertion = Assertion(id="a", type=kind, params=example.get("params"))
    found = judge(assertion, trace_of_run(run, tmp_path), kinds)
    assert found.status == "pass", found.message


@pytest.mark.parametrize("kind", BUILT_IN)
def test_every_parameter_is_named(kind):
    """In the section of its type."""
    for name in params_type(BUILT_IN[kind]).__struct_fields__:
        assert f"`{name}`" in SECTIONS[kind], name


def test_the_function_of_ones_own_works(tmp_path):
    """The page's Python, loaded from a file."""
    (source,) = re.findall(r'```python title="own-assertion"\n(.*?)```', PAGE, re.DOTALL)
    file = tmp_path / "orders.py"
    file.write_text(source)
    assertion = Assertion(id="a", type="mentions_order", params={"number": 1234})
    trace = trace_of_run("support/passing")
    assert judge(assertion, trace, all_kinds([file])).status == "pass"

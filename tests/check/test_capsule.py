"""Capsules: what executing one means, and where they come from."""

import sys

import msgspec
import pytest

from reenact.check.actions.capsule import Capsule, Findings, Manifest
from reenact.check.actions.registry import capsule_ids, find_capsule
from reenact.check.actions.schema import Field, NumberSchema, ObjectSchema, Problem, StringSchema
from reenact.errors import CheckFailed, UsageError

TAKES = ObjectSchema("A name", (Field("name", "The name", StringSchema("A text")),))
GIVES = ObjectSchema(
    "Its length",
    (
        Field("length", "In characters", NumberSchema("0 or more", 0)),
        Field("first", "The first one", StringSchema("A character"), required=False),
    ),
)


def capsule(logic):
    manifest = Manifest(
        id="test.name.v1",
        name="Name",
        version="1.0",
        profile="test",
        summary="A name and its length.",
        logic_version="1",
        tags=("test",),
        input_schema=TAKES,
        output_schema=GIVES,
    )
    return Capsule(manifest, logic)


def measure(value):
    name = value.get("name") if isinstance(value, dict) else None
    return Findings([], {"length": len(name) if isinstance(name, str) else None, "first": None})


def test_a_good_value_is_accepted_with_its_data():
    """No problems, and the logic's data as it gave it."""
    result = capsule(measure).execute({"name": "Ann"})
    assert (result.status, result.problems, result.data) == ("accepted", (), {"length": 3, "first": None})


def test_the_logic_runs_on_anything():
    """A rejected value has data too, as far as it could be read."""
    result = capsule(measure).execute([])
    assert [problem.code for problem in result.problems] == ["invalid_type"]
    assert result.data == {"length": None, "first": None}


def test_the_logics_problems_come_after_those_of_the_schema():
    """And reject like them."""
    own = Problem("too_short", "name", "must be longer")
    result = capsule(lambda value: Findings([own], {"length": 0})).execute({"x": 1})
    assert [problem.code for problem in result.problems] == ["missing_field", "unexpected_field", "too_short"]
    assert result.status == "rejected"


def test_a_warning_does_not_reject():
    """It is reported all the same."""
    own = Problem("odd", "name", "is odd", "warning")
    result = capsule(lambda value: Findings([own], {"length": 1})).execute({"name": "x"})
    assert (result.status, result.problems) == ("accepted", (own,))


BAD_DATA = {
    "not an object": (None, [("invalid_type", "data")]),
    "a missing field": ({}, [("missing_field", "data.length")]),
    "out of bounds": ({"length": -1}, [("number_below_minimum", "data.length")]),
    "an unexpected field": ({"length": 1, "x": 1}, [("unexpected_field", "data.x")]),
}


@pytest.mark.parametrize("name", BAD_DATA)
def test_the_output_is_validated_too(name):
    """A capsule that breaks its own promise rejects; the path says that it is the data's."""
    data, expected = BAD_DATA[name]
    result = capsule(lambda value: Findings([], data)).execute({"name": "x"})
    assert [(problem.code, problem.path) for problem in result.problems] == expected
    assert result.status == "rejected"


def test_logic_that_fails_is_named():
    """The error is the capsule author's, not the user's."""
    with pytest.raises(
        CheckFailed, match=r"\Acapsule test\.name\.v1: its logic failed with KeyError: 'x'; report"
    ):
        capsule(lambda value: {}["x"]).execute({})


def test_a_manifest_is_plain_json():
    """Schemas included."""
    manifest = msgspec.to_builtins(capsule(measure).manifest)
    assert manifest["input_schema"]["type"] == "object"
    assert msgspec.json.decode(msgspec.json.encode(manifest), type=Manifest) == capsule(measure).manifest


def test_the_json_schema_has_a_head():
    """So that it stands for itself."""
    schema = capsule(measure).json_schema()
    assert schema["$schema"].endswith("2020-12/schema")
    assert schema["$id"] == "urn:reenact:schema:test.name.v1:1.0"


# Where they come from

MODULE = """
from reenact.check.actions.capsule import Capsule, Findings, Manifest
from reenact.check.actions.schema import AnySchema

def make(id):
    manifest = Manifest(id=id, name="N", version="1.0", profile="p", summary="S", logic_version="1", tags=(),
                        input_schema=AnySchema("Any"), output_schema=AnySchema("Any"))
    return Capsule(manifest, lambda value: Findings([], value))

echo = make("test.echo.v1")
fake = make("agent.action.replay.v1")
number = 7
"""
POINTS = {
    "test.echo.v1": "echo",
    "test.other.v1": "echo",
    "test.number.v1": "number",
    "test.gone.v1": "gone",
    "agent.action.replay.v1": "fake",
}


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package that adds capsules, installed the way pip does it."""
    module = f"capsules_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{module}.py").write_text(MODULE)
    install(tmp_path, "adder", {name: f"{module}:{attribute}" for name, attribute in POINTS.items()})
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path, module
    sys.modules.pop(module, None)


def install(folder, package, points):
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = [f"{name} = {value}" for name, value in points.items()]
    (info / "entry_points.txt").write_text("\n".join(["[reenact.capsules]", *lines]))


def test_ours_is_there():
    """Without any package."""
    assert find_capsule("agent.action.replay.v1").manifest.id in capsule_ids()


def test_a_package_adds_a_capsule(installed):
    """By an entry point named after its id."""
    assert find_capsule("test.echo.v1").execute({"a": 1}).data == {"a": 1}


def test_ids_are_listed_without_loading(installed):
    """One broken package does not hide the others."""
    assert set(POINTS) <= set(capsule_ids())
    assert installed[1] not in sys.modules


def test_ours_cannot_be_replaced(installed):
    """What is called an action must mean the same everywhere."""
    assert find_capsule("agent.action.replay.v1").manifest.name == "Agent action"


REFUSED = {
    "test.nothing.v1": "no capsule is called 'test.nothing.v1'; choose from agent.action.replay.v1",
    "test.other.v1": "capsule 'test.other.v1' of adder calls itself 'test.echo.v1'",
    "test.number.v1": "of adder is not a Capsule but a int",
    "test.gone.v1": "capsule 'test.gone.v1' of adder cannot be loaded: AttributeError",
}


@pytest.mark.parametrize("name", REFUSED)
def test_capsules_at_fault_are_refused(name, installed):
    """The message names the package."""
    with pytest.raises(UsageError) as caught:
        find_capsule(name)
    assert REFUSED[name] in str(caught.value)


def test_two_packages_with_one_id_are_refused(installed):
    """Which one is meant cannot be told."""
    install(installed[0], "rival", {"test.echo.v1": f"{installed[1]}:echo"})
    with pytest.raises(UsageError, match="is in several packages: adder, rival; uninstall all but one"):
        find_capsule("test.echo.v1")

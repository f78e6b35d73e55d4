"""Forks and shadow reports in the viewer: the tree, what to type at a step, and what a change did."""

import json
import os
import shlex
import shutil

import pytest

import reenact
from reenact.viewer.api import Api
from reenact.viewer.page import make_page
from reenact.viewer.shelf import Shelf
from tests.cli.commands import PYTHON, run
from tests.viewer.conftest import Served
from tests.viewer.looking import expect, opened, rows
from tests.viewer.recordings import HOSTILE, forked_run, shadow_run, support_run

PICTURE = os.environ.get("REENACT_PICTURE_OF_FORKS")
AGENT = """
import reenact

@reenact.tool
def due(order: str) -> dict[str, object]:
    return {"due day": "Thursday", "order": order}

@reenact.tool
def note(text: str) -> str:
    return text

note(str(due("A-1")["due day"]))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The demo's run with a fork and a fork of that, a command, and a shadow report over four runs."""
    place = tmp_path_factory.mktemp("forks")
    support_run(place / "support")
    forked_run(place / "support", place / "late", {"set": {"$.due": "next month"}})
    forked_run(place / "late", place / "later", {"replace": {"due": HOSTILE[0]}})
    (place / "agent.py").write_text(AGENT)
    assert run("record", "-o", "command", "--", PYTHON, "agent.py", cwd=place).returncode == 0
    shadow_run(place, range(10, 14))
    return place


@pytest.fixture(scope="module")
def served(folder):
    server = Served(folder)
    yield server
    assert server.end() == (0, "")


def ask(folder, question, **query):
    shelf = Shelf((folder,))
    try:
        return Api(shelf).ask(question, query)
    finally:
        shelf.close()


def test_the_tree_is_among_the_runs_that_may_be_looked_at(folder):
    """A parent that was not given has no name here, and nothing else of it is reported."""
    nodes = ask(folder, "forks", run="late")["nodes"]
    assert [(node["name"], node["depth"], node.get("at"), node["isThis"]) for node in nodes] == [
        ("support", 0, None, False),
        ("late", 1, 8, True),
        ("later", 2, 8, False),
    ]
    alone = ask(folder / "late", "forks", run="late")["nodes"]
    assert [(node["name"], node["run"]) for node in alone] == [("support", None), ("late", "late")]
    assert "path" not in alone[0]


def test_what_to_type_can_be_typed(folder):
    """The command that is shown forks the run, as it stands."""
    steps = ask(folder, "steps", run="command")["rows"]
    seq = next(step["seq"] for step in steps if step["name"] == "due")
    [changed, fails] = ask(folder, "detail", run="command", seq=str(seq))["fork"]["choices"]
    assert (changed["label"], fails["label"]) == ("Another result", "It fails")
    words = shlex.split(changed["text"])
    assert words[:2] == ["reenact", "fork"]
    assert '$["due day"]="Thursday"' in words
    words[words.index('$["due day"]="Thursday"')] = '$["due day"]="Friday"'
    place = words.index("--")
    path = f"{os.path.dirname(PYTHON)}:{os.environ['PATH']}"
    done = run(*words[1:place], "--on-miss", "live", "-o", "friday", *words[place:], cwd=folder, PATH=path)
    assert done.returncode == 0, done.stderr
    assert "0 calls from the prefix, 0 from the recording, 1 live" in done.stderr
    assert '"Friday"' in (folder / "friday" / "events.jsonl").read_text()
    shutil.rmtree(folder / "friday")


def test_of_a_run_of_this_process_it_is_python(folder):
    """Which compiles; where a step cannot be forked, it is said why."""
    told = ask(folder, "detail", run="support", seq="8")["fork"]["choices"]
    texts = [choice["text"] for choice in told]
    for text in texts:
        compile(text, "a line", "exec")
    assert texts[0].startswith("with reenact.fork(")
    assert any("'error': 'TimeoutError'" in text for text in texts)
    of_model = [
        choice["label"] for choice in ask(folder, "detail", run="support", seq="2")["fork"]["choices"]
    ]
    assert of_model == [
        "Another model, from here on",
        "Another prompt, from here on",
        "Another answer",
        "It fails",
    ]


def test_a_call_inside_another_is_forked_outside(runs):
    """With a link to that one."""
    steps = ask(runs, "steps", run="research")["rows"]
    inner = next(step for step in steps if step["name"] == "fetch")
    fork = ask(runs, "detail", run="research", seq=str(inner["seq"]))["fork"]
    assert (fork["seq"], "choices" in fork) == (inner["parentSeq"], False)


def test_the_tree_and_a_step_are_shown(page, served, folder):
    """The tree leads to its runs and to what differs; a step says how to fork there, and it is copied."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    opened(page, served.url, "run/late/forks")
    tree = page.get_by_role("region", name="Forks")
    expect(tree).to_contain_text('$.due = "next month"')
    expect(tree.get_by_text("forked at event 8")).to_have_count(2)
    picture(page, "tree")
    tree.get_by_role("link", name="Compare").first.click()
    head = page.get_by_role("banner").or_(page.locator(".run-head"))
    expect(head.last).to_contain_text('late is a fork of support at event 8: $.due = "next month"')
    picture(page, "diff")
    opened(page, served.url, "run/support/event/8")
    chosen = page.get_by_role("complementary")
    chosen.get_by_text("Fork from here").click()
    expect(chosen.locator("pre").last).to_be_visible()
    picture(page, "step")
    chosen.get_by_role("button", name="Copy: It fails").click()
    copied = "async () => (await navigator.clipboard.readText()).startsWith('with reenact.fork(')"
    page.wait_for_function(copied)
    opened(page, served.url, "run/late")
    expect(page.get_by_text("../support at event 8")).to_be_visible()
    page.keyboard.press("5")
    expect(page.get_by_role("region", name="Forks")).to_be_visible()


def test_a_run_without_forks_says_how(page, served):
    opened(page, served.url, "run/command/forks")
    expect(page.get_by_text("None of the runs here is a fork of this run.")).to_be_visible()


def test_a_shadow_report_is_shown(page, served):
    """From the list of runs to the report, from there to a run and to what differs."""
    opened(page, served.url)
    expect(page.get_by_text("no difference can be told from this many runs")).to_be_visible()
    page.get_by_role("link", name="shadow.json").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("shadow.json")
    expect(page.get_by_text("2 other tools, 2 the same")).to_be_visible()
    first = page.get_by_role("row").nth(1)
    expect(first).to_contain_text('find_order {"order_id":"A-11"} → nothing more')
    picture(page, "shadow")
    first.get_by_role("link", name="Compare").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("candidates/0002-11")
    page.keyboard.press("Escape")
    opened(page, served.url, "shadow/steps.json")
    expect(page.get_by_text("step by step")).to_be_visible()
    picture(page, "steps")
    page.get_by_role("row").nth(1).get_by_role("link").click()
    expect(page.get_by_role("complementary")).to_be_visible()


def test_it_is_accessible(page, served):
    """In both colours, wide and narrow."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    places = {
        "run/later/forks": (1280, "light"),
        "shadow/shadow.json": (480, "dark"),
        "shadow/steps.json": (1280, "dark"),
        "run/support/event/8": (1280, "dark"),
        "": (480, "light"),
    }
    for place, (width, scheme) in places.items():
        page.set_viewport_size({"width": width, "height": 720})
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        opened(page, served.url, place)
        if place.endswith("8"):
            page.get_by_text("Fork from here").click()
        found = axe.run(page)
        assert found.violations_count == 0, found.generate_report()


def test_a_report_alone_is_shown(folder, tmp_path, page):
    """Its runs are named, but lead nowhere."""
    shutil.copy(folder / "shadow.json", tmp_path)
    server = Served(tmp_path / "shadow.json")
    opened(page, server.url, "shadow/shadow.json")
    expect(page.get_by_role("row")).to_have_count(5)
    expect(page.get_by_role("row").get_by_role("link")).to_have_count(0)
    assert server.end() == (0, "")


@pytest.mark.parametrize(
    "change",
    [
        lambda report: report.pop("comparison"),
        lambda report: report["runs"][0].pop("recorded"),
        lambda report: report["runs"][0].update(difference="<b>"),
        lambda report: report.update(counts=3),
    ],
)
def test_a_damaged_report_is_said_to_be_one(folder, tmp_path, change):
    """In one line, in its place in the list."""
    report = json.loads((folder / "shadow.json").read_text())
    change(report)
    (tmp_path / "bad.json").write_text(json.dumps(report))
    shutil.copytree(folder / "support", tmp_path / "support")
    [line] = ask(tmp_path, "runs")["shadowReports"]
    assert "is not a shadow report" in line["verdict"]
    with pytest.raises(reenact.FormatError, match=r"bad\.json: \$\..*: is not a shadow report: "):
        ask(tmp_path, "shadow", name="bad.json")
    with pytest.raises(reenact.UsageError, match="no shadow report 'other"):
        ask(tmp_path, "shadow", name="other.json")


def test_a_page_carries_the_tree_but_no_path(folder, page, tmp_path):
    """The command to fork would tell where the run lay."""
    text = make_page((folder / "late",))
    assert str(folder).encode() not in text
    (tmp_path / "late.html").write_bytes(text)
    opened(page, (tmp_path / "late.html").as_uri(), "run/late/forks")
    expect(page.get_by_role("region", name="Forks")).to_contain_text("forked at event 8")
    assert rows(page).count() == 0


def picture(page, name):
    if PICTURE:
        page.set_viewport_size({"width": 1280, "height": 800})
        page.screenshot(path=f"{PICTURE}-{name}.png")

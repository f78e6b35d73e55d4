"""The files of a run in the viewer: a tree at each moment, and what changed."""

import os
import subprocess
from pathlib import Path

import pytest

import reenact
from reenact.viewer.api import Api
from reenact.viewer.page import make_page
from reenact.viewer.shelf import Shelf
from tests.viewer.conftest import Served
from tests.viewer.looking import expect, opened
from tests.viewer.recordings import HOSTILE

PICTURE = os.environ.get("REENACT_PICTURE_OF_FILES")


SECRET = "sk-ant-api03-" + "a1B2c3D4e5" * 9


@reenact.tool
def shell(command: str, folder: str) -> None:
    """A tool that really runs."""
    subprocess.run(["sh", "-c", command], cwd=folder, check=True)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run that changes files in nested folders, some of them hostile."""
    folder = tmp_path_factory.mktemp("files")
    work = folder / "work"
    (work / "src" / "shop").mkdir(parents=True)
    (work / "docs").mkdir()
    (work / "README.md").write_text("# Shop\n\nSells lamps.\n")
    (work / "docs" / "old.md").write_text("Old.\n")
    (work / "src" / "shop" / "prices.py").write_text("LAMP = 30\nTABLE = 200\n")
    (work / ".env").write_text("KEY=1")
    (work / "latest").symlink_to("README.md")
    with reenact.capture(folder / "shop", workspace=work):
        shell("sed -i 's/30/31/' src/shop/prices.py; mv docs/old.md docs/new.md", str(work))
        shell("printf 'def test(): pass\\n' > src/test_shop.py; chmod 700 README.md", str(work))
        shell("rm -r docs", str(work))
        (work / "keys.ini").write_text(f"[model]\nkey = {SECRET}\n")
        shell(
            "printf '\\000\\001' > logo.bin; seq 300000 > long.txt; sed -i 's/31/32/' src/shop/prices.py",
            str(work),
        )
        for number, text in enumerate(HOSTILE):
            (work / f"{number} {text.replace('/', '∕')}"[:80]).write_text(text)
        (Path(os.fsencode(work).decode()) / os.fsdecode(b"not \xff utf-8")).write_text("x")
        shell("true", str(work))
    with reenact.capture(folder / "bare"):
        shell("true", str(work))
    return folder / "shop"


@pytest.fixture(scope="module")
def served(run):
    server = Served(run, run.with_name("bare"))
    yield server
    server.end()


def test_each_moment_has_its_files_and_changes(run):
    """The start has all, each later one what differs from the one before."""
    shelf = Shelf((run,))
    api = Api(shelf)
    assert api.ask("run", {"run": "shop"})["hasFiles"]
    moments = api.ask("files", {"run": "shop"})["moments"]
    assert [moment["changes"] for moment in moments[:4]] == [0, 2, 2, 2]
    first = api.ask("files-at", {"run": "shop", "number": "1"})
    assert [(change["path"], change["how"]) for change in first["changes"]] == [
        ("docs/new.md", "renamed"),
        ("src/shop/prices.py", "changed"),
    ]
    assert "-LAMP = 30" in first["changes"][1]["diff"]
    assert {"path": ".env", "kind": "left-out", "why": "secret"} in first["files"]
    with pytest.raises(reenact.UsageError, match="there is no moment 99"):
        api.ask("files-at", {"run": "shop", "number": "99"})
    shelf.close()


def test_the_tree_and_the_diff_are_shown(page, served):
    """Folders with changes are open; another moment shows other changes."""
    opened(page, served.url, "run/shop/files")
    tree = page.get_by_role("region", name="File tree")
    expect(tree).to_contain_text("prices.py")
    expect(tree.get_by_text("prices.py")).to_be_visible()
    changes = page.get_by_role("region", name="Changes")
    expect(changes).to_contain_text("-LAMP = 30")
    expect(changes).to_contain_text("docs/new.md (was docs/old.md)")
    page.get_by_role("button", name="2 changes").nth(2).click()
    expect(changes).to_contain_text("docs/")
    expect(tree).to_contain_text("removed")
    page.get_by_role("button", name="Start").click()
    expect(changes).to_contain_text("The files at the start of the run.")
    expect(tree).to_contain_text("not recorded: secret")
    if PICTURE:
        page.set_viewport_size({"width": 1280, "height": 720})
        page.get_by_role("button", name="2 changes").first.click()
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.screenshot(path=f"{PICTURE}-{scheme}.png")


def test_binary_large_and_redacted_files_are_told(page, served):
    """By their sizes, and with placeholders in the place of secrets; the secret itself is nowhere."""
    opened(page, served.url, "run/shop/files")
    changes = page.get_by_role("region", name="Changes")
    shown = []
    for button in page.locator(".moment").all():
        button.click()
        expect(page.get_by_role("region", name="Files of the run")).to_have_attribute("aria-busy", "false")
        shown.append(changes.inner_text())
        if "keys.ini" in shown[-1]:
            expect(page.get_by_role("region", name="File tree")).to_contain_text("secrets hidden")
        if PICTURE and "logo.bin" in shown[-1]:
            page.set_viewport_size({"width": 1280, "height": 720})
            page.screenshot(path=f"{PICTURE}-kinds.png")
    told = "\n".join(shown)
    assert "+key = " in told
    assert SECRET not in page.content() + told
    assert "binary or large: none, 2 bytes" in told
    assert "binary or large: none, 1,988,895 bytes" in told


def test_hostile_files_are_text(page, served):
    """Nothing in names and contents runs, and it is accessible in both colours, wide and narrow."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    opened(page, served.url, "run/shop/files")
    for button in page.locator(".moment").all():
        button.click()
    expect(page.get_by_role("region", name="File tree")).to_contain_text("not \\xff utf-8")
    assert page.evaluate("window.pwned") is None
    for width in (1280, 480):
        page.set_viewport_size({"width": width, "height": 720})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            found = axe.run(page)
            assert found.violations_count == 0, found.generate_report()


def test_a_run_without_files_has_no_such_view(page, served):
    """Nor does it take a place among the others."""
    opened(page, served.url, "run/bare")
    expect(page.get_by_role("link", name="Divergences")).to_be_visible()
    expect(page.get_by_role("link", name="Files")).to_have_count(0)


def test_a_page_carries_them(page, run, tmp_path):
    """They are shown without a server."""
    file = tmp_path / "run.html"
    file.write_bytes(make_page((run,)))
    opened(page, file.as_uri(), "run/shop/files")
    expect(page.get_by_role("region", name="Changes")).to_contain_text("-LAMP = 30")

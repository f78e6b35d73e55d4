"""The pictures in the documents, made from the demo's own agent.

Every test run makes them; ``make screenshots`` keeps them.
"""

import os
import struct
from pathlib import Path

import pytest

from tests.viewer import recordings
from tests.viewer.conftest import Served
from tests.viewer.looking import opened

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
RUNS = ("support", "support-changed", "research")
SIZE = {"width": 1280, "height": 720}
PICTURES = {
    "timeline": ("run/support/event/6", "light"),
    "parallel": ("run/research", "dark"),
    "conversation": ("run/support/conversation", "light"),
    "divergence": ("run/support/divergences", "light"),
    "comparison": ("diff/support/support-changed", "dark"),
    "forks": ("run/support-late/forks", "light"),
    "shadow": ("shadow/shadow.json", "light"),
}


@pytest.fixture(scope="module")
def served(runs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    for name in RUNS:
        (folder / name).symlink_to(runs / name)
    # The receipt names the agent's source file, wherever this clone may lie.
    text = (runs / "support.receipt.json").read_text()
    (folder / "support.receipt.json").write_text(text.replace(str(ROOT), "/home/ada/shop"))
    recordings.forked_run(folder / "support", folder / "support-late", {"set": {"$.due": "next month"}})
    recordings.forked_run(folder / "support-late", folder / "support-lost", {"error": "TimeoutError"})
    recordings.shadow_run(folder, range(10, 20))
    server = Served(*(folder / name for name in RUNS), folder)
    yield server
    server.end()


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_made(browser, served, name, tmp_path):
    """Of the size it is said to have, with something on it, and the one in the documents is there."""
    place, scheme = PICTURES[name]
    context = browser.new_context(viewport=SIZE, color_scheme=scheme)
    page = opened(context.new_page(), served.url, place)
    page.wait_for_load_state("networkidle")
    folder = IMAGES if os.environ.get("REENACT_SCREENSHOTS") else tmp_path
    folder.mkdir(exist_ok=True)
    picture = page.screenshot(path=folder / f"{name}.png")
    context.close()
    assert struct.unpack(">II", picture[16:24]) == (SIZE["width"], SIZE["height"])
    assert len(picture) > 20_000
    assert (IMAGES / f"{name}.png").is_file()

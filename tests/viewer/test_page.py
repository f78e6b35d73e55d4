"""One page to share."""

import re

import pytest

from reenact.analysis.artifact import open_artifact
from reenact.errors import UsageError
from reenact.viewer.api import StepFilter, StepSearch
from reenact.viewer.page import make_page
from reenact.viewer.static import modules_mark, page_program
from tests.viewer import recordings
from tests.viewer.looking import expect, opened, rows


@pytest.fixture(scope="module")
def shared(runs, tmp_path_factory):
    """The page of the support run, with its divergence."""
    file = tmp_path_factory.mktemp("shared") / "support.html"
    file.write_bytes(make_page((runs / "support", runs / "support.receipt.json")))
    return file


def test_a_page_shows_its_run(page, shared):
    """Without a server: timeline, step, filter, conversation, divergence and verdict."""
    opened(page, shared.as_uri())
    expect(rows(page)).to_have_count(5)
    rows(page).nth(1).click()
    expect(page.get_by_role("complementary")).to_contain_text("The Art of Repetition")
    page.get_by_label("Filter by kind").select_option("model")
    expect(rows(page)).to_have_count(3)
    page.get_by_role("link", name="Conversation").click()
    expect(page.locator(".turn")).to_have_count(7)
    page.get_by_role("link", name="Divergences").click()
    expect(page.locator(".differs")).to_have_count(2)
    page.get_by_role("button", name="Verify").click()
    expect(page.get_by_role("button", name="Verified")).to_be_visible()


TERMS = {
    "tool:find_*": 1,
    "kind:tool,model": 5,
    "!kind:model": 2,
    "rotterdam": 2,
    '"in Rotterdam and"': 1,
    "error": 0,
    "lane:0 parcel: RX-77": 0,
    "!tool:track_parcel kind:tool": 1,
    "nothing:here": 0,
}


def test_a_page_takes_the_terms_of_the_viewer(page, shared):
    """Without the server that knows them."""
    opened(page, shared.as_uri())
    for words, found in TERMS.items():
        page.get_by_label("Search steps").fill(words)
        expect(page.locator(".tally")).to_have_text(f"{found} found")


def test_the_viewer_finds_the_same(runs):
    """Two programs, one language."""
    with open_artifact(runs / "support") as artifact:
        for words, found in TERMS.items():
            search = StepSearch(artifact, StepFilter(words=words))
            while not search.is_complete:
                search.advance(1)
            assert len(search.places) == found, words


def test_a_link_into_a_page_works(page, shared):
    """By the same names as in the viewer."""
    opened(page, shared.as_uri(), "run/support/event/9")
    expect(page.get_by_role("complementary")).to_contain_text("Rotterdam")


def test_a_hostile_page_stays_text(page, runs, tmp_path):
    """Nothing in the data ends its element or runs."""
    file = tmp_path / "hostile.html"
    file.write_bytes(make_page((runs / "hostile",)))
    for place in ("", "run/hostile/conversation", "run/hostile/state", "run/hostile/event/15"):
        opened(page, file.as_uri(), place)
    assert page.evaluate("document.querySelectorAll('iframe, svg, img').length") == 0


def test_a_page_holds_no_markup_but_its_own(runs):
    """The data has no sign with which markup could begin."""
    text = make_page((runs / "hostile",)).decode()
    [data] = re.findall(r'<script type="application/json" id="run">(.*?)</script>', text, re.DOTALL)
    assert "<" not in data
    assert "pwned" in data
    assert text.count("<script") == 2


def test_a_page_does_not_tell_where_the_run_lay(runs):
    """Folders and command lines are the recorder's own."""
    text = make_page((runs / "support",)).decode()
    [data] = re.findall(r'id="run">(.*?)</script>', text, re.DOTALL)
    assert '"command":' not in data
    assert str(runs) not in data


def test_a_page_has_its_limits(tmp_path):
    """A run that no browser would open from one file is refused."""
    recordings.long_run(tmp_path / "long", 10_001)
    with pytest.raises(UsageError, match="too many for a page"):
        make_page((tmp_path / "long",))


def test_the_program_of_a_page_is_made_of_the_viewers_modules():
    """As they are now; after a change, make viewer makes it again."""
    assert page_program().splitlines()[0] == modules_mark()
    assert "</script" not in page_program()


def test_a_page_refers_to_nothing(runs):
    """Styles and program are in it; nothing is fetched."""
    text = make_page((runs / "support",)).decode()
    assert not re.findall(r"<(?:link|script)[^>]*(?:href|src)=(?!.data:,)", text)
    assert text.index("<meta charset") < text.index("Content-Security-Policy") < text.index("<style>")
    assert text.startswith("<!doctype html>")
    assert text.endswith("</body>\n</html>\n")

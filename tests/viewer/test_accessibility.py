"""Every kind of page, in light and dark, as axe-core judges it."""

import pytest

from tests.viewer.looking import opened

PLACES = {
    "runs": "",
    "timeline": "run/research",
    "an event": "run/support/event/4",
    "conversation": "run/support/conversation",
    "state": "run/research/state",
    "divergences": "run/support/divergences",
    "two runs": "diff/support/support-changed",
}


@pytest.mark.parametrize("place", PLACES)
def test_nothing_stands_in_anybodys_way(page, served, place):
    """Not one violation of the rules of WCAG 2.2, A and AA, and of good practice."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    opened(page, served.url, PLACES[place])
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        found = axe.run(page)
        assert found.violations_count == 0, found.generate_report()

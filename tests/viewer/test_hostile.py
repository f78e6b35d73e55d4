"""Recorded content is hostile: in a real browser it stays text."""

import pytest

from tests.viewer.looking import expect, opened
from tests.viewer.recordings import HOSTILE

CALLS = [2 + 6 * number + step for number in range(len(HOSTILE)) for step in (0, 2, 4, 5)]
OPEN_ALL = "document.querySelectorAll('.inspector details').forEach((each) => { each.open = true; })"


def test_nothing_recorded_becomes_more_than_text(page, served):
    """Every step and every view of a run full of payloads; the fixture sees what ran, asked or complained."""
    opened(page, served.url, "run/hostile")
    for seq in CALLS:
        page.evaluate("(seq) => { location.hash = `#/run/hostile/event/${seq}`; }", seq)
        expect(page.locator(".inspector .facts")).to_contain_text(f"Events{seq}")
        page.evaluate(OPEN_ALL)
    for tab in ("conversation", "state", "divergences"):
        opened(page, served.url, f"run/hostile/{tab}")
    found = page.evaluate(
        """() => ({
          scripts: [...document.scripts].map((each) => each.getAttribute("src")),
          foreign: document.querySelectorAll("svg, iframe, object, embed, img, base, form").length,
          links: [...document.links].filter((each) => !each.getAttribute("href").startsWith("#/")).length,
        })"""
    )
    assert found == {"scripts": ["main.js"], "foreign": 0, "links": 0}


def test_payloads_are_shown_as_they_were_recorded(page, served):
    """What looks like markup is there to be read."""
    opened(page, served.url, "run/hostile/conversation")
    shown = page.locator(".conversation").inner_text()
    for text in HOSTILE[:6]:
        assert text in shown


@pytest.mark.parametrize(("sign", "written"), [("\u202e", "⟨U+202E⟩"), ("\u200b", "⟨U+200B⟩"), ("\x1b", "␛")])
def test_what_cannot_be_seen_is_written_out(page, served, sign, written):
    """Marks that turn a line round, hide in it or steer a terminal stand there by their name."""
    opened(page, served.url, "run/hostile/state")
    shown = page.locator("body").inner_text()
    assert sign not in shown
    assert written in shown


def test_the_policy_stops_what_would_get_through(browser, served):
    """Even a mistake of the page's own could not run a recorded text."""
    context = browser.new_context()
    page = opened(context.new_page(), served.url)
    complaints = []
    page.on("console", lambda said: complaints.append(said.text))
    refused = page.evaluate(
        """() => {
          const button = document.createElement("a");
          document.body.append(button);
          const mistakes = [
            () => { document.body.innerHTML = "<b>x</b>"; },
            () => { document.createElement("script").text = "window.pwned = 1"; },
            () => { button.setAttribute("onclick", "window.pwned = 1"); button.click(); },
            () => { button.href = "javascript:window.pwned = 1"; button.click(); },
          ];
          const kind = (mistake) => { try { mistake(); return ""; } catch (error) { return error.name; } };
          return mistakes.map(kind);
        }"""
    )
    assert refused[:2] == ["TypeError", "TypeError"]
    while len(complaints) < 4:
        page.wait_for_event("console")
    assert page.evaluate("window.pwned") is None
    context.close()


VISIBLE = {
    "plain": ("a\tb\nc é 漢 🦊", "a\tb\nc é 漢 🦊"),
    "an override": ("a\u202eb", "a⟨U+202E⟩b"),
    "an escape": ("\x1b[31m", "␛[31m"),
    "a bell and a c1 control": ("\x07\x9b", "␇⟨U+009B⟩"),
    "a joiner that hides in a word": ("pay\u200dpal", "pay⟨U+200D⟩pal"),
    "a joiner that makes one sign of two": ("👩\u200d💻", "👩\u200d💻"),
    "a tag": ("a\U000e0041", "a⟨U+E0041⟩"),
}


def test_signs_are_written_out_or_left(page, served):
    """What people write stays, what only machines see is shown."""
    opened(page, served.url)
    script = "(texts) => import('./text.js').then((text) => texts.map(text.visible))"
    given, expected = zip(*VISIBLE.values(), strict=True)
    assert page.evaluate(script, list(given)) == list(expected)

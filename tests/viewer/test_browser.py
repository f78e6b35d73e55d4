"""The viewer in a real browser, as a person uses it."""

import re
import subprocess

import reenact
from tests.cli.commands import ENVIRONMENT, PYTHON
from tests.viewer import recordings
from tests.viewer.conftest import Served
from tests.viewer.looking import expect, opened, rows

# The runs


def test_the_runs_are_listed(page, served):
    """A folder shows every run in it, and no receipt as a run."""
    opened(page, served.url)
    expect(rows(page)).to_have_count(4)
    expect(page.get_by_role("status").first).to_have_text("4 runs")


def test_the_runs_are_searched_and_filtered(page, served):
    """Words and fields narrow the list, and the address keeps them."""
    opened(page, served.url)
    page.get_by_label("Search runs").fill("host")
    expect(rows(page)).to_have_count(1)
    assert "q=host" in page.url
    page.get_by_label("Search runs").fill("")
    page.get_by_label("Filter by model").select_option("scripted-support")
    expect(rows(page)).to_have_count(2)
    page.reload()
    expect(rows(page)).to_have_count(2)


def test_the_runs_are_ordered(page, served):
    """A second click on a column turns it round."""
    opened(page, served.url)
    page.get_by_role("button", name="Sort by Run").click()
    expect(rows(page).first).to_contain_text("hostile")
    page.get_by_role("button", name="Run, sorted ascending").click()
    expect(rows(page).first).to_contain_text("support-changed")


def test_two_runs_are_compared(page, served):
    """Chosen in the list; every step beside its counterpart, the first difference opened, the next by key."""
    opened(page, served.url, "?q=support&sort=name")
    for row in (0, 1):
        rows(page).nth(row).get_by_role("checkbox").check()
    page.get_by_role("link", name="Compare the two").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("support and support-changed")
    expect(rows(page)).to_have_count(5)
    chosen = page.get_by_role("complementary")
    expect(chosen).to_contain_text("$.asked.arguments.order_id")
    expect(chosen.get_by_label("left").first).to_have_text("A-1042")
    expect(chosen.get_by_label("right").first).to_have_text("a-1042")
    page.keyboard.press("n")
    expect(page.locator("[aria-selected=true]")).to_contain_text("scripted-support")
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()


def test_a_comparison_opens_a_first_difference_in_the_first_step(page, tmp_path):
    """With the words that differ marked in their surroundings, in the colours of both sides."""
    ask = reenact.tool(lambda prompt: "ok", name="ask")
    around = "You are a careful assistant. " * 20
    for name, word in (("left", "lazy"), ("right", "sleepy")):
        with reenact.capture(tmp_path / name):
            ask(f"{around}The fox jumps over the {word} dog. {around}")
    served = Served(tmp_path)
    try:
        opened(page, served.url, "diff/left/right")
        chosen = page.get_by_role("complementary")
        expect(chosen.locator("del")).to_have_text("lazy")
        expect(chosen.locator("ins")).to_have_text("sleepy")
        for word, side in (("del", "left"), ("ins", "right")):
            colour = chosen.locator(word).evaluate("one => getComputedStyle(one).color")
            expect(chosen.get_by_label(side)).to_have_css("border-top-color", colour)
    finally:
        served.end()


# One run


def test_a_step_is_opened_and_expanded(page, served):
    """A click on a run, on a step, on what was recorded."""
    opened(page, served.url)
    page.get_by_role("link", name="support", exact=True).click()
    expect(rows(page)).to_have_count(5)
    rows(page).nth(1).click()
    chosen = page.get_by_role("complementary")
    expect(chosen.get_by_role("heading", name="find_order")).to_be_visible()
    expect(chosen).to_contain_text("The Art of Repetition")
    page.get_by_text("Event 4 tool_call").click()
    expect(chosen).to_contain_text("captureId")


def test_a_link_leads_to_an_event(page, served):
    """An outcome is shown with its call, and the call is chosen in the list."""
    opened(page, served.url, "run/support/event/9")
    expect(page.get_by_role("complementary")).to_contain_text("Rotterdam")
    expect(page.locator("[aria-selected=true]")).to_contain_text("track_parcel")


def test_a_link_to_an_event_that_is_no_step_shows_the_event(page, served):
    """The start of the run has no row, but can be looked at."""
    opened(page, served.url, "run/support/event/1")
    expect(page.get_by_role("complementary")).to_contain_text("run_start")


def test_the_steps_are_filtered(page, served):
    """By outcome, by kind, by words of their content; the link keeps the filter."""
    opened(page, served.url, "run/research")
    page.get_by_label("Filter by outcome").select_option("error")
    expect(rows(page)).to_have_count(2)
    page.get_by_label("Filter by outcome").select_option("")
    page.get_by_label("Filter by kind").select_option("state")
    expect(rows(page)).to_have_count(3)
    opened(page, served.url, "run/research?q=tool%3Aresearch coffee")
    expect(rows(page)).to_have_count(1)


def test_parallel_calls_lie_side_by_side(page, served):
    """Calls that overlap have bars that overlap and tracks of their own; calls inside a call are indented."""
    opened(page, served.url, "run/research")
    fetches = rows(page).filter(has_text="fetch")
    expect(fetches).to_have_count(10)
    boxes = [fetches.nth(number).locator(".span").bounding_box() for number in range(5)]
    assert max(box["x"] for box in boxes) < min(box["x"] + box["width"] for box in boxes)
    tracks = [fetches.nth(number).locator(".track.own").bounding_box()["x"] for number in range(4)]
    assert len(set(tracks)) == 4
    assert fetches.first.locator(".indent").count() == 1


def test_the_conversation_reads_like_one(page, served):
    """Everybody's words once, in order, with tool calls and results."""
    opened(page, served.url, "run/support/conversation")
    roles = page.locator(".turn .role").all_inner_texts()
    assert roles == ["system", "user", "assistant", "tool", "assistant", "tool", "assistant"]
    expect(page.locator(".turn").nth(1)).to_contain_text("My order A-1042 has not shipped")
    expect(page.locator(".turn").last).to_contain_text("arrives on Thursday")


def test_a_run_without_a_conversation_ends_with_what_it_came_to(page, served):
    """Tool calls and results, and the final output."""
    opened(page, served.url, "run/research/conversation")
    expect(page.locator(".turn").first).to_contain_text("calls research")
    expect(page.locator(".turn").last).to_contain_text("final output")
    expect(page.locator(".turn").last).to_contain_text("coffee")


def test_state_and_memory_are_listed(page, served):
    """Every read and change, with what was kept."""
    opened(page, served.url, "run/research/state")
    expect(page.locator(".change.is-ok")).to_have_count(3)
    expect(page.locator(".change").first).to_contain_text("The reader prefers short answers.")


def test_a_divergence_is_seen_side_by_side(page, served):
    """Expected and observed beside each other, the differing path marked in both."""
    opened(page, served.url, "run/support")
    page.get_by_role("link", name="Divergences 1").click()
    expect(page.get_by_role("region", name="Expected")).to_contain_text("A-1042")
    expect(page.get_by_role("region", name="Observed")).to_contain_text("a-1042")
    assert page.locator(".differs").all_inner_texts() == ["order_id: A-1042", "order_id: a-1042"]
    page.get_by_role("link", name="event 4").first.click()
    expect(page.get_by_role("complementary")).to_contain_text("find_order")
    expect(page.locator(".row:has(.diverged)")).to_contain_text("find_order")


# Verification


def test_a_good_run_is_verified(page, served):
    """The badge says so when asked."""
    opened(page, served.url, "run/support")
    page.get_by_role("button", name="Verify").click()
    expect(page.get_by_role("button", name="Verified")).to_be_visible()


def test_a_changed_run_is_found_out(page, runs, tmp_path):
    """One changed byte, and the findings name the place."""
    recordings.support_run(tmp_path / "changed")
    events = tmp_path / "changed" / "events.jsonl"
    events.write_bytes(events.read_bytes().replace(b"Rotterdam", b"Amsterdam"))
    served = Served(tmp_path / "changed")
    try:
        opened(page, served.url, "run/changed")
        page.get_by_role("button", name="Verify").click()
        expect(page.get_by_role("button", name=re.compile("problem"))).to_be_visible()
        expect(page.locator(".findings")).to_contain_text("events_changed")
    finally:
        served.end()


def test_a_page_that_outlives_its_server_says_so(browser, runs):
    """It goes on showing what it has."""
    served = Served(runs)
    context = browser.new_context()
    page = opened(context.new_page(), served.url, "run/support")
    served.end()
    page.get_by_role("button", name="Verify").click()
    expect(page.get_by_role("button", name="Cannot be verified")).to_be_visible()
    page.get_by_label("Filter by kind").select_option("tool")
    expect(page.get_by_role("alert")).to_contain_text("The viewer has stopped")
    context.close()


# Keyboard, screen reader, light and dark


def test_the_keyboard_is_enough(page, served):
    """Into a run, to a step, into it, and all the way back, without a pointer."""
    opened(page, served.url)
    press = page.keyboard.press
    press("/")
    page.keyboard.type("support changed")
    expect(rows(page)).to_have_count(1)
    press("Escape")
    press("Enter")
    expect(rows(page)).to_have_count(5)
    press("j")
    press("j")
    press("k")
    expect(page.locator("[aria-selected=true]")).to_contain_text("find_order")
    expect(page.get_by_role("complementary")).to_contain_text("find_order")
    press("Enter")
    expect(page.get_by_role("complementary")).to_be_focused()
    press("Escape")
    expect(page.get_by_role("grid")).to_be_focused()
    press("2")
    expect(page.locator(".turn").first).to_be_visible()
    press("1")
    expect(rows(page)).to_have_count(5)
    press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    press("Escape")
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()


def test_failures_are_found_by_key(page, served):
    """``n`` goes to the next failure, ``p`` back."""
    opened(page, served.url, "run/research")
    for key, row in (("n", 0), ("n", 1), ("p", 0)):
        page.keyboard.press(key)
        failed = page.locator(".row.is-error")
        expect(failed.nth(row)).to_have_attribute("aria-selected", "true")


def test_a_screen_reader_finds_its_way(page, served):
    """Landmarks, names for everything that can be pressed, and a list that says how long it is."""
    opened(page, served.url, "run/support/event/4")
    for role in ("banner", "main", "navigation", "search", "complementary"):
        expect(page.get_by_role(role)).to_have_count(1)
    expect(page.get_by_role("heading", level=1)).to_have_text("support")
    grid = page.get_by_role("grid", name="Steps of the run")
    expect(grid).to_have_attribute("aria-rowcount", "5")
    active = grid.get_attribute("aria-activedescendant")
    assert page.locator(f"#{active}").get_attribute("aria-rowindex") == "2"
    nameless = "[...document.querySelectorAll('button, a, input, select')].filter((each) => "
    nameless += "!(each.textContent.trim() || each.ariaLabel || each.placeholder)).length"
    assert page.evaluate(nameless) == 0


def test_light_and_dark_are_chosen_and_kept(page, served):
    """The system's choice first, then the reader's, also after a reload."""
    ground = "getComputedStyle(document.body).backgroundColor"
    opened(page, served.url)
    light = page.evaluate(ground)
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(ground)
    assert light != dark
    page.keyboard.press("t")
    assert page.evaluate(ground) == light
    page.reload()
    page.wait_for_selector("main:not([aria-busy]) > *")
    assert page.evaluate(ground) == light


# Large and growing runs

AGENT = """
import sys, reenact
echo = reenact.tool(lambda word: word, name="echo")
with reenact.capture(sys.argv[1]):
    for line in sys.stdin:
        echo(line.strip())
        print("done", flush=True)
"""


def test_a_run_grows_while_it_is_looked_at(page, tmp_path):
    """Steps that are recorded meanwhile come by themselves, and in the end the run is said to have ended."""
    agent = subprocess.Popen(
        [PYTHON, "-c", AGENT, tmp_path / "run"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )

    def say(word):
        agent.stdin.write(f"{word}\n")
        agent.stdin.flush()
        assert agent.stdout.readline() == "done\n"

    say("first")
    served = Served(tmp_path)
    try:
        opened(page, served.url, "run/run")
        expect(rows(page)).to_have_count(1)
        expect(page.locator(".status-mark")).to_have_text("open")
        say("second")
        expect(rows(page)).to_have_count(2)
        agent.communicate()
        expect(page.locator(".status-mark")).to_have_text("ok")
    finally:
        agent.kill()
        agent.communicate()
        served.end()


def test_a_hundred_thousand_events_scroll(page, tmp_path):
    """Only what is in sight is in the document, anywhere in the list; the last row is reached."""
    recordings.long_run(tmp_path / "long", 50_000)
    served = Served(tmp_path / "long")
    try:
        opened(page, served.url, "run/long")
        grid = page.get_by_role("grid")
        expect(page.locator(".tally")).to_have_text("50,000 steps", timeout=60_000)
        for share in (0.2, 0.5, 0.9):
            grid.evaluate("(list, share) => { list.scrollTop = share * list.scrollHeight; }", share)
            place = int(share * 50_000)
            expect(grid.get_by_text(f"n={place}", exact=True)).to_be_visible()
            assert rows(page).count() < 120
        grid.focus()
        page.keyboard.press("End")
        expect(page.locator("[aria-selected=true]")).to_contain_text("n=49999")
        expect(page.get_by_role("complementary")).to_contain_text("2499900001")
    finally:
        served.end()

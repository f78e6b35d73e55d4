"""Words for looking at a page."""

try:
    from playwright.sync_api import expect
except ImportError:  # the browser fixture skips whoever would use it
    expect = None
else:
    expect.set_options(timeout=30_000)


def opened(page, address, place=""):
    """The page, at a place of the viewer at *address*, once it shows something."""
    page.goto(f"{address}#/{place}")
    page.wait_for_selector("main:not([aria-busy]) > *")
    return page


def rows(page):
    """What the list on the page shows."""
    return page.get_by_role("grid").get_by_role("row")

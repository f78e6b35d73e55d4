"""Runs to look at, a server that shows them, and a real browser that looks."""

import re
import shutil
import signal
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from tests.cli.commands import ENVIRONMENT, command
from tests.viewer import recordings

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
NO_CHROMIUM = "there is no Chromium; make setup-browser installs it"
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """``support`` with the receipt of a diverged replay, ``support-changed``, ``research``, ``hostile``.

    They are made once per worker, by the agents they are named after.
    """
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        # Pictures are made of them: how the tests were started is nobody's business.
        patch.setattr(sys, "orig_argv", ["python", "agent.py"])
        recordings.support_run(folder / "support", folder / "support.receipt.json")
        recordings.changed_run(folder / "support-changed")
        recordings.parallel_run(folder / "research")
        recordings.hostile_run(folder / "hostile")
    return folder


class Served:
    """``reenact view`` in a process of its own."""

    def __init__(self, *paths):
        self._process = subprocess.Popen(
            command("view", "--no-open", "--port", "0", *paths),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT,
        )
        self.said = self._process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", self.said)
        assert found, self._process.communicate(timeout=10)
        self.url, self.port = found[0], int(found[1])

    def end(self):
        """Ctrl-C; the exit status and what was said on stderr."""
        self._process.send_signal(signal.SIGINT)
        _, complaint = self._process.communicate(timeout=30)
        return self._process.returncode, complaint


@pytest.fixture(scope="module")
def served(runs):
    server = Served(runs)
    yield server
    assert server.end() == (0, "")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """All tests that want a browser are skipped at one place, and so told in one line."""
    report = yield
    if report.skipped and isinstance(report.longrepr, tuple) and NO_CHROMIUM in report.longrepr[2]:
        report.longrepr = (__file__, browser.__wrapped__.__code__.co_firstlineno, report.longrepr[2])
    return report


@pytest.fixture(scope="module")
def browser(runs):
    """One browser per module: Playwright keeps a loop in this thread, which other tests must not meet.

    The runs are recorded before, because recording them needs a loop too.
    """
    if CHROMIUM is None:
        pytest.skip(NO_CHROMIUM)
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


class Watch:
    """What a page does besides showing something."""

    def __init__(self, page):
        self.complaints = []
        self.hosts = set()
        page.on(
            "console", lambda said: said.type in ("error", "warning") and self.complaints.append(said.text)
        )
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: (self.complaints.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: self.hosts.add(urlsplit(request.url).netloc))


@pytest.fixture
def page(browser):
    """A page; afterwards it must not have complained, nor have asked anybody but its own host."""
    context = browser.new_context(viewport={"width": 1360, "height": 820}, color_scheme="light")
    context.set_default_timeout(20_000)
    page = context.new_page()
    watch = Watch(page)
    yield page
    assert watch.complaints == []
    assert len(watch.hosts) <= 1
    assert all(re.fullmatch(r"(127\.0\.0\.1:\d+)?", host) for host in watch.hosts)
    assert page.evaluate("window.pwned") is None
    context.close()

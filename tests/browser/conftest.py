"""A server and a browser for the whole session, and pages that tell when they are idle."""

import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Error, Page, Request, sync_playwright

from studio.jobs.results import View, open_view
from studio.shell.pages import PAGES
from studio.state.setup import DEFAULT
from tests.browser import browsers
from tests.browser.waiting import expect
from tests.waiting import PIECE_S, Progress, wait_until

ROOT = Path(__file__).parents[2]
OWN = ("http://127.0.0.1:", "data:", "blob:", "file:")
"""Beginnings of addresses that need no network."""
STEP_MS = 600_000
"""Milliseconds that a click or a download may take: other work on the machine makes single steps slow."""

QUIET_S = 0.3
"""Seconds in which nothing happens on a page that is idle: Streamlit's sliders wait for 0.2 before they tell it."""

# Notes when the page last asked its server for something, and when it last heard from it.
LISTEN = """(() => {
    window.asked = window.heard = 0;
    const send = WebSocket.prototype.send;
    WebSocket.prototype.send = function (...given) {
        this.onheard ??= this.addEventListener('message', () => window.heard = performance.now()) ?? true;
        window.asked = performance.now();
        return send.apply(this, given);
    };
})()"""

# The page itself waits until it has been idle for a while: asking it again and again takes four processes' time. What
# it asked for is on its way until it hears something, or, as not all is answered, for two seconds.
IDLE = """([quiet, limit]) => new Promise(done => {
    const begin = performance.now();
    let since = null;
    const look = () => {
        const now = performance.now();
        const state = {
            running: document.querySelector('[data-testid="stApp"]')?.getAttribute('data-test-script-state'),
            skeletons: document.querySelectorAll('[data-testid="stSkeleton"]').length,
            headings: document.querySelectorAll('h1').length,
            asking: window.asked > window.heard && now - window.asked < 2000,
        };
        const idle = state.running === 'notRunning' && state.skeletons === 0 && state.headings === 1 && !state.asking;
        since = idle ? since ?? now : null;
        if (idle && now - Math.max(since, window.heard) >= quiet) done(null);
        else if (now - begin > limit) done(state);
        else setTimeout(look, 50);
    };
    look();
})"""

DRAWN = """scheme => {
    const background = getComputedStyle(document.querySelector('[data-testid="stApp"]')).backgroundColor;
    const bright = background.match(/\\d+/g).slice(0, 3).every(part => Number(part) > 127);
    return bright === (scheme === 'light');
}"""


LOGS: dict[str, Path] = {}
"""What each server has logged, by its address."""


@contextmanager
def serve(folder: Path, *more: str) -> Iterator[str]:
    """Start a server of this project with more options, its log in a folder, and give its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = folder / "log.txt"
    options = ("--server.headless=true", f"--server.port={port}", "--server.fileWatcherType=none")
    with log.open("w") as output:
        server = subprocess.Popen(
            [sys.executable, "-m", "streamlit", "run", "app.py", *options, *more],
            cwd=ROOT,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            url = f"http://127.0.0.1:{port}"
            LOGS[url] = log
            if not wait_until(lambda: server.poll() is not None or _answers(url)) or server.poll() is not None:
                pytest.fail(f"the server did not start:\n{log.read_text()}")
            yield url
        finally:
            server.terminate()
            server.wait(timeout=STEP_MS / 1000)


@pytest.fixture(scope="session")
def view() -> View:
    """What the default setup shows, computed in this process."""
    return open_view(DEFAULT)


@pytest.fixture(scope="session")
def address(tmp_path_factory) -> Iterator[str]:
    """Address of the server that the tests share."""
    with serve(tmp_path_factory.mktemp("server")) as url:
        yield url


@pytest.fixture
def fresh_address(tmp_path) -> Iterator[str]:
    """Address of a server that nobody has asked for anything."""
    with serve(tmp_path) as url:
        yield url


def _answers(url: str) -> bool:
    # Without proxies: urllib's own opener keeps those of its first use, which may have been another test's.
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(f"{url}/_stcore/health", timeout=10) as reply:
            return reply.status == 200
    except OSError:
        return False


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The browser that `make test` found or installed."""
    with sync_playwright() as playwright:
        try:
            started = browsers.start(playwright)
        except Error as error:
            pytest.fail(f"no browser could be started, `make test` gets one: {error}")
        for name in ("new_page", "new_context"):
            setattr(started, name, partial(_patient, getattr(started, name)))
        yield started
        started.close()


def _patient(make: Callable[..., Any], **options: Any) -> Any:
    """Make a page, or a browser's session, whose single steps may take long, and which notes what it asks for."""
    made = make(**options)
    made.set_default_timeout(STEP_MS)
    made.add_init_script(LISTEN)
    return made


class Visitor(NamedTuple):
    """A browser's page, the address it looks at, and what went wrong in it."""

    page: Page
    address: str
    errors: list[str]

    def open(self, path: str = "") -> None:
        """Open an address of the studio, where the overview has no name, and wait until it is idle."""
        self.page.goto(f"{self.address}/{path.removeprefix('overview')}")
        self.page.wait_for_selector('[data-testid="stApp"]')
        self.settle()

    def settle(self) -> None:
        """Wait until the page's script has stopped running for a while."""
        progress = Progress()
        while (busy := self.page.evaluate(IDLE, [1000 * QUIET_S, 1000 * PIECE_S])) is not None:
            if progress.ended():
                pytest.fail(f"{self.page.url} is not idle and computes nothing: {busy}; it shows {self.text()!r}")

    def show(self, scheme: str) -> None:
        """Change the system's preference to a "light" or "dark" theme, and wait until the page follows it."""
        drawn = self.page.evaluate(DRAWN, scheme)
        self.page.emulate_media(color_scheme=scheme)
        if drawn:
            return
        self.page.wait_for_function(DRAWN, arg=scheme)
        # The page looks for another ground a few times a second.
        self.page.wait_for_timeout(500)
        self.settle()

    def save(self, form: str, row: int = 0) -> tuple[str, bytes]:
        """Choose from the menu below a chart; return the file's name and content."""
        self.export(row)
        button = self.page.get_by_test_id("stPopoverBody").get_by_role("button").filter(has_text=form)
        with self.page.expect_download() as download:
            button.focus()
            self.page.keyboard.press("Enter")
        return download.value.suggested_filename, download.value.path().read_bytes()

    def export(self, row: int = 0) -> None:
        """Open the menu that saves a chart, unless it is open."""
        self.page.keyboard.press("Escape")
        menu = self.page.locator('[class*="st-key-save-"]').nth(row).get_by_role("button", name="Export")
        if menu.get_attribute("aria-expanded") != "true":
            menu.click()
        expect(self.page.get_by_test_id("stPopoverBody").get_by_role("group", name="Save the chart")).to_be_visible()

    def text(self) -> str:
        """Return all text of the main area."""
        return self.page.locator('[data-testid="stMain"]').inner_text()

    def faults(self) -> list[str]:
        """Return what went wrong but for this: below a page's address, Streamlit asks in vain for its own health."""
        return [text for text in self.errors if "404" not in text]

    def follow(self, name: str, *, whole: bool = True) -> None:
        """Open a page through the navigation; without waiting for more than its heading if not the whole is needed."""
        self.page.get_by_test_id("stSidebarNavLink").get_by_text(PAGES[name].title, exact=True).click()
        expect(self.page.get_by_role("heading", level=1)).to_have_text(PAGES[name].question)
        if whole:
            self.settle()

    def download(self, label: str) -> bytes:
        """Press a button and return the content of the file that it gives."""
        with self.page.expect_download() as download:
            self.page.get_by_role("button", name=label).click()
        return download.value.path().read_bytes()

    def setup(self) -> str:
        """Return the setup line, once it is written."""
        line = self.page.locator('[data-testid="stMain"] [data-testid="stCaptionContainer"]').first
        expect(line).not_to_be_empty()
        return line.inner_text()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Add to the report of a failed test what its pages show, and what their server has logged last."""
    report = yield
    if report.when == "call" and report.failed:
        for name, visitor in getattr(item, "funcargs", {}).items():
            if isinstance(visitor, Visitor):
                report.sections.append((f"page of {name}: {visitor.page.url}", visitor.text()))
                report.sections.append((f"log of {visitor.address}", LOGS[visitor.address].read_text()[-5000:]))
    return report


@pytest.fixture(scope="session")
def visit(browser, address) -> Callable[[], AbstractContextManager[Visitor]]:
    """Start a visit that knows nothing of those before it.

    A browser's page that was used before has Streamlit's scripts compiled, which takes longer than most visits: it
    is used again, its storage emptied. Without animations: without a graphics card each of their pictures takes time.
    """
    waiting: list[Page] = []

    @contextmanager
    def start() -> Iterator[Visitor]:
        page = waiting.pop() if waiting else browser.new_page()
        page.set_viewport_size({"width": 1440, "height": 1200})
        page.emulate_media(color_scheme="light", reduced_motion="reduce")
        errors: list[str] = []

        def failed(error: Error) -> None:
            errors.append(str(error))

        def said(message: ConsoleMessage) -> None:
            if message.type == "error":
                errors.append(message.text)

        def asked(request: Request) -> None:
            if not request.url.startswith(OWN):
                errors.append(f"the network was asked for {request.url}")

        page.on("pageerror", failed)
        page.on("console", said)
        page.on("request", asked)
        yield Visitor(page, address, errors)
        page.remove_listener("pageerror", failed)
        page.remove_listener("console", said)
        page.remove_listener("request", asked)
        # An address of the server that runs no page: work that nobody waits for any more stops.
        page.goto(f"{address}/_stcore/health")
        page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
        waiting.append(page)

    return start


@pytest.fixture
def visitor(visit) -> Iterator[Visitor]:
    """A visit of one test."""
    with visit() as started:
        yield started


@pytest.fixture
def stranger(visit) -> Iterator[Visitor]:
    """Somebody else's visit in the same test, in a browser of their own: what is copied is opened there."""
    with visit() as started:
        yield started

"""Ten tasks as a new user does them, with clicks and seconds: `python -m benchmarks.tasks` writes docs/TASKS.md.

Each begins on the start page of a browser that knows nothing of the studio; the server has kept nothing before the
first. A task ends as soon as its answer is on the screen and is the right one. With names of tasks it only prints.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Browser, Error, Locator, Page, sync_playwright

from tests.browser import browsers
from tests.browser.conftest import LISTEN, Visitor, serve
from tests.browser.waiting import expect
from tests.library.small_files import digits_onnx

DOCUMENT = Path(__file__).parents[1] / "docs" / "TASKS.md"
WINDOW = {"width": 1440, "height": 900}
PATIENCE_MS = 90_000
COMING_S = 1.2  # in which what was asked for may come into sight by itself
SEEN = """one => {
    const box = one.getBoundingClientRect();
    return box.top >= 0 && box.top + Math.min(box.height, 40) <= innerHeight;
}"""


@dataclass
class User:
    """Somebody with a browser of their own, whose clicks, inputs and scrolls are counted."""

    browser: Browser
    visitor: Visitor
    folder: Path
    clicks: int = 0
    given: int = 0
    hidden: list[str] = field(default_factory=list)
    """What was out of sight when it was needed."""
    begun: float = field(default_factory=time.monotonic)
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self.page = self.visitor.page
        self.main = self.page.get_by_test_id("stMain")

    def look(self, what: Locator) -> None:
        """Wait until something is there, and scroll to it where it is not on the screen."""
        expect(what).to_be_visible()
        until = time.monotonic() + COMING_S
        while not what.evaluate(SEEN) and time.monotonic() < until:
            self.page.wait_for_timeout(100)
        if not what.evaluate(SEEN):
            self.hidden.append(str(what).rpartition("selector=")[2])
            what.scroll_into_view_if_needed()

    def aim(self, what: Locator) -> Locator:
        """Wait until the page is idle and something is there to be clicked."""
        expect(what).to_be_visible()
        self.visitor.settle()
        self.look(what)
        self.clicks += 1
        return what

    def click(self, what: Locator) -> None:
        """Click as soon as the page is idle."""
        self.aim(what).click()

    def button(self, name: str | re.Pattern[str], within: Locator | None = None) -> None:
        """Press a button by its name."""
        self.click((within or self.page.locator("body")).get_by_role("button", name=name, exact=True).first)

    def go(self, title: str) -> None:
        """Open a page by its link."""
        self.click(self.page.get_by_role("navigation").get_by_role("link", name=title, exact=True))

    def tab(self, title: str) -> None:
        """Open a tab."""
        self.click(self.page.get_by_role("tab", name=title, exact=True))

    def choose(self, control: str, option: str | re.Pattern[str]) -> None:
        """Open a list of choices and take one: two clicks."""
        self.click(self.page.get_by_role("combobox", name=control, exact=True))
        self.click(self.page.get_by_role("option", name=option).first)

    def found(self, *what: Locator) -> None:
        """See the answer, or parts of it: here the time stops."""
        for one in what:
            self.look(one)
        self.seconds = time.monotonic() - self.begun
        self.visitor.settle()

    def restart(self) -> None:
        """Begin to count: what was done so far is no part of the task."""
        self.clicks = self.given = 0
        self.hidden.clear()
        self.begun = time.monotonic()


@dataclass(frozen=True)
class Task:
    """What is to be done, how a new user does it, where the answer stands, what was awkward, and the doing itself."""

    what: str
    how: str
    where: str
    awkward: str
    act: Callable[[User], None]


TASKS: list[Task] = []


def task(what: str, how: str, where: str, awkward: str = "") -> Callable[[Callable[[User], None]], None]:
    """Enter a function as a task."""
    return lambda act: TASKS.append(Task(what, how, where, awkward, act))


class Done(NamedTuple):
    """What a task took its user; `failure` says why the answer was not reached."""

    task: Task
    user: User
    failure: str


@task(
    "Find the test that only misclassified tests share a cell with",
    "clicks the crossed tile of the grid on the start page",
    "Coverage: the cell, its one test 519 (3 classified as 5)",
    "Only the legend says what a cross is",
)
def lonely(user: User) -> None:
    cross = user.page.get_by_test_id("stEChartsChart").locator("svg text", has_text=re.compile("^\u00d7$")).first
    user.aim(cross).click(force=True)  # below the picture of its tile
    test = user.main.get_by_role("button", name="519: 3 → 5 \u00d7")
    expect(user.page.get_by_role("heading", name="Cell 1-0-0-0-3-0", exact=True)).to_be_visible()
    expect(user.main.get_by_text("1 test, 1 misclassified.")).to_be_visible()
    user.found(test)


@task(
    "Say what neuron 18 responds to",
    "opens Neurons; its card is the first",
    "On the card: the eight tests with most relevance are sixes, and the bar of class 6 is the longest",
    "It is seen, not said in words",
)
def neuron(user: User) -> None:
    user.go("Neurons")
    card = user.main.get_by_role("group", name="Neuron 18", exact=True)
    user.found(card)
    tests = card.get_by_role("button", name=re.compile(r"^Test \d+: ")).all()
    said = [one.get_attribute("aria-label") or one.inner_text() for one in tests]
    assert [": 6, predicted 6;" in one for one in said] == [True] * 8, said


@task(
    "Find which digit is confused with which",
    "opens Class errors",
    "In the matrix: nine pairs, one test each; the sentence above says that none stands out",
    "The sentences name two pairs, the matrix alone all nine",
)
def confusion(user: User) -> None:
    user.go("Class errors")
    matrix = user.main.get_by_role("figure", name=re.compile(r"^Misclassified: 9 of 540 tests"))
    user.found(matrix)
    numbers = [text.strip() for text in matrix.locator("svg text").all_text_contents()]
    assert numbers.count("1") >= 9, numbers


@task(
    "Compare two networks",
    "pins the first, chooses the other in the sidebar",
    "Overview, below: both grids, and how IDC differs",
    "The button is low in the sidebar, the comparison below the grid",
)
def networks(user: User) -> None:
    user.button("Pin for comparison")
    user.choose("Network", re.compile("LeNet-1"))
    user.found(user.main.get_by_text(re.compile(r"^IDC is .* here and 43\.2 % on the pinned setup")))
    expect(user.main.get_by_text(re.compile("^This setup: .*LeNet-1"))).to_be_visible()
    expect(user.main.get_by_text(re.compile("^Pinned: .*LeNet-5"))).to_be_visible()


@task(
    "Make a story of three slides and open it from a file",
    "on three pages the sign with a plus below a chart; opens Stories, saves HTML, opens the file",
    "In the file, without a network: three slides, by Page Down",
    "The sign below a chart may be out of sight",
)
def story(user: User) -> None:
    _add_chart(user)
    user.go("Clusters")
    _add_chart(user)
    user.go("Class errors")
    _add_chart(user)
    user.go("Stories")
    save = user.aim(user.main.get_by_role("button", name="HTML", exact=True))
    with user.page.expect_download() as download:
        save.click()
    file = user.folder / download.value.suggested_filename
    download.value.save_as(file)
    with _fresh(user.browser) as page:
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.context.set_offline(True)
        page.goto(file.as_uri())
        for number in (1, 2, 3):
            page.wait_for_selector(f'html[data-drawn="{number}-light"]')
            assert page.locator("#place").inner_text().startswith(f"{number} of 3")
            assert page.locator("#chart svg").first.is_visible()
            page.keyboard.press("PageDown")
        user.seconds = time.monotonic() - user.begun
        assert not [url for url in asked if not url.startswith(("file:", "data:", "blob:"))], asked


def _add_chart(user: User) -> None:
    """Add the first chart of a page to the story."""
    user.click(user.main.locator("[class*='st-key-save-'] [class*='st-key-add-'] button").first)


@task(
    "Make an input for an uncovered cell and keep it",
    "Coverage, Fill the grid, Generate inputs for this cell, Keep",
    "Below the inputs: as what they are kept; then in Library",
    "Both buttons are below what fits on the screen",
)
def uncovered(user: User) -> None:
    user.go("Coverage")
    user.tab("Fill the grid")
    user.button("Generate inputs for this cell")
    user.button(re.compile(r"^Keep \d+ inputs? as a suite$"))
    user.found(user.main.get_by_text(re.compile(r"^Kept as .Made for cell [\d-]+.: \d+ inputs?\.")))
    library = user.page.context.new_page()
    library.goto(f"{user.visitor.address}/library")
    expect(library.get_by_test_id("stMain").get_by_text(re.compile("Made for cell")).first).to_be_visible()


@task(
    "Send a colleague what I see",
    "opens neuron 6 by its card, Copy link",
    "The link in another browser: the same page with the same neuron",
)
def colleague(user: User) -> None:
    user.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    user.go("Neurons")
    user.click(user.main.get_by_role("button", name=re.compile(r"^Neuron 6\b")))
    user.button("Copy link")
    expect(user.page.get_by_role("button", name="Copied")).to_be_visible()
    link = user.page.evaluate("() => navigator.clipboard.readText()")
    mine = user.visitor.text()
    with _fresh(user.browser) as page:
        page.goto(link)
        expect(page.get_by_role("combobox", name="Neuron", exact=True)).to_be_visible()
        user.seconds = time.monotonic() - user.begun
        other = Visitor(page, link, [])
        other.settle()
        assert page.get_by_role("combobox", name="Neuron", exact=True).input_value().startswith("neuron 6,")
        missing = [line for line in mine.splitlines() if line not in other.text()]
        assert not missing, missing


@task(
    "Find out whether more tests are needed",
    "Coverage, Growth and what is left",
    "First sentence: the chance of a new cell, and how many cells as many more tests would reach",
    "The tab is not named after the question",
)
def enough(user: User) -> None:
    user.go("Coverage")
    user.tab("Growth and what is left")
    said = r"Chance that the next test like these .* 540 more would reach about \d+ new cells \(\d+ to \d+\)"
    user.found(user.main.get_by_text(re.compile(said)).first)


@task(
    "Bring my own ONNX network",
    "Library, Upload, chooses the file and the data, checks, opens it",
    "Overview: the grid of the network",
    "Six clicks: no data are proposed where several fit, and the check is a step of its own",
)
def own(user: User) -> None:
    file = user.folder / "mine.onnx"
    file.write_bytes(digits_onnx())
    user.go("Library")
    upload = user.main.get_by_test_id("stFileUploader").get_by_role("button", name="Upload", exact=True)
    with user.page.expect_file_chooser() as chooser:
        user.click(upload)
    chooser.value.set_files(file)
    user.given += 1
    user.choose("Data that it takes", re.compile("Digits|digits"))
    user.button("Use these and check")
    user.button("Open in the studio")
    user.found(user.main.get_by_role("img", name=re.compile(r"^Grid of combinations\. Covered: \d+ of \d+ cells")))
    assert "mine" in user.visitor.setup(), user.visitor.setup()


@task(
    "Undo a filter I did not want",
    "Clear filter, below the filter in the sidebar",
    "The line of the setup names all tests again",
)
def undo(user: User) -> None:
    before = user.visitor.setup()
    user.button("Filter tests")
    user.choose("True class", re.compile("^3$"))
    user.visitor.settle()
    user.page.keyboard.press("Escape")
    user.visitor.settle()
    assert "tests of class 3" in user.visitor.setup(), user.visitor.setup()
    user.restart()
    user.button("Clear filter")
    user.found(user.main.get_by_text(before, exact=True))


@contextmanager
def _fresh(browser: Browser) -> Iterator[Page]:
    """Open a browser that knows nothing."""
    context = browser.new_context(viewport=WINDOW, color_scheme="light")
    context.set_default_timeout(PATIENCE_MS)
    context.add_init_script(LISTEN)
    yield context.new_page()
    context.close()


def attempt(task: Task, browser: Browser, address: str, folder: Path) -> Done:
    """Do one task as somebody who is new."""
    with _fresh(browser) as page:
        user = User(browser, Visitor(page, address, []), folder)
        try:
            user.visitor.open()
            user.restart()
            task.act(user)
            failure = "an exception is shown" if page.get_by_test_id("stException").count() else ""
        except (AssertionError, Error) as error:
            failure = str(error).splitlines()[0]
            page.screenshot(path=folder / f"{task.act.__name__}.png")
            (folder / f"{task.act.__name__}.txt").write_text(f"{error}\n\n{page.locator('body').aria_snapshot()}")
    return Done(task, user, failure)


def document(done: list[Done]) -> str:
    """Write the table."""
    clicks, seconds = sum(one.user.clicks for one in done), sum(one.user.seconds for one in done)
    return f"""# Ten tasks of a new user

What somebody does who meets the studio for the first time. Each task begins on the start page, in a browser that knows
nothing of the studio, {WINDOW["width"]} x {WINDOW["height"]}, with the setup that opens first (LeNet-5 on digits). It
ends as soon as its answer is on the screen.

Measured on {datetime.now(UTC):%Y-%m-%d} on {os.cpu_count()} cores: {clicks} clicks and {seconds:.0f} s in all, those
of the studio and the browser from the first click on; reading and thinking come on top. The server starts with an empty
home, so the first task that needs a result waits until it is computed. A choice from a list is two clicks. Given:
fields that are filled in, and files that are chosen. Scrolled: how often what is needed next was out of sight.

| task | what a new user does | clicks | given | scrolled | seconds | where the answer stands | awkward |
|---|---|--:|--:|--:|--:|---|---|
{"".join(map(_row, done))}
`python -m benchmarks.tasks` does them again, checks every answer, and writes this page.
"""


def _row(done: Done) -> str:
    task, user = done.task, done.user
    took = f"not reached: {done.failure}" if done.failure else f"{user.seconds:.1f}"
    counted = f"{user.clicks} | {user.given or ''} | {len(user.hidden) or ''}"
    return f"| {task.what} | {task.how} | {counted} | {took} | {task.where} | {task.awkward} |\n"


def main(names: list[str]) -> int:
    folder = Path(tempfile.mkdtemp(prefix="tasks-"))
    os.environ["IDC_HOME"] = str(folder / "home")
    done = []
    with serve(folder) as address, sync_playwright() as playwright:
        browser = browsers.start(playwright)
        for task in (one for one in TASKS if not names or one.act.__name__ in names):
            done.append(attempt(task, browser, address, folder))
            user = done[-1].user
            said = done[-1].failure or f"{user.clicks} clicks, {user.seconds:.1f} s; out of sight: {user.hidden}"
            print(f"{task.act.__name__}: {said}", flush=True)
        browser.close()
    if failed := any(one.failure for one in done):
        print(f"Pictures and pages of what failed, and the server's log, are in {folder}.")
    if not names:
        DOCUMENT.write_text(document(done), encoding="utf-8")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

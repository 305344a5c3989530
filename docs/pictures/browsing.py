"""Take the pictures of the pages, and the recording at the top of the README, in a browser.

``python -m docs.pictures.browsing pages`` takes all pictures of `PAGES`, with names behind it only those;
``recording`` writes ``docs/pictures/recording.gif``. ``python -m docs.pictures.marks`` then puts the Overview on the
social card.
"""

from __future__ import annotations

import io
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Page, sync_playwright

from tests.browser import browsers

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
PAGES = {
    "overview": "",
    "learn": "learn",
    "relevance": "relevance",
    "neurons": "neurons",
    "clusters": "clusters",
    "coverage": "coverage?cell=1-0-0-0-3-0",
    "layers": "layers",
    "testsets": "testsets",
    "adversarial": "adversarial",
    "differential": "differential",
    "robustness": "robustness",
    "criteria": "criteria",
    "classes": "classes?tab=pairs",
    "hypotheses": "hypotheses?tab=unit",
}
"""Pictures of the documents and the address of each; that of Robustness needs a finished run."""
WIDTH = 1440
RECORDED = (1280, 720)
SHOWN = (960, 540)
COLOURS, FREQUENT = 256, 64
"""Colours of the recording, and how many of them are the most frequent ones as they are."""
MOST_MIB = 3.0

IDLE = """() => document.querySelector('[data-testid="stApp"]')?.getAttribute('data-test-script-state') === 'notRunning'
    && !document.querySelector('[data-testid="stSkeleton"], [data-testid="stProgress"]')
    && document.querySelectorAll('h1').length === 1"""
HIDE = """() => {
    const style = document.createElement('style');
    style.textContent = '[data-testid="stHeader"], .modebar { visibility: hidden }';
    document.head.append(style);
}"""
SAY = """text => {
    const bar = document.querySelector('#said') ?? document.body.appendChild(document.createElement('div'));
    bar.id = 'said';
    bar.textContent = text;
    bar.style = 'position:fixed;left:0;right:0;bottom:0;z-index:1000000;padding:14px 28px;font:600 25px sans-serif;'
        + 'color:#ffffff;background:#0b4f54';
}"""


@contextmanager
def serving() -> Iterator[str]:
    """Start the studio and give its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--server.headless=true", f"--server.port={port}", "--server.fileWatcherType=none"]
    server = subprocess.Popen([sys.executable, "-m", "streamlit", "run", "app.py", *options], cwd=ROOT)
    url = f"http://127.0.0.1:{port}"
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        while server.poll() is None:
            try:
                direct.open(f"{url}/_stcore/health", timeout=5).read()
                break
            except OSError:
                time.sleep(0.2)
        yield url
    finally:
        server.terminate()
        server.wait()


def settle(page: Page) -> None:
    """Wait until the page has been idle for a while."""
    page.wait_for_timeout(300)
    quiet = 0
    while quiet < 8:
        quiet = quiet + 1 if page.evaluate(IDLE) else 0
        page.wait_for_timeout(100)


def take(names: Sequence[str]) -> None:
    """Take the pictures of pages, of their whole height."""
    with serving() as url, sync_playwright() as playwright:
        browser = browsers.start(playwright)
        for name in names or PAGES:
            page = browser.new_page(viewport={"width": WIDTH, "height": 900}, reduced_motion="reduce")
            page.goto(f"{url}/{PAGES[name]}")
            page.wait_for_selector("h1")
            settle(page)
            page.evaluate(HIDE)
            tall = page.evaluate("""() => document.querySelector('[data-testid="stMain"]').scrollHeight""")
            page.set_viewport_size({"width": WIDTH, "height": tall})
            settle(page)
            _small(_shot(page)).save(FOLDER / f"{name}.png", optimize=True)
            page.close()
        browser.close()


def _shot(page: Page) -> Image.Image:
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


def _small(picture: Image.Image) -> Image.Image:
    """Return a picture with the 256 colours that it needs most."""
    return picture.quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)


def _table(strip: Image.Image) -> Image.Image:
    """Return the colours of all pictures: the most frequent as they are, then such that none is far from its own.

    What covers little, such as a heatmap's strongest pixels, counts as much there as the ground.
    """
    pixels = np.asarray(strip).reshape(-1, 3)
    exact, times = np.unique(pixels, axis=0, return_counts=True)
    frequent = exact[np.argsort(-times)[:FREQUENT]]
    rounded = np.unique(np.minimum((exact.astype(int) + 8) // 16 * 16, 255), axis=0).astype(np.uint8)
    others = Image.fromarray(rounded[None]).quantize(COLOURS - FREQUENT, method=Image.Quantize.MAXCOVERAGE)
    table = Image.new("P", (1, 1))
    table.putpalette([*frequent.ravel().tolist(), *(others.getpalette() or [])[: 3 * (COLOURS - FREQUENT)]])
    return table


@dataclass(frozen=True)
class Scene:
    """A part of the recording: where it is, what is said, for how many seconds, and what is then done in steps."""

    address: str
    said: str
    seconds: float
    act: Callable[[Page, int], None] | None = None
    steps: int = 0


def _scroll(page: Page, _: int) -> None:
    page.get_by_test_id("stMain").evaluate("main => main.scrollBy(0, 90)")


def _turn(page: Page, _: int) -> None:
    """Turn the test a little further."""
    page.get_by_role("slider", name="Rotate").focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")


SCENES = (
    Scene("", "98.3 % of the tests are classified correctly. What do they not cover?", 3.5, _scroll, 3),
    Scene("coverage?cell=1-0-0-0-3-0", "One cell: only a misclassified test falls into it", 3.0, _scroll, 4),
    Scene("relevance?input=478", "Which part of the input decided?", 3.5),
    Scene("relevance?tab=edit&input=478", "Change it: relevance and prediction follow", 1.5, _turn, 12),
    Scene("neurons?tab=neuron", "Which neurons decide, and in which inputs?", 3.0, _scroll, 3),
    Scene("clusters", "What does each neuron tell apart?", 2.5, _scroll, 2),
    Scene("adversarial", "What do attacks reveal that the tests do not?", 3.0, _scroll, 2),
    Scene("hypotheses", "Do neurons mean something I can name?", 3.0),
)


def record() -> None:
    """Write the recording: every scene's picture for its time, then its steps."""
    frames: list[Image.Image] = []
    times: list[int] = []
    with serving() as url, sync_playwright() as playwright:
        browser = browsers.start(playwright)
        size = {"width": RECORDED[0], "height": RECORDED[1]}
        page = browser.new_page(viewport=size, reduced_motion="reduce")
        for scene in SCENES:
            page.goto(f"{url}/{scene.address}")
            page.wait_for_selector("h1")
            settle(page)
            page.evaluate(HIDE)
            page.evaluate(SAY, scene.said)
            for step in range(scene.steps + 1):
                if step and scene.act is not None:
                    scene.act(page, step)
                    page.wait_for_timeout(350)
                frames.append(_shot(page).resize(SHOWN, Image.Resampling.LANCZOS))
                times.append(int(1000 * scene.seconds) if not step else 250)
        browser.close()
    # One table of colours for all: with one per picture whatever does not move would be written again.
    strip = Image.new("RGB", (SHOWN[0], SHOWN[1] * len(frames)))
    for place, frame in enumerate(frames):
        strip.paste(frame, (0, SHOWN[1] * place))
    table = _table(strip)
    drawn = [frame.quantize(palette=table, dither=Image.Dither.NONE) for frame in frames]
    file = FOLDER / "recording.gif"
    drawn[0].save(file, save_all=True, append_images=drawn[1:], duration=times, loop=0, optimize=True)
    size_mib = file.stat().st_size / 2**20
    sys.stdout.write(f"{file.name}: {sum(times) / 1000:.1f} s, {len(frames)} pictures, {size_mib:.2f} MiB\n")
    if size_mib > MOST_MIB:
        raise SystemExit(f"The recording is larger than {MOST_MIB} MiB: take fewer steps or colours.")


if __name__ == "__main__":
    {"pages": take, "recording": lambda _: record()}[sys.argv[1]](sys.argv[2:])

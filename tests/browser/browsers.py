"""The browser that the tests drive: the system's, else Playwright's own, else Debian's. `make test` runs this file."""

import os
import shutil
import subprocess
import sys
from contextlib import suppress

from playwright.sync_api import Browser, Error, Playwright, sync_playwright

# The shell without windows takes less processor time than the whole browser.
NAMES = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "microsoft-edge-stable",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
)
OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Pages are looked at for seconds: optimising their scripts takes longer than it saves.
    "--js-flags=--max-optimized-bytecode-size=0",
]
PLAYWRIGHT = [sys.executable, "-m", "playwright"]
SHELL = ["install", "--only-shell", "chromium"]
# Playwright itself runs on a Node.js that needs libatomic.
DEBIAN = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium-headless-shell", "libatomic1"]


def start(playwright: Playwright) -> Browser:
    """Start the first browser that does: the system's, else the one that Playwright has; its Error if none does."""
    there = [path for path in map(shutil.which, NAMES) if path]
    for path in there:
        with suppress(Error):  # as of a browser that only asks for another package
            return playwright.chromium.launch(executable_path=path, args=OPTIONS)
    return playwright.chromium.launch(args=OPTIONS)


def _run(command: list[str]) -> str:
    """Run a command quietly; return its last line if it failed."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    except OSError as error:
        return str(error)
    lines = (done.stderr or done.stdout).strip().splitlines()
    return "" if done.returncode == 0 else (lines or [f"exit status {done.returncode}"])[-1]


def _failure() -> str:
    """Say why no browser starts; empty if one does."""
    if failure := _run([*PLAYWRIGHT, "--version"]):
        return failure
    with sync_playwright() as playwright:
        try:
            start(playwright).close()
        except Error as error:
            return error.message.splitlines()[0]
    return ""


def _install_debians() -> str:
    """Install Debian's browser as root, or as a user who may become root without a password; say why not."""
    if not shutil.which("apt-get"):
        return "this system has no apt-get"
    root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    quiet = [*root, "env", "DEBIAN_FRONTEND=noninteractive"]
    return _run([*root, "apt-get", "update", "-qq"]) or _run([*quiet, *DEBIAN])


def main() -> int:
    """Look for a browser, and install one where none starts; say in one line what was tried if all of it failed."""
    if not (failure := _failure()):
        return 0
    tried = [f"those that are here ({failure})"]
    for name, install in (
        ("playwright install", lambda: _run([*PLAYWRIGHT, *SHELL])),
        ("apt-get install", _install_debians),
    ):
        print(f"The browser tests need a browser, and none starts here: {name} gets one.", flush=True)
        if not (failure := install() or _failure()):
            return 0
        tried.append(f"{name} ({failure})")
    print(
        f"No browser starts for the browser tests; install Chromium or Chrome. Tried: {'; '.join(tried)}.",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())

"""Playwright's `expect`, which waits as long as there is progress instead of a time."""

from typing import Any

from playwright.sync_api import expect as expect_within

from tests.waiting import PIECE_S, Progress


class _Expectation:
    """What is expected of a page or of something on it, with the methods of Playwright's assertions."""

    def __init__(self, *asked: Any) -> None:
        self._asked = asked

    def __getattr__(self, name: str) -> Any:
        check = getattr(expect_within(*self._asked), name)

        def wait(*arguments: Any, **options: Any) -> None:
            progress = Progress()
            while True:
                try:
                    return check(*arguments, **options, timeout=1000 * PIECE_S)
                except AssertionError:
                    if progress.ended():
                        raise

        return wait


def expect(*asked: Any) -> Any:
    """Expect something of a page, or of something on it, as Playwright's function of this name."""
    return _Expectation(*asked)

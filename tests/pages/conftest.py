"""Pages run by themselves, as an address opens them before the front door has run."""

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def open_page() -> Callable[..., AppTest]:
    """Open a page by name, with an address's parameters."""

    def opened(name: str, **parameters: str | list[str]) -> AppTest:
        app = AppTest.from_file(str(ROOT / "pages" / f"{name}.py"), default_timeout=30)
        for key, value in parameters.items():
            app.query_params[key] = value
        return app.run()

    return opened

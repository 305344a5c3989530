"""Pages run by themselves, as an address opens them before the front door has run."""

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path

import numba  # noqa: F401 - before a page's folder joins the path: numba would take pages/coverage.py for the package
import pytest
from streamlit.testing.v1 import AppTest

from studio.engine.jobs import shelf

ROOT = Path(__file__).parents[2]
FILES = ROOT / "tests" / "datasets" / "dataset_files.py"


@pytest.fixture
def open_page() -> Callable[..., AppTest]:
    """Open a page by name, with an address's parameters."""

    def opened(name: str, **parameters: str | list[str]) -> AppTest:
        app = AppTest.from_file(str(ROOT / "pages" / f"{name}.py"), default_timeout=30)
        for key, value in parameters.items():
            app.query_params[key] = value
        return app.run()

    return opened


@pytest.fixture(scope="module")
def small_data(tmp_path_factory) -> Iterator[Path]:
    """A data folder with a few items of every data set, and nothing kept of other folders."""
    spec = importlib.util.spec_from_file_location("dataset_files", FILES)
    files = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(files)
    folder = tmp_path_factory.mktemp("data")
    files.write_all(folder)
    shelf.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IDC_DATA", str(folder))
        yield folder
    shelf.clear()

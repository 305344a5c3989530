"""Pages opened through the front door."""

import importlib.util
import math
import runpy
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numba  # noqa: F401 - before a page's folder joins the path: numba would take pages/coverage.py for the package
import pytest
from streamlit.components.v2 import manifest_scanner
from streamlit.runtime.scriptrunner import script_runner
from streamlit.testing.v1 import AppTest

from studio.engine.jobs import shelf
from tests.pages.reading import ROOT, open_page

FILES = ROOT / "tests" / "datasets" / "dataset_files.py"


@pytest.fixture(autouse=True, scope="session")
def front_door() -> Iterator[None]:
    """Run `app.py` at once; Streamlit's tests would open the files under ``pages`` without it at every run.

    Installed packages are looked through for components once, not again for every opened page.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(script_runner, "_mpa_v1", runpy.run_path)
        patch.setattr(manifest_scanner, "scan_component_manifests", cache(manifest_scanner.scan_component_manifests))
        yield


@pytest.fixture(autouse=True)
def nobody_waits() -> Iterator[None]:
    """Stop what a test's pages left running, as when their browsers close; it would slow down the tests after it."""
    yield
    for jobs in shelf()._jobs.values():
        for key, job in list(jobs.items()):
            job._wanted = -math.inf
            if job._future.cancel():
                del jobs[key]


@pytest.fixture(name="open_page")
def open_page_fixture() -> Callable[..., AppTest]:
    """Open a page by name, with an address's parameters."""
    return open_page


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

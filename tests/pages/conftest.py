"""Pages opened through the front door."""

import importlib.util
import runpy
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

import pytest
from streamlit.components.v2 import manifest_scanner
from streamlit.runtime.context import ContextProxy
from streamlit.runtime.scriptrunner import script_runner
from streamlit.testing.v1 import AppTest, local_script_runner

from idc_core import library
from idc_core.datasets import DATASETS
from idc_core.filling import FillSettings
from idc_core.models import MODELS
from studio.coverage import filling
from studio.jobs import workers
from studio.jobs.jobs import shelf
from tests.pages.reading import ROOT, forget_all, open_page
from tests.waiting import PIECE_S, Progress

# A page's folder joins the path, where numba would take pages/coverage.py for the package that it looks for.
sys.modules.setdefault("coverage", None)

FEW = partial(FillSettings, changed=60, starts=2, iterations=5, kept=2)
"""Filling of a grid that takes a second."""

FILES = ROOT / "tests" / "datasets" / "dataset_files.py"


@pytest.fixture(autouse=True, scope="session")
def front_door() -> Iterator[None]:
    """Run `app.py` at once; Streamlit's tests would open the files under ``pages`` without it at every run.

    Installed packages are looked through for components once, not again for every opened page. A script's end is waited
    for, as long as something is computed, where Streamlit's tests look every millisecond whether it has come.
    """
    look = local_script_runner.require_widgets_deltas

    def wait(runner: local_script_runner.LocalScriptRunner, timeout: float) -> None:
        progress = Progress()
        while runner._script_thread.is_alive():
            runner._script_thread.join(PIECE_S)
            if progress.ended():
                break
        look(runner, 0.1)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(script_runner, "_mpa_v1", runpy.run_path)
        patch.setattr(manifest_scanner, "scan_component_manifests", cache(manifest_scanner.scan_component_manifests))
        patch.setattr(local_script_runner, "require_widgets_deltas", wait)
        # Where a visitor comes from is made up there; None is this computer.
        patch.setattr(ContextProxy, "ip_address", None)
        # What a test replaces is replaced in this process alone.
        patch.setattr(workers, "number", lambda: 0)
        yield


@pytest.fixture(autouse=True)
def nobody_waits() -> Iterator[None]:
    """Stop what a test's pages left running, as when their browsers close; it would slow down the tests after it."""
    yield
    shelf().abandon()


@pytest.fixture(autouse=True)
def everything_can_be_kept(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Results that cannot be written down are logged, and would be computed again after every restart."""
    yield
    assert "is not kept" not in caplog.text


@pytest.fixture(name="open_page")
def open_page_fixture() -> Callable[..., AppTest]:
    """Open a page by name, with an address's parameters."""
    return open_page


@pytest.fixture
def home(tmp_path, monkeypatch) -> Iterator[Path]:
    """An empty folder for what is kept; the registries are as before at the end."""
    monkeypatch.setenv("IDC_HOME", str(tmp_path / "home"))
    before = dict(MODELS), dict(DATASETS)
    yield tmp_path
    monkeypatch.setenv("IDC_HOME", str(tmp_path / "none"))
    library.enter_all()
    assert (dict(MODELS), dict(DATASETS)) == before


@pytest.fixture(scope="module")
def small_data(tmp_path_factory) -> Iterator[Path]:
    """A data folder with a few items of every data set, and nothing kept of other folders."""
    spec = importlib.util.spec_from_file_location("dataset_files", FILES)
    files = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(files)
    folder = tmp_path_factory.mktemp("data")
    files.write_all(folder)
    forget_all()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IDC_DATA", str(folder))
        yield folder
    forget_all()


@pytest.fixture(scope="module")
def few(tmp_path_factory) -> Iterator[None]:
    """Fill grids with few inputs, in an empty home."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(filling, "FillSettings", FEW)
        patch.setenv("IDC_HOME", str(tmp_path_factory.mktemp("home")))
        forget_all()
        yield
    forget_all()

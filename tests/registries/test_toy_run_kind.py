"""A kind of run in one file outside the package: kept, listed, imported and shown without a line elsewhere."""

import json
import runpy
from pathlib import Path

import numpy as np
import pytest

from idc_core import store
from idc_core.cli import main
from idc_core.runs import RUN_KINDS, AttackRun, Planned, find_runs, import_runs
from tests.pages.conftest import open_page
from tests.pages.reading import text

NAME = "toy-changes"
SETTINGS = {"network": "lenet1-digits", "tests": "digits", "layer": "conv2", "address": "model=lenet1-digits"}


@pytest.fixture
def toy(tmp_path, monkeypatch):
    monkeypatch.setenv("IDC_HOME", str(tmp_path / "home"))
    runpy.run_path(str(Path(__file__).parent / "toys" / "run_kind.py"))
    found = AttackRun(np.arange(3), np.ones(3, bool), np.ones(3), np.array([0.1, 0.4, 0.2]), 2)
    Planned(NAME, ("toy",), lambda _: found, SETTINGS).kept()
    yield
    del RUN_KINDS[NAME]


def test_it_is_listed_shown_and_imported(toy, capsys, tmp_path, monkeypatch):
    assert main(["runs", "--kind", NAME, "--json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)
    assert listed["facts"]["scores"] == {"largest": 0.4, "attacked": 3}
    (run,) = find_runs(kind=NAME)
    assert run.kind == "Largest change"
    app = open_page("runs")
    assert not app.exception
    assert "largest change of" in text(app)
    folder = store.results_folder()
    monkeypatch.setenv("IDC_HOME", str(tmp_path / "elsewhere"))
    assert import_runs([folder]).taken == [run.id]
    assert find_runs(kind=NAME) == [run]

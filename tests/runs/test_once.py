"""The same settings never run twice: what one way in has computed, the others find."""

import shutil

import numpy as np
import pytest
import torch

from idc_core import store
from idc_core.cli import main
from idc_core.coverage.idc_settings import IdcSettings
from idc_core.datasets import load_dataset
from idc_core.errors import CancelledError
from idc_core.models import load_model
from idc_core.runs import PlannedAnalysis, find_runs, planned_traces
from idc_core.store.values import pack
from idc_core.tracing import batch_size, rows
from studio.jobs.jobs import Shelf
from studio.jobs.results import open_view
from studio.runs.opening import page_of
from studio.state.setup import parse

CHECK = """
[[check]]
model = "lenet1-digits"
m = 3

[[check.limit]]
at_least = 0.1

[[check.limit]]
criterion = "kmnc"
at_least = 0.1

[[check.limit]]
kind = "accuracy"
at_least = 0.1

[[check.limit]]
kind = "robust-accuracy"
attack = "fgsm"
inputs = 20
at_least = 0

[[check.limit]]
kind = "confused-pairs"
"""

ANALYSE = ["analyze", "--model", "lenet1-digits", "--m", "3"]


@pytest.fixture
def still(monkeypatch):
    """Make every pass through a network an error from now on."""

    def still():
        def refuse(*_):
            raise AssertionError("A network ran where everything is kept.")

        monkeypatch.setattr(torch.nn.Conv2d, "forward", refuse)

    return still


def test_dashboard_check_report_and_analyze_run_once_and_say_the_same(home, tmp_path, still, monkeypatch):
    # Another test of this process may have opened the same: what a running server holds is not kept again.
    fresh = Shelf()
    for module in ("jobs", "results"):
        monkeypatch.setattr(f"studio.jobs.{module}.shelf", lambda: fresh)
    (tmp_path / "idc.toml").write_text(CHECK)
    check = ["check", str(tmp_path / "idc.toml")]
    report = ["report", *ANALYSE[1:], "--out", str(tmp_path / "a.html"), "--json", str(tmp_path / "a.json")]
    view = open_view(parse({"model": "lenet1-digits", "m": "3"}))
    (run,) = find_runs()
    assert main([*check, "--write-baseline"]) == 0
    assert find_runs() == [run], "the check found the analysis of the dashboard"
    assert run.facts.scores["idc"] == view.analysis.score
    baseline = (tmp_path / "idc-baseline.json").read_bytes()
    assert main(report) == 0
    files = [(tmp_path / name).read_bytes() for name in ("a.html", "a.json")]
    still()
    assert main([*check, "--write-baseline"]) == main(check) == 0
    assert (tmp_path / "idc-baseline.json").read_bytes() == baseline
    assert main(report) == 0
    assert [(tmp_path / name).read_bytes() for name in ("a.html", "a.json")] == files
    assert main(ANALYSE) == 0


def test_what_commands_find_are_runs(home, still):
    commands = {
        "class-errors": ["confusion", "--model", "lenet1-digits"],
        "inspections": ["inspect", "lenet1-digits", "--limit", "40", "--families", "labels"],
        "searches": ["differential", "--models", "lenet1-digits", "lenet4-digits", "--seeds", "4", "--iterations", "3"],
    }
    for command in commands.values():
        assert main(command) == 0
    found = {run.facts.kind: run for run in find_runs()}
    assert set(found) == set(commands)
    assert all(run.said("network") == "lenet1-digits" and run.main for run in found.values())
    assert page_of(found["class-errors"]) == "classes"
    assert found["searches"].facts.settings["iterations"] == 3
    still()
    assert main(commands["class-errors"]) == main(commands["inspections"]) == 0
    assert len(find_runs()) == 3


def test_a_stopped_analysis_and_its_traces_go_on_where_they_were(home, monkeypatch):
    monkeypatch.setattr(rows, "_PIECE", 0)
    monkeypatch.setattr(batch_size, "MOST_INPUTS", 100)
    model, train, test = load_model("lenet1-digits"), load_dataset("digits", "train", 250), load_dataset("digits")
    ran = []
    model.register_forward_pre_hook(lambda _, given: ran.append(len(given[0])))
    plan = PlannedAnalysis(model.card, train, test, "conv2", 3, IdcSettings.of("z"), parts=True)
    sources = plan.sources(lambda: model)
    planned = (plan.planned(sources), planned_traces(sources[1], "conv2"))
    expected = [one.make(None) for one in planned]
    store.clean()  # takes nothing away that a stopped run could go on with
    assert len(list((home / "unfinished").iterdir())) > 3
    shutil.rmtree(home / "unfinished")

    def stop(done, total, label):
        return not (total == len(test) and done == 200)

    for one, before in zip(planned, expected, strict=True):
        with pytest.raises(CancelledError):
            one.kept(stop)
        ran.clear()
        found = one.kept()
        assert sum(ran) <= len(test) - 200 + 3, "the rest, one to try, and one that tells how many neurons there are"
        assert_same(found, before)
    assert not list((home / "unfinished").iterdir())


def assert_same(found, expected):
    """Compare two results bit for bit, but for the seconds that they took."""
    (one, arrays), (other, others) = (pack({**vars(each), "seconds": 0}) for each in (found, expected))
    assert one == other
    assert all(np.array_equal(array, others[name]) for name, array in arrays.items())

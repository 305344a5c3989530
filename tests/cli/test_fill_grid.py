"""`python -m idc_core fill-grid`: what it prints, writes and saves; a stopped one goes on."""

import csv

import numpy as np
import pytest

from idc_core.cli import main
from idc_core.datasets import load_dataset
from idc_core.filling import grid_filling
from idc_core.suites import open_saved, saved_suites

FEW = ("--m", "5", "--changed", "100", "--starts", "4", "--iterations", "10", "--kept", "2")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("IDC_HOME", str(tmp_path / "home"))


def run(capsys, *arguments):
    status = main(["fill-grid", *FEW, *map(str, arguments)])
    output = capsys.readouterr()
    return status, output.out, output.err


def test_text_files_and_suite_say_the_same(capsys, tmp_path):
    npz, rows, name = tmp_path / "made.npz", tmp_path / "made.csv", "Filled"
    status, out, _ = run(capsys, "--out", npz, "--csv", rows, "--save", name)
    assert status == 0
    with np.load(npz, allow_pickle=False) as file:
        made = {key: file[key] for key in file.files}
    written = list(csv.DictReader(rows.read_text().splitlines()))
    assert [row["cell"] for row in written] == ["-".join(map(str, cell)) for cell in made["cells"].tolist()]
    assert [row["valid"] == "True" for row in written] == (made["p"] > 0.05).tolist()
    assert out.startswith("Generated inputs accepted as valid: ")
    assert "of known-bad inputs" in out.splitlines()[0]
    assert "noise" in out
    assert "budget: 100 changed tests per transform, then 10 steps from 4 tests per cell" in out
    np.testing.assert_array_equal(load_dataset("digits", "test").targets[made["tests"]], made["targets"])
    (saved,) = saved_suites()
    usable = (made["p"] > 0.05) & (made["votes"] >= 0)
    assert saved in out
    np.testing.assert_array_equal(open_saved(saved).take(np.arange(usable.sum())), made["inputs"][usable])


@pytest.mark.slow
def test_what_was_stopped_goes_on(capsys, monkeypatch):
    whole = run(capsys, "--seed", "1")[1]
    advance = grid_filling._Filler.advance

    def interrupted(filler, on_progress):
        if filler.done == 3:
            raise KeyboardInterrupt
        advance(filler, on_progress)

    monkeypatch.setattr(grid_filling._Filler, "advance", interrupted)
    assert run(capsys, "--seed", "2")[0] == 130
    done = []
    monkeypatch.setattr(
        grid_filling._Filler, "advance", lambda filler, told: (done.append(filler.done), advance(filler, told))
    )
    status, out, _ = run(capsys, "--seed", "2")
    assert status == 0
    assert done[0] == 3
    assert out.splitlines()[2:4] == whole.splitlines()[2:4]


def test_nothing_is_made_where_all_is_covered(capsys):
    assert run(capsys, "--m", "4")[1] == "The tests reach all 24 cells.\n"


def test_texts_are_refused(capsys):
    status, _, error = run(capsys, "--model", "charlstm-sql", "--limit-train", 60, "--limit-test", 150)
    assert status == 2
    assert "pictures only" in error

"""`experiment rq6`: the table and the file say what the engine finds, and a second run finds it again."""

import csv

import pytest

import idc_core as idc
from idc_core.cli import main
from idc_core.experiments.rq6 import ADDITIONS, TESTS, prepare_rq6, usual

ARGUMENTS = ("experiment", "rq6", "--models", "lenet4-digits", "--limit", "60", "--limit-train", "200", "--seeds", "2")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("IDC_HOME", str(tmp_path))


@pytest.mark.slow
def test_records_are_what_the_engine_finds_and_are_found_again(capsys, tmp_path):
    file = tmp_path / "rq6.csv"
    assert main([*ARGUMENTS, "--out", str(file)]) == 0
    first = capsys.readouterr().out
    compared = [line for line in first.splitlines()[1:] if "raising" in line]
    assert compared
    for line in compared:
        low, high = (float(part) for part in line.rpartition("(")[2].partition(")")[0].split(" to "))
        assert line.endswith("*") == (low > 0 or high < 0), "starred where the interval leaves out zero"
    rows = list(csv.DictReader(file.read_text().splitlines()))
    assert [(row["test"], row["addition"]) for row in rows] == [(test, one) for test in TESTS for one in ADDITIONS]
    model = idc.load_model("lenet4-digits")
    train, test = idc.load_dataset("digits", "train", 200), idc.load_dataset("digits", "test", 60)
    settings = usual(train, "fc1", 84)
    ready = prepare_rq6(model, train, test, idc.analyze(model, train, test, "fc1", 12), settings)
    files = {key: (ready.store.path / f"{key}.npz").stat().st_mtime_ns for key in ready.store}
    assert len(files) == 6
    found = ready.run(2)
    row = next(row for row in rows if (row["test"], row["addition"]) == ("guided", "raising"))
    assert float(row["mean"]) == pytest.approx(found.values[2, :, -1, 2].mean())
    assert float(row["minus_none"]) == pytest.approx((found.values[2] - found.values[0])[:, -1, 2].mean())
    assert float(row["seed_1"]) == pytest.approx(found.values[2, 1, -1, 2])
    assert float(row["added"]) == found.added("raising")[0] == 20
    assert (row["train"], row["tests"], row["steps"], row["epochs"]) == ("200", "60", "6", "5")
    assert main([*ARGUMENTS]) == 0
    assert capsys.readouterr().out.splitlines() == first.splitlines()[:-2]
    assert files == {key: (ready.store.path / f"{key}.npz").stat().st_mtime_ns for key in ready.store}


def test_no_seed_is_refused(capsys):
    assert main([*ARGUMENTS[:-1], "0"]) == 2
    assert "seeds must be" in capsys.readouterr().err

"""`inspect` on the command line: what it prints, writes and keeps."""

import csv

import pytest

from idc_core.cli import main
from idc_core.inspection.database import database


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("IDC_HOME", str(tmp_path))
    return tmp_path


def test_it_prints_the_strongest_units_keeps_and_writes(home, capsys):
    arguments = ["inspect", "lenet5-digits", "--limit", "200", "--families", "labels", "looks"]
    arguments += ["--measures", "pearson", "iou", "--most", "5", "--keep", "mine", "--out", str(home / "all.csv")]
    assert main(arguments) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].split()[:5] == ["HYPOTHESIS", "MEASURE", "LAYER", "UNIT", "SCORE"]
    assert len([line for line in printed[1:] if " fc2 " in line]) == 5
    assert "false-discovery rate of 0.05" in "\n".join(printed)
    with (home / "all.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == database().ask("SELECT count(*) FROM scores").rows[0][0] > 1000
    assert database().ask("SELECT name FROM runs").rows == [("mine",)]
    best = max((row for row in rows if row["score"]), key=lambda row: abs(float(row["score"])))
    assert printed[1].startswith(best["hypothesis"])


def test_mistakes_are_sentences(home, capsys):
    assert main(["inspect", "lenet5-digits", "--families", "nothing", "--limit", "10"]) == 2
    assert "Unknown family of hypotheses 'nothing'" in capsys.readouterr().err
    assert main(["inspect", "lenet5-digits", "--measures", "nothing", "--limit", "10"]) == 2
    assert "There is no measure 'nothing'" in capsys.readouterr().err
    assert main(["inspect", "lenet5-digits", "--limit", "10", "--out", str(home / "no" / "where.csv")]) == 2
    assert "does not exist" in capsys.readouterr().err


def test_epochs_follow_the_strongest_units_over_training(home, capsys):
    arguments = ["inspect", "lenet1-digits", "--limit", "100", "--families", "labels", "--epochs", "--most", "3"]
    assert main([*arguments, "--out", str(home / "epochs.csv")]) == 0
    heading, *lines = capsys.readouterr().out.splitlines()
    assert heading.split()[:7] == ["HYPOTHESIS", "EPOCH", "0", "EPOCH", "1", "EPOCH", "2"]
    with (home / "epochs.csv").open(encoding="utf-8") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: -float(row["gain"]))
    assert len(rows) == 10
    for line, row in zip(lines[:3], rows, strict=False):
        assert line.startswith(row["hypothesis"])
        assert f"{abs(float(row['score at epoch 20'])):.3f}  {float(row['gain']):+.3f}" in line
        assert line.endswith(row["unit at epoch 20"])
    assert main([*arguments, "--keep", "mine"]) == 2
    assert "keeps no run" in capsys.readouterr().err


def test_verify_swaps_symbols_and_tells_whether_units_respond(home, capsys):
    arguments = ["verify", "charlstm-sql", "is a digit", "--limit", "200", "--units", "20"]
    arguments += ["--pairs", "40", "--sets", "19", "--out", str(home / "sets.csv")]
    assert main(arguments) == 0
    heading, row, _, verdict, *_ = capsys.readouterr().out.splitlines()
    assert heading.split() == ["UNITS", "SILHOUETTE", "KEPT", "TRUE", "MADE", "FALSE", "AS", "WELL", "OR", "BETTER"]
    silhouette, *counts = row.split()[20:23]
    assert counts == ["40", "40"]
    with (home / "sets.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [line["units"] for line in rows] == ["highest scores"] + ["random"] * 19
    assert f"{float(rows[0]['silhouette']):+.3f}" == silhouette
    better = sum(float(line["silhouette"]) >= float(rows[0]["silhouette"]) for line in rows)
    assert f"{100 * better / 20:.0f} % of 20 sets" in row
    assert verdict.startswith(f"is a digit: {'confirmed' if better == 1 else 'not confirmed'}.")


def test_verify_says_what_it_cannot_do(home, capsys):
    assert main(["verify", "charlstm-sql", "nothing", "--limit", "50"]) == 2
    assert "no hypothesis 'nothing'" in capsys.readouterr().err
    assert main(["verify", "charlstm-sql", "depth", "--limit", "50"]) == 2
    assert "cannot be verified by swapping symbols" in capsys.readouterr().err

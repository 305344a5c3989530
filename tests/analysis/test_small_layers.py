"""Layers with fewer neurons than the default m, and layers whose neurons never fire, wherever IDC is measured."""

import json
from pathlib import Path

import numpy as np
import pytest

import idc_core as idc
from idc_core.analysis.layer_sweep import sweep
from idc_core.cli import main
from idc_core.errors import ModelError, SettingError
from idc_core.figures.layers import sweep_grid
from idc_core.opening import setup_files

SETUP = Path(__file__).with_name("small_layers.py")
DEAD = r"Nothing can be covered in layer 'dead': each of its \d important neurons has one cluster only"


@pytest.fixture(autouse=True)
def small():
    setup_files.open_setup(SETUP)
    yield idc.load_model("small-layers"), idc.load_dataset("small-rows", "train"), idc.load_dataset("small-rows")
    setup_files._close_all()


def check_file(tmp_path, layer, more=""):
    limit = "[[check.limit]]\nat_least = 0.1\n"
    file = tmp_path / "idc.toml"
    said = f"setup = '{SETUP}'\n[[check]]\nmodel = 'small-layers'\nlayer = '{layer}'\n{more}{limit}"
    file.write_text(said, encoding="utf-8")
    return str(file)


class TestDefaultNumberOfNeurons:
    def test_analyze_and_assert_coverage(self, small):
        model, train, test = small
        found = idc.analyze(model, train, test, "three")
        assert found.m == len(found.important) == 3
        assert found.score == idc.analyze(model, train, test, "three", 3).score
        idc.testing.assert_coverage(model, test, "three", found.score, train=train)
        for ask in (idc.analyze, lambda *of: idc.testing.assert_coverage(model, test, "three", train=train, m=6)):
            with pytest.raises(SettingError, match="m must be a whole number from 1 to 3, the layer's neurons, not 6"):
                ask(model, train, test, "three", 6)

    def test_one_number_of_clusters(self, small):
        model, train, test = small
        found = idc.analyze(model, train, test, "wide", clusters=3)
        assert found.settings["clusters"] == (3,)
        assert found.total == idc.analyze(model, train, test, "wide", clusters=(3,)).total
        idc.testing.assert_coverage(model, test, "wide", 0, train=train, clusters=3)
        swept = [sweep(model, train, {"tests": test}, ["wide"], [2], clusters=one) for one in (3, (3,))]
        assert swept[0].cells == swept[1].cells

    def test_command_line(self, tmp_path, capsys):
        file = tmp_path / "found.json"
        options = ["analyze", "--setup", str(SETUP), "--model", "small-layers", "--json", str(file)]
        assert main(options) == 0
        assert json.loads(file.read_text())["settings"]["m"] == 3
        assert main([*options, "--layer", "wide"]) == 0
        assert json.loads(file.read_text())["settings"]["m"] == 6
        assert main([*options, "--m", "6"]) == 2
        assert "m must be a whole number from 1 to 3, the layer's neurons, not 6" in capsys.readouterr().err

    def test_check(self, tmp_path, capsys):
        assert main(["check", check_file(tmp_path, "three")]) == 0
        assert main(["check", check_file(tmp_path, "three"), "--engine", "local"]) == 0
        assert main(["check", check_file(tmp_path, "three", "m = 6\n")]) == 2
        assert "from 1 to 3, the layer's neurons, not 6" in capsys.readouterr().err


class TestDeadLayer:
    def test_analyze_and_assert_coverage(self, small):
        model, train, test = small
        with pytest.raises(ModelError, match=DEAD):
            idc.analyze(model, train, test, "dead")
        with pytest.raises(ModelError, match=DEAD):
            idc.testing.assert_coverage(model, test, "dead", train=train)

    def test_command_line_and_check(self, tmp_path, capsys):
        assert main(["analyze", "--setup", str(SETUP), "--model", "small-layers", "--layer", "dead"]) == 2
        assert "Nothing can be covered in layer 'dead'" in capsys.readouterr().err
        for options in ([], ["--engine", "local"]):
            assert main(["check", check_file(tmp_path, "dead"), *options]) == 2
            assert "Nothing can be covered in layer 'dead'" in capsys.readouterr().err

    def test_a_sweep_says_it_of_the_layer_and_goes_on(self, small):
        model, train, test = small
        found = sweep(model, train, {"tests": test}, ["three", "dead"], [2, 6])
        rows = {(row["layer"], row["m"]): row for row in found.table()}
        assert rows["dead", 2]["idc"] is rows["dead", 6]["idc"] is None
        assert (rows["dead", 6]["covered"], rows["dead", 6]["total"]) == (1, 1)
        assert rows["three", 2]["idc"] == idc.analyze(model, train, test, "three", 2).score
        cell = found.cell("tests", "dead", 6)
        assert not cell.coverable
        assert np.isnan(cell.score)
        bars = sweep_grid(found, "Title").data[0]
        assert ["\u2013" in text for text in bars.text] == [False, False, True, True]
        assert np.isnan(bars.marker.color[2:]).all()
        assert "Nothing can be covered" in bars.hovertext[2]

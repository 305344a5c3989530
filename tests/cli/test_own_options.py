"""Options that say how data from files become inputs."""

import json
from pathlib import Path

import numpy as np

from idc_core.cli import _make_parser, main
from idc_core.cli.own_options import _own_files, open_paths
from idc_core.datasets import DATASETS
from idc_core.datasets.preparation import Preparation
from tests.library.small_files import digits_onnx


def told(*words, expected=None):
    return _own_files(_make_parser().parse_args(["analyze", *words])).options.prepared(expected)


def test_every_field_of_a_preparation_has_its_option(tmp_path):
    found = told(
        "--size", "28x32", "--fit", "crop", "--resample", "box", "--margin", "4", "--channels", "3", "--alpha", "white",
        "--inputs", "pictures", "--targets", "kind", "--empty", "drop", "--read-as", "series",
        "--task", "regression", "--tokenizer", str(tmp_path), "--length", "64", "--test-share", "0.25",
        "--split-seed", "7",
    )  # fmt: skip
    assert found == Preparation(
        size=(28, 32), fit="crop", resample="box", margin=4, channels=3, alpha="white", inputs="pictures",
        targets="kind", empty="drop", read_as="series",
        task="regression", tokenizer=Path(tmp_path), length=64, test_share=0.25, seed=7,
    )  # fmt: skip


def test_what_is_not_given_is_as_the_network_expects():
    expected = Preparation(size=(32, 32), channels=3)
    assert told() is None
    assert told(expected=expected) is expected
    assert told("--channels", "1", expected=expected) == Preparation(size=(32, 32), channels=1)


def test_the_options_reach_the_data_of_a_path(tmp_path, capsys):
    np.savez(tmp_path / "mine.npz", x=np.zeros((8, 6, 6), np.uint8), y=np.arange(8) % 2)
    words = ["--data", str(tmp_path / "mine.npz"), "--size", "4x5", "--test-share", "0.5"]
    arguments = _make_parser().parse_args(["analyze", *words])
    open_paths(arguments)
    assert DATASETS[arguments.data].input_shape == (1, 4, 5)
    del DATASETS[arguments.data]
    assert arguments.own_files.words[1:] == ["--size=4x5", "--test-share=0.5"]
    assert main(["analyze", "--size", "4x5"]) == 2
    assert "--size is for data that are given by a path" in capsys.readouterr().err


def test_a_command_says_so_where_the_name_of_a_file_is_taken(tmp_path, capsys):
    (tmp_path / "lenet5-digits.onnx").write_bytes(digits_onnx())
    pixels = np.random.default_rng(0).integers(0, 256, (60, 28, 28), np.uint8)
    for name in ("digits", "mine"):
        np.savez(tmp_path / f"{name}.npz", x=pixels, y=np.arange(60) % 10)
    network = ["--model", str(tmp_path / "lenet5-digits.onnx"), "--data"]
    assert main(["check-network", *network, str(tmp_path / "digits.npz")]) == 0
    told = [
        "digits.npz is called digits-2 here: there is another data set digits.",
        "lenet5-digits.onnx is called lenet5-digits-2 here: there is another network lenet5-digits.",
    ]
    assert sorted(capsys.readouterr().err.splitlines()) == told
    assert main(["check-network", *network, str(tmp_path / "mine.npz")]) == 0
    assert capsys.readouterr().err.splitlines() == told[1:]


def test_commands_say_how_files_became_inputs(tmp_path, capsys):
    (tmp_path / "net.onnx").write_bytes(digits_onnx())
    pixels = np.random.default_rng(0).integers(0, 256, (60, 28, 28), np.uint8)
    np.savez(tmp_path / "mine.npz", x=pixels, y=np.arange(60) % 10)
    both = ["--model", str(tmp_path / "net.onnx"), "--data", str(tmp_path / "mine.npz")]
    assert main(["check-network", *both]) == 0
    checked = capsys.readouterr().out
    assert main(["analyze", *both, "--m", "2", "--json", str(tmp_path / "found.json")]) == 0
    said = "; ".join(json.loads((tmp_path / "found.json").read_text())["test"]["notes"])
    assert "values divided by 255" in said
    assert f"tests read as: {said}" in capsys.readouterr().out
    assert said in " ".join(checked.split())

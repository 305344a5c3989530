"""How files become inputs: checked, kept as JSON, told in words."""

import json
from pathlib import Path

import numpy as np
import pytest

from idc_core.datasets import load_dataset
from idc_core.datasets.preparation import Preparation
from idc_core.datasets.registry import open_data
from idc_core.errors import DataError, SettingError

FULL = Preparation(
    size=(28, 32), fit="crop", channels=3, inputs="pictures", targets="kind", task="classification",
    tokenizer=Path("/a/tokenizer"), length=64, test_share=0.25, seed=7,
)  # fmt: skip


def test_every_value_comes_back_from_json():
    assert Preparation.from_json(json.loads(json.dumps(FULL.to_json())), "It") == FULL
    assert Preparation().to_json() == {}
    assert Preparation.from_json({}, "It") == Preparation()


@pytest.mark.parametrize(
    "plain",
    [[], {"size": [1]}, {"size": [0, 2]}, {"size": "ab"}, {"seed": -1}, {"seed": True}, {"channels": 2}, {"fit": "x"},
     {"tokenizer": 3}, {"test_share": 1}, {"length": 0}, {"inputs": 5}, {"inputs": "x" * 2_000}, {"task": "both"}],
)  # fmt: skip
def test_wrong_json_is_a_sentence(plain):
    with pytest.raises(DataError, match=r"^The kept preparation is not of the form expected: .*[^.]\.$"):
        Preparation.from_json(plain, "The kept preparation")


def test_wrong_values_are_sentences():
    for wrong in ({"size": (1, 2, 3)}, {"channels": True}, {"test_share": float("nan")}, {"fit": "squeeze"}):
        with pytest.raises(SettingError, match="of the preparation must be"):
            Preparation(**wrong)


def test_the_same_file_is_opened_again_with_another_preparation(tmp_path):
    np.savez(tmp_path / "pair.npz", x=np.eye(8).reshape(8, 2, 2, 2)[:, :1] / 2, y=np.arange(8) % 2)
    first = open_data(tmp_path / "pair.npz")
    again = open_data(tmp_path / "pair.npz", preparation=Preparation(size=(4, 6), seed=1))
    assert again.name == first.name
    assert again.load.read.preparation == Preparation(size=(4, 6), seed=1)
    found = load_dataset(again.name, "train")
    assert found.inputs.shape[1:] == again.input_shape == (1, 4, 6)
    assert "resized to 4 x 6, each side stretched" in found.notes
    assert "20 % drawn as tests, seed 1" in found.notes

"""What is said of a person's own network whose scores do not fit the classes of its data."""

import numpy as np
import pytest
from torch import nn

import idc_core as idc
from idc_core.errors import ModelError


class Several(nn.Module):
    """Gives features beside scores."""

    def __init__(self, arrange):
        super().__init__()
        self.features, self.scores, self.arrange = nn.Linear(4, 8), nn.Linear(8, 3), arrange

    def forward(self, x):
        features = self.features(x)
        return self.arrange(features, self.scores(features))


def load(build, first=0, classes=3, names=()):
    inputs = np.random.default_rng(0).random((30, 4), np.float32)
    classes = len(names) or classes
    idc.dataset("own-scores-data", class_names=names)(lambda split: (inputs, first + np.arange(30) % classes))
    idc.network("own-scores", data="own-scores-data")(build)
    return idc.load_model("own-scores")


@pytest.mark.parametrize(
    ("arrange", "place"),
    [
        (lambda features, scores: (features, scores), "1"),
        (lambda features, scores: [features, scores], "1"),
        (lambda features, scores: {"features": features, "classes": scores}, "classes"),
    ],
)
def test_scores_are_told_from_features_beside_them(arrange, place):
    network = load(lambda: Several(arrange))
    assert network.card.parameters == 4 * 8 + 8 + 8 * 3 + 3
    assert any(f"Its output {place!r} (n, 3) is analysed" in remark for remark in network.remarks)
    with pytest.raises(ModelError, match=r"returns 8 scores per input") as caught:
        load(lambda: Several(arrange), names=("a", "b"))
    said = str(caught.value)
    assert "it returned several outputs, " in said
    assert "of shape (3, 8)" in said
    assert f"take another with --output {place}" in said


def test_what_is_said_works():
    inputs = np.random.default_rng(0).random((30, 4), np.float32)
    idc.dataset("own-scores-data")(lambda split: (inputs, np.arange(30) % 3))
    made = idc.network("own-scores", data="own-scores-data", explain=lambda output: output[1])
    made(lambda: Several(lambda features, scores: (features, scores)))
    assert idc.load_model("own-scores").card.parameters == 4 * 8 + 8 + 8 * 3 + 3


def test_classes_that_are_counted_from_one_are_said_to_be():
    with pytest.raises(ModelError, match=r"its targets are 1 to 3; count classes from 0") as caught:
        load(lambda: nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 3)), first=1)
    assert "class_names" not in str(caught.value)


def test_other_numbers_of_classes_are_to_be_named():
    with pytest.raises(ModelError, match=r"say which class each output is by --class-names"):
        load(lambda: nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 3)), names=("a", "b"))
    with pytest.raises(ModelError, match=r"name all classes with class_names"):
        load(lambda: nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 3)), names=("a", "b", "c", "d"))

"""What stands in front of a network, and behind it: scaling of its inputs, and two scores made of one."""

import json

import numpy as np
import pytest
import torch
from torch import nn

import idc_core as idc
from idc_core.errors import ModelError
from idc_core.models.scaling import Scaling
from idc_core.models.wrapping import put_before
from tests.lrp.networks import total

IMAGE = torch.tensor([[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]]).reshape(2, 1, 3, 1, 1)
BYTES = torch.tensor([103.9, 116.8, 123.7]).reshape(1, 3, 1, 1)
COLOURED = torch.rand(5, 3, 6, 6, generator=torch.Generator().manual_seed(2))
SCALINGS = [
    (Scaling((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)), lambda x: (x - IMAGE[0]) / IMAGE[1]),
    (Scaling((103.9, 116.8, 123.7), (1.0,), 255, "BGR"), lambda x: 255 * x.flip(1) - BYTES),
    (Scaling(layout="last", factor=2), lambda x: 2 * x.permute(0, 2, 3, 1)),
    (Scaling(layout="flat"), lambda x: x.flatten(1)),
]


@pytest.mark.parametrize(("scaling", "by_hand"), SCALINGS, ids=lambda one: getattr(one, "said", ""))
def test_scaling_is_what_is_done_by_hand_and_conserves_relevance(scaling, by_hand):
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(108, 8, bias=False), nn.ReLU(), nn.Linear(8, 4, bias=False)).eval()
    with torch.no_grad():
        expected = network(by_hand(COLOURED))
    names = [name for name, _ in network.named_modules()]
    put_before(network, scaling)
    with torch.no_grad():
        found = network(COLOURED)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)
    assert [name for name, _ in network.named_modules()] == names
    given = idc.relevance(network, COLOURED, ["input"], "z")["input"]
    assert given.shape == COLOURED.shape
    np.testing.assert_allclose(given.sum((1, 2, 3)), found.max(1).values, rtol=1e-3, atol=1e-3)
    assert Scaling.from_json(json.loads(json.dumps(scaling.to_json())), "here") == scaling


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"mean": (float("nan"),)}, "finite"),
        ({"deviation": (0.0,)}, "would make all inputs equal"),
        ({"factor": 0.0}, "would make all inputs equal"),
        ({"mean": (1.0, 2.0), "deviation": (1.0, 2.0, 3.0)}, "one of each per channel"),
        ({"mean": ()}, "finite"),
        ({"order": "GBR"}, "RGB or BGR"),
        ({"layout": "middle"}, "first, last, flat"),
    ],
)
def test_scaling_that_cannot_be_is_refused(given, said):
    with pytest.raises(ModelError, match=said):
        Scaling(**given)


def test_scaling_of_other_channels_or_of_texts_is_refused():
    network = nn.Sequential(nn.Flatten(), nn.Linear(108, 4))
    put_before(network, Scaling((0.5, 0.5)))
    with pytest.raises(ModelError, match="has 2 channels, but inputs have the shape"):
        network(COLOURED)
    with pytest.raises(ModelError, match="token ids"):
        network(torch.ones(2, 5, dtype=torch.int64))


@pytest.mark.parametrize("ending", ["score", "sigmoid", "flat sigmoid"])
def test_one_score_becomes_two_that_predict_the_same(ending):
    class One(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(6, 5, bias=False), nn.Linear(5, 1, bias=False)

        def forward(self, x):
            score = self.second(torch.relu(self.first(x)))
            if ending == "score":
                return score
            return torch.sigmoid(score) if ending == "sigmoid" else torch.sigmoid(score).squeeze(1)

    torch.manual_seed(1)
    network = One()
    inputs = np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32)
    idc.dataset("two-own", class_names=("no", "yes"))(lambda split: (inputs, np.arange(40) % 2))
    idc.network("one-own", data="two-own")(lambda: network)
    with torch.no_grad():
        score = network.second(torch.relu(network.first(torch.from_numpy(inputs))))[:, 0]
    loaded = idc.load_model("one-own")
    with torch.no_grad():
        found = loaded(torch.from_numpy(inputs))
    np.testing.assert_allclose(torch.softmax(found, 1)[:, 1], torch.sigmoid(score), atol=1e-5)
    np.testing.assert_array_equal(found.argmax(1), score > 0)
    assert loaded.remarks[0].startswith("It gives one score x" if ending == "score" else "It gives one probability p")
    shares = total(idc.relevance(loaded, inputs, ["input"])["input"])
    np.testing.assert_allclose(shares, found.max(1).values, rtol=1e-3, atol=1e-4)

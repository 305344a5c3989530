"""Networks by setup file whose batch is no plain one, or that want something else: opened, or refused by what works."""

import numpy as np
import pytest
import torch
from torch import nn

import idc_core as idc
from idc_core.analysis.network_check import check_network
from idc_core.errors import ModelError

RNG = np.random.default_rng(0)
SERIES, CLASSES = RNG.normal(size=(60, 7, 8)).astype(np.float32), np.arange(60) % 3
PICTURES = RNG.random((30, 3, 16, 16)).astype(np.float32)


class Written(nn.Module):
    """What a forward is written for, beside the modules that it uses."""

    def __init__(self, forward, **modules):
        super().__init__()
        self.steps = forward
        for name, module in modules.items():
            self.add_module(name, module)

    def forward(self, *inputs):
        return self.steps(self, *inputs)


def entered(build, inputs=SERIES, others=None, **how):
    """Enter a network and its data; return the network as it is opened."""
    cut = 2 * len(inputs) // 3

    def given(rows):
        return inputs[rows] if others is None else {"x": inputs[rows], "mask": others[rows]}

    @idc.dataset("series of doors")
    def read(split):
        rows = slice(cut) if split == "train" else slice(cut, None)
        return given(rows), CLASSES[: len(inputs)][rows]

    @idc.network("network of doors", data="series of doors", **how)
    def make():
        torch.manual_seed(0)
        return build()

    return idc.load_model("network of doors")


def encoder(batch_first):
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=batch_first)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


LAYERS = {
    "time first": (
        lambda net, x: net.out(net.encoder(x.transpose(0, 1)).mean(0)),
        {"encoder": encoder(False)},
        "encoder.layers.1.linear2",
    ),
    "batch first": (
        lambda net, x: net.out(net.encoder(x).mean(1)),
        {"encoder": encoder(True)},
        "encoder.layers.1.linear2",
    ),
    "patches of each series": (
        lambda net, x: net.out(net.encoder(net.cut(x.transpose(1, 2)).reshape(-1, 4, 8)).reshape(-1, 8, 32).mean(1)),
        {"cut": nn.Linear(7, 32), "encoder": encoder(True), "out": nn.Linear(32, 3)},
        "encoder.layers.1.linear2",
    ),
    "recurrent": (
        lambda net, x: net.out(torch.relu(net.hidden(net.lstm(x.transpose(0, 1))[0])).mean(0)),
        {"lstm": nn.LSTM(8, 8), "hidden": nn.Linear(8, 8)},
        "hidden",
    ),
}


@pytest.mark.parametrize("kind", LAYERS)
def test_the_last_layer_before_the_scores_is_analysed_whatever_axis_holds_the_inputs(kind):
    forward, modules, layer = LAYERS[kind]
    model = entered(lambda: Written(forward, **{"out": nn.Linear(8, 3), **modules}))
    assert model.card.default_layer == layer
    alone = [next(iter(idc.trace(model, SERIES[i : i + 1], [layer]))).activations[layer] for i in range(5)]
    batch = next(iter(idc.trace(model, SERIES[:5], [layer]))).activations[layer]
    torch.testing.assert_close(batch, torch.cat(alone))


def test_a_batch_size_that_is_written_into_a_network_is_filled_up():
    def forward(net, x):
        return net.out(net.lstm(x, (torch.zeros(1, 32, 8), torch.zeros(1, 32, 8)))[0][:, -1])

    model = entered(lambda: Written(forward, lstm=nn.LSTM(8, 8, batch_first=True), out=nn.Linear(8, 3)))
    scores = torch.cat([batch.scores for batch in idc.trace(model, SERIES, ["lstm"])])
    with torch.no_grad():
        expected = model.out(model.lstm(torch.from_numpy(SERIES))[0][:, -1])
    torch.testing.assert_close(scores, expected)
    assert "batch" not in {mistake.kind for mistake in check_network("network of doors").mistakes}


def test_the_check_of_a_network_names_what_mixes_its_inputs():
    entered(
        lambda: Written(
            lambda net, x: net.out(torch.relu(net.hidden(net.attention(x, x, x)[0].mean(1)))),
            attention=nn.MultiheadAttention(8, 2),
            hidden=nn.Linear(8, 8),
            out=nn.Linear(8, 3),
        )
    )
    (found,) = (mistake for mistake in check_network("network of doors").mistakes if mistake.kind == "batch")
    assert "'multi_head_attention_forward' in module 'attention' mixes them" in found.seen
    assert "batch_first=True" in found.remedy
    assert "normalisation" not in str(found)


def test_weights_without_a_shape_are_refused_and_the_advice_is_followed():
    class Lazy(nn.Module):
        def __init__(self):
            super().__init__()
            self.hidden, self.out = nn.LazyLinear(8), nn.Linear(8, 3)

        def forward(self, x):
            return self.out(torch.relu(self.hidden(x.flatten(1))))

    with pytest.raises(ModelError, match=r"'hidden.weight' has no shape yet.*network\(inputs\[:2\]\)"):
        entered(Lazy)
    with pytest.raises(ModelError, match="has no shape yet"):
        idc.relevance(Lazy().eval(), SERIES, ["input"])

    def build():
        network = Lazy()
        network(torch.from_numpy(SERIES[:2]))
        return network

    assert entered(build).card.default_layer == "hidden"


def test_several_inputs_are_told_how_to_be_given():
    network = Written(lambda net, x, mask: net.out((x * mask[..., None]).mean(1)), out=nn.Linear(8, 3)).eval()
    network.forward = lambda x, mask: network.steps(network, x, mask)
    with pytest.raises(ModelError, match=r"It takes several inputs: give a dictionary .*'mask': .*--hold NAME=X"):
        idc.relevance(network, SERIES[:4], ["input"])
    mask = np.ones((60, 7), np.float32)
    found = idc.relevance(network, {"x": SERIES[:4], "mask": mask[:4]}, ["input"])["input"]
    assert found.shape == (4, 7, 8)


class Detector(nn.Module):
    """Chooses boxes, as those of torchvision do."""

    def __init__(self):
        super().__init__()
        self.backbone, self.head = nn.Conv2d(3, 8, 4, 4), nn.Conv2d(8, 3, 1)

    def scores(self, x):
        return self.head(torch.relu(self.backbone(x))).flatten(2).transpose(1, 2)

    def forward(self, x):
        return [{"boxes": torch.zeros(16, 4), "scores": one.amax(1)} for one in self.scores(x)]


def test_a_detector_that_chooses_boxes_is_told_what_to_return_instead():
    with pytest.raises(ModelError, match=r"chosen boxes .*explain='best-box:boxes,classes'"):
        entered(Detector, PICTURES)
    with pytest.raises(ModelError, match="chosen boxes"):
        idc.relevance(Detector().eval(), PICTURES[:2], ["input"])

    def build():
        return Written(lambda net, x: net.detector.scores(x), detector=Detector())

    for explain in ("best-box:boxes,classes", "best-box"):
        model = entered(build, PICTURES, explain=explain)
        scores = next(iter(idc.trace(model, PICTURES, ["input"]))).scores
        with torch.no_grad():
            torch.testing.assert_close(scores, model.detector.scores(torch.from_numpy(PICTURES)).amax(1))
    with pytest.raises(ModelError, match=r"In Python: explain='best-box:boxes,classes'"):
        idc.relevance(build().eval(), PICTURES[:2], ["input"], explain="best-box")
    found = idc.relevance(build().eval(), PICTURES[:2], ["input"], explain="best-box:boxes,classes")
    assert found["input"].shape == (2, 3, 16, 16)


def test_what_a_network_holds_may_say_its_code_in_its_own_way():
    class Odd:
        """As the functions of some compilers are."""

        @property
        def __code__(self):
            return None

    class Holds(nn.Module):
        def __init__(self):
            super().__init__()
            self.hidden, self.out, self.how = nn.Linear(8, 8), nn.Linear(8, 3), Odd()

        def forward(self, x):
            return self.out(torch.relu(self.hidden(x.mean(1))))

    assert entered(Holds).card.default_layer == "hidden"

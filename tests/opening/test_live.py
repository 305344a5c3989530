"""Live objects in the registries: copies, names, data of every form, and mistakes that leave nothing behind."""

import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

import idc_core as idc
from idc_core.datasets import DATASETS
from idc_core.errors import DataError, ModelError, UnsupportedOperationError
from idc_core.models import MODELS
from idc_core.models.weights import fingerprint
from idc_core.opening.live import enter_live

ARRAYS = np.random.default_rng(0).normal(size=(20, 4)), np.arange(20) % 2


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))


def test_a_copy_is_analysed_and_the_network_stays_as_it_is():
    model = net().double().train()
    entry = enter_live(model, ARRAYS, ARRAYS)
    assert (entry.name, entry.dataset, entry.layers) == ("model", "model-data", ("0", "2"))
    loaded = idc.load_model("model")
    assert model.training
    assert model[0].weight.dtype == torch.float64
    assert not model._forward_hooks
    first = loaded.card.fingerprint
    with torch.no_grad():
        model[0].weight += 1
    assert idc.load_model("model").card.fingerprint == first
    assert enter_live(model, ARRAYS, ARRAYS).name == "model"
    assert idc.load_model("model").card.fingerprint != first


@pytest.mark.parametrize("outputs", [1, 2])
def test_a_network_that_is_one_layer_gets_a_name_for_it(outputs):
    bare, inputs = nn.Linear(4, outputs), torch.tensor(ARRAYS[0], dtype=torch.float32)
    assert enter_live(bare, ARRAYS, ARRAYS).layers == ("linear",)
    loaded = idc.load_model("model")
    assert torch.allclose(loaded(inputs).diff(dim=1), bare(inputs) if outputs == 1 else bare(inputs).diff(dim=1))
    train, test = (idc.load_dataset("model-data", split) for split in ("train", "test"))
    assert idc.analyze(loaded, train, test, "linear", m=outputs).layer == "linear"
    assert not bare._forward_hooks


def test_names():
    first, second = net(), net()
    assert [enter_live(one, ARRAYS, ARRAYS).name for one in (first, second, first)] == ["model", "model-2", "model"]
    assert enter_live(first, ARRAYS, ARRAYS, name="mine").name == "mine"
    assert enter_live(second, ARRAYS, ARRAYS, name="mine").name == "mine"
    with pytest.raises(ModelError, match=r"^idc\.launch: there is a network 'lenet5-digits' already"):
        enter_live(first, ARRAYS, ARRAYS, name="lenet5-digits")


def test_data_of_every_form():
    tensors = TensorDataset(torch.tensor(ARRAYS[0]), torch.tensor(ARRAYS[1]))
    enter_live(net(), ARRAYS, tensors, class_names=("no", "yes"))
    test = idc.load_dataset("model-data")
    assert (test.class_names, len(test)) == (("no", "yes"), 20)
    assert enter_live(net(), "model-data").dataset == "model-data"
    assert enter_live(net(), test, "model-data").dataset == "model-3-data"
    assert np.array_equal(idc.load_dataset("model-3-data", "train").inputs, test.inputs)


@pytest.mark.parametrize(
    ("model", "given", "kind", "message"),
    [
        ("net", (ARRAYS, ARRAYS), ModelError, "got a str; expected a torch.nn.Module"),
        (net(), (ARRAYS,), DataError, "got no test; expected both"),
        (net(), (None, ARRAYS), DataError, "got no train; expected both"),
        (net(), ((ARRAYS[0], ARRAYS[1][:5]), ARRAYS), DataError, "has 20 inputs and 5 targets"),
        (net()[2], (ARRAYS, ARRAYS), ModelError, "fails on inputs of shape"),
        (net(), ("digit",), DataError, "There is no dataset 'digit'"),
    ],
)
def test_mistakes_are_told_and_leave_nothing(model, given, kind, message):
    before = list(MODELS), list(DATASETS)
    with pytest.raises(kind, match=message):
        enter_live(model, *given)
    assert (list(MODELS), list(DATASETS)) == before


class Scaled(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.inner, self.factor = net(), factor

    def forward(self, inputs):
        return self.inner(inputs) * 2


def test_the_fingerprint_knows_the_structure_and_the_code(monkeypatch):
    def fingerprint(model):
        return idc.load_model(enter_live(model, ARRAYS, ARRAYS, name="one").name).card.fingerprint

    with_relu, with_tanh = net(), net()
    with_tanh[1] = nn.Tanh()
    assert fingerprint(with_relu) != fingerprint(with_tanh)
    scaled = fingerprint(Scaled(1))
    assert scaled == fingerprint(Scaled(1))
    monkeypatch.setattr(Scaled, "forward", lambda self, inputs: self.inner(inputs))
    assert fingerprint(Scaled(1)) != scaled


def test_a_network_that_cannot_be_copied_is_told():
    model = net()
    model.kept = (torch.ones(1, requires_grad=True) * 2,)
    with pytest.raises(ModelError, match=r"^idc\.launch cannot copy the network"):
        enter_live(model, ARRAYS, ARRAYS)


@pytest.mark.parametrize("form", ["bfloat16", "half", "quantised"])
def test_networks_in_other_forms(form):
    torch.manual_seed(0)
    model = net()
    if form == "quantised":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch moves its quantisation elsewhere
            given = torch.ao.quantization.quantize_dynamic(model, {nn.Linear})
    else:
        given = getattr(model, form)()
    entry = enter_live(given, ARRAYS, ARRAYS)
    assert (entry.layers, entry.default_layer) == (("0", "2"), "0")
    before = fingerprint(given)
    assert len({before, fingerprint(nn.Linear(2, 2).bfloat16()), fingerprint(nn.Linear(2, 2))}) == 3
    network, data = idc.load_model(entry.name), idc.load_dataset(entry.dataset)
    if form == "quantised":
        assert idc.CRITERIA["tknc"](network, "0").fit(data).update(data).score > 0
        with pytest.raises(UnsupportedOperationError, match="linear_dynamic"):
            idc.analyze(network, data, data, layer="0", m=2)
    else:
        assert network.remarks == (
            f"Weights were converted from {'bfloat16' if form == 'bfloat16' else 'float16'} to float32.",
        )
        assert idc.analyze(network, data, data, layer="0", m=2).covered > 0

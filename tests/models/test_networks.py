"""Architectures and the registry: exact sizes, names, shapes."""

import subprocess
import sys
from collections import Counter

import pytest
import torch

from idc_core.errors import ModelError
from idc_core.lrp.layer_parts import split_layer
from idc_core.models import MODELS, find_entry, load_model

# Figures of the papers, not of the registry.
PARAMETERS = {
    "lenet1-digits": 7_206,
    "lenet4-digits": 69_362,
    "lenet5-digits": 107_786,
    "lenet1-mnist": 7_206,
    "lenet4-mnist": 69_362,
    "lenet5-mnist": 107_786,
    "convnet-cifar10": 952_234,
    "dave2-udacity": 2_116_983,
    "deepxplore-model1": 7_206,
    "deepxplore-model2": 69_362,
    "deepxplore-model3": 107_786,
    "deepimportance-lenet1": 3_246,
    "deepimportance-lenet4": 25_010,
    "deepimportance-lenet5": 44_426,
}
INPUTS = {"digits": (1, 28, 28), "mnist": (1, 28, 28), "cifar10": (3, 32, 32), "udacity": (3, 100, 100)}
OUTPUTS = {"digits": 10, "mnist": 10, "cifar10": 10, "udacity": 1, "20newsgroups": 6, "sql": 65}


def some_inputs(dataset, count):
    generator = torch.Generator().manual_seed(1)
    if dataset == "20newsgroups":
        return torch.randint(0, 10_000, (count, 200), generator=generator)
    if dataset == "sql":
        return torch.randint(2, 67, (count, 30), generator=generator)
    return torch.rand(count, *INPUTS[dataset], generator=generator)


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameter_counts_are_those_of_the_papers(name):
    assert sum(parameter.numel() for parameter in find_entry(name).build().parameters()) == PARAMETERS[name]


@pytest.mark.parametrize("name", MODELS)
def test_entry_is_complete_and_true(name):
    entry = MODELS[name]
    network = entry.build()
    assert entry.name == name
    assert network.parameter_count == entry.parameters
    assert entry.layers == network.layers, "the registry declares other layers than the network has"
    assert entry.default_layer in entry.layers
    assert entry.label
    assert entry.help.endswith(".")
    assert entry.citation
    assert entry.licence


@pytest.mark.parametrize("name", MODELS)
def test_outputs_are_scores_of_the_right_shape(name):
    entry = MODELS[name]
    network = entry.build().eval()
    with torch.inference_mode():
        outputs = network(some_inputs(entry.dataset, 3))
    assert outputs.shape == (3, OUTPUTS[entry.dataset])
    assert not torch.allclose(outputs.sum(1), torch.ones(3)), "a softmax is inside"


@pytest.mark.parametrize("name", MODELS)
def test_every_layer_runs_once_and_in_the_order_of_the_card(name):
    entry = MODELS[name]
    network = entry.build().eval()
    seen = []
    layers = tuple(layer for layer in network.layers if not split_layer(layer)[1])
    for layer in layers:
        network.get_submodule(layer).register_forward_hook(lambda *_, layer=layer: seen.append(layer))
    with torch.inference_mode():
        network(some_inputs(entry.dataset, 1))
    assert Counter(seen) == Counter(layers)
    assert all(seen.index(layer) <= seen.index(layers[-1]) for layer in layers)
    if entry.dataset != "20newsgroups":  # its convolutions stand side by side
        assert tuple(seen) == layers


def test_lenet5_layers_have_the_names_of_the_reference():
    expected = ("conv1", "pool1", "conv2", "pool2", "fc1", "fc2", "logits")
    assert find_entry("lenet5-mnist").build().layers == expected


def test_unknown_name_lists_the_names():
    with pytest.raises(ModelError, match=r"no model 'lenet6'.*lenet5-mnist.*deepxplore-model1"):
        load_model("lenet6")


def test_the_list_of_models_needs_neither_torch_nor_readers_of_data():
    code = (
        "import sys; from idc_core.models import MODELS; assert MODELS['lenet5-mnist'].layers; "
        "print([n for n in sys.modules if n.split('.')[0] in ('torch', 'sklearn', 'PIL', 'streamlit')"
        " or n.startswith('idc_core.datasets')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_first_pass_loads_neither_readers_of_data_nor_algebra():
    code = (
        "import sys, torch; from idc_core.models import load_model;"
        "from idc_core.attribution.relevance import relevance;"
        "relevance(load_model('lenet5-mnist'), torch.zeros(1, 1, 28, 28), ['input', 'conv1']);"
        "print([n for n in sys.modules if n.split('.')[0] in ('sklearn', 'PIL', 'streamlit', 'sympy')"
        " or n.startswith('idc_core.datasets')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

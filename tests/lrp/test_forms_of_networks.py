"""Networks in other forms: weights of half precision, compiled by `torch.compile`, quantised."""

import copy
import warnings

import numpy as np
import pytest
import torch
from torch import nn

from idc_core import CRITERIA, IDC, relevance
from idc_core.errors import ModelError, UnsupportedOperationError
from idc_core.tracing.neurons import CHANNELS, UNITS, neuron_axes
from idc_core.tracing.trace import collect, trace
from tests.lrp.networks import IMAGES, SEQUENCES, Written, numbers, settle

X = IMAGES.float()


def network():
    return settle(
        nn.Sequential(
            nn.Conv2d(2, 4, 3),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(16, 8),
            nn.ReLU(),
            nn.Linear(8, 3),
        )
    ).float()


class TestHalfPrecision:
    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
    @pytest.mark.parametrize("rule", ["epsilon", "gamma", "alpha-beta"])
    def test_relevance_is_that_of_the_same_weights_in_single_precision(self, dtype, rule):
        half = network().to(dtype)
        full = copy.deepcopy(half).float()
        x = X.to(dtype).float()
        layers = ["input", "0", "5"]
        for bias in ("absorb", "redistribute"):
            found, expected = (relevance(net, x, layers, rule, bias=bias) for net in (half, full))
            for layer in layers:
                assert found[layer].dtype == np.float32
                np.testing.assert_allclose(found[layer], expected[layer], rtol=1e-5, atol=1e-6, err_msg=layer)

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
    def test_activations_and_scores_are_the_networks_own_summed_in_single_precision(self, dtype):
        half = network().to(dtype)
        batch = next(trace(half, X, ["0", "5"]))
        for values in (batch.scores, *batch.activations.values()):
            assert values.dtype == torch.float32
            assert torch.equal(values, values.to(dtype).float())
        with torch.no_grad():
            np.testing.assert_allclose(batch.scores, half(X.to(dtype)).float(), rtol=0.05, atol=0.02)
        found = collect(half, X, ["0"]).activations["0"]
        np.testing.assert_allclose(found, batch.activations["0"].mean((2, 3)), rtol=1e-6)
        assert not torch.equal(torch.tensor(found), torch.tensor(found).to(dtype).float())

    def test_recurrent_and_criterion(self):
        half = settle(
            Written(lambda net, x: net.out(net.a(x)[0][:, -1]), a=nn.GRU(6, 5, batch_first=True), out=nn.Linear(5, 3))
        ).bfloat16()
        full = copy.deepcopy(half).float()
        x = SEQUENCES.bfloat16().float()
        found, expected = (relevance(net, x, ["input"], bias="redistribute")["input"] for net in (half, full))
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
        assert IDC(half, "a", 2).fit(x.repeat(10, 1, 1)).important.shape == (2,)


def wrapped_by_hand(net):
    """What `torch.compile` returns, without its import of several seconds; its own way to run fails."""
    wrapper = nn.Module()
    wrapper._orig_mod = net

    def refuse(x):
        raise AssertionError("the compiled form ran")

    wrapper.__dict__["forward"] = refuse
    return wrapper


WRAPPERS = {"by hand": wrapped_by_hand, "torch.compile": torch.compile}


@pytest.mark.parametrize("wrap", ["by hand", pytest.param("torch.compile", marks=pytest.mark.slow)])
class TestCompiled:
    def test_layers_go_by_their_original_names(self, wrap):
        compiled, layers = WRAPPERS[wrap](network()), ["input", "0", "5"]
        found, expected = (relevance(net, X, layers, bias="redistribute") for net in (compiled, network()))
        for layer in layers:
            np.testing.assert_array_equal(found[layer], expected[layer])
        assert list(collect(compiled, X, ["0"]).activations) == ["0"]
        assert neuron_axes(compiled, ["0", "5"]) == {"0": CHANNELS, "5": UNITS}

    def test_a_wrapped_part_and_a_network_compiled_in_place_are_left_as_they_were(self, wrap):
        parts = network()
        parts[5] = WRAPPERS[wrap](nn.Sequential(parts[5]))
        before = parts[5].__dict__["forward"]
        parts._compiled_call_impl = call = wrapped_by_hand(parts).forward
        found = relevance(parts, X, ["0", "5.0"], bias="redistribute")
        expected = relevance(network(), X, ["0", "5"], bias="redistribute")
        np.testing.assert_array_equal(found["0"], expected["0"])
        np.testing.assert_array_equal(found["5.0"], expected["5"])
        with pytest.raises(ModelError, match="failed on inputs"):
            relevance(parts, X[:, :1], ["0"])
        assert parts[5].__dict__["forward"] is before
        assert parts._compiled_call_impl is call


def quantised_copy():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch moves its quantisation elsewhere
        return torch.ao.quantization.quantize_dynamic(network(), {nn.Linear})


def test_inputs_by_name_and_what_is_explained_of_a_wrapped_network():
    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.out = nn.Linear(6, 4), nn.Linear(4, 3)

        def forward(self, rows, share):
            return {"deep": (self.out(torch.relu(self.a(rows))) * share,)}

    net, given = settle(Named()), {"rows": SEQUENCES, "share": SEQUENCES[..., :1].abs()}
    found, expected = (
        relevance(one, given, ["input", "a"], explain="mean-tokens") for one in (wrapped_by_hand(net), net)
    )
    for layer in ("input", "a"):
        np.testing.assert_array_equal(found[layer], expected[layer])
    half = relevance(copy.deepcopy(net).bfloat16(), given, ["a"], explain="mean-tokens")["a"]
    np.testing.assert_allclose(half, expected["a"], rtol=0.1, atol=0.05)


def test_criteria_that_need_activations_only_measure_quantised_networks():
    quantised, x = quantised_copy(), 3 * numbers(40, 2, 7, 7).float()
    assert neuron_axes(quantised, ["0", "5"]) == {"0": CHANNELS, "5": UNITS}
    for name in sorted(set(CRITERIA) - {"idc"}):
        criterion = CRITERIA[name](quantised, "5")
        criterion.fit(x)
        assert criterion.update(x[:4]).score >= 0, name
    with pytest.raises(UnsupportedOperationError, match="linear_dynamic in module '7'"):
        IDC(quantised, "5", 2).fit(x)


def test_of_quantised_networks_activations_are_seen_and_relevance_is_refused_by_name():
    quantised = quantised_copy()
    found = collect(quantised, X, ["0", "5"])
    np.testing.assert_allclose(found.activations["5"], collect(network(), X, ["5"]).activations["5"], atol=0.2)
    with pytest.raises(UnsupportedOperationError, match=r"linear_dynamic in module '7'.*layer behind"):
        relevance(quantised, X, ["5"])


def test_layers_of_static_int8_are_refused_and_the_scores_are_traced():
    from torch.ao import quantization

    network = settle(nn.Sequential(quantization.QuantStub(), nn.Linear(6, 3), quantization.DeQuantStub())).float()
    inputs = numbers(8, 6).float()
    network.qconfig = quantization.default_qconfig
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quantization.prepare(network, inplace=True)(inputs)
        quantization.convert(network, inplace=True)
    np.testing.assert_array_equal(collect(network, inputs, []).scores, network(inputs))
    with pytest.raises(ModelError, match="'1' returns numbers of 8 bits"):
        collect(network, inputs, ["1"])

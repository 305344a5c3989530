"""Attribution methods: values add up to what they promise, equal slow versions, and leave the network as found."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from idc_core import load_model
from idc_core.attribution.methods import METHODS, attribute, attribute_layers
from idc_core.attribution.relevance import relevance
from idc_core.errors import CancelledError, DataError, ModelError, SettingError, UnsupportedOperationError
from idc_core.lrp.rules import RULES

THROUGH_CAPTUM = [name for name in METHODS if name not in RULES]
FROM_BASELINE = ["deeplift", "integrated-gradients", "conductance"]


class Functional(nn.Module):
    """A network whose activations and one of whose poolings are calls, not modules."""

    def __init__(self, activation=F.relu):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, padding=1)
        self.conv2 = nn.Conv2d(4, 5, 3)
        self.pool = nn.MaxPool2d(2)
        self.fc1 = nn.Linear(20, 8)
        self.logits = nn.Linear(8, 3)
        self.activation = activation

    def forward(self, x):
        x = F.max_pool2d(self.activation(self.conv1(x)), 2)
        x = self.pool(self.activation(self.conv2(x)))
        return self.logits(self.activation(self.fc1(x.flatten(1))))


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 6, padding_idx=0)
        self.conv = nn.Conv1d(6, 5, 2)
        self.logits = nn.Linear(5, 3)

    def forward(self, ids):
        return self.logits(F.relu(self.conv(self.embedding(ids).transpose(1, 2))).mean(2))


class Sharing(nn.Module):
    """A residual network that uses one in-place ReLU three times and ends in a softmax."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.second = nn.Linear(6, 6)
        self.relu = nn.ReLU(inplace=True)
        self.logits = nn.Linear(6, 4)

    def forward(self, x):
        x = self.relu(self.first(x))
        x = self.relu(x + self.relu(self.second(x)))
        return F.softmax(self.logits(x), 1)

    def scores(self, x):
        x = F.relu(self.first(x))
        return self.logits(F.relu(x + F.relu(self.second(x))))


@pytest.fixture
def network():
    torch.manual_seed(1)
    network = Functional().double()
    for parameter in network.parameters():
        nn.init.normal_(parameter, std=0.4)
    return network


@pytest.fixture
def images():
    # Half of the pixels are black, like the baseline: differences of exactly zero are the hard case.
    return (torch.rand(7, 1, 12, 12, generator=torch.Generator().manual_seed(0)).double() - 0.5).clamp(min=0)


def gained(scores, inputs, baseline, target):
    with torch.no_grad():
        difference = scores(inputs) - scores(baseline)
    return difference.gather(1, torch.as_tensor(target).expand(len(inputs))[:, None])[:, 0].numpy()


def rescale_by_hand(model, x, b, target):
    """DeepLIFT's rescale rule, operation by operation (Shrikumar et al. 2017), for `Functional` with one pool each."""
    behind = (F.relu, model.pool)
    operations = [model.conv1, *behind, model.conv2, *behind, nn.Flatten(), model.fc1, F.relu, model.logits]
    pairs = [(x, b)]
    for operation in operations:
        pairs.append(tuple(operation(value) for value in pairs[-1]))
    m = torch.zeros_like(pairs[-1][0])
    m[torch.arange(len(x)), target] = 1.0
    for operation, (before, base), (after, after_base) in reversed(
        list(zip(operations, pairs[:-1], pairs[1:], strict=True))
    ):
        delta = before - base
        point = before.detach().requires_grad_()
        (plain,) = torch.autograd.grad(operation(point), point, m)
        if operation is F.relu:
            m = torch.where(delta.abs() < 1e-10, plain, m * (after - after_base) / torch.where(delta == 0, 1.0, delta))
        elif operation is model.pool:
            top = torch.maximum(after, after_base)
            _, here = F.max_pool2d(before, 2, return_indices=True)
            _, there = F.max_pool2d(base, 2, return_indices=True)
            size = before.shape[2:]
            moved = F.max_unpool2d(m * (top - after_base), here, 2, output_size=size)
            moved = moved + F.max_unpool2d(m * (after - top), there, 2, output_size=size)
            m = torch.where(delta.abs() < 1e-10, plain, moved / torch.where(delta == 0, 1.0, delta))
        else:
            m = plain
    return (m * (x - b)).detach().numpy()


@pytest.mark.parametrize("method", FROM_BASELINE)
@pytest.mark.parametrize("layer", ["input", "conv1", "conv2", "pool", "fc1"])
@pytest.mark.parametrize("baseline", [0.0, 0.5])
def test_sums_to_the_score_difference(network, images, method, layer, baseline):
    found = attribute(network, images, method, layer, 2, baseline=baseline)
    expected = gained(network, images, torch.full_like(images, baseline), 2)
    steps_miss = 0.0 if method == "deeplift" else 0.05 * np.abs(expected).max()
    np.testing.assert_allclose(found.reshape(7, -1).sum(1), expected, atol=1e-9 + steps_miss)


def test_more_steps_come_closer(network, images):
    expected = gained(network, images, torch.zeros_like(images), 1)
    missed = [
        np.abs(attribute(network, images, "integrated-gradients", target=1, steps=n).sum((1, 2, 3)) - expected).max()
        for n in (3, 300)
    ]
    assert missed[1] < missed[0] / 5


def test_deeplift_equals_the_rule_by_hand(network, images):
    target = network(images).argmax(1)
    expected = rescale_by_hand(network, images, torch.zeros_like(images), target)
    np.testing.assert_allclose(attribute(network, images, "deeplift"), expected, atol=1e-12)


def test_deeplift_does_not_depend_on_the_batch(network, images):
    together = attribute(network, images, "deeplift", target=0)
    alone = [attribute(network, images[i : i + 1], "deeplift", target=0) for i in range(len(images))]
    np.testing.assert_allclose(together, np.concatenate(alone), atol=1e-13)


def test_deeplift_keeps_inputs_of_a_batch_apart_where_nothing_changes():
    """An edge filter answers an even grey as it answers black, so that only the gradient tells its inputs apart."""
    network = nn.Sequential(nn.Conv2d(1, 1, (1, 2), bias=False), nn.MaxPool2d((1, 2)), nn.Flatten(), nn.Linear(2, 1))
    with torch.no_grad():
        network[0].weight[:] = torch.tensor([1.0, -1.0])
        network[3].weight[:] = torch.tensor([2.0, 3.0])
    images = torch.tensor([[0.0, 0.5, 0.0, 0.5, 0.0], [0.5, 0.5, 0.5, 0.5, 0.5]]).reshape(2, 1, 1, 5)
    together = attribute(network, images, "deeplift", target=0)
    alone = [attribute(network, images[i : i + 1], "deeplift", target=0) for i in range(2)]
    np.testing.assert_array_equal(together, np.concatenate(alone))
    assert np.abs(together[1]).sum() > 0


def test_plain_captum_is_wrong_where_this_is_right(network, images):
    """Why networks are opened into modules: without, captum's DeepLift does not see the activations."""
    from captum.attr import DeepLift

    target = torch.zeros(len(images), dtype=torch.int64)
    with pytest.warns(UserWarning, match="hooks"):
        plain = DeepLift(network).attribute(images.clone().requires_grad_(), torch.zeros_like(images), target=target)
    expected = gained(network, images, torch.zeros_like(images), 0)
    assert np.abs(plain.detach().sum((1, 2, 3)).numpy() - expected).max() > 0.01 * np.abs(expected).max()


@pytest.mark.parametrize("layer", ["input", "conv1", "fc1"])
def test_gradient_x_input_equals_autograd(network, images, layer):
    target = network(images).argmax(1)
    kept = {}
    relus = iter(("conv1", "conv2", "fc1"))

    def keeping(x):
        kept[next(relus)] = x = F.relu(x)
        return x

    network.activation = keeping
    kept["input"] = images.clone().requires_grad_()
    chosen = network(kept["input"]).gather(1, target[:, None]).sum()
    (gradient,) = torch.autograd.grad(chosen, kept[layer])
    network.activation = F.relu
    expected = (gradient * kept[layer]).detach().numpy()
    np.testing.assert_allclose(attribute(network, images, "gradient-x-input", layer), expected, atol=1e-12)


def test_integrated_gradients_equal_a_riemann_sum(network, images):
    total = torch.zeros_like(images)
    for step in range(1000):
        point = (images * ((step + 0.5) / 1000)).requires_grad_()
        total += torch.autograd.grad(network(point)[:, 1].sum(), point)[0]
    expected = (images * total / 1000).numpy()
    found = attribute(network, images, "integrated-gradients", target=1, steps=1000)
    np.testing.assert_allclose(found, expected, atol=2e-3 * np.abs(expected).max())


def test_conductance_at_the_input_is_integrated_gradients(network, images):
    conductance = attribute(network, images, "conductance", steps=20)
    np.testing.assert_array_equal(conductance, attribute(network, images, "integrated-gradients", steps=20))


@pytest.mark.parametrize("rule", RULES)
def test_rules_are_relevance_propagation(network, images, rule):
    found = attribute(network, images, rule, "conv2", 1, bias="redistribute")
    np.testing.assert_array_equal(
        found, relevance(network, images, ["conv2"], rule, 1e-6, 1, bias="redistribute")["conv2"]
    )


@pytest.mark.parametrize("method", FROM_BASELINE)
def test_words_get_one_number_each_and_sum_to_the_difference(method):
    torch.manual_seed(0)
    network = Words().double()
    ids = torch.randint(1, 20, (4, 9), generator=torch.Generator().manual_seed(0))
    ids[:, 7:] = 0
    found = attribute(network, ids, method, target=2)
    assert found.shape == (4, 9)
    expected = gained(network, ids, torch.zeros_like(ids), 2)
    np.testing.assert_allclose(found.sum(1), expected, atol=1e-9 if method == "deeplift" else 0.02)
    assert attribute(network, ids, method, "conv", 2).shape == (4, 5, 8)


@pytest.mark.parametrize("name", ["lenet1-mnist", "lenet5-digits", "textcnn-20newsgroups"])
def test_networks_of_the_registry_are_complete(name):
    network = load_model(name)
    generator = torch.Generator().manual_seed(0)
    inputs = (torch.rand(9, 1, 28, 28, generator=generator) - 0.4).clamp(min=0)
    if name.startswith("textcnn"):
        inputs = torch.randint(0, 10_002, (9, 200), generator=generator)
    expected = gained(network, inputs, torch.zeros_like(inputs), 4)
    found = attribute(network, inputs, "deeplift", target=4).reshape(9, -1).sum(1)
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_whole_numbers_read_twice_are_refused():
    class Masked(Words):
        def forward(self, ids):
            return super().forward(ids) * (ids > 0).any(1, keepdim=True)

    with pytest.raises(UnsupportedOperationError, match="as well as by its embedding"):
        attribute(Masked(), torch.ones(2, 5, dtype=torch.int64), "integrated-gradients")


@pytest.mark.parametrize("method", FROM_BASELINE)
def test_shared_modules_residual_sums_and_softmax(method):
    torch.manual_seed(3)
    network = Sharing().double()
    inputs = torch.randn(5, 6, generator=torch.Generator().manual_seed(3)).double()
    expected = gained(network.scores, inputs, torch.zeros_like(inputs), 3)
    found = attribute(network, inputs, method, target=3).sum(1)
    np.testing.assert_allclose(found, expected, atol=1e-9 if method == "deeplift" else 0.02 * np.abs(expected).max())


@pytest.mark.parametrize("method", THROUGH_CAPTUM)
def test_one_output_is_a_score_too(method):
    network = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 1), nn.Flatten(0))
    found = attribute(network, torch.ones(3, 4), method, "0")
    assert found.shape == (3, 5)
    assert np.isfinite(found).all()


@pytest.mark.parametrize("method", METHODS)
def test_network_is_left_as_found(network, images, method):
    network.train()
    network.fc1.weight.requires_grad_(False)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    attribute_layers(network, images, ["input", "conv1", "logits"], method)
    with pytest.raises(CancelledError):
        attribute(network, images, method, batch_size=2, on_progress=lambda done, total, label: False)
    with pytest.raises(SettingError):
        attribute(network, images, method, target=9)
    assert all(module.training for module in network.modules())
    assert [name for name, p in network.named_parameters() if not p.requires_grad] == ["fc1.weight"]
    assert all(p.grad is None for p in network.parameters())
    for module in network.modules():
        assert not module._forward_hooks
        assert not module._forward_pre_hooks
        assert not module._backward_hooks
        assert not hasattr(module, "input")
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_the_same_twice_and_in_batches(network, images, method):
    once = attribute(network, images, method, "pool")
    np.testing.assert_array_equal(once, attribute(network, images, method, "pool"))
    np.testing.assert_allclose(once, attribute(network, images, method, "pool", batch_size=2), atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_registry_tells_what_menus_need(method):
    entry = METHODS[method]
    assert entry.label
    assert entry.help.endswith(".")
    assert entry.sums_to
    assert entry.citation
    for parameter in entry.parameters:
        assert parameter.default in parameter.offered
        assert [parameter.check(value, "it") for value in parameter.offered] == list(parameter.offered)


@pytest.mark.parametrize("target", [np.int64(2), np.full(7, 2), [2] * 7, torch.full((7,), 2)])
def test_a_class_may_be_given_in_many_ways(network, images, target):
    found = attribute(network, images, "gradient-x-input", target=target)
    np.testing.assert_array_equal(found, attribute(network, images, "gradient-x-input", target=2))


def test_progress_counts_inputs(network, images):
    seen = []
    attribute(network, images, "gradient-x-input", batch_size=3, on_progress=lambda *step: seen.append(step[:2]))
    assert seen == [(3, 7), (6, 7), (7, 7)]


def test_an_activation_without_a_rule_is_refused_by_name(images):
    network = Functional(F.gelu).double()
    with pytest.raises(UnsupportedOperationError, match="DeepLift cannot pass through gelu"):
        attribute(network, images, "deeplift")
    assert attribute(network, images, "conductance", "conv1").shape == (7, 4, 12, 12)


def test_a_product_of_two_layers_is_refused_because_it_does_not_add_up():
    class Gated(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 3), nn.Linear(4, 3)

        def forward(self, x):
            return self.a(x) * self.b(x)

    torch.manual_seed(0)
    with pytest.raises(UnsupportedOperationError, match="miss the score difference"):
        attribute(Gated(), torch.ones(2, 4), "deeplift")


@pytest.mark.parametrize("method", THROUGH_CAPTUM)
def test_a_layer_that_the_score_does_not_need_is_refused(method):
    class Aside(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.unused = nn.Linear(4, 3), nn.Linear(4, 3)

        def forward(self, x):
            self.unused(x)
            return self.used(x)

    with pytest.raises(UnsupportedOperationError, match="finds no way from the scores to 'unused'"):
        attribute(Aside(), torch.ones(2, 4), method, "unused")


@pytest.mark.parametrize("method", THROUGH_CAPTUM)
def test_a_network_without_gradients_is_refused(method):
    class Sealed(nn.Linear):
        @torch.no_grad()
        def forward(self, x):
            return super().forward(x)

    with pytest.raises(UnsupportedOperationError, match="finds no way from the scores to 'input'"):
        attribute(Sealed(4, 3), torch.ones(2, 4), method)


def test_a_layer_that_runs_twice_is_refused():
    network = Sharing()
    with pytest.raises(UnsupportedOperationError, match="'relu' runs 3 times"):
        attribute(network, torch.ones(2, 6), "conductance", "relu")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"method": "magic"}, SettingError, "Unknown attribution method 'magic'"),
        ({"method": "deeplift", "steps": 5}, SettingError, "has no parameter 'steps'; its parameters: baseline"),
        ({"method": "integrated-gradients", "steps": 2.5}, SettingError, "steps of .* must be a whole number"),
        ({"method": "integrated-gradients", "steps": 1}, SettingError, "a whole number from 2 to 1000"),
        ({"method": "deeplift", "baseline": 1.5}, SettingError, "from 0.0 to 1.0, not 1.5"),
        ({"method": "epsilon", "bias": "drop"}, SettingError, "bias of .* must be 'absorb' or 'redistribute'"),
        ({"method": "alpha-beta", "alpha": 0.5}, SettingError, "alpha of .* must be a number of at least 1"),
        ({"method": "deeplift", "layer": "conv9"}, ModelError, "no layer 'conv9'"),
        ({"method": "deeplift", "target": "best"}, SettingError, "target must be 'predicted'"),
        ({"method": "deeplift", "target": [0, 1]}, SettingError, "for each of 7 inputs"),
        ({"method": "deeplift", "batch_size": 0}, SettingError, "batch_size must be a whole number of at least 1"),
    ],
)
def test_mistakes_get_a_sentence(network, images, arguments, error, message):
    with pytest.raises(error, match=message):
        attribute(network, images, **arguments)


def test_no_inputs_get_a_sentence(network, images):
    with pytest.raises(DataError, match="at least one input"):
        attribute(network, images[:0], "deeplift")
    with pytest.raises(DataError, match="at least one input, not list"):
        attribute(network, [1.0, 2.0], "gradient-x-input")

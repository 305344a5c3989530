"""Attribution methods: values add up to what they promise, equal slow versions, and leave the network as found."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from idc_core import load_model
from idc_core.attribution.methods import METHODS, attribute, attribute_layers
from idc_core.attribution.relevance import relevance
from idc_core.errors import CancelledError, SettingError
from idc_core.lrp.rules import RULES
from tests.attribution.networks import INSIDE, THROUGH_CAPTUM, Functional, Sharing, Words

FROM_BASELINE = ["deeplift", "integrated-gradients", "conductance"]


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
    for step in range(500):
        point = (images * ((step + 0.5) / 500)).requires_grad_()
        total += torch.autograd.grad(network(point)[:, 1].sum(), point)[0]
    expected = (images * total / 500).numpy()
    found = attribute(network, images, "integrated-gradients", target=1, steps=500)
    np.testing.assert_allclose(found, expected, atol=2e-3 * np.abs(expected).max())


def test_conductance_at_the_input_is_integrated_gradients(network, images):
    conductance = attribute(network, images, "conductance", steps=20)
    np.testing.assert_array_equal(conductance, attribute(network, images, "integrated-gradients", steps=20))


@pytest.mark.parametrize("rule", RULES)
def test_rules_are_relevance_propagation(network, images, rule):
    found = attribute(network, images, rule, "conv2", 1, bias="redistribute")
    expected = relevance(network, images, ["conv2"], rule, target=1, bias="redistribute")["conv2"]
    np.testing.assert_array_equal(found, expected)


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


class Masked(Words):
    """Reads the mean over the words, leaving out padding, which it learns of from the token ids themselves."""

    def forward(self, ids, embedded=None):
        words = (ids != 0).unsqueeze(2)
        embedded = self.embedding(ids) if embedded is None else embedded
        features = torch.tanh(self.conv(embedded.transpose(1, 2))).transpose(1, 2) * words[:, 1:]
        return self.logits(features.sum(1) / words.sum(1))


def test_a_mask_of_padding_is_held_while_words_vary():
    torch.manual_seed(0)
    network = Masked().double()
    ids = torch.randint(1, 20, (4, 9), generator=torch.Generator().manual_seed(0))
    ids[1:, 6:] = 0
    ids[2, :4] = 0
    embedded = network.embedding(ids).detach().requires_grad_()
    (gradient,) = torch.autograd.grad(network(ids, embedded)[:, 2].sum(), embedded)
    found = attribute(network, ids, "gradient-x-input", target=2)
    np.testing.assert_allclose(found, (gradient * embedded).sum(2).detach().numpy(), atol=1e-12)
    with torch.no_grad():
        gained = (network(ids) - network(ids, torch.zeros_like(embedded)))[:, 2].numpy()
    for method in FROM_BASELINE:
        values = attribute(network, ids, method, target=2, batch_size=3)
        np.testing.assert_allclose(values.sum(1), gained, atol=1e-9 if method == "deeplift" else 1e-4)
    assert attribute(network, ids, "conductance", "conv", 2).shape == (4, 5, 8)


@pytest.mark.parametrize("method", FROM_BASELINE)
def test_shared_modules_residual_sums_and_softmax(method):
    torch.manual_seed(3)
    network = Sharing().double()
    inputs = torch.randn(5, 6, generator=torch.Generator().manual_seed(3)).double()
    expected = gained(network.scores, inputs, torch.zeros_like(inputs), 3)
    found = attribute(network, inputs, method, target=3).sum(1)
    np.testing.assert_allclose(found, expected, atol=1e-9 if method == "deeplift" else 0.02 * np.abs(expected).max())


@pytest.mark.parametrize("method", INSIDE)
def test_one_output_is_a_score_too(method):
    network = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 1), nn.Flatten(0))
    found = attribute(network, torch.ones(3, 4), method, "0")
    assert found.shape == (3, 5)
    assert np.isfinite(found).all()


@pytest.mark.sampled(5)
@pytest.mark.parametrize("method", METHODS)
def test_network_is_left_as_found(network, images, method):
    network.train()
    network.fc1.weight.requires_grad_(False)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    attribute_layers(network, images, ["input", "conv1", "logits"] if METHODS[method].inside else ["input"], method)
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


@pytest.mark.sampled(5)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_the_same_twice_and_in_batches(network, images, method):
    layer = "pool" if METHODS[method].inside else "input"
    once = attribute(network, images, method, layer)
    np.testing.assert_array_equal(once, attribute(network, images, method, layer))
    np.testing.assert_allclose(once, attribute(network, images, method, layer, batch_size=2), atol=1e-12)


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


@pytest.mark.parametrize("method", THROUGH_CAPTUM)
def test_scores_among_other_results_are_explained(method):
    class Several(Functional):
        def forward(self, x):
            return {"pictures": x, "logits": super().forward(x)}

    with torch.random.fork_rng():
        torch.manual_seed(0)
        alone = Functional().eval()
    several = Several().eval()
    several.load_state_dict(alone.state_dict())
    x = np.random.default_rng(0).random((4, 1, 12, 12), np.float32)
    layer = "fc1" if METHODS[method].inside else "input"
    found, expected = (attribute_layers(one, x, [layer], method)[layer] for one in (several, alone))
    np.testing.assert_array_equal(found, expected)

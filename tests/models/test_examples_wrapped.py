"""What people put around a network, done to each one of docs/examples: the same numbers, or the sentence that helps."""

import copy
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import nn

import idc_core as idc
from idc_core import IDC, relevance
from idc_core.confusion import collect_statistics
from idc_core.errors import DataError, IdcError, ModelError, SettingError, UnsupportedOperationError
from tests.models import test_examples_hold
from tests.models.test_examples_hold import Case, scores_of, state

pytestmark = pytest.mark.slow

case = test_examples_hold.case


class Around(nn.Module):
    """A network inside another one, whose forward is given."""

    def __init__(self, net: nn.Module, forward: Callable[[nn.Module, torch.Tensor], object]) -> None:
        super().__init__()
        self.net, self.run = net, forward

    def forward(self, x: torch.Tensor) -> object:
        return self.run(lambda value: scores_inside(self.net, value), x)


def scores_inside(net: nn.Module, x: torch.Tensor) -> torch.Tensor:
    found = net(x)
    return getattr(found, "logits", found)


class Twice(torch.autograd.Function):
    """An operation of a person's own."""

    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient


def around(case: Case, forward: Callable) -> nn.Module:
    return Around(copy.deepcopy(case.network), forward).eval()


def in_autocast(net, x):
    with torch.autocast("cpu", torch.bfloat16):
        return net(x)


def with_constant(net, x):
    scores = net(x)
    return scores + torch.zeros(1, scores.shape[1], dtype=scores.dtype, requires_grad=True)


def under_no_grad(net, x):
    with torch.no_grad():
        return net(x)


def inference(net, x):
    with torch.inference_mode():
        return net(x)


SAME = {"constant": with_constant, "no_grad": under_no_grad, "inference_mode": inference}
"""Forwards that change nothing of what the network computes."""


@pytest.mark.parametrize("forward", SAME.values(), ids=SAME)
def test_what_changes_no_score_changes_no_relevance_and_no_coverage(case, forward):
    network, layer = around(case, forward), f"net.{case.layer}"
    expected = relevance(case.network, case.tests, [case.layer])[case.layer]
    np.testing.assert_allclose(relevance(network, case.tests, [layer])[layer], expected, rtol=0, atol=1e-12)
    plain = IDC(case.network, case.layer).fit(case.train).update(case.tests)
    assert state(IDC(network, layer).fit(case.train).update(case.tests)) == state(plain)


def test_autocast_inside_gives_relevance_that_sums_to_the_score(case):
    network, layer = around(case, in_autocast), f"net.{case.layer}"
    start = scores_of(network, case.tests).double().amax(1).numpy()
    values = relevance(network, case.tests, [layer], bias="redistribute")[layer]
    whole = np.abs(values).reshape(len(values), -1).sum(1)
    assert (np.abs(values.reshape(len(values), -1).sum(1) - start) <= 1e-2 * np.maximum(whole, np.abs(start))).all()
    assert IDC(network, layer).fit(case.train).update(case.tests).covered > 0


DRAWN = {
    "randn_like": lambda scores: scores + torch.randn_like(scores),
    "bernoulli": lambda scores: scores * torch.bernoulli(torch.full_like(scores, 0.5)),
    "rrelu": lambda scores: nn.functional.rrelu(scores, training=True),
}


@pytest.mark.parametrize("name", DRAWN)
def test_randomness_is_refused_by_its_name(case, name):
    network, layer = around(case, lambda net, x: DRAWN[name](net(x))), f"net.{case.layer}"
    for use in (lambda: relevance(network, case.tests, [layer]), lambda: IDC(network, layer).fit(case.train)):
        with pytest.raises(UnsupportedOperationError, match=rf"\b{name}\b"):
            use()


@pytest.mark.parametrize("cut", [under_no_grad, inference, lambda net, x: net(x).detach()])
def test_attacks_say_that_scores_have_no_gradient(case, cut):
    if case.tests.dim() != 4:
        return  # attacks are for pictures alone, as the other file tests
    network, targets = around(case, cut).float(), scores_of(case.network, case.tests).argmax(1).numpy()
    for name in ("fgsm", "cw"):
        with pytest.raises(IdcError, match="have no gradient to its input"):
            idc.attack(network, case.tests.float().numpy()[:4], targets[:4], name)


def test_a_hook_is_named_and_shown_how_to_remove(case):
    network = copy.deepcopy(case.network)
    handle = network.get_submodule(case.layer).register_full_backward_hook(lambda *_: None)
    with pytest.raises(UnsupportedOperationError, match=r"backward hook.*remove"):
        relevance(network, case.tests, ["input"])
    handle.remove()
    assert relevance(network, case.tests, ["input"])


def test_an_own_function_that_is_linear_is_carried(case):
    found, plain = (
        relevance(around(case, forward), case.tests, [f"net.{case.layer}"], rule="z")[f"net.{case.layer}"]
        for forward in (lambda net, x: Twice.apply(net(x)), lambda net, x: 2 * net(x))
    )
    np.testing.assert_allclose(found, plain, rtol=1e-4, atol=1e-6 * np.abs(plain).max())


def load(name: str, network: nn.Module, inputs: torch.Tensor, targets: np.ndarray) -> nn.Module:
    """Load a network as one that a person has entered, with data."""
    idc.dataset(f"{name}-data")(lambda split: (inputs.float().numpy(), targets))
    idc.network(name, data=f"{name}-data")(lambda: network)
    return idc.load_model(name)


def test_scores_are_told_from_features_beside_them(case):
    if case.tests.dtype == torch.int64:
        return  # a person's texts come with a tokenizer
    targets = np.arange(12) % scores_of(case.network, case.tests).shape[1]
    network = around(case, lambda net, x: (torch.cat(2 * [net(x)], 1), net(x))).float()
    loaded = load("wrapped-tuple", network, case.tests, targets)
    assert any("Its output '1' " in remark for remark in loaded.remarks)


def test_targets_from_one_are_said_to_be(case):
    if case.tests.dtype == torch.int64:
        return
    targets = np.arange(12) % (classes := scores_of(case.network, case.tests).shape[1]) + 1
    with pytest.raises(ModelError, match=f"its targets are 1 to {classes}; count classes from 0"):
        load("wrapped-from-one", around(case, lambda net, x: net(x)).float(), case.tests, targets)


@dataclass(frozen=True)
class Wrong:
    """A call that cannot be answered, its error and a word of its sentence."""

    call: Callable[[Case], object]
    error: type[IdcError]
    word: str


WRONG = {
    "targets as names": Wrong(
        lambda c: relevance(c.network, c.tests, [c.layer], target=["cat"] * 12), SettingError, "cat"
    ),
    "no target": Wrong(lambda c: relevance(c.network, c.tests, [c.layer], target=None), SettingError, "target"),
    "targets from 1": Wrong(
        lambda c: relevance(
            c.network, c.tests, [c.layer], target=(n := scores_of(c.network, c.tests).shape[1]) - np.arange(12) % n
        ),
        SettingError,
        "counted from 1",
    ),
    "a sparse input": Wrong(lambda c: relevance(c.network, c.tests.to_sparse(), [c.layer]), DataError, "sparse"),
    "the meta device": Wrong(
        lambda c: relevance(copy.deepcopy(c.network).to("meta"), c.tests, [c.layer]), ModelError, "meta"
    ),
    "within vmap": Wrong(
        lambda c: torch.vmap(lambda x: torch.as_tensor(relevance(c.network, x[None], [c.layer])[c.layer]))(c.tests),
        IdcError,
        "vmap",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_answered_is_one_sentence(case, name):
    wrong = WRONG[name]
    with pytest.raises(wrong.error, match=wrong.word):
        wrong.call(case)


def test_one_number_of_clusters_is_a_tuple_of_it(case):
    one, several = (IDC(case.network, case.layer, clusters=clusters).fit(case.train) for clusters in (2, (2,)))
    assert state(one.update(case.tests)) == state(several.update(case.tests))


def test_original_with_a_loader_of_targets(case):
    targets = scores_of(case.network, case.train).argmax(1)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(case.train, targets), batch_size=7)
    arrays, loaded = (IDC(case.network, case.layer, original=True) for _ in range(2))
    arrays.fit(case.train, targets), loaded.fit(loader)
    assert loaded.important.tolist() == arrays.important.tolist()
    np.testing.assert_allclose(loaded.importance, arrays.importance, rtol=0, atol=1e-5 * abs(arrays.importance).max())


def test_an_update_that_is_refused_half_way_counts_nothing(case):
    if not case.tests.is_floating_point():
        return  # words have no infinite value
    criterion = IDC(case.network, case.layer).fit(case.train)
    before, inputs = state(criterion), case.tests.clone()
    inputs[-1].view(-1)[-1] = float("nan")
    with pytest.raises(DataError, match="not finite"):
        criterion.update([inputs[:4], inputs[4:]])
    assert state(criterion) == before


def test_a_layer_of_dead_neurons_says_that_nothing_can_be_covered(case):
    network, scores = around(case, lambda net, x: None), scores_of(case.network, case.tests)
    network.dead = nn.Linear(scores.shape[1], 3, dtype=scores.dtype)
    nn.init.zeros_(network.dead.weight)
    nn.init.constant_(network.dead.bias, -1)
    network.run = lambda net, x: (given := net(x)) + torch.relu(network.dead(given)).sum(1, keepdim=True)
    with pytest.raises(ModelError, match="Nothing can be covered in layer 'dead'"):
        IDC(network, "dead", m=2).fit(case.train)


def test_statistics_of_class_errors_need_no_gradient(case):
    counts = collect_statistics(around(case, under_no_grad), case.tests, [f"net.{case.layer}"])
    plain = collect_statistics(case.network, case.tests, [case.layer])
    np.testing.assert_array_equal(counts.values, plain.values)

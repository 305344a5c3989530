"""What a network changes in place is changed for all that looks at it, and for nothing else."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from idc_core import relevance
from idc_core.errors import UnsupportedOperationError
from idc_core.lrp.rules import RelevanceSettings
from idc_core.tracing.trace import collect
from tests.lrp.networks import Written, numbers, settle

X = numbers(4, 6)


def network(forward):
    parts = {"a": nn.Linear(6, 6), "out": nn.Linear(6, 3), "skip": nn.Linear(6, 3)}
    return settle(Written(forward, **parts))


def twice_in_a_view(net, x):
    h = net.a(x)
    view = h[:, :3]
    view.add_(1.0)
    view.mul_(2.0)
    return net.out(h)


def in_a_chain(net, x):
    h = net.a(x)
    h[:, 1:].sub_(0.5).div_(0.25)
    return net.out(h)


def in_a_view_of_a_view(net, x):
    h = net.a(x)
    view = h[:, :4]
    view.add_(1.0)
    view[:, 1:3].mul_(3.0)
    return net.out(h)


def in_two_views_by_turns(net, x):
    h = net.a(x)
    left = h[:, :3]
    left.add_(1.0)
    right = h[:, 3:]
    right.mul_(2.0)
    left.mul_(0.5)
    right.sub_(1.0)
    return net.out(h)


def in_a_view_that_overlaps_another(net, x):
    h = net.a(x)
    left, right = h[:, :3], h[:, 2:5]
    left.add_(1.0)
    return net.out(torch.cat([left, right], 1))


def turned(net, x):
    h = net.a(x)
    h.view(-1, 2, 3).transpose_(1, 2)
    return net.out(h)


def times_one(net, x):
    h = net.a(x)
    y = h * 1.0
    y.relu_()
    return net.out(y) + net.skip(h)


def over_one(net, x):
    h = net.a(x)
    y = h / 1
    y += 1
    return net.out(y) + net.skip(h)


def joined(left, right):
    return torch.cat((left, right), 1)


WRITTEN = {
    twice_in_a_view: lambda h: joined((h[:, :3] + 1) * 2, h[:, 3:]),
    in_a_chain: lambda h: joined(h[:, :1], (h[:, 1:] - 0.5) / 0.25),
    in_a_view_of_a_view: lambda h: torch.cat((h[:, :1] + 1, (h[:, 1:3] + 1) * 3, h[:, 3:4] + 1, h[:, 4:]), 1),
    in_two_views_by_turns: lambda h: joined((h[:, :3] + 1) * 0.5, h[:, 3:] * 2 - 1),
    in_a_view_that_overlaps_another: lambda h: torch.cat((h[:, :3] + 1, h[:, 2:3] + 1, h[:, 3:5]), 1),
    turned: lambda h: h,
}


@pytest.mark.parametrize("rule", ["epsilon", "attnlrp"])
@pytest.mark.parametrize("forward", WRITTEN, ids=lambda forward: forward.__name__)
def test_what_is_written_in_views_is_seen_in_their_base(forward, rule):
    written, plain = network(forward), network(lambda net, x: net.out(WRITTEN[forward](net.a(x))))
    for layers in (["input"], ["a"], ["out"]):
        scores = collect(written, X, layers, RelevanceSettings(rule)).scores
        np.testing.assert_allclose(scores, written(X).detach(), rtol=1e-6)
    found, expected = (relevance(net, X, ["input"], rule=rule)["input"] for net in (written, plain))
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize(
    ("forward", "plain"),
    [
        (times_one, lambda net, x: net.out(F.relu(net.a(x))) + net.skip(net.a(x))),
        (over_one, lambda net, x: net.out(net.a(x) + 1) + net.skip(net.a(x))),
    ],
)
def test_a_product_with_one_is_no_other_name_of_its_factor(forward, plain):
    written = network(forward)
    scores = collect(written, X, ["input"], RelevanceSettings()).scores
    np.testing.assert_allclose(scores, written(X).detach(), rtol=1e-6)
    found, expected = (relevance(net, X, ["input"])["input"] for net in (written, network(plain)))
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("cut", [lambda h: h.data, lambda h: h.detach()])
def test_what_is_changed_behind_the_way_back_is_refused(cut):
    def forward(net, x):
        h = net.a(x)
        cut(h).clamp_(max=0.1)
        return net.out(h)

    with pytest.raises(UnsupportedOperationError, match="in place through"):
        relevance(network(forward), X, ["input"])

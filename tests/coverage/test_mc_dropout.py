"""Scores of passes with dropout: seeded, the same in any batches, and off again afterwards."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from idc_core.coverage.mc_dropout import dropout_layers, dropout_scores
from idc_core.errors import CancelledError, SettingError, UnsupportedOperationError
from idc_core.tracing.trace import collect
from tests.lrp.networks import Written, numbers, settle

IMAGES = numbers(40, 1, 6, 6, seed=7)


def network(p=0.5):
    return settle(
        Written(
            lambda net, x: net.out(net.units(F.relu(net.fc(net.maps(F.relu(net.conv(x))).flatten(1))))),
            conv=nn.Conv2d(1, 5, 3),
            maps=nn.Dropout2d(p),
            fc=nn.Linear(80, 12),
            units=nn.Dropout(p),
            out=nn.Linear(12, 3),
        )
    ).train()


def by_hand(net, inputs, channels, units, p=0.5):
    """Return the scores without these channels and units."""
    with torch.no_grad():
        maps = F.relu(net.conv(inputs)) * channels[None, :, None, None] / (1 - p)
        return net.out(F.relu(net.fc(maps.flatten(1))) * units / (1 - p)).numpy()


def test_every_pass_is_one_network_with_channels_and_units_dropped():
    net, seen = network(), {"fc": [], "out": []}
    for name, taken in seen.items():
        net.get_submodule(name).register_forward_pre_hook(lambda module, inputs, taken=taken: taken.append(inputs[0]))
    found = dropout_scores(net, IMAGES, 6, seed=3, batch_size=40)
    assert found.shape == (6, 40, 3)
    maps, hidden = ([one for one in taken if len(one) == 40] for taken in seen.values())
    dropped = []
    for scores, active, units in zip(found, maps, hidden, strict=True):
        kept = [(active.reshape(40, 5, 16) != 0).any(2).any(0).double(), (units != 0).any(0).double()]
        np.testing.assert_allclose(by_hand(net, IMAGES, *kept), scores, rtol=1e-5, atol=1e-6)
        dropped.append([one.tolist() for one in kept])
    assert len({str(one) for one in dropped}) == 6
    assert 0.2 < np.mean([sum(units) / 12 for _, units in dropped]) < 0.8


@pytest.mark.parametrize("size", [1, 7, 40])
def test_batches_do_not_matter(size):
    net = network()
    np.testing.assert_allclose(
        dropout_scores(net, IMAGES, 3, batch_size=size), dropout_scores(net, IMAGES, 3), rtol=1e-5, atol=1e-6
    )
    part = dropout_scores(net, IMAGES[20:], 3)
    np.testing.assert_allclose(part, dropout_scores(net, [IMAGES[:20], IMAGES[20:]], 3)[:, 20:], rtol=1e-5, atol=1e-6)


def test_seeds_and_passes_differ_and_are_kept():
    net = network()
    one, again, other = (dropout_scores(net, IMAGES, 4, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, again)
    assert np.abs(one - other).max() > 0.01
    assert len(np.unique(one[:, 0, 0])) == 4
    np.testing.assert_array_equal(dropout_scores(net, IMAGES, 2, 0), one[:2])
    state = torch.random.get_rng_state()
    dropout_scores(net, IMAGES, 2, 0)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_the_network_is_left_as_it_was():
    net = network()
    plain = collect(net, IMAGES, ()).scores
    with pytest.raises(CancelledError):
        dropout_scores(net, IMAGES, 4, on_progress=lambda done, total, label: done < 60)
    assert net.training
    assert net.units.training
    assert not any(module._forward_hooks for module in net.modules())
    np.testing.assert_array_equal(collect(net, IMAGES, ()).scores, plain)


def test_progress_counts_all_passes():
    told = []
    dropout_scores(network(), IMAGES, 3, batch_size=20, on_progress=lambda *news: told.append(news[:2]))
    assert told == [(done, 120) for done in range(20, 121, 20)]


def test_without_dropout():
    for net in (network(0.0), settle(nn.Sequential(nn.Flatten(), nn.Linear(36, 3)))):
        assert not dropout_layers(net)
        with pytest.raises(UnsupportedOperationError, match="no dropout module, so that all passes are alike"):
            dropout_scores(net, IMAGES)
    for wrong in ({"passes": 0}, {"passes": 2.0}, {"seed": -1}):
        with pytest.raises(SettingError, match="whole number"):
            dropout_scores(network(), IMAGES, **wrong)

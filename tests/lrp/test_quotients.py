"""Arithmetic number by number gives what the formula gives, in every layout."""

import pytest
import torch

from idc_core.lrp import contributions, layer_rules, pooling
from idc_core.lrp.affine import Affine

LAYOUTS = [torch.contiguous_format, torch.channels_last]


def images(layout, *shape):
    return torch.randn(*shape, dtype=torch.float64).contiguous(memory_format=layout)


@pytest.mark.parametrize(("layout", "other"), [(one, other) for one in LAYOUTS for other in LAYOUTS])
def test_shares_of_sums_and_scalings(layout, other):
    torch.manual_seed(0)
    x, y, z = (images(layout, 4, 3, 5, 6) for _ in range(3))
    relevance, weight = images(other, 4, 3, 5, 6), torch.randn(3, 1, 1, dtype=torch.float64)
    z[0] = 0
    share = relevance / torch.where(z < 0, z - 0.01, z + 0.01)
    assert torch.allclose(contributions.quotient(relevance, z, 0.01), share, rtol=1e-12, atol=0)
    assert torch.allclose(contributions.quotient(relevance, z, 0.01, weight), weight * share, rtol=1e-12, atol=0)
    rule = layer_rules.epsilon_rule(0.01, "absorb")
    for inputs, given, factor in (((x, y), None, 1.0), ((x,), weight, weight)):
        operation = Affine("sum", lambda *_: z, given, pointwise=True)
        for part, of in zip(rule(operation, inputs, z, relevance), inputs, strict=True):
            assert torch.allclose(part, of * factor * share, rtol=1e-12, atol=0)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("sizes", [[(3, 3), (2, 2), (1, 1), (1, 1)], [(2, 2), (2, 2), (0, 0), (1, 1)]])
def test_winners_do_not_depend_on_how_many_images_are_shared_among_at_a_time(monkeypatch, layout, sizes):
    torch.manual_seed(0)
    x = images(layout, 5, 3, 8, 8).relu()
    z = pooling._pooled(x, sizes)
    relevance = torch.randn_like(z)
    whole = pooling._share_among_winners(x, z, relevance, sizes)
    monkeypatch.setattr(pooling, "_NEAR", 2 * x[0].numel())
    assert torch.equal(pooling._share_among_winners(x, z, relevance, sizes), whole)
    assert torch.allclose(whole.sum((1, 2, 3)), relevance.sum((1, 2, 3)))

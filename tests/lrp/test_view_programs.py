"""Networks that write into views of what they computed, in every door, against ones that write into nothing."""

import numpy as np
import pytest
import torch

import idc_core as idc
from idc_core.errors import ModelError, UnsupportedOperationError
from idc_core.lrp.rules import RelevanceSettings
from idc_core.tracing.trace import collect
from tests.lrp.view_programs import SIDE, Plain, Written, program

COUNT = 8
ABSORBED, SPREAD = ("epsilon", "gamma", "attnlrp"), ("z", "alpha-beta")
SETTINGS = [*map(RelevanceSettings, ABSORBED), *(RelevanceSettings(rule, bias="redistribute") for rule in SPREAD)]
ATTACKS = ("fgsm", "bim", "pgd", "deepfool", "cw", "pgd-l2", "ddn", "jsma", "boundary", "hop-skip-jump")
QUICK = 6


def both(seed):
    """Return a program, its network, one that does the same without writing, pictures, and the scores of these."""
    colours = (1, 3)[seed % 2]
    made = program(seed, COUNT, colours)
    torch.manual_seed(1)
    pictures = torch.rand(COUNT, colours, SIDE, SIDE)
    written = Written(made, colours)
    with torch.no_grad():
        scores = written(pictures)
    np.testing.assert_array_equal(collect(written, pictures, ["conv"]).scores, scores, err_msg=str(made))
    written.double()
    with torch.no_grad():
        return made, written, Plain(made, written), pictures.double(), written(pictures.double()).numpy()


def either(work):
    """Return what a call gives, or what it says where it refuses."""
    try:
        return work()
    except UnsupportedOperationError as error:
        return str(error)


def check_relevance(seed):
    made, written, plain, pictures, scores = both(seed)
    for settings in SETTINGS:
        about = f"{seed}, {settings}: {made}"
        for layer in ("input", "conv"):
            slow = collect(plain, pictures, [layer if layer == "input" else "net.conv"], settings)
            expected = next(iter(slow.relevance.values()))
            found = either(lambda layer=layer, settings=settings: collect(written, pictures, [layer], settings))
            if isinstance(found, str):  # all was written over by constants
                assert "do not depend" in found, about
                assert not expected.any(), about
                continue
            np.testing.assert_allclose(found.scores, scores, rtol=1e-5, atol=1e-6, err_msg=about)
            np.testing.assert_allclose(
                found.relevance[layer], expected, rtol=1e-5, atol=1e-6 * max(1, np.abs(expected).max()), err_msg=about
            )


def has_gradient(network, pictures):
    """Return whether PyTorch itself has a gradient of a network."""
    given = pictures.clone().requires_grad_()
    try:
        torch.autograd.grad(network(given * 1).sum(), given)
    except RuntimeError:
        return False
    return True


def check_doors(seed):
    """Attack both networks, search where each differs from another one, and fit a criterion to each."""
    made, written, plain, pictures, scores = both(seed)
    if made.quiet:  # its gradient is another one
        return
    classes, inputs, attack = scores.argmax(1), pictures.numpy(), ATTACKS[seed // 2 % len(ATTACKS)]
    settings = {"iterations": 15, "search_steps": 2} if attack == "cw" else {}
    found, expected = (
        either(lambda net=net: idc.attack(net, inputs, classes, attack, **settings).inputs) for net in (written, plain)
    )
    if isinstance(found, str):
        assert "gradient" in found, f"{seed}: {made}"
        assert not has_gradient(written, pictures), f"{seed}: {made}"
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5, err_msg=f"{seed}, {attack}: {made}")
    pairs = [(net, type(net)(made, written.colours).double()) for net in (written, plain)]
    found, expected = (either(lambda pair=pair: idc.differential_search(pair, inputs, iterations=2)) for pair in pairs)
    if isinstance(expected, str):  # whose layer has another name
        expected = expected.replace("'net.", "'")
    if isinstance(found, str) and found != expected:
        assert "gradient" in found, f"{seed}: {made}"
        assert not has_gradient(written, pictures), f"{seed}: {made}"
    elif not isinstance(found, str):
        np.testing.assert_array_equal(found.inputs, expected.inputs, err_msg=f"{seed}: {made}")
    found, expected = (
        either(lambda net=net, layer=layer: idc.IDC(net, layer, m=2).fit(inputs).update(inputs).covered)
        for net, layer in ((written, "conv"), (plain, "net.conv"))
    )
    assert found == expected or "do not depend" in str(found), f"{seed}: {made}"


@pytest.mark.parametrize("seed", range(QUICK))
def test_relevance_of_views_that_are_written_into(seed):
    check_relevance(seed)


@pytest.mark.parametrize("seed", [8, 16])
def test_attacks_searches_and_criteria_of_views_that_are_written_into(seed):
    check_doors(seed)


@pytest.mark.parametrize(
    "seeds",
    [pytest.param(range(QUICK, 40), marks=pytest.mark.slow), pytest.param(range(40, 500), marks=pytest.mark.rare)],
)
def test_many_programs_of_views(seeds):
    for seed in seeds:
        for check in (check_relevance, check_doors)[: 1 + (seed < 100)]:
            try:
                check(seed)
            except ModelError as error:  # `flatten` of one row is a view where that of several is a copy
                if "which others are in its batch" not in str(error):
                    raise

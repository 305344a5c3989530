"""Constraints hold exactly, on every picture that a walk with random gradients comes by."""

import numpy as np
import pytest
import torch

from idc_core.errors import SettingError
from idc_core.generation import CONSTRAINTS
from idc_core.generation.constraints import as_seeds


def seeds():
    return as_seeds(torch.rand(6, 3, 14, 16, generator=torch.Generator().manual_seed(0)))


def walk(rule, steps=25, step=40.0):
    """Yield the pictures of a walk along gradients that change at random."""
    start = seeds()
    random = torch.Generator().manual_seed(1)
    state = rule.start(start)
    torch.testing.assert_close(rule.picture(start, state), start, rtol=0, atol=1.1 / 255)
    fixed = rule.prepare(start, torch.randn(start.shape, generator=random))
    for _ in range(steps):
        state = rule.advance(start, state, fixed, torch.randn(start.shape, generator=random), step)
        yield start, rule.picture(start, state)


@pytest.mark.parametrize("name", sorted(CONSTRAINTS))
def test_pictures_have_eight_bits_and_change(name):
    rule, changed = CONSTRAINTS[name](), False
    for start, now in walk(rule):
        assert now.min() >= 0
        assert now.max() <= 1
        np.testing.assert_allclose(now * 255, torch.round(now * 255), atol=1e-4)
        changed = changed or bool((now != start).flatten(1).any(1).all())
    assert changed


def test_light_is_one_number():
    for start, now in walk(CONSTRAINTS["light"](limit=0.4)):
        inside = (now > 0) & (now < 1)
        for one, other, free in zip(start, now, inside, strict=True):
            change = ((other - one) * 255)[free]
            if len(change):
                assert change.max() - change.min() <= 1.01
                assert change.abs().max() <= 0.4 * 255 + 0.51


def test_light_walks_both_ways():
    rule = CONSTRAINTS["light"]()
    means = torch.stack([(now - start).mean((1, 2, 3)) for start, now in walk(rule, steps=20, step=51.0)])
    assert (means.amin(0) < -0.3).all()
    assert (means.amax(0) > 0.3).all()


def test_contrast_keeps_the_mean_while_nothing_saturates():
    rule = CONSTRAINTS["contrast"](least=0.5, most=0.01)
    for start, now in walk(rule):
        np.testing.assert_allclose(now.mean((1, 2, 3)), start.mean((1, 2, 3)), atol=2e-3)


def test_blur_takes_sharpness():
    *_, (start, now) = walk(CONSTRAINTS["blur"]())
    assert (now.diff(dim=3).abs().mean((1, 2, 3)) < 0.5 * start.diff(dim=3).abs().mean((1, 2, 3))).all()


def test_occlusion_changes_one_rectangle():
    for start, now in walk(CONSTRAINTS["occlusion"](height=4, width=5)):
        for one, other in zip(start, now, strict=True):
            rows, columns = torch.where((one != other).any(0))
            if len(rows):
                assert rows.max() - rows.min() < 4
                assert columns.max() - columns.min() < 5


def test_occlusion_lies_where_the_gradient_is_largest():
    gradient = torch.zeros(6, 3, 14, 16)
    gradient[:, 1, 7:9, 10:13] = -1
    fixed = CONSTRAINTS["occlusion"](height=2, width=3).prepare(seeds(), gradient)
    expected = torch.zeros(14, 16)
    expected[7:9, 10:13] = 1
    assert (fixed == expected).all()


def test_occlusion_by_hand():
    for start, now in walk(CONSTRAINTS["occlusion"](height=2, width=2, top=3, left=5), steps=5):
        outside = torch.ones(14, 16, dtype=torch.bool)
        outside[3:5, 5:7] = False
        assert torch.equal(now[..., outside], start[..., outside])


def test_blackout_is_black_rectangles_where_darkening_promises_most():
    rule = CONSTRAINTS["blackout"](height=3, width=2, most=2)
    start = seeds()
    state = rule.start(start)
    gradient = torch.zeros_like(start)
    gradient[:, :, 4:7, 9:11] = -1
    gradient[:, :, 10:13, 0:2] = -0.1
    for place in ((4, 9), (10, 0), (10, 0)):
        state = rule.advance(start, state, rule.prepare(start, gradient), gradient, 10.0)
        now = rule.picture(start, state)
        top, left = place
        assert not now[:, :, top : top + 3, left : left + 2].any()
    assert int((now != start).any(1).sum(dim=(1, 2)).max()) <= 12
    for begin, after in walk(rule):
        assert ((after == begin) | (after == 0)).all()
        assert (after != begin).any(1).sum((1, 2)).max() <= 2 * 6


@pytest.mark.parametrize("epsilon", [1 / 255, 0.1, 0.3])
def test_maximum_ball(epsilon):
    for start, now in walk(CONSTRAINTS["linf"](epsilon=epsilon)):
        assert (now - start).abs().max() <= epsilon + 1e-6


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_euclidean_ball(epsilon):
    longest = 0.0
    for start, now in walk(CONSTRAINTS["l2"](epsilon=epsilon)):
        longest = max(longest, float((now - start).flatten(1).norm(dim=1).max()))
    assert 0.5 * epsilon < longest <= epsilon + 1e-5


def test_only_marked_pixels():
    marked = np.zeros((14, 16), bool)
    marked[2, 3] = marked[9, 1] = True
    for start, now in walk(CONSTRAINTS["only"](pixels=marked), steps=5):
        assert torch.equal(now[..., torch.tensor(~marked)], start[..., torch.tensor(~marked)])
        assert (now != start).any()


def test_shift_by_whole_pixels_and_quarter_turns():
    picture = as_seeds(torch.rand(1, 1, 10, 10, generator=torch.Generator().manual_seed(3)))
    rule = CONSTRAINTS["shift"](degrees=90, share=0.2)
    right = rule.picture(picture, torch.tensor([[0.0, 1.0, 0.0]]))
    torch.testing.assert_close(right[..., 2:], picture[..., :-2], rtol=0, atol=1.01 / 255)
    assert not right[..., :2].any()
    down = rule.picture(picture, torch.tensor([[0.0, 0.0, 0.5]]))
    torch.testing.assert_close(down[..., 1:, :], picture[..., :-1, :], rtol=0, atol=1.01 / 255)
    turned = rule.picture(picture, torch.tensor([[1.0, 0.0, 0.0]]))
    torch.testing.assert_close(turned, torch.rot90(picture, 1, (2, 3)), rtol=0, atol=1.01 / 255)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("light", {"limit": 0}),
        ("contrast", {"least": 2}),
        ("shift", {"degrees": -1}),
        ("blur", {"width": 0}),
        ("occlusion", {"top": 1}),
        ("occlusion", {"height": 0}),
        ("blackout", {"most": 0}),
        ("linf", {"epsilon": 0}),
        ("l2", {"epsilon": float("nan")}),
    ],
)
def test_settings_outside_their_meaning(name, settings):
    with pytest.raises(SettingError):
        CONSTRAINTS[name](**settings)


def test_rectangles_that_do_not_fit():
    start = seeds()
    for rule in (CONSTRAINTS["occlusion"](height=15), CONSTRAINTS["blackout"](width=17)):
        with pytest.raises(SettingError, match="does not fit"):
            rule.prepare(start, start)
    with pytest.raises(SettingError, match="inside"):
        CONSTRAINTS["occlusion"](height=2, width=2, top=13, left=0).prepare(start, start)
    with pytest.raises(SettingError, match="at least one pixel"):
        CONSTRAINTS["only"](pixels=np.zeros((14, 16), bool)).prepare(start, start)


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_parameters_have_the_constraints_own_defaults_and_every_end_of_their_range_is_taken(name):
    card = CONSTRAINTS[name].card
    numbers = {key for key, value in card.defaults.items() if value is not None}
    assert {one.name for one in card.parameters} == numbers
    for one in card.parameters:
        assert one.default == card.defaults[one.name]
        assert type(one.default) is type(one.low) is type(one.high)
        for value in (one.low, one.high):
            CONSTRAINTS[name](**{one.name: value})

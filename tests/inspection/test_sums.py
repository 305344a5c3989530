"""Sums over groups: the jackknife as its paper writes it, and sums that do not depend on how records were dealt out."""

import numpy as np
import pytest
import torch

from idc_core.inspection.blocks import Block, UnitRows, pieces
from idc_core.inspection.pairwise import StoppingRule
from idc_core.inspection.sums import MOST_GROUPS, GroupedSums, _two_sided, jackknife, quantile


def drawn(sizes, seed=0):
    random = np.random.default_rng(seed)
    sums = GroupedSums()
    for size in sizes:
        x = random.normal(2, 1, (size, 3))
        sums.add({"n": np.full((1, 1), size), "x": x.sum(0)[None], "xx": (x**2).sum(0)[None]}, size)
    return sums


def variance(sums):
    return sums["xx"] / sums["n"] - (sums["x"] / sums["n"]) ** 2


def test_jackknife_as_in_the_paper():
    """Busing, Meijer, van der Leeden 1999: pseudo-values of groups of unequal size."""
    sums = drawn([3, 10, 7, 25, 4])
    total = sums.total()
    theta, groups = variance(total), len(sums.groups)
    ratios = [sums.count / size for size in sums.records]
    left = [variance({name: total[name] - group[name] for name in total}) for group in sums.groups]
    pseudo = [ratio * theta - (ratio - 1) * one for ratio, one in zip(ratios, left, strict=True)]
    mean = groups * theta - sum((1 - 1 / ratio) * one for ratio, one in zip(ratios, left, strict=True))
    expected = sum((one - mean) ** 2 / (ratio - 1) for one, ratio in zip(pseudo, ratios, strict=True)) / groups
    score, error = jackknife(sums, variance)
    assert score == pytest.approx(theta)
    assert error == pytest.approx(np.sqrt(expected))


def test_error_of_a_mean_is_the_textbooks():
    sums = drawn([1] * 40)
    values = np.array([group["x"][0] for group in sums.groups])
    _, error = jackknife(sums, lambda some: some["x"] / some["n"])
    assert error[0] == pytest.approx(values.std(0, ddof=1) / np.sqrt(40))


def test_merging_two_workers_is_reading_everything():
    sizes = [5] * 100
    whole = drawn(sizes)
    first, second = GroupedSums(), GroupedSums()
    random = np.random.default_rng(0)
    for at, size in enumerate(sizes):
        x = random.normal(2, 1, (size, 3))
        sums = {"n": np.full((1, 1), size), "x": x.sum(0)[None], "xx": (x**2).sum(0)[None]}
        (first if at % 3 else second).add(sums, size)
    for one, other in ((first, second), (second, first)):
        merged = GroupedSums(list(one.groups), list(one.records))
        merged.merge(other)
        assert merged.count == whole.count == 500
        assert len(merged.groups) <= MOST_GROUPS
        for name, value in merged.total().items():
            assert value == pytest.approx(whole.total()[name])
        assert jackknife(merged, variance)[1] == pytest.approx(jackknife(whole, variance)[1], rel=0.5)


def test_groups_stay_few_and_even():
    sums = drawn([4] * 1000)
    assert MOST_GROUPS / 2 <= len(sums.groups) <= MOST_GROUPS
    assert max(sums.records) <= 4 * min(sums.records) or min(sums.records) == 4
    assert sums.count == 4000


def test_large_sums_keep_fewer_groups():
    sums = GroupedSums()
    for _ in range(40):
        sums.add({"n": np.ones((1, 1)), "xy": np.ones((1500, 1500))}, 1)
    assert 16 <= len(sums.groups) < 40


def test_dropping_hypotheses_leaves_the_others():
    sums = GroupedSums()
    for value in (1.0, 2.0):
        sums.add({"x": np.full((1, 2), value), "xy": np.arange(6.0).reshape(3, 2) * value}, 1)
    sums = sums.only(np.array([0, 2]), 3)
    assert sums.total()["xy"].tolist() == [[0, 3], [12, 15]]
    assert sums.total()["x"].tolist() == [[3, 3]]


def test_one_group_tells_no_error():
    assert np.isinf(jackknife(drawn([5]), variance)[1]).all()
    assert quantile(1, 0.025) == float("inf")
    assert quantile(10_000, 0.025) == pytest.approx(1.96, abs=0.001)


def test_probabilities():
    score, error = np.array([0.0, 1.96, -1.96, 0.5, 0.0, np.nan]), np.array([1.0, 1.0, 1.0, 0.0, 0.0, 1.0])
    found = _two_sided(score, error, 100_000)
    assert found[:5] == pytest.approx([1, 0.05, 0.05, 0, 1], abs=1e-3)
    assert np.isnan(found[5])


def test_blocks_are_cut_between_records_only():
    assert pieces(10, 30, 3) == [(slice(0, 6), 2), (slice(6, 15), 3), (slice(15, 21), 2), (slice(21, 30), 3)]
    assert pieces(2, 10, 5) == [(slice(0, 5), 1), (slice(5, 10), 1)]
    # Texts that end early: nobody knows here where a record's rows end, even where their number would divide.
    assert pieces(10, 20, 3) == [(slice(0, 20), 10)]


def test_moments_are_exact_far_from_zero():
    values = np.random.default_rng(0).normal(1000, 0.1, (5000, 3)).astype(np.float32)
    rows = UnitRows(torch.from_numpy(values), torch.from_numpy(values[0]))
    moved = values.astype(float) - values[0]
    assert rows.moments == pytest.approx(np.stack([moved.sum(0), (moved**2).sum(0)]), rel=1e-5)
    assert (rows.values.numpy() == values).all()


def test_records_needed_are_those_with_which_a_margin_is_the_error():
    sure = StoppingRule(0.05, 0.95, 1000, 30_000)
    spread = np.array([0.04])
    for read in (500, 4000, 20_000):
        needed = sure.needed(float(sure.margins(spread, 64, read)[0]), read)
        assert read < needed < 30_000
        assert sure.margins(spread * np.sqrt(read / needed), 64, needed) == pytest.approx(0.05, rel=1e-3)
    assert sure.needed(float("nan"), 500) == 30_000
    assert sure.needed(0.01, 500) == 500


def test_records_of_nothing_but_padding_count_as_records_without_rows():
    place = "model", "layer"
    block = Block(np.arange(3), {place: torch.zeros(0, 4)}, {place: (5,)}, {})
    (piece,) = block.pieces(place)
    assert (piece.records, len(piece.units)) == (3, 0)
    assert (piece.units.moments == np.zeros((2, 4))).all()

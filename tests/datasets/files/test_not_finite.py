"""Numbers of arrays that are not finite: named, left out with their items, or filled with the mean of their feature."""

import numpy as np
import pytest

from tests.datasets.files.reading import both, refusal

ROWS = np.random.default_rng(0).normal(size=(12, 5))
CLASSES = np.arange(12) % 3
HOLED = ROWS.copy()
HOLED[2, 1], HOLED[5, 1], HOLED[5, 4] = np.nan, np.inf, 1e39


def rows(*splits):
    return sorted((*one.inputs[at].ravel().tolist(), int(one.targets[at])) for one in splits for at in range(len(one)))


def expected(inputs, targets):
    return sorted((*one.ravel().tolist(), int(target)) for one, target in zip(np.float32(inputs), targets, strict=True))


def test_features_are_left_out_with_their_items_or_filled(tmp_path):
    np.savez(tmp_path / "it.npz", x=HOLED, y=CLASSES)
    said = refusal(tmp_path / "it.npz")
    assert "not finite, first in item 2 (2 of 12)" in said
    assert "with --empty drop, or fill in the means of their features with --empty mean." in said
    train, test = both(tmp_path / "it.npz", empty="drop")
    assert rows(train, test) == expected(np.delete(HOLED, [2, 5], 0), np.delete(CLASSES, [2, 5]))
    assert "2 items with values that are not finite left out" in train.notes
    filled = HOLED.copy()
    filled[[2, 5], 1] = np.mean([HOLED[n, 1] for n in range(12) if n not in (2, 5)])
    filled[5, 4] = np.mean([HOLED[n, 4] for n in range(12) if n != 5])
    train, test = both(tmp_path / "it.npz", empty="mean")
    np.testing.assert_allclose(rows(train, test), expected(filled, CLASSES), rtol=1e-6)
    assert "3 values that are not finite filled with the means of their features" in train.notes


def test_series_have_no_means_and_targets_are_never_filled(tmp_path):
    series = np.where(np.arange(12)[:, None, None] == 3, np.nan, np.random.default_rng(0).normal(size=(12, 4, 6)))
    np.savez(tmp_path / "it.npz", x=series, y=CLASSES)
    said = refusal(tmp_path / "it.npz", empty="mean")
    assert said.endswith("first in item 3 (1 of 12); expected numbers: leave these items out with --empty drop.")
    assert rows(*both(tmp_path / "it.npz", empty="drop")) == expected(np.delete(series, 3, 0), np.delete(CLASSES, 3))
    np.savez(tmp_path / "it.npz", x=HOLED, y=np.where(CLASSES == 1, np.nan, CLASSES))
    train, test = both(tmp_path / "it.npz", empty="mean", task="classification")
    assert len(train) + len(test) == 8
    assert np.isfinite(np.concatenate([train.inputs, test.inputs])).all()


@pytest.mark.parametrize("empty", ["drop", "mean"])
def test_nothing_is_left(tmp_path, empty):
    np.savez(tmp_path / "it.npz", x=np.full((12, 5), np.nan), y=CLASSES)
    assert "nothing is left of all items or of a feature" in refusal(tmp_path / "it.npz", empty=empty)

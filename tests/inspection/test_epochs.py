"""Scores over epochs: planted networks whose course is known, and grids by hand."""

import numpy as np
import pytest

from idc_core.errors import DataError
from idc_core.inspection import inspect
from idc_core.inspection.epochs import halfway, scores_by_epoch
from idc_core.inspection.result import Grid, grid
from tests.inspection.planted import Table, is_letter, noisy_table, texts


def made(score, names=None, half=0.0):
    score = np.asarray(score, float)
    names = tuple(names or (f"h{at}" for at in range(len(score))))
    nothing, known = np.full_like(score, np.nan), np.ones(len(names), np.int64)
    return Grid(names, names, score, score - half, score + half, nothing, np.isfinite(score), known)


def test_a_unit_that_grows_into_a_hypothesis_is_followed():
    """Unit 5 is random before training and its hypothesis exactly at the end; a half of each between."""
    data, letter = texts(), is_letter(1, 2)
    exact = np.isin(np.arange(9), (1, 2)).astype(float)
    begun = noisy_table()
    found = {}
    for epoch, share in ((0, 0.0), (2, 0.5), (4, 1.0)):
        columns = begun.copy()
        columns[:, 5] = (1 - share) * begun[:, 5] - share * exact
        hypotheses = [is_letter(3), letter]
        found[epoch] = grid(inspect({"m": Table(columns)}, data, hypotheses, layers=["units"]), "pearson", "m", "units")
    told = scores_by_epoch({epoch: found[epoch] for epoch in (4, 0, 2)})
    assert told.epochs == (0, 2, 4)
    row = told.names.index(letter.name)
    assert told.score[-1, row, 5] == pytest.approx(-1)
    assert (told.strongest[-1, row], told.unit[-1, row]) == (pytest.approx(1), 5)
    assert told.strongest[0, row] == pytest.approx(np.abs(found[0].score[row]).max())
    assert told.most_gained()[0] == row
    assert told.clear[row]
    assert not told.clear[1 - row], "the other hypothesis has the same units all the time"
    table = told.frame().set_index("hypothesis")
    assert table.loc[letter.name, "score at epoch 4"] == pytest.approx(-1)
    assert table.loc[letter.name, "unit at epoch 4"] == 5


def test_by_hand():
    between = made([[0.1, 0.2], [np.nan, np.nan]])
    told = scores_by_epoch({0: made([[0.1, -0.3], [0.5, 0.2]]), 1: between, 3: made([[0.8, 0], [-0.6, 0]])})
    assert told.strongest.tolist() == [[0.3, 0.5], [0.2, 0.0], [0.8, 0.6]]
    assert told.unit.tolist() == [[1, 0], [1, 0], [0, 0]]
    assert told.gain == pytest.approx([0.5, 0.1])
    assert told.mean == pytest.approx([0.4, 0.1, 0.7])


def test_ranges_that_touch_are_no_clear_difference():
    """0.3 and 0.8 lie 0.5 apart; the sign of a score does not matter."""
    for half, clear in ((0.2, True), (0.3, False)):
        told = scores_by_epoch({0: made([[-0.3], [0.8]], half=half), 1: made([[-0.8], [-0.3]], half=half)})
        assert told.clear.tolist() == [clear, clear]
        assert (told.gain > 0).tolist() == [True, False]
    without = scores_by_epoch({0: made([[0.3]], half=np.nan), 1: made([[0.9]])})
    assert not without.clear.any(), "a range that is not known"


def test_hypotheses_are_matched_by_name_and_must_be_the_same():
    told = scores_by_epoch({0: made([[0.1], [0.2]], "ab"), 1: made([[0.3], [0.4]], "ba")})
    assert told.names == ("b", "a")
    assert told.strongest.tolist() == [[0.2, 0.1], [0.3, 0.4]]
    for other in (made([[0.3], [0.4]], "bc"), made([[0.3]], "a"), made([[0.3, 0.1], [0.4, 0.1]], "ab")):
        with pytest.raises(DataError, match="same hypotheses"):
            scores_by_epoch({0: made([[0.1], [0.2]], "ab"), 1: other})
    with pytest.raises(DataError, match="one at least"):
        scores_by_epoch({})


def test_halfway_by_hand():
    epochs = (0, 1, 2, 4)
    assert halfway(epochs, np.array([0.0, 0.4, 0.5, 1.0])) == 2
    assert halfway(epochs, np.array([0.2, 0.9, 0.1, 0.4])) == 1
    assert halfway(epochs, np.array([0.0, 0.1, 0.1, 1.0])) == 4
    assert halfway(epochs, np.array([0.5, 0.9, 0.1, 0.4])) is None

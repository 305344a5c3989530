"""Scores as a table of hypotheses by units, important units among all, parts, looks at single records."""

import numpy as np
import pytest

from idc_core.errors import DataError, SettingError
from idc_core.evidence.finding import Verdict
from idc_core.inspection import Hypothesis, inspect
from idc_core.inspection.result import Grid, compare_importance, grid
from idc_core.inspection.single_records import behaviour_on_records
from tests.inspection.planted import Table, is_letter, letter_number, noisy_table, texts


@pytest.fixture(scope="module")
def model():
    columns = noisy_table(units=5)
    columns[:, 3] = np.isin(np.arange(9), (2, 4))
    return Table(columns)


@pytest.fixture(scope="module")
def found(model):
    return inspect(model, texts(padded=True), [letter_number(), is_letter(2, 4)], ["pearson", "logistic"], ["units"])


def made(score):
    score = np.asarray(score, float)
    names = tuple(f"h{at}" for at in range(len(score)))
    none = np.full(score.shape, np.nan)
    return Grid(names, names, score, none, none, none, score > 9, np.zeros(len(score), np.int64))


def test_grid_holds_every_line_of_single_units_and_nothing_of_probes(found):
    table = grid(found, "pearson", "model", "units")
    assert table.names == ("number", "is 2,4")
    assert table.score.shape == (2, 5)
    for line in found.where(measure="pearson"):
        at = table.names.index(found.table["hypothesis"][line]), found.table["unit"][line]
        for name in ("score", "low", "high", "p_value"):
            assert getattr(table, name)[at] == found.table[name][line]
    assert table.strongest() == (1, 3)
    assert table.units_of(1)[0] == 3
    assert table.hypotheses_of(3)[0] == 1
    assert table.passes[1, 3]
    assert table.tested == 10
    assert table.widest == pytest.approx(np.max(table.high - table.low) / 2)


def test_grid_of_what_was_not_measured_is_refused(found):
    with pytest.raises(DataError, match="no scores of single neurons by 'iou'"):
        grid(found, "iou", "model", "units")


def test_part_holds_the_strongest_of_either_sign_and_undefined_scores_come_last():
    table = made([[0.1, np.nan, 0.2], [-0.9, np.nan, 0.3], [np.nan, np.nan, np.nan]])
    rows, columns = table.part(2, 2)
    assert rows.tolist() == [1, 0]
    assert columns.tolist() == [0, 2]
    assert table.strongest() == (1, 0)


def test_meaning_compares_important_units_with_the_others():
    table = made([[0.9, 0.1, -0.8, 0.2, 0.0, 0.1], [0.1, 0.3, 0.1, 0.1, 0.2, 0.1]])
    told = compare_importance(table, np.array([6.0, 3, 5, 2, 4, 1]), np.array([0, 2]), np.ones(6, bool))
    assert told.best.tolist() == [0.9, 0.3, 0.8, 0.2, 0.2, 0.1]
    assert told.which.tolist() == [0, 1, 0, 0, 1, 0]
    assert told.important == pytest.approx(0.85)
    assert told.others == pytest.approx(0.2)
    # One of the fifteen pairs has such a mean: the pair itself.
    assert told.chance == pytest.approx(1 / 15, abs=0.02)
    assert told.finding.number == told.important
    assert told.finding.control.value == pytest.approx(np.mean([0.9, 0.3, 0.8, 0.2, 0.2, 0.1]), abs=0.02)
    assert told.finding.control.low < told.finding.control.value < told.finding.control.high
    assert told.finding.p == told.chance
    assert told.correlation == pytest.approx(np.corrcoef([6, 3, 5, 2, 4, 1], [6, 4, 5, 2.5, 2.5, 1])[0, 1])


def test_meaning_of_units_all_alike_is_no_more_than_chance():
    told = compare_importance(made(np.ones((1, 4))), np.arange(4.0), np.array([3]), np.ones(4, bool))
    assert told.chance == 1
    assert told.finding.verdict is Verdict.AS_EXPECTED
    assert np.isnan(told.correlation)
    with pytest.raises(DataError, match="4 neurons, not of 3"):
        compare_importance(made(np.ones((1, 4))), np.arange(3.0), np.array([0]), np.ones(4, bool))


def test_a_smaller_draw_is_a_part_of_a_larger_one_and_all_is_the_data_set_itself():
    data = texts()
    small, large = data.sample(30), data.sample(90)
    assert (len(small), len(large)) == (30, 90)
    assert set(small.ids) < set(large.ids)
    assert len({one.fingerprint for one in (small, large, data, data.sample(30, seed=1))}) == 4
    np.testing.assert_array_equal(small.inputs, data.inputs[small.ids])
    assert data.sample(None) is data
    assert data.sample(400) is data
    with pytest.raises(SettingError, match="at least 1"):
        data.sample(0)


def test_a_hypothesis_says_the_same_of_a_part():
    data = texts()
    chosen = np.array([5, 3, 9])
    part = data.only(chosen)
    assert part.ids.tolist() == [5, 3, 9]
    first = inspect(Table(noisy_table()), part, [is_letter(2)], ["pearson"], ["units"])
    again = inspect(Table(noisy_table()), data.only(chosen), [is_letter(2)], ["pearson"], ["units"])
    np.testing.assert_array_equal(first.table["score"], again.table["score"])


def test_look_tells_what_unit_and_hypothesis_do_at_every_symbol(model):
    data = texts(padded=True)
    seen = behaviour_on_records(model, "units", 3, is_letter(2, 4), data, np.array([7, 0]))
    np.testing.assert_array_equal(seen.activations, np.isin(data.inputs[[7, 0]], (2, 4)))
    np.testing.assert_array_equal(seen.behaviour, seen.activations)
    np.testing.assert_array_equal(seen.present, data.inputs[[7, 0]] != 0)
    np.testing.assert_array_equal(seen.holds, seen.behaviour.any(1))
    everywhere = Hypothesis("there", "test", "binary", lambda records: records.present)
    assert not behaviour_on_records(model, "units", 3, everywhere, data, np.array([7, 0])).varies.any()


def test_a_coarser_layer_is_repeated_over_the_picture():
    seen = look_of(np.array([[[1.0, 2], [3, 4]]]), (4, 4))
    assert seen.over(0).tolist() == [[1, 1, 2, 2], [1, 1, 2, 2], [3, 3, 4, 4], [3, 3, 4, 4]]
    assert (look_of(np.array([2.5]), (2, 3)).over(0) == 2.5).all()


def look_of(activations, places):
    from idc_core.inspection.single_records import RecordBehaviour

    return RecordBehaviour(activations, np.zeros((1, *places)), np.ones((1, *places), bool))


def test_units_that_never_change_count_neither_for_nor_against():
    table = made([[0.5, 0.4, 0.0, 0.0, 0.0]])
    changes = np.array([True, True, False, False, False])
    told = compare_importance(table, np.array([2.0, 1, 0, 0, 0]), np.array([0, 2]), changes)
    assert (told.important, told.others, told.still) == (0.5, 0.4, 3)
    assert told.chance == pytest.approx(1 / 2, abs=0.05)
    assert told.correlation == pytest.approx(1)
    nothing = compare_importance(table, np.arange(5.0), np.array([0]), np.zeros(5, bool))
    assert np.isnan(nothing.important)
    assert nothing.finding is None

"""The exact comparison of a value with its minimum and with the baseline; what is new among confused pairs."""

from types import SimpleNamespace

import numpy as np
import pytest

from idc_core.base.own_digest import code_digest
from idc_core.errors import DataError, SettingError
from idc_core.gate.limits import decimals
from idc_core.gate.on_accuracy import Accuracy
from idc_core.gate.on_confusion import ConfusedPairs
from idc_core.gate.on_discovery import NewCell
from idc_core.gate.verdicts import BROKEN, COULD_NOT_RUN, PASSED, CheckReport, GateReport, Measured, Verdict


def results(limit, value, before=None):
    return [one.result for one in limit.judge(Measured(value), before)]


@pytest.mark.parametrize(
    ("value", "least", "result"),
    [(0.4, 0.4, "kept"), (0.39999999999999997, 0.4, "broken"), (0.1 + 0.2, 0.3, "kept"), (0.0, 0.0, "kept")],
)
def test_a_minimum_is_broken_below_it_alone(value, least, result):
    assert results(Accuracy(at_least=least), value) == [result]


@pytest.mark.parametrize(
    ("before", "value", "tolerance", "result"),
    [
        (0.9, 0.8, 0.1, "kept"),  # in binary 0.09999999999999998
        (0.8, 0.7, 0.1, "kept"),  # in binary 0.10000000000000009
        (0.8, 0.6999999999999999, 0.1, "broken"),
        (0.42, 0.40, 0.02, "kept"),
        (0.5, 0.5, 0.0, "kept"),
        (0.5, 0.49999999999999994, 0.0, "broken"),
        (0.5, 0.9, 0.0, "kept"),
        (1e-300, 0.0, 0.0, "broken"),
    ],
)
def test_a_fall_is_too_far_beyond_the_tolerance_alone(before, value, tolerance, result):
    assert results(Accuracy(may_fall_by=tolerance), value, before) == [result]


def test_both_bounds_are_judged_each_by_itself():
    limit = Accuracy(at_least=0.5, may_fall_by=0.1)
    assert results(limit, 0.6, 0.9) == ["kept", "broken"]
    assert results(limit, 0.4, 0.45) == ["broken", "kept"]
    with pytest.raises(DataError, match="no number for accuracy"):
        results(limit, 0.4, [("a", "b")])


def test_a_report_never_shows_equal_what_is_not():
    assert decimals(0.39999999, 0.4) == "0.39999999"
    assert decimals(0.4, 0.39999999) == "0.4000"
    assert decimals(0.4, 0.4) == "0.4000"
    (one,) = Accuracy(at_least=0.4).judge(Measured(0.39999999), None)
    assert one.sentence == "accuracy is 0.39999999, below its minimum of 0.4."


@pytest.mark.parametrize(
    ("value", "most", "result"),
    [(0.05, 0.05, "kept"), (0.05000000000000001, 0.05, "broken"), (0.1 + 0.2, 0.3, "broken"), (0.0, 0.0, "kept")],
)
def test_a_maximum_is_broken_above_it_alone(value, most, result):
    assert results(NewCell(at_most=most), value) == [result]


def test_new_pairs_are_those_that_the_baseline_lacks_in_either_order():
    pairs = [("1", "8"), ("4", "9")]
    assert results(ConfusedPairs(), pairs, [("9", "4"), ("1", "8"), ("2", "3")]) == ["kept"]
    assert results(ConfusedPairs(), pairs, [("1", "8")]) == ["broken"]
    assert results(ConfusedPairs(at_most_new=1), pairs, [("1", "8")]) == ["kept"]
    (one,) = ConfusedPairs().judge(Measured(pairs), [("1", "8")])
    assert one.sentence.endswith(": 4 and 9.")
    with pytest.raises(DataError, match="no pairs"):
        results(ConfusedPairs(), pairs, 0.5)


def test_no_verdict_without_the_limit_that_it_compares_with():
    for result in ("kept", "broken"):
        with pytest.raises(SettingError, match="needs the limit"):
            Verdict("accuracy", "", result, "0.5")
    assert not Verdict("accuracy", "", "could not run", sentence="Why.").wanted


@pytest.mark.parametrize(
    ("found", "status"),
    [
        (("kept", "kept"), PASSED),
        (("kept", "broken"), BROKEN),
        (("could not run", "broken"), COULD_NOT_RUN),
        (("could not run", "kept"), COULD_NOT_RUN),
    ],
)
def test_what_could_not_run_weighs_most(found, status):
    verdicts = tuple(Verdict("a", "b", one) for one in found)
    assert GateReport("idc.toml", (CheckReport("c", verdicts=verdicts),)).status == status


def test_few_tests_have_a_chance_of_a_new_cell_and_no_halves():
    measured = NewCell(at_most=1).measure(SimpleNamespace(analysis=SimpleNamespace(codes=np.array([3, 5, 3]), total=9)))
    assert measured.value == pytest.approx(1 / 3)
    assert measured.findings == ()


def test_what_was_measured_with_other_code_is_not_read(tmp_path):
    setup, helper = tmp_path / "setup.py", tmp_path / "gate_helper_of_a_test.py"
    setup.write_text("one = 1")
    before = code_digest(SimpleNamespace(path=setup))
    setup.write_text("one = 2")
    assert before != (now := code_digest(SimpleNamespace(path=setup)))
    setup.write_text("def late():\n    import gate_helper_of_a_test")
    helper.write_text("two = 2")
    now = code_digest(SimpleNamespace(path=setup))
    helper.write_text("two = 3")
    assert now != code_digest(SimpleNamespace(path=setup))

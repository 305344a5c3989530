"""A finding says its control and its verdict, and only what stands out among all looks is told."""

import pytest

from idc_core.errors import SettingError
from idc_core.evidence.finding import LEVEL, Control, Finding, Verdict, most_telling

CHANCE = Control("by chance", 0.42, 0, 2)


def finding(p=0.001, subject="errors-only", **others):
    claim = others.pop("claim", "Cells are reached only by misclassified tests")
    return Finding(subject, claim, 5, CHANCE, 3.0, 5.0, p, **others)


def test_a_sentence_says_number_control_and_verdict():
    assert finding().sentence == "Cells are reached only by misclassified tests: 5, and 0.42 (0 to 2) by chance."
    assert finding(0.4).sentence.endswith("by chance, as expected.")
    assert finding(0.4, least_p=0.2).sentence.endswith("by chance, too few to tell.")


def test_looks_count():
    assert finding(0.01).verdict is Verdict.STANDS_OUT
    assert finding(0.01, looks=6).verdict is Verdict.AS_EXPECTED
    assert finding(0.01, least_p=0.01, looks=6).verdict is Verdict.TOO_FEW


@pytest.mark.parametrize("wrong", [{"claim": ""}, {"p": 1.5}, {"p": -0.1}, {"looks": 0}])
def test_none_can_be_made_without_its_control(wrong):
    with pytest.raises(SettingError, match="A finding needs"):
        finding(**wrong)
    with pytest.raises(SettingError, match="A finding needs"):
        Finding("x", "claim", 1, Control("", 0, 0, 0), 0, 1, 0.5)


def test_the_most_telling_are_of_different_subjects_and_of_all_looks():
    several = [finding(0.001), finding(0.0001), finding(0.002, "recall"), finding(0.04, "share"), finding(0.3, "pair")]
    told = most_telling(several)
    assert [(one.subject, one.p) for one in told] == [("errors-only", 0.0001), ("recall", 0.002)]
    assert all(one.looks == 4 for one in told)
    assert most_telling([finding(LEVEL / 4, str(number)) for number in range(6)]) == []
    assert len(most_telling([finding(1e-9, str(number)) for number in range(6)])) == 4


def test_shares_are_written_as_percentages():
    share = Finding(
        "recall", "Recall of 7", 0.4, Control("for the other classes", 0.96, 0.95, 0.97), 0.5, 0.6, 0, unit="%"
    )
    assert share.sentence == "Recall of 7: 40.0 %, and 96.0 % (95.0 % to 97.0 %) for the other classes."
    assert [share.write(number) for number in (0, 0.0042, 0.012)] == ["0.0 %", "0.42 %", "1.2 %"]

"""How much is left by every criterion: from IDC's counts, from profiles, and refused where there are no targets."""

import numpy as np
import pytest

import idc_core as idc
from idc_core.coverage.discovery import second_half
from idc_core.coverage.profiles import Profiles
from idc_core.coverage.registry import CRITERIA
from idc_core.errors import DataError, SettingError
from idc_core.evidence.discovery import Discovery
from idc_core.evidence.finding import Verdict
from tests.coverage.one_pass import NETWORK, OPTIONS, TESTS, TRAIN, make


def fitted(name):
    return idc.IDC(NETWORK, "fc", 3).fit(TRAIN) if name == "idc" else make(name, **OPTIONS[name]).fit(TRAIN)


@pytest.mark.parametrize("name", [name for name in CRITERIA if name != "nlc"])
def test_every_criterion_with_targets_tells_the_chance_of_a_test_that_covers_something_new(name):
    profiles = fitted(name).profile(TESTS)
    covered = [set(profiles.targets[a:b].tolist()) for a, b in zip(profiles.starts, profiles.starts[1:], strict=False)]
    new = [bool(one - set().union(*covered[:i], *covered[i + 1 :])) for i, one in enumerate(covered)]
    left = idc.discovery(profiles)
    assert left.reached == profiles.covered()
    assert left.chance == (0 if left.reached == profiles.total else np.mean(new))
    assert 0 <= left.low <= left.chance <= left.high <= 1
    assert left.reached <= left.at_least <= (profiles.total or np.inf)
    assert left.new(len(covered)).expected <= left.new(len(covered)).high


def test_idc_tells_it_from_the_cells_that_it_has_counted():
    criterion = fitted("idc")
    profiles = criterion.profile(TESTS)
    assert idc.discovery(criterion.update(TESTS)) == idc.discovery(profiles)


def test_what_has_no_targets_or_no_counts_is_refused_with_what_to_do():
    nlc = fitted("nlc")
    with pytest.raises(SettingError, match="no targets to count"):
        idc.discovery(nlc)
    with pytest.raises(SettingError, match="no targets to count"):
        idc.discovery(nlc.profile(TESTS))
    with pytest.raises(SettingError, match=r"Neuron coverage does not keep.*criterion.profile\(tests\)"):
        idc.discovery(fitted("nc").update(TESTS))
    with pytest.raises(SettingError, match="not 'idc'"):
        idc.discovery("idc")
    with pytest.raises(DataError, match="at least 2 inputs; got 0"):
        idc.discovery(fitted("idc"))
    with pytest.raises(DataError, match="got 1"):
        idc.discovery(Profiles.of_mask(np.ones((1, 3), bool)))


def test_the_second_half_is_compared_with_what_the_first_predicts():
    rng = np.random.default_rng(0)
    alike, told = rng.zipf(1.5, 400), []
    for codes in (alike, np.concatenate([alike[:200], 10_000 + np.arange(200)]), np.repeat([1, 2, 3, 4], 100)):
        found = second_half(codes)
        told.append(found.verdict)
        assert found.number == len(set(codes.tolist())) - len(set(codes[:200].tolist()))
        assert found.control.value == Discovery.of_counts(np.bincount(codes[:200])).new(200).expected
    assert told == [Verdict.AS_EXPECTED, Verdict.STANDS_OUT, Verdict.AS_EXPECTED]
    assert "predicted from the first half, as expected." in second_half(alike).sentence
    assert second_half(np.array([2**70, 5, 2**70], object)).number == 0
    with pytest.raises(DataError, match="at least 2 inputs"):
        second_half(np.array([1, 2]))


def test_the_figures_of_the_documents():
    criterion = idc.IDC(idc.load_model("lenet5-digits"), "fc2").fit(idc.load_dataset("digits", "train"))
    left = idc.discovery(criterion.update(idc.load_dataset("digits", "test")))
    assert f"{left.chance:.3f} ({left.low:.3f} to {left.high:.3f})" == "0.050 (0.022 to 0.078)"
    assert (left.reached, left.at_least, round(left.new(540).expected), *left.new(540)[1:]) == (83, 92, 15, 5, 30)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("idc", {}),
        ("tknc", {}),
        ("tknp", {}),
        ("nbc", {}),
        ("kmnc", {"k": 20}),
        ("dsc", {}),
        ("mdsc", {"upper": 60, "buckets": 200}),
    ],
)
def test_intervals_hold_for_tests_of_digits(name, options):
    """Tests are drawn from 1,197 inputs that the criterion has not seen, so that the truth is known."""
    model, train, test = (
        idc.load_model("lenet5-digits"),
        idc.load_dataset("digits", "train"),
        idc.load_dataset("digits", "test"),
    )
    profiles = CRITERIA[name](model, "fc2", **options).fit(train.inputs[:600])
    profiles = profiles.profile(np.concatenate([train.inputs[600:], test.inputs]))
    covered = np.zeros((len(profiles), int(profiles.targets.max()) + 1), bool)
    covered[np.repeat(np.arange(len(profiles)), profiles.counts), profiles.targets] = True
    rng, held = np.random.default_rng(1), np.zeros(2)
    for _ in range(800):
        now, later = np.split(covered[rng.integers(len(covered), size=540)], 2)
        left, unseen = idc.discovery(Profiles.of_mask(now)), ~now.any(0)
        new = left.new(270)
        truth, found = covered[:, unseen].any(1).mean(), np.count_nonzero(unseen & later.any(0))
        held += (left.low <= truth <= left.high, new.low <= found <= new.high)
    assert 0.925 <= held[0] / 800 <= 0.985
    assert held[1] / 800 >= 0.92

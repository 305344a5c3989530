"""Scores of suites: the numbers that criteria give one by one, each made once, stopped runs that go on."""

from dataclasses import replace

import numpy as np
import pytest

from idc_core.coverage import CRITERIA, IDC
from idc_core.datasets import load_dataset
from idc_core.errors import CancelledError
from idc_core.experiments import criterion_scores as module
from idc_core.experiments.criterion_scores import CriterionScores, SuiteSpec, other_criteria
from idc_core.experiments.protocol import STUDIO
from idc_core.experiments.suites import noisy, rq2
from idc_core.models import load_model
from idc_core.perturbation import attack, guided_noise, random_noise

pytestmark = pytest.mark.usefixtures("own_folder")


def expected(model, train, original, made, layer, m):
    """IDC alone and together, by the criterion itself."""
    scores = []
    for tests in (made, np.concatenate([original, made])):
        criterion = IDC(model, layer, min(m, 4) if layer == "conv1" else m).fit(train.inputs).update(tests)
        scores.append((criterion.covered, criterion.total))
    return scores


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("ask", "make"),
    [
        (
            SuiteSpec("S", "noise", 25, 3, 1, {"share": 0.1, "deviation": 0.75}),
            lambda model, tests: random_noise(tests.inputs[:25], share=0.1, deviation=0.75, seed=3),
        ),
        (
            SuiteSpec("2DI", "guided", 40, 1, 2, {"share": 0.1, "deviation": 0.75}),
            lambda model, tests: np.concatenate(
                [guided_noise(model, tests.inputs, share=0.1, deviation=0.75, seed=seed) for seed in (1, 2)]
            ),
        ),
        (
            SuiteSpec("BIM", "bim", 30, 0, 1, {"epsilon": 0.3, "step": 0.05, "steps": 10}),
            lambda model, tests: (
                attack(model, tests.inputs[:30], tests.targets[:30], "bim", epsilon=0.3, step=0.05, steps=10).inputs
            ),
        ),
        (SuiteSpec("U_O", "original", 20), lambda model, tests: tests.inputs[:20]),
        (SuiteSpec("train", "train", 30), lambda model, tests: load_dataset("digits", "train", 30).inputs),
    ],
)
def test_a_reading_is_what_every_criterion_says_by_itself(digits, ask, make):
    model, train, test = digits
    found = CriterionScores(model, train, test).of(ask)
    made, original = make(model, test), test.inputs[: ask.tests]
    assert found["inputs"] == len(made)
    for layer, m in (("fc1", 6), ("fc1", 12), ("conv2", 3), ("conv1", 4)):
        used, total, alone, together, before = found["cells"][layer][m - 1]
        assert used == m
        assert [(alone, total), (together, total)] == expected(model, train, original, made, layer, m)
        assert before <= together <= before + alone
    assert len(found["cells"]["fc1"]) == 12
    assert len(found["cells"]["conv1"]) == 6  # the layer has no more
    for name in other_criteria():
        criterion = CRITERIA[name](model, ("fc1",) if CRITERIA[name].card.one_layer else tuple(model.card.layers)).fit(
            train
        )
        alone = criterion.fresh().update(made).score
        together = criterion.fresh().update(original).update(made).score
        assert found["scores"][name] == pytest.approx([alone, together], rel=1e-6), name


def test_accuracy_is_the_share_of_right_answers(digits):
    model, train, test = digits
    settings = {"epsilon": 0.3}
    found = CriterionScores(model, train, test).of(SuiteSpec("FGSM", "fgsm", 40, 0, 1, settings))
    fooled = attack(model, test.inputs, test.targets, "fgsm", **settings).success
    assert found["accuracy"] == (~fooled).mean()
    assert found["rmse"] is None


def test_a_stopped_run_goes_on_where_it_was(digits, monkeypatch, finished):
    model, train, test = digits
    made = []
    real = CriterionScores._score

    def counted(self, ask):
        made.append((ask.name, ask.seed, ask.copies))
        return real(self, ask)

    monkeypatch.setattr(CriterionScores, "_score", counted)

    def stop(done, total, label):
        return finished("reading") < 3 or "seed" not in label

    with pytest.raises(CancelledError):
        rq2(CriterionScores(model, train, test, on_progress=stop), seeds=2)
    assert finished("reading") == 3
    assert len(made) == 4  # three finished, one stopped within
    resumed = rq2(CriterionScores(model, train, test), seeds=2)
    assert made[4:] == [made[3], *[("U_O+DI", 1, 1), ("U_O+train", 0, 1), ("U_O+2S", 0, 2), ("U_O+2DI", 0, 2)]]
    assert finished("reading") == 8
    again = CriterionScores(model, train, test)
    assert rq2(again, seeds=2) == resumed
    assert (len(made), "_trained" in vars(again)) == (9, False)  # nothing is made, nothing learnt
    assert rq2(CriterionScores(model, train, test, fresh=True), seeds=2) == resumed
    assert len(made) == 17


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "other",
    [
        lambda model, train, test: CriterionScores(model, train, load_dataset("digits", "test", 39)),
        lambda model, train, test: CriterionScores(model, load_dataset("digits", "train", 199), test),
        lambda model, train, test: CriterionScores(model, train, test, protocol=replace(STUDIO, rule="z")),
        lambda model, train, test: CriterionScores(model, train, test, most=5),
        lambda model, train, test: CriterionScores(load_model("lenet5-digits"), train, test),
    ],
)
def test_other_data_networks_and_settings_are_other_units(digits, other, finished):
    ask = SuiteSpec("S", "noise", 20)
    CriterionScores(*digits).of(ask)
    other(*digits).of(ask)
    assert finished("reading") == 2


def test_every_seed_and_setting_is_a_unit_of_its_own(digits, finished):
    scores = CriterionScores(*digits)
    for ask in (*noisy(20, (0, 1)), *noisy(20, (0, 1), 0.3), *noisy(21, (0,)), SuiteSpec("U_O", "original", 20)):
        scores.of(ask)
    assert finished("reading") == 11


def test_a_changed_format_makes_units_anew(digits, monkeypatch, finished):
    ask = SuiteSpec("U_O", "original", 20)
    CriterionScores(*digits).of(ask)
    monkeypatch.setattr(module, "FORMAT", module.FORMAT + 1)
    CriterionScores(*digits).of(ask)
    assert finished("reading") == 2


def test_growth_ends_at_the_score_of_all_tests(digits):
    scores = CriterionScores(*digits)
    grown = scores.growth((6, 12), orders=3, sizes=4)
    everything = scores.of(SuiteSpec("U_O", "original", 40))
    assert grown["sizes"] == [10, 20, 30, 40]
    for name, growth in grown["scores"].items():
        rows = np.array(growth)
        assert rows.shape == (3, 4)
        if name.startswith("idc"):
            _, total, alone, *_ = everything["cells"]["fc1"][int(name[3:]) - 1]
            assert rows[:, -1] == pytest.approx(alone / total)
        else:
            assert rows[:, -1] == pytest.approx(everything["scores"][name][0])
    assert set(grown["scores"]) == {"idc6", "idc12", *other_criteria()}

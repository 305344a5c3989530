"""Protocols: what they change is done as the engine does it by itself, and what they leave is the studio's."""

from dataclasses import replace

import numpy as np
import pytest

from idc_core.cli.experiment import _PROTOCOLS
from idc_core.coverage import CRITERIA, IDC
from idc_core.experiments.criterion_scores import CriterionScores, SuiteSpec
from idc_core.experiments.protocol import PAPER, PROGRAM, PROTOCOLS, STUDIO
from idc_core.experiments.suites import automatic_m, averaged, noisy, rq2, rq4
from idc_core.experiments.unclipped import unclipped
from idc_core.lrp.rules import RelevanceSettings
from idc_core.perturbation import attack, guided_noise
from idc_core.tracing.trace import collect

pytestmark = pytest.mark.usefixtures("own_folder")


def test_the_command_line_knows_all_protocols():
    assert tuple(PROTOCOLS) == _PROTOCOLS


def test_the_paper_redistributes_biases_and_the_studio_absorbs_them():
    assert PAPER.relevance == RelevanceSettings("epsilon", bias="redistribute")
    assert STUDIO.relevance == RelevanceSettings("epsilon", bias="absorb")
    assert (PAPER.flipped, PAPER.layer_ms, PAPER.clipped) == (0.10, (4,), False)
    assert "rq1" in PROGRAM.by_class
    assert "rq1" not in PAPER.by_class


def test_parts_are_classes_with_their_own_training_inputs_and_tests(digits):
    _, train, test = digits
    parts = list(PAPER.parts("rq2", train, test))
    there = sorted(set(test.targets.tolist()))
    assert [set(part.targets.tolist()) for _, part in parts] == [{number} for number in there]
    assert [len(one) for one, _ in parts] == np.bincount(train.targets)[there].tolist()
    assert sorted(np.concatenate([part.ids for _, part in parts])) == sorted(test.ids)
    assert list(PAPER.parts("rq1", train, test)) == [(train, test)] == list(STUDIO.parts("rq2", train, test))


def test_only_training_inputs_that_are_answered_rightly_take_part(digits):
    model, _, test = digits
    # Wrong targets stand in for wrong answers, of which the network gives few.
    turned = replace(test, targets=np.where(np.arange(len(test)) < 15, (test.targets + 1) % 10, test.targets))
    right = collect(model, test, ["fc1"]).scores.argmax(1) == turned.targets
    kept = PAPER.learnt_from(model, turned)
    assert kept.ids.tolist() == turned.ids[right].tolist()
    assert len(kept) <= 25
    assert STUDIO.learnt_from(model, turned) is turned


def test_cells_are_those_of_idc_with_the_settings_of_the_paper(digits):
    model, train, test = digits
    found = CriterionScores(model, train, test, protocol=PAPER, others=False).of(SuiteSpec("U_O", "original", 40))
    criterion = IDC(model, "fc1", 6, "epsilon", bias="redistribute").fit(train.inputs).update(test.inputs)
    assert found["cells"]["fc1"][5][1:3] == [criterion.total, criterion.covered]
    assert found["scores"] == {}


def test_guided_noise_and_attacks_follow_the_protocol(digits):
    model, train, test = digits
    scores = CriterionScores(model, train, test, protocol=PAPER)
    guided = scores._suite(noisy(40, (3,))[1])
    expected = guided_noise(model, test.inputs, share=0.02, deviation=0.75, seed=3, bias="redistribute")
    assert np.array_equal(guided.take(range(40)), expected)
    made = scores._suite(SuiteSpec("FGSM", "fgsm", 40, 0, 1, {"epsilon": 0.3})).take(range(40))
    assert made.min() < -0.1
    assert made.max() > 1.1


def test_neuron_coverage_is_scaled(digits):
    model, train, test = digits
    found = CriterionScores(model, train, test, protocol=PAPER).of(SuiteSpec("U_O", "original", 40))
    scaled = CRITERIA["nc"](model, tuple(model.card.layers), scale="layer").fit(train).update(test)
    assert found["scores"]["nc"][0] == pytest.approx(scaled.score)
    assert scaled.score != CRITERIA["nc"](model, tuple(model.card.layers)).fit(train).update(test).score


def test_kept_runs_are_told_apart_by_protocol_and_the_studios_keep_their_key(digits, finished):
    keys = [CriterionScores(*digits, protocol=one)._key() for one in (STUDIO, PAPER, PROGRAM)]
    assert "protocol" not in keys[0]
    assert [key["protocol"]["name"] for key in keys[1:]] == ["paper", "program"]
    ask = SuiteSpec("U_O", "original", 5)
    for protocol in (STUDIO, replace(STUDIO, rule="z")):
        CriterionScores(*digits, protocol=protocol, others=False).of(ask)
    assert finished("reading") == 2


@pytest.mark.parametrize("steps", [{"epsilon": 0.1}, {"epsilon": 0.1, "step": 0.03, "steps": 5}])
def test_without_a_cut_attacks_are_what_they_are_with_one_that_cuts_nothing(digits, steps):
    model, _, test = digits
    inputs = (0.3 + 0.4 * test.inputs[:12]).astype(np.float32)
    name = "bim" if "steps" in steps else "fgsm"
    made = unclipped(model, inputs, test.targets[:12], **steps)
    assert made == pytest.approx(attack(model, inputs, test.targets[:12], name, **steps).inputs, abs=1e-6)


def test_a_program_has_ten_copies_of_a_test_and_other_noise_in_every_seed(digits):
    scores = CriterionScores(*digits, protocol=replace(STUDIO, copies=3), others=False)
    asked = []
    scores.of = lambda spec: asked.append(spec) or CriterionScores.of(scores, replace(spec, tests=5))
    rows = rq2(scores, 2, (4,), 0.1)
    assert [(spec.seed, spec.copies) for spec in asked if spec.kind == "noise"] == [(0, 3), (3, 3)]
    assert {row["suite"] for row in rows} == {"U_O", "U_O+S", "U_O+DI", "U_O+train"}


def test_the_automatic_m_is_the_last_that_the_tests_could_cover():
    totals = [2, 8, 16, 64, 128]
    assert [automatic_m(totals, tests) for tests in (1, 2, 15, 16, 127, 10**6)] == [1, 1, 2, 3, 4, 5]


def test_parts_are_averaged_number_by_number():
    first = {"suite": "U_O", "m": 4, "tests": 10, "idc": 0.2, "deviation": None, "note": "a"}
    other = first | {"tests": 30, "idc": 0.4, "deviation": 1.0, "note": "b"}
    assert averaged([[first], [other]]) == [
        {"suite": "U_O", "m": 4, "tests": 40, "idc": pytest.approx(0.3), "deviation": 1.0, "note": None}
    ]
    assert averaged([[first]]) == [first]


@pytest.mark.slow
def test_idc_of_classes_is_averaged_before_it_is_correlated(digits):
    model, train, test = digits
    classes = [CriterionScores(model, *part, protocol=PAPER, others=False) for part in PAPER.parts("rq4", train, test)]
    rows = rq4(CriterionScores(model, train, test, protocol=PAPER), (4,), classes=classes)
    assert {row["points"] for row in rows} == {"14 suites"}
    plain = rq4(CriterionScores(model, train, test, protocol=PAPER), (4,))
    assert [row["criterion"] for row in plain if row["points"] == "14 suites"] == [row["criterion"] for row in rows]
    assert [row["spearman"] for row in plain if row["points"] == "14 suites"] != [row["spearman"] for row in rows]

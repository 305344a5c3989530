"""Tables of RQ2 to RQ5: every figure is what the scores say, and what cannot be measured says why."""

import numpy as np
import pytest
import torch
from scipy.stats import kendalltau, spearmanr

from idc_core.cli.experiments.suites import attackable
from idc_core.errors import SettingError
from idc_core.experiments.criterion_scores import CriterionScores, SuiteSpec, other_criteria
from idc_core.experiments.suites import noisy, rq2, rq3, rq4, rq5, suites
from idc_core.perturbation import TRANSFORMS

SEEDS = 3


@pytest.fixture(scope="module")
def scores(digits, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IDC_HOME", str(tmp_path_factory.mktemp("home")))
        yield CriterionScores(*digits)


def test_rq2_gives_means_and_deviations_over_the_seeds(scores):
    rows = rq2(scores, SEEDS, (6, 12), 0.1)
    assert [(row["suite"], row["m"]) for row in rows] == [
        (suite, m) for suite in ("U_O", "U_O+S", "U_O+DI", "U_O+train", "U_O+3S", "U_O+3DI") for m in (6, 12)
    ]
    of = {(row["suite"], row["m"]): row for row in rows}
    cells = [scores.of(ask)["cells"]["fc1"][11] for ask in noisy(40, range(SEEDS), 0.1)]
    for name, found in (("U_O+S", cells[:SEEDS]), ("U_O+DI", cells[SEEDS:])):
        row = of[name, 12]
        together = [covered / total for _, total, _, covered, _ in found]
        alone = [covered / total for _, total, covered, _, _ in found]
        assert (row["seeds"], row["inputs"], row["total"]) == (SEEDS, 40, found[0][1])
        assert row["idc"] == pytest.approx(np.mean(together))
        assert row["idc_deviation"] == pytest.approx(np.std(together, ddof=1))
        assert row["alone"] == pytest.approx(np.mean(alone))
        assert row["covered"] == pytest.approx(np.mean([covered for *_, covered, _ in found]))
        assert row["added"] == pytest.approx(row["covered"] - of["U_O", 12]["covered"])
        assert row["unit"] == "accuracy"
    assert of["U_O+DI", 12]["seeds_won"] == sum(cells[SEEDS + seed][3] > cells[seed][3] for seed in range(SEEDS))
    assert {row["suite"] for row in rows if row["seeds_won"] is not None} == {"U_O+DI"}
    assert of["U_O", 6]["added"] == 0
    assert of["U_O", 6]["idc_deviation"] is None
    natural = scores.of(SuiteSpec("U_O+train", "train", 40))["cells"]["fc1"][11]
    assert of["U_O+train", 12]["covered"] == natural[3] > of["U_O", 12]["covered"]
    every = of["U_O+3S", 12]
    assert (every["inputs"], every["seeds"]) == (120, 1)
    assert max(one[3] for one in cells[:SEEDS]) <= every["covered"] <= sum(one[3] for one in cells[:SEEDS])


@pytest.mark.slow
def test_rq3_compares_each_suite_with_the_tests_that_it_was_made_of(scores):
    rows = rq3(scores, 2, (6,), slow=10, paper_cw=0)
    found = {(row["tests"], row["suite"], row["criterion"]): row for row in rows}
    assert {tests for tests, *_ in found} == {40, 10}
    assert {suite for tests, suite, _ in found if tests == 40} == {
        "U_O+train",
        "U_O+S",
        "U_O+DI",
        "U_O+noise",
        "U_O+FGSM",
        "U_O+BIM",
    }
    assert {suite for tests, suite, _ in found if tests == 10} == {
        "U_O+train",
        "U_O+S",
        "U_O+DI",
        "U_O+noise",
        "U_O+FGSM",
        "U_O+BIM",
        "U_O+JSMA",
        "U_O+CW",
    }
    assert {criterion for *_, criterion in found} == {"idc6", *other_criteria()}
    few = scores.of(SuiteSpec("U_O", "original", 10))
    attacked = scores.of(SuiteSpec("FGSM", "fgsm", 10, 0, 1, {"epsilon": 0.3}))
    row = found[10, "U_O+FGSM", "kmnc"]
    assert [row["original"], row["alone"], row["together"]] == [few["scores"]["kmnc"][0], *attacked["scores"]["kmnc"]]
    assert row["together_deviation"] is None
    assert row["achieved"] == attacked["accuracy"]
    row, (_, total, alone, together, before) = found[10, "U_O+FGSM", "idc6"], attacked["cells"]["fc1"][5]
    assert [row["original"] * total, row["alone"] * total, row["together"] * total] == pytest.approx(
        [before, alone, together]
    )
    assert row["increase"] == pytest.approx((together - before) / total)
    assert all(row["together"] >= row["original"] for row in rows if row["criterion"] != "nlc")


def test_rq3_refuses_numbers_below_zero(scores):
    with pytest.raises(SettingError, match="at least 0"):
        rq3(scores, 1, slow=-1)


def test_rq4_agrees_with_scipy(scores):
    rows = rq4(scores, (6, 12))
    asked = suites(40)
    assert {ask.kind for ask in asked} == {"original", "noise", "guided", *TRANSFORMS, "fgsm", "bim"}
    read = [scores.of(ask) for ask in asked]
    grown = scores.growth((6, 12))["scores"]
    idc = [one["cells"]["fc1"][11][2] for one in read]
    checked = 0
    for row in rows:
        name = row["criterion"]
        if row["m"] != 12 or name == "idc6":
            continue
        if row["points"] == f"{len(asked)} suites":
            pair = idc, [one["scores"][name][0] for one in read]
            assert row["spearman"] == pytest.approx(spearmanr(*pair)[0], abs=1e-9)
            assert row["kendall"] == pytest.approx(kendalltau(*pair)[0], abs=1e-9)
            checked += 1
        elif row["points"] == "random subsets":
            pair = np.ravel(grown["idc12"]), np.ravel(grown[name])
            assert row["spearman"] == pytest.approx(spearmanr(*pair)[0], abs=1e-9)
            checked += 1
    assert checked == 2 * len(other_criteria())
    assert len(rows) == 3 * 2 * (1 + len(other_criteria()))


def test_rq5_has_every_layer_in_forward_order(scores):
    rows = rq5(scores, 2, (4, 12))
    layers = ("conv1", "pool1", "conv2", "pool2", "fc1", "logits")
    assert [(row["suite"], row["layer"], row["m"]) for row in rows] == [
        (suite, layer, m)
        for suite in ("U_O", "U_O+S", "U_O+DI", "U_O+FGSM", "U_O+BIM")
        for layer in layers
        for m in (4, 12)
    ]
    cells = scores.of(SuiteSpec("U_O", "original", 40))["cells"]
    for row in rows[: 2 * len(layers)]:
        used, total, alone, *_ = cells[row["layer"]][min(row["m"], len(cells[row["layer"]])) - 1]
        assert (row["used"], row["total"], row["covered"]) == (used, total, alone)
    assert {row["used"] for row in rows if row["layer"] == "conv1"} == {4, 6}


class Steering(torch.nn.Module):
    """A regression on the digits: one number a picture."""

    def __init__(self, card):
        super().__init__()
        self.fc1, self.logits = torch.nn.Linear(784, 16), torch.nn.Linear(16, 1)
        self.card = card

    def forward(self, x):
        return self.logits(torch.relu(self.fc1(x.flatten(1))))


@pytest.mark.usefixtures("own_folder")
def test_a_regression_is_measured_without_attacks_and_classes(digits):
    from dataclasses import replace

    model, train, test = digits
    torch.manual_seed(0)
    card = replace(model.card, task="regression", layers=("fc1", "logits"), default_layer="fc1", fingerprint="steering")
    network = Steering(card).eval()
    train, test = (
        replace(one, task="regression", class_names=(), targets=one.targets.astype(np.float32)) for one in (train, test)
    )
    scores = CriterionScores(network, train, test)
    rows = rq2(scores, 2, (6,))
    with torch.no_grad():
        predicted = network(torch.tensor(test.inputs)).numpy()[:, 0]
    assert rows[0]["unit"] == "RMSE"
    assert rows[0]["achieved"] == pytest.approx(np.sqrt(np.mean((predicted - test.targets) ** 2)), rel=1e-6)
    rows = rq3(scores, 2, (6,), slow=10, paper_cw=5)
    refused = [row for row in rows if row["note"] == "attacks need a classifier"]
    assert [(row["tests"], row["suite"]) for row in refused] == [
        (tests, suite)
        for tests, names in ((40, 2), (10, 4), (5, 5))
        for suite in ("U_O+FGSM", "U_O+BIM", "U_O+JSMA", "U_O+CW", "U_O+CW, paper")[:names]
    ]
    silent = {row["criterion"] for row in rows if row["note"] == "this criterion needs a classifier"}
    assert silent == {"dsc"}
    assert {row["criterion"] for row in rows if not row["note"]} == {"idc6", *other_criteria()} - {"dsc"}
    assert "dsc" not in {row["criterion"] for row in rq4(scores, (6,))}
    assert {row["suite"] for row in rq5(scores, 1, (4,))} == {"U_O", "U_O+S", "U_O+DI"}


@pytest.mark.parametrize(
    ("asked", "sizes", "found"), [(8, [3, 9, 12], 2), (2, [3, 9], 2), (9, [3, 9], 9), (5, [], 5), (3, [3, 9], 2)]
)
def test_every_class_has_all_its_tests_attacked_or_none_has(asked, sizes, found):
    assert attackable(asked, sizes) == found
    assert len({found < size for size in sizes}) <= 1

"""Planted units are found, shuffled hypotheses are not, and what is switched off changes no number."""

import numpy as np
import pytest
import torch
from torch import nn

from idc_core.datasets import load_dataset
from idc_core.errors import CancelledError, DataError, ModelError, SettingError
from idc_core.inspection import MEASURES, Hypothesis, Speed, discoveries, inspect, library, passing, shuffled
from idc_core.inspection.planning import without
from idc_core.inspection.probes import agreement, followed
from tests.inspection.planted import Table, is_letter, letter_class, letter_number, noisy_table, texts

SIGHTED = {"linear-l1": 0.95}
"""How near 1 a penalised probe must come where its penalty keeps it from 1."""


def planted(hypothesis_of_letter, units=7, at=3, seed=1):
    columns = noisy_table(units=units, seed=seed)
    columns[:, at] = hypothesis_of_letter
    return Table(columns)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("measure", [name for name in MEASURES if name not in ("majority", "chance")])
def test_a_planted_unit_is_found_with_score_1_and_rank_1(measure):
    kinds = MEASURES[measure].kinds
    binary = "binary" in kinds
    letters = 40 if binary else 12  # more than a unit's bins can tell apart
    data = texts(letters=letters)
    hypothesis = is_letter(*range(2, 9)) if binary else letter_class(letters)
    columns = noisy_table(letters, units=7)
    columns[:, 3] = np.isin(np.arange(letters), range(2, 9))
    model = Table(columns if binary else np.eye(letters))  # classes are told by a unit each
    found = inspect(model, data, [hypothesis], [measure], ["units"], passes=20)
    whole = found.where(unit=-1)
    if len(whole):
        assert found.table["score"][whole[0]] == pytest.approx(1, abs=1e-6 + 1 - SIGHTED.get(measure, 1))
    if binary:
        units = [line for line in found.where() if found.table["unit"][line] >= 0]
        assert found.table["unit"][units[0]] == 3
        if not len(whole):
            assert found.table["score"][units[0]] == pytest.approx(1, abs=1e-6)


def test_a_planted_number_is_found_by_correlation():
    found = inspect(planted(np.arange(9) * 3.0 + 5), texts(), [letter_number()], ["pearson", "spearman"], ["units"])
    for measure in ("pearson", "spearman"):
        first = found.where(measure=measure)[0]
        assert (found.table["unit"][first], found.table["score"][first]) == (3, pytest.approx(1, abs=1e-6))


TESTED = tuple(name for name, measure in MEASURES.items() if measure.association is not None)
OF_UNITS = ("pearson", "spearman", "difference", "information", "iou")


def test_every_measure_that_looks_at_units_has_a_test():
    assert set(MEASURES) - set(TESTED) == {"majority", "chance"}
    assert set(OF_UNITS) <= set(TESTED)


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed",
    [0, pytest.param(1, marks=pytest.mark.slow), *(pytest.param(seed, marks=pytest.mark.rare) for seed in (2, 3, 4))],
)
def test_shuffled_hypotheses_pass_no_false_discovery_rate(seed):
    """Of records whose symbols depend on one another, with a unit that fires rarely and one that is planted."""
    own = [*(is_letter(letter) for letter in range(1, 9, 2)), letter_number(), letter_class()]
    hypotheses = [shuffled(one, seed * 10 + at) for at, one in enumerate(own)]
    columns = noisy_table(seed=seed)
    columns[:, 3], columns[:, 4] = np.arange(9) == 4, np.maximum(columns[:, 4] - 1.2, 0)
    found = inspect(Table(columns), repeated(640, seed), hypotheses, TESTED, ["units"], seed=seed, passes=30)
    scored = (found.table["unit"] < 0) | (found.table["group"] == "")
    assert np.isfinite(found.table["p_value"][scored]).all()
    assert np.isnan(found.table["p_value"][~scored]).all(), "weights of probes are not tested"
    assert not discoveries(found, 0.05).any()


@pytest.mark.rare
def test_shuffled_classes_pass_nothing_on_units_that_fire_rarely():
    data = load_dataset("digits")
    hypotheses = [shuffled(one, at) for at, one in enumerate(library(data, ["labels", "looks"]))]
    found = inspect("lenet5-digits", data, hypotheses, OF_UNITS, ["fc1"])
    assert (found.table["p_value"] >= 0).sum() > 3000
    assert not discoveries(found, 0.05).any()


def test_true_hypotheses_do_pass():
    hypotheses = [is_letter(8), letter_number(), letter_class(), shuffled(letter_number(), 1)]
    found = inspect(planted(np.arange(9) * 1.0), texts(), hypotheses, TESTED, ["units"], passes=30)
    passed = discoveries(found, 0.05)
    for name in TESTED:
        for one in hypotheses[:3]:
            lines = found.where(measure=name, hypothesis=one.name, unit=3 if name in OF_UNITS else -1)
            assert len(lines) == (one.kind in MEASURES[name].kinds)
            assert passed[lines].all(), (name, one.name)
    assert not passed[found.where(hypothesis=hypotheses[3].name)].any()


def test_rates_are_those_of_benjamini_and_hochberg_by_hand():
    values = np.array([0.001, np.nan, 0.013, 0.029, 0.04, 0.9])
    # Of five tests the limits are 0.01, 0.02, 0.03, 0.04, 0.05: four pass.
    assert passing(values, dependent=False).tolist() == [True, False, True, True, True, False]
    # Divided by 1 + 1/2 + ... + 1/5 = 2.283: 0.0044, 0.0088, 0.0131, 0.0175, 0.0219.
    assert passing(values).tolist() == [True, False, False, False, False, False]
    assert not passing(np.array([np.nan])).any()


def test_rare_hypotheses_are_not_tested():
    data = texts()
    rare = Hypothesis("first ten", "test", "binary", lambda records: records.ids < 10)
    found = inspect(Table(noisy_table()), data, [rare], OF_UNITS, ["units"])
    assert np.isnan(found.table["p_value"]).all()


def test_what_probes_say_and_what_is_true_go_together_as_by_hand():
    """Gorodkin's correlation as the paper writes it, of yes or no Pearson's; of numbers, from the sums of squares."""
    random = np.random.default_rng(0)
    true, said = random.integers(0, 3, 50), random.integers(0, 3, 50)
    said[:25] = true[:25]
    x, y = np.eye(3)[said], np.eye(3)[true]
    covered = lambda a, b: ((a - a.mean(0)) * (b - b.mean(0))).sum()  # noqa: E731
    sums = {
        "n": np.full((1, 1), 50.0),
        "said": x.sum(0)[:, None, None],
        "true": y.sum(0)[:, None, None],
        "hit": (x * y).sum(0)[:, None, None],
    }
    assert agreement(sums).item() == pytest.approx(covered(x, y) / np.sqrt(covered(x, x) * covered(y, y)))
    one = {name: value[:1] if name != "n" else value for name, value in sums.items()}
    assert agreement(one).item() == pytest.approx(np.corrcoef(x[:, 0], y[:, 0])[0, 1])
    p, w = random.normal(size=50), random.normal(size=50)
    numbers = {"n": 50.0, "p": p.sum(), "pp": p @ p, "y": w.sum(), "yy": w @ w, "missed": ((p - w) ** 2).sum()}
    numbers = {name: np.full((1, 1), value) for name, value in numbers.items()}
    assert followed(numbers).item() == pytest.approx(np.corrcoef(p, w)[0, 1])


def inspect_at(speed):
    """Inspect with almost every measure."""
    return inspect(
        planted(np.arange(9) == 4),
        texts(128, padded=True),
        [is_letter(4), is_letter(1, 2), letter_class()],
        [one for one in MEASURES if one not in ("logistic-l1", "linear-l1")],
        ["units"],
        passes=10,
        speed=speed,
    )


@pytest.fixture(scope="module")
def fast():
    return inspect_at(Speed())


@pytest.mark.parametrize(
    "name",
    ["cache", "early", *(pytest.param(name, marks=pytest.mark.slow) for name in ("share", "together", "memory"))],
)
def test_no_optimisation_changes_a_number(fast, name, tmp_path, monkeypatch):
    monkeypatch.setenv("IDC_HOME", str(tmp_path))
    slow = inspect_at(Speed(memory=0) if name == "memory" else without(Speed(), name))
    key = ("measure", "hypothesis", "unit", "group")
    lines = []
    for found in (fast, slow):
        order = np.lexsort([found.table[name].astype(str) for name in key])
        # What a softmax weighs units with is not settled after so few passes; what it tells is.
        weights = (found.table["measure"] == "multiclass") & (found.table["unit"] >= 0)
        lines.append(order[~weights[order]])
    for column in ("score", "low", "high", "margin", "p_value"):
        first, second = (found.table[column][order] for found, order in zip((fast, slow), lines, strict=True))
        tolerance = 1e-3 if column in ("low", "high", "p_value") else 1e-6
        np.testing.assert_allclose(first, second, atol=tolerance, rtol=1e-3)
    assert not list(tmp_path.rglob("*.npy")), "blocks were left on disk"


def test_what_is_shared_is_made_once(monkeypatch):
    passes = []
    model = planted(np.arange(9) == 4)
    model.register_forward_hook(lambda module, args, output: passes.append(len(args[0])))
    calls = []
    counted = Hypothesis("counted", "test", "binary", lambda r: calls.append(len(r)) or np.isin(r.inputs, (4,)))
    inspect(model, texts(), [counted], ["pearson", "iou", "logistic"], ["units"])
    once = sum(passes)
    assert 400 <= once <= 410  # each record, and what trying out takes, alone and beside others
    assert sum(calls) < 5 * 400
    passes.clear()
    inspect(model, texts(), [counted], ["pearson", "iou"], ["units"], speed=without(Speed(), "share"))
    assert sum(passes) >= 800


@pytest.mark.parametrize(
    ("measure", "orders"),
    [
        *((measure, 1) for measure in OF_UNITS),
        *(
            pytest.param(*one, marks=pytest.mark.slow)
            for one in (("pearson", 20), ("spearman", 20), ("information", 8))
        ),
        *(pytest.param(one, 20, marks=pytest.mark.rare) for one in ("difference", "iou", "information")),
    ],
)
def test_scores_of_a_run_that_stops_early_are_within_the_error(measure, orders):
    """All scores of a run are within the stated error of the full ones in at least 95 % of runs."""
    data = texts(6000, 8, seed=3)
    model = planted(np.arange(9) == 4)
    hypotheses = [is_letter(4), is_letter(1, 2), is_letter(7)]
    error, within, read = 0.05, 0, []
    for seed in range(orders):
        early = inspect(model, data, hypotheses, [measure], ["units"], error=error, seed=seed)
        if seed == 0 or measure == "information":  # its bins follow the records that are read first
            full = inspect(model, data, hypotheses, [measure], ["units"], seed=seed)
        scores = [
            {(t["hypothesis"][i], t["unit"][i]): t["score"][i] for i in range(len(t["unit"]))}
            for t in (early.table, full.table)
        ]
        within += all(abs(scores[0][pair] - scores[1][pair]) <= error for pair in scores[1])
        read.append(early.table["records"].max())
        assert (early.table["margin"] <= error).all()
    assert within >= 0.95 * orders
    assert max(read) < 6000


@pytest.mark.parametrize("orders", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_probes_that_stop_early_are_within_the_error(orders):
    data = texts(2000, 8, seed=3)
    columns = noisy_table()
    hypotheses = [is_letter(4), is_letter(1, 2), is_letter(7)]
    error, within, read = 0.05, 0, []
    for seed in range(orders):
        early = inspect(Table(columns), data, hypotheses, ["logistic"], ["units"], error=error, seed=seed)
        full = inspect(Table(columns), data, hypotheses, ["logistic"], ["units"], seed=seed)
        apart = [
            early.table["score"][early.where(unit=-1, hypothesis=one.name)[0]]
            - full.table["score"][full.where(unit=-1, hypothesis=one.name)[0]]
            for one in hypotheses
        ]
        within += bool((np.abs(apart) <= error).all())
        read.append(early.table["records"].min())
    assert within >= 0.95 * orders
    assert min(read) < 2000


@pytest.mark.slow
@pytest.mark.parametrize("sources", [25, pytest.param(100, marks=pytest.mark.slow)])
def test_intervals_hold_the_truth_as_often_as_they_say(sources):
    """Correlation of a unit with a letter over records from one source; symbols of a record depend on one another."""
    truth, inside = None, 0
    columns = noisy_table(units=1)
    for seed in range(sources + 1):
        data = repeated(20_000 if seed == 0 else 300, seed)
        found = inspect(Table(columns), data, [is_letter(4)], ["pearson"], ["units"], seed=seed)
        if truth is None:
            truth = found.table["score"][0]
        else:
            inside += found.table["low"][0] <= truth <= found.table["high"][0]
    assert 0.88 * sources <= inside <= sources


def repeated(count, seed):
    data = texts(count, 8, seed=seed)
    inputs = data.inputs.copy()
    inputs[:, 1:] = np.where(np.random.default_rng(seed).random((count, 7)) < 0.8, inputs[:, :1], inputs[:, 1:])
    return type(data)(**{**data.__dict__, "inputs": inputs})


def test_who_watches_sees_scores_tighten():
    seen = []
    model, data = planted(np.arange(9) == 4), texts(1000)
    found = inspect(model, data, [is_letter(4), is_letter(2)], ["pearson"], ["units"], on_scores=seen.append)
    assert len(seen) > 3
    assert all(len(one) == len(found) for one in seen)
    margins = [float(one.table["margin"].max()) for one in seen]
    assert margins[-1] < margins[0]
    assert (found.table["margin"] == 0).all()
    records = [int(one.table["records"].max()) for one in seen]
    assert records == sorted(records)
    assert records[-1] < 1000
    early = inspect(model, data, [is_letter(4), is_letter(2)], ["pearson"], ["units"], error=0.2, on_scores=seen.append)
    assert early.table["records"].max() < 1000
    unseen = inspect(model, data, [is_letter(4), is_letter(2)], ["pearson"], ["units"], error=0.2)
    for column in ("score", "records", "margin"):
        assert early.table[column].tolist() == unseen.table[column].tolist(), "watching changes what is found"


def test_groups_of_units_are_probed_together():
    groups = {"right": [3, 1], "other": [0, 5]}
    found = inspect(planted(np.arange(9) == 4), texts(), [is_letter(4)], ["logistic"], ["units"], groups)
    assert set(found.table["group"]) == set(groups)
    (line,) = found.where(group="right", unit=-1)
    assert found.table["score"][line] == pytest.approx(1)
    assert sorted(found.table["unit"][found.table["group"] == "right"]) == [-1, 1, 3]


def test_several_models_and_layers_and_kinds_of_places():
    class Pictures(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(1, 4, 3)
            self.flat = nn.Linear(4 * 36, 5)

        def forward(self, inputs):
            return self.flat(torch.relu(self.conv(inputs)).flatten(1))

    torch.manual_seed(0)
    data = texts(60)
    pictures = np.random.default_rng(0).random((60, 1, 8, 8)).astype(np.float32)
    data = type(data)(**{**data.__dict__, "inputs": pictures})
    hypotheses = [
        Hypothesis("bright", "test", "binary", lambda r: r.inputs[:, 0] > 0.8),
        Hypothesis("first class", "test", "binary", lambda r: r.targets == 0),
    ]
    found = inspect({"one": Pictures(), "two": Pictures()}, data, hypotheses, ["pearson"], ["conv", "flat"])
    counted = {(m, layer): len(found.where(model=m, layer=layer)) for m in ("one", "two") for layer in ("conv", "flat")}
    assert counted == {("one", "conv"): 8, ("one", "flat"): 10, ("two", "conv"): 8, ("two", "flat"): 10}
    names, scores = found.matrix("pearson", "one", "conv")
    assert names == ("bright", "first class")
    assert scores.shape == (2, 4)
    assert set(found.frame().columns) == set(found.table)


def test_stopping_on_request_and_units_that_never_change():
    model = planted(np.full(9, 2.0))
    found = inspect(model, texts(), [is_letter(4)], OF_UNITS[:3], ["units"])
    assert (found.table["score"][found.where(unit=3)] == 0).all()
    never = Hypothesis("never", "test", "binary", lambda r: np.zeros(len(r)))
    assert np.isnan(inspect(model, texts(), [never], OF_UNITS, ["units"]).table["score"]).all()
    with pytest.raises(CancelledError):
        inspect(model, texts(), [is_letter(4)], on_progress=lambda *_: False, layers=["units"])


MODEL = Table(noisy_table())


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"hypotheses": []}, SettingError),
        ({"hypotheses": [is_letter(1), is_letter(1)]}, SettingError),
        ({"measures": ["nothing"]}, SettingError),
        ({"measures": ["multiclass"]}, SettingError),
        ({"error": 0.0}, SettingError),
        ({"confidence": 1.0}, SettingError),
        ({"pilot": 0}, SettingError),
        ({"seed": -1}, SettingError),
        ({"layers": ["nowhere"]}, ModelError),
        ({"layers": None}, SettingError),
        ({"measures": ["logistic"], "groups": {"g": [99]}}, SettingError),
        ({"hypotheses": [Hypothesis("h", "t", "binary", lambda r: r.inputs)]}, DataError),
        ({"hypotheses": [Hypothesis("h", "t", "number", lambda r: r.inputs[:, :3])]}, DataError),
    ],
)
def test_mistakes_are_explained(change, error):
    arguments = {"hypotheses": [is_letter(1)], "measures": ["pearson"], "layers": ["units"], **change}
    with pytest.raises(error):
        inspect(MODEL, texts(50), **arguments)


def test_probes_of_too_few_records_say_how_many_they_need():
    with pytest.raises(DataError, match="expected at least 4, got 3"):
        inspect(planted(np.arange(9) == 4), texts(3), [is_letter(4)], ["logistic"], ["units"])

"""Every score equals scikit-learn's, SciPy's or a plain loop's on small data."""

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.metrics import f1_score, jaccard_score, mutual_info_score, r2_score

from idc_core.errors import SettingError
from idc_core.inspection import MEASURES, find_measure, inspect
from idc_core.inspection.extraction import Stream
from idc_core.inspection.probes import EVERY
from tests.inspection.planted import Table, is_letter, letter_class, letter_number, noisy_table, texts

DATA = texts(padded=True)
MODEL = Table(noisy_table())
HYPOTHESES = (is_letter(1, 2), is_letter(5), letter_number(), letter_class())


@pytest.fixture(scope="module")
def found():
    chosen = [one for one in MEASURES if one != "logistic-l1"]
    sparse = find_measure("logistic-l1").with_settings(strength=20.0)
    return inspect(MODEL, DATA, HYPOTHESES, [*chosen, sparse], ["units"])


def rows(hypothesis):
    """All that is no padding: units (rows, U) in double precision, behaviour (rows,)."""
    present = DATA.inputs != 0
    with torch.no_grad():
        units = MODEL.units(torch.from_numpy(DATA.inputs)).numpy()[present].astype(np.float64)
    return units, np.asarray(hypothesis.behave(type("R", (), {"inputs": DATA.inputs})))[present]


def scores(found, measure, hypothesis):
    lines = found.where(measure=measure, hypothesis=hypothesis.name)
    column = np.full(7, np.nan)
    column[found.table["unit"][lines]] = found.table["score"][lines]
    return column


@pytest.mark.parametrize("hypothesis", HYPOTHESES[:3], ids=lambda one: one.name)
def test_correlations_are_scipys(found, hypothesis):
    units, wanted = rows(hypothesis)
    pearson = [stats.pearsonr(unit, wanted).statistic for unit in units.T]
    spearman = [stats.spearmanr(unit, wanted).statistic for unit in units.T]
    assert scores(found, "pearson", hypothesis) == pytest.approx(pearson, abs=1e-6)
    assert scores(found, "spearman", hypothesis) == pytest.approx(spearman, abs=1e-6)


@pytest.mark.parametrize("hypothesis", HYPOTHESES[:2], ids=lambda one: one.name)
def test_difference_of_means_in_parts_of_the_range(found, hypothesis):
    units, wanted = rows(hypothesis)
    apart = (units[wanted].mean(0) - units[~wanted].mean(0)) / np.ptp(units, 0)
    assert scores(found, "difference", hypothesis) == pytest.approx(apart, abs=1e-6)


@pytest.mark.parametrize("hypothesis", HYPOTHESES[:2], ids=lambda one: one.name)
def test_overlap_is_scikit_learns_jaccard(found, hypothesis):
    units, wanted = rows(hypothesis)
    expected = []
    for unit in units.T:
        ordered = np.sort(unit)
        threshold = ordered[int(np.ceil(0.95 * len(unit))) - 1]
        if not (unit > threshold).any():
            threshold = unit[unit < unit.max()].max()
        expected.append(jaccard_score(wanted, unit > threshold))
    assert scores(found, "iou", hypothesis) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("hypothesis", HYPOTHESES, ids=lambda one: one.name)
def test_information_is_scikit_learns_over_the_entropy(found, hypothesis):
    units, wanted = rows(hypothesis)
    if hypothesis.kind == "number":
        wanted = bins(wanted, 4)
    entropy = mutual_info_score(wanted, wanted)
    expected = [mutual_info_score(wanted, bins(unit, 8)) / entropy for unit in units.T]
    assert scores(found, "information", hypothesis) == pytest.approx(expected, abs=1e-6)


def bins(values, count):
    ordered = np.sort(values)
    edges = [ordered[int(len(values) * step / count)] for step in range(count)]
    return sum((values > edge).astype(int) for edge in edges)


def split(hypothesis):
    """The rows that probes learn from and those held out: every fourth block of the run's order is held out."""
    order = np.random.default_rng(0).permutation(len(DATA))
    stream = Stream({"m": MODEL}, {"m": ["units"]}, DATA, HYPOTHESES, order)
    sides = [[], []]
    for index in range(len(stream)):
        sides[index % EVERY == EVERY - 1].append(stream.positions(index))
    out = []
    for side in sides:
        inputs = DATA.inputs[np.concatenate(side)]
        present = inputs != 0
        units = MODEL.units(torch.from_numpy(inputs)).numpy()[present].astype(np.float64)
        out.append((units, np.asarray(hypothesis.behave(type("R", (), {"inputs": inputs})))[present]))
    return out


def standardised(train, test):
    mean, deviation = train.mean(0), train.std(0)
    return (train - mean) / deviation, (test - mean) / deviation


def group_score(found, measure, hypothesis):
    (line,) = found.where(measure=measure, hypothesis=hypothesis.name, unit=-1)
    return found.table["score"][line]


def coefficients(found, measure, hypothesis):
    lines = found.where(measure=measure, hypothesis=hypothesis.name)
    lines = lines[found.table["unit"][lines] >= 0]
    return found.table["score"][lines[np.argsort(found.table["unit"][lines])]]


@pytest.mark.parametrize("hypothesis", HYPOTHESES[:2], ids=lambda one: one.name)
@pytest.mark.parametrize(("name", "ratio", "strength"), [("logistic", 0.0, 1.0), ("logistic-l1", 1.0, 20.0)])
def test_logistic_probes_are_scikit_learns(found, hypothesis, name, ratio, strength):
    (train, learnt), (test, wanted) = split(hypothesis)
    train, test = standardised(train, test)
    solver = "saga" if ratio else "newton-cholesky"
    peer = LogisticRegression(
        l1_ratio=ratio, C=1 / strength, solver=solver, tol=1e-11, max_iter=100_000, random_state=0
    )
    peer.fit(train, learnt)
    assert coefficients(found, name, hypothesis) == pytest.approx(peer.coef_[0], abs=1e-6)
    assert group_score(found, name, hypothesis) == pytest.approx(f1_score(wanted, peer.predict(test)), abs=1e-6)


@pytest.mark.parametrize("hypothesis", HYPOTHESES[:3], ids=lambda one: one.name)
@pytest.mark.parametrize(
    ("name", "peer"), [("linear", Ridge(1.0)), ("linear-l1", Lasso(0.01, tol=1e-12, max_iter=10**6, random_state=0))]
)
def test_linear_probes_are_scikit_learns(found, hypothesis, name, peer):
    (train, learnt), (test, wanted) = split(hypothesis)
    train, test = standardised(train, test)
    peer.fit(train, learnt)
    assert coefficients(found, name, hypothesis) == pytest.approx(peer.coef_, abs=1e-6)
    assert group_score(found, name, hypothesis) == pytest.approx(r2_score(wanted, peer.predict(test)), abs=1e-6)


def test_multiclass_probe_is_scikit_learns(found):
    hypothesis = HYPOTHESES[3]
    (train, learnt), (test, wanted) = split(hypothesis)
    train, test = standardised(train, test)
    peer = LogisticRegression(solver="newton-cholesky", tol=1e-11, max_iter=1000).fit(train, learnt)
    expected = f1_score(wanted, peer.predict(test), average="macro")
    assert group_score(found, "multiclass", hypothesis) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("hypothesis", HYPOTHESES[:2], ids=lambda one: one.name)
def test_baselines_by_hand(found, hypothesis):
    _, (_, wanted) = split(hypothesis)
    share = wanted.mean()
    assert group_score(found, "chance", hypothesis) == pytest.approx(share, abs=1e-9)
    always = f1_score(wanted, np.full(len(wanted), share > 0.5))
    assert group_score(found, "majority", hypothesis) == pytest.approx(always, abs=1e-9)


def test_measures_skip_what_they_cannot_see(found):
    seen = set(zip(found.table["measure"].tolist(), found.table["hypothesis"].tolist(), strict=True))
    for name, measure in MEASURES.items():
        assert {h for m, h in seen if m == name} == {one.name for one in HYPOTHESES if one.kind in measure.kinds}


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("iou", {"share": 0}),
        ("information", {"bins": 1}),
        ("pearson", {"x": 1}),
        ("logistic", {"strength": -1}),
        ("chance", {"strength": 1}),
    ],
)
def test_settings_out_of_range_are_refused(name, settings):
    with pytest.raises(SettingError):
        find_measure(name).with_settings(**settings)

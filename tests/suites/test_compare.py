import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

import idc_core as idc
from idc_core.errors import CancelledError, DataError, ModelError, SettingError
from idc_core.suites import (
    compare_responses,
    compare_suites,
    custom_suite,
    find_tests,
    make_suite,
    original,
    part_responses,
    perturbed,
    responses_from_traces,
    select_tests,
    union,
)
from idc_core.suites import responses as module
from idc_core.tracing.trace import collect
from tests.suites.test_own import packed


@pytest.fixture(scope="module")
def suites(lenet, digits):
    return [
        original(digits),
        make_suite("noise", digits, deviation=1.0, share=0.1),
        make_suite("guided", digits, lenet, deviation=1.0, share=0.1),
        make_suite("rotation", digits, degrees=40.0),
    ]


@pytest.fixture(scope="module")
def found(lenet, suites, learnt):
    return compare_suites(lenet, suites, learnt)


@pytest.fixture(scope="module")
def activations(lenet, suites):
    """The activations of every suite, one test at a time."""
    shown = []
    # Made before anything is noted: guided noise runs the network too.
    inputs = [torch.tensor(suite.take([position])) for suite in suites for position in range(len(suite))]
    hook = lenet.fc2.register_forward_hook(lambda module, args, output: shown.append(torch.relu(output)[0].tolist()))
    with torch.no_grad():
        for one in inputs:
            lenet(one)
    hook.remove()
    ends = np.cumsum([len(suite) for suite in suites])
    return [shown[end - len(suite) : end] for suite, end in zip(suites, ends, strict=True)]


def slow_cells(shown, learnt, m):
    """The cell of every test, one test, neuron and centroid at a time."""
    return [
        tuple(
            min(range(len(centroids)), key=lambda k, c=centroids, v=active[neuron]: (abs(v - c[k]), k))
            for neuron, centroids in zip(learnt.important[:m], learnt.centroids[:m], strict=True)
        )
        for active in shown
    ]


@pytest.mark.parametrize("m", [6, 12])
def test_cells_are_counted_as_by_hand(activations, learnt, found, m):
    cells = [slow_cells(shown, learnt, m) for shown in activations]
    base = set(cells[0])
    for result, mine in zip(found.suites, cells, strict=True):
        counted = result.cells[m]
        assert counted.covered == len(set(mine))
        assert counted.total == np.prod([len(one) for one in learnt.centroids[:m]])
        assert counted.score == counted.covered / counted.total
        assert len(counted.added) == len(set(mine) - base)
        # The first test of each added cell: no test before it lies there.
        assert {mine[position] for position in counted.first} == set(mine) - base
        assert all(mine.index(mine[position]) == position for position in counted.first)
    shared = [[len(set(one) & set(other)) for other in cells] for one in cells]
    np.testing.assert_array_equal(found.shared[m], shared)


def test_marginal_coverage_adds_up(found):
    for m in found.ms:
        codes = [set(suite.cells[m].codes.tolist()) for suite in found.suites]
        for order in (None, [3, 1, 0, 2], found.best_order(m)):
            gains = found.marginal(m, order)
            numbers = range(4) if order is None else order
            reached = set()
            for gain, number in zip(gains, numbers, strict=True):
                assert gain == len(codes[number] - reached)
                reached |= codes[number]
            assert gains.sum() == len(set().union(*codes))
    with pytest.raises(SettingError, match="order must name each suite"):
        found.marginal(6, [0, 1])
    with pytest.raises(SettingError, match="m must be one of 6, 8, 10, 12"):
        found.marginal(7)


def test_the_best_order_takes_the_largest_gain_each_time(found):
    order = found.best_order(10)
    assert order[0] == 0
    assert sorted(order) == [0, 1, 2, 3]
    gains = found.marginal(10, order)
    for place in range(1, 4):
        others = [found.marginal(10, [*order[:place], *rest])[place] for rest in rotations(order[place:])]
        assert gains[place] == max(others)


def rotations(items):
    return [items[turn:] + items[:turn] for turn in range(len(items))]


def test_accuracy_and_confidence_are_those_of_the_analysis(lenet, digits, suites, found):
    analysis = idc.analyze(lenet, idc.load_dataset("digits", split="train"), digits, "fc2", m=6)
    first = found.suites[0]
    assert first.accuracy == analysis.accuracy
    assert first.confidence == pytest.approx(analysis.confidence.mean(), rel=1e-6)
    assert first.cells[6].covered == analysis.covered
    assert first.cells[6].total == analysis.total
    np.testing.assert_array_equal(first.cells[6].codes, analysis.codes)
    np.testing.assert_array_equal(first.predictions.classes, analysis.predictions)
    assert first.rmse is None
    assert first.extra == 0
    assert first.extra_accuracy is None
    for suite, result in zip(suites[1:], found.suites[1:], strict=True):
        alone = module.predict(
            collect(lenet, suite.take(np.arange(150, 300)), []).scores, digits.targets, "classification"
        )
        assert result.extra_accuracy == pytest.approx(alone.correct.mean())
        assert result.extra_confidence == pytest.approx(alone.confidence.mean(), rel=1e-5)
    assert [suite.extra for suite in found.suites[1:]] == [150, 150, 150]
    assert [suite.inputs for suite in found.suites] == [150, 300, 300, 300]


@pytest.mark.parametrize("original_program", [False, True])
def test_an_analysis_serves_as_well_as_a_criterion(lenet, digits, suites, original_program):
    train = idc.load_dataset("digits", split="train")
    analysis = idc.analyze(lenet, train, digits, "fc2", m=8, original=original_program)
    criterion = idc.IDC(lenet, "fc2", m=8, original=original_program).fit(train)
    one, other = (compare_suites(lenet, suites[:2], learnt, ms=(6, 8)) for learnt in (analysis, criterion))
    assert one.rows() == other.rows()
    assert one.suites[0].cells[8].covered == analysis.covered


def test_a_convolution_is_compared_by_its_channels(lenet, suites):
    train = idc.load_dataset("digits", split="train", limit=300)
    criterion = idc.IDC(lenet, "conv2", m=6).fit(train)
    result = compare_suites(lenet, suites[:2], criterion, ms=(4, 6))
    expected = criterion.update(suites[0].take(np.arange(150)))
    assert result.suites[0].cells[6].covered == expected.covered


def test_shared_parts_run_once(lenet, suites, learnt, monkeypatch):
    rows = []
    real = module.trace

    def counting(model, inputs, layers):
        rows.append(len(inputs))
        return real(model, inputs, layers)

    monkeypatch.setattr(module, "trace", counting)
    compare_suites(lenet, suites, learnt)
    assert sum(rows) == 4 * 150


def test_results_do_not_depend_on_the_block(lenet, digits, suites):
    # In double precision: in single, processors that add in another order differ by more than is asked here.
    double = copy.deepcopy(lenet).double()
    learnt = idc.IDC(double, "fc2", m=12).fit(digits)
    found = compare_suites(double, suites[:2], learnt)
    small = [replace(suite, parts=tuple(replace(part, at_a_time=37) for part in suite.parts)) for suite in suites[:2]]
    cut = compare_suites(double, small, learnt)
    for one, other in zip(cut.suites, found.suites, strict=True):
        np.testing.assert_array_equal(one.cells[12].codes, other.cells[12].codes)
        np.testing.assert_allclose(one.predictions.confidence, other.predictions.confidence, atol=1e-6)


def test_rows_are_a_table(found):
    rows = found.rows()
    assert len(rows) == 4 * 4
    assert rows[0]["suite"] == "original"
    assert rows[0]["marginal"] == rows[0]["covered"]
    assert {row["m"] for row in rows} == {6, 8, 10, 12}
    assert all(len(row) == len(rows[0]) for row in rows)


def test_progress_counts_the_inputs_of_all_parts_and_can_stop(lenet, suites, learnt):
    told = []
    compare_suites(lenet, suites, learnt, on_progress=lambda *one: told.append(one[:2]))
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1] == (600, 600)
    with pytest.raises(CancelledError):
        compare_suites(lenet, suites, learnt, on_progress=lambda done, total, label: done < 300)


def test_attacked_suites_can_be_stopped_and_go_on(lenet, digits, learnt, cache):
    tests = select_tests(original(digits), np.arange(130))
    pair = [tests, union([tests, perturbed(tests, "bim", lenet, steps=2)], "bim")]
    with pytest.raises(CancelledError):
        compare_suites(lenet, pair, learnt, on_progress=lambda *told: not list(cache.glob("*.npz")))
    kept = {path: path.stat().st_mtime_ns for path in cache.glob("*.npz")}
    assert len(kept) == 1
    result = compare_suites(lenet, pair, learnt)
    assert result.suites[1].extra == 130
    assert len(list(cache.glob("*.npz"))) == 3


def test_subsets_and_own_tests_are_compared_like_others(lenet, digits, suites, learnt):
    own = custom_suite(packed(inputs=1 - digits.inputs[:9], targets=digits.targets[:9]), digits)
    wrong = select_tests(suites[1], *find_tests(suites[1], correct=False, model=lenet))
    result = compare_suites(lenet, [suites[0], union([suites[0], own]), wrong], learnt)
    assert result.suites[1].extra == 9
    assert result.suites[2].accuracy == 0
    assert result.suites[1].cells[12].covered >= result.suites[0].cells[12].covered


def test_regressions_have_an_error_in_place_of_accuracy(digits):
    from idc_core.datasets.dataset import Dataset

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    values = {**vars(digits), "task": "regression", "class_names": (), "targets": np.zeros(150, np.float32)}
    test = Dataset(**values)
    criterion = idc.IDC(model, "1", m=6).fit(test)
    result = compare_suites(model, [original(test), make_suite("guided", test, model)], criterion, ms=(6,))
    first = result.suites[0]
    expected = float(np.sqrt(np.mean(model(torch.tensor(digits.inputs)).detach().numpy() ** 2)))
    assert first.rmse == pytest.approx(expected, rel=1e-5)
    assert first.accuracy is None
    assert first.confidence is None


def test_mistakes_get_a_sentence(lenet, digits, suites, learnt):
    with pytest.raises(SettingError, match="2 to 6 suites to compare, got 1"):
        compare_suites(lenet, suites[:1], learnt)
    with pytest.raises(SettingError, match="have the same inputs"):
        compare_suites(lenet, [suites[0], original(digits)], learnt)
    with pytest.raises(SettingError, match="fit with m=13"):
        compare_suites(lenet, suites, learnt, ms=(6, 13))
    for ms in ((), (0,), (2.5,), (True,)):
        with pytest.raises(SettingError, match="ms must be whole numbers"):
            compare_suites(lenet, suites, learnt, ms=ms)
    other = original(type(digits)(**{**vars(digits), "class_names": ("a",)}))
    with pytest.raises(DataError, match="not for the same network"):
        compare_suites(lenet, [suites[0], other], learnt)
    unknown = custom_suite(packed(inputs=digits.inputs[:2], targets=np.array([1, 9])), digits)
    narrow = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 16), torch.nn.ReLU(), torch.nn.Linear(16, 5))
    criterion = idc.IDC(narrow, "1", m=2).fit(digits)
    with pytest.raises(ModelError, match="class 9"):
        compare_suites(narrow, [unknown, suites[0]], criterion, ms=(2,))


def test_suites_are_weighed_by_what_was_seen_before(lenet, digits, suites, learnt, found):
    traces = collect(lenet, digits, ["fc2"])
    first = responses_from_traces(
        traces.scores, traces.activations["fc2"], digits.targets, "classification", learnt.important
    )
    seen = {suites[0].parts[0].fingerprint: first}
    for suite in suites[1:]:
        part, targets = suite.parts_with_targets[1]
        seen[part.fingerprint] = part_responses(lenet, part, targets, "classification", "fc2", learnt.important)
    again = compare_responses(suites, seen, learnt)
    assert again.rows() == found.rows()
    alone = compare_responses(suites[:1], seen, learnt, ms=(6,))
    assert alone.suites[0].cells[6].covered == found.suites[0].cells[6].covered
    with pytest.raises(SettingError, match="Expected 1 to 6 suites"):
        compare_responses([], seen, learnt)


def test_all_inputs_in_added_cells_are_told(found):
    for suite in found.suites[1:]:
        cells = suite.cells[12]
        assert set(cells.codes[cells.adding]) == set(cells.added)
        assert set(cells.first) <= set(cells.adding)
        assert (cells.adding >= 150).all()
        rest = np.setdiff1d(np.arange(300), cells.adding)
        assert set(cells.codes[rest]) == set(found.suites[0].cells[12].codes)

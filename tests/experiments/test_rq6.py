"""RQ6: what is added raises IDC, as many random ones are drawn from the same candidates, and no test is among them."""

from dataclasses import replace

import numpy as np
import pytest

import idc_core as idc
from idc_core.coverage.cells import encode
from idc_core.errors import CancelledError, DataError, SettingError
from idc_core.experiments.rq6 import (
    ADDITIONS,
    NONE,
    RAISING,
    RANDOM,
    TESTS,
    Candidates,
    RQ6Settings,
    _in_rounds,
    _make_tests,
    apart_from,
    prepare_rq6,
    run_store,
    usual,
)
from idc_core.perturbation import attack, guided_noise, random_noise
from idc_core.suites import ProvenanceStep
from idc_core.suites.custom_tests import SuiteFormat, suite_from_arrays

SETTINGS = RQ6Settings("fc2", m=12, epochs=1)


@pytest.fixture(scope="module")
def setup():
    model, train, test = (
        idc.load_model("lenet5-digits"),
        idc.load_dataset("digits", "train"),
        idc.load_dataset("digits", "test"),
    )
    return model, train, test, idc.analyze(model, train, test, "fc2", 12)


@pytest.fixture(scope="module")
def few():
    """The same with few inputs, for what retrains or attacks."""
    model, train, test = (
        idc.load_model("lenet5-digits"),
        idc.load_dataset("digits", "train", 300),
        idc.load_dataset("digits", "test", 100),
    )
    return model, train, test, idc.analyze(model, train, test, "fc2", 12)


@pytest.fixture(scope="module")
def candidates(setup):
    model, train, _, learnt = setup
    return Candidates(model, train, learnt, SETTINGS)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("IDC_HOME", str(tmp_path))


def test_what_is_added_raises_idc_and_random_inputs_are_as_many(setup, candidates):
    model, train, test, learnt = setup
    criterion = idc.IDC(model, "fc2", 12).fit(train.inputs)
    criterion.update(test.inputs)
    before = criterion.covered
    assert before == learnt.covered
    pool = candidates.pool(0)
    inputs, targets = candidates.raising(0)
    criterion.update(inputs)
    assert criterion.covered - before == pool.gained > 50
    assert len(inputs) == len(targets) == len(candidates.random(0)[0]) == round(0.1 * 1257)
    # Every one of them by itself reaches a cell that the tests do not.
    reached = set(learnt.codes.tolist())
    assert not reached & set(pool.codes[pool.raising].tolist())
    assert reached & set(pool.codes[pool.random].tolist())


def test_candidates_are_the_training_inputs_with_noise(setup, candidates):
    model, train, _, _ = setup
    pool = candidates.pool(3)
    assert len(pool.inputs) == 2 * 1257
    assert np.array_equal(pool.targets, train.targets[pool.origin])
    assert np.array_equal(pool.origin, np.tile(np.arange(1257), 2))
    noise = {"share": 0.2, "deviation": 1.0, "seed": 3, "numbers": pool.origin[:1257]}
    assert np.array_equal(pool.inputs[:1257], random_noise(train.inputs, **noise))
    assert np.array_equal(pool.inputs[1257:], guided_noise(model, train.inputs, **noise))
    assert pool.kind.tolist() == [0] * 1257 + [1] * 1257


def test_seeds_draw_others(few):
    model, train, _, learnt = few
    candidates = Candidates(model, train, learnt, SETTINGS)
    first, other = candidates.pool(0), candidates.pool(1)
    assert not np.array_equal(first.inputs, other.inputs)
    assert not np.array_equal(first.random, other.random)
    again = candidates.pool(0)
    assert np.array_equal(first.raising, again.raising)
    assert np.array_equal(first.random, again.random)


def test_cells_of_candidates_are_those_of_the_criterion(setup, candidates):
    pool, learnt = candidates.pool(0), setup[3]
    criterion = idc.IDC(setup[0], "fc2", 12).fit(setup[1].inputs)
    some = pool.inputs[::50]
    active = idc.analyze(setup[0], setup[1], replace(setup[2], inputs=some, targets=pool.targets[::50]), "fc2", 12)
    assert criterion.centroids[0].tolist() == learnt.centroids[0].tolist()
    expected = encode(active.assignments, [len(one) for one in learnt.centroids])
    assert np.array_equal(pool.codes[::50], expected)


def slowly_in_rounds(codes, distances, most):
    """Round after round over the cells, as long as there is room for a whole round: the reference."""
    left, taken = set(range(len(codes))), set()
    while left:
        chosen = {
            min((i for i in left if codes[i] == cell), key=lambda i: (distances[i], i))
            for cell in {codes[i] for i in left}
        }
        if len(taken) + len(chosen) > most:
            return taken, chosen
        taken |= chosen
        left -= chosen
    return taken, set()


@pytest.mark.parametrize("most", [1, 4, 9, 30, 100])
def test_rounds_give_every_cell_one_before_any_gets_a_second(most):
    random = np.random.default_rng(most)
    codes, distances = random.integers(0, 7, 40), random.integers(0, 5, 40).astype(float)
    found = set(_in_rounds(codes, distances, most, np.random.default_rng(0)).tolist())
    whole, last = slowly_in_rounds(codes.tolist(), distances.tolist(), most)
    assert len(found) == min(most, 40)
    assert whole <= found <= whole | last


def test_nothing_new_is_said(setup):
    model, train, _, learnt = setup
    everywhere = replace(learnt, codes=np.arange(learnt.total))
    with pytest.raises(DataError, match="None of the 2,514 perturbed training inputs reaches a cell of layer fc2"):
        Candidates(model, train, everywhere, SETTINGS).pool(0)


def test_tests_are_made_of_the_tests_and_their_noise_is_their_own(few):
    model, _, test, _ = few
    found = _make_tests(model, test, SETTINGS)
    assert list(found) == list(TESTS)
    assert np.array_equal(found["clean"][0], test.inputs)
    unlike = random_noise(test.inputs, share=0.2, deviation=1.0, seed=0, numbers=test.ids)
    assert not np.array_equal(found["noise"][0], unlike)
    assert np.array_equal(found["fgsm"][0], attack(model, test.inputs, test.targets, "fgsm", epsilon=0.1).inputs)
    assert np.abs(found["bim"][0] - test.inputs).max() <= 0.1 + 1e-6
    other = idc.load_model("lenet4-digits")
    again = attack(other, test.inputs, test.targets, "fgsm", epsilon=0.1).inputs
    assert np.array_equal(found["fgsm-anew"](other)[0], again)
    with pytest.raises(CancelledError):
        _make_tests(model, test, SETTINGS, on_progress=lambda done, total, label: "attacked" not in label)


def test_a_run_is_kept_and_goes_on_where_it_stopped(few):
    model, train, test, learnt = few
    ready = prepare_rq6(model, train, test, learnt, SETTINGS)
    one = ready.run((0,), (NONE,))
    assert one.additions == (NONE,)
    assert list(ready.store) == ["none-0"]
    told = []
    whole = ready.run(1, on_result=lambda name, seed, network: told.append(name))
    assert told == [NONE, RANDOM, RAISING] == list(ADDITIONS)
    assert np.array_equal(whole.values[0], one.values[0])
    assert whole.added(RAISING) == whole.added(RANDOM) == [30]
    assert whole.tests == tuple(TESTS)
    other = prepare_rq6(model, train, test, learnt, replace(SETTINGS, share=0.1))
    assert list(other.store) == []


def test_settings_and_cells_must_be_of_one_setup(setup):
    model, train, test, learnt = setup
    with pytest.raises(SettingError, match="m = 12; the settings ask for layer fc2 with m = 6"):
        prepare_rq6(model, train, test, learnt, replace(SETTINGS, m=6))
    with pytest.raises(SettingError, match="cannot be made by 'fgsm'"):
        Candidates(model, train, learnt, replace(SETTINGS, kinds=("fgsm",)))


def test_larger_data_gets_fewer_epochs(setup):
    small = usual(setup[1], "fc2", 84)
    assert (small.m, small.epochs, small.added) == (12, 5, 0.1)
    many = replace(setup[1], targets=np.zeros(10_000, np.int64))
    assert (usual(many, "fc2", 6).m, usual(many, "fc2", 6).epochs) == (6, 3)


def test_given_inputs_are_added_instead_and_compared_with_as_many_random_ones(few):
    model, train, test, learnt = few
    given = test.inputs[:7], test.targets[:7]
    settings = replace(SETTINGS, suite="kept-0123456789abcdef")
    plan = prepare_rq6(model, train, test.only(np.arange(7, 100)), learnt, settings, given=given)
    assert plan.additions[RAISING](3) is given
    assert len(plan.additions[RANDOM](3)[1]) == 7
    assert run_store(model, train, test, settings).path != run_store(model, train, test, SETTINGS).path
    with pytest.raises(SettingError, match="need a name"):
        prepare_rq6(model, train, test, learnt, SETTINGS, given=given)
    many = np.zeros((601, 1, 8, 8), np.float32), np.zeros(601, np.int64)
    with pytest.raises(DataError, match="at most as many inputs to add"):
        Candidates(model, train, learnt, settings, many).random(0)


def test_tests_that_a_suite_was_made_of_are_told_apart(few):
    test = few[2]
    step = ProvenanceStep("original", "tests", {"fingerprint": test.fingerprint})
    form = SuiteFormat.of(test)
    origin = np.array([int(test.ids[3]), int(test.ids[5]), -1])
    made = suite_from_arrays(test.inputs[:3], test.targets[:3], form, origin=origin, provenance=[step])
    assert np.flatnonzero(~apart_from(made, test)).tolist() == [3, 5]
    blended = replace(made, partner=np.array([-1, int(test.ids[8]), -1]))
    assert np.flatnonzero(~apart_from(blended, test)).tolist() == [3, 5, 8]
    assert apart_from(suite_from_arrays(test.inputs[:3], test.targets[:3], form, origin=origin), test).all()

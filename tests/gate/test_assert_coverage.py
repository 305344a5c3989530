"""`idc.testing.assert_coverage`: passes and fails where `idc.analyze` says, and names what is missing."""

import re

import numpy as np
import pytest
import torch

import idc_core as idc
from idc_core.coverage.cells import decode
from idc_core.coverage.closest_inputs import closest, spread
from idc_core.errors import SettingError


@pytest.fixture(scope="module")
def lenet():
    return idc.load_model("lenet5-digits")


@pytest.fixture(scope="module")
def digits():
    return idc.load_dataset("digits", "train", 400), idc.load_dataset("digits", "test", 150)


SETTINGS = (
    {},
    {"m": 5, "rule": "gamma", "gamma": 0.5, "clusters": (2, 3), "drop_zeros": True},
    {"m": 4, "priority": "absolute", "clustering": "dbscan"},
    {"original": True},
)


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda one: "-".join(one) or "plain")
def test_it_fails_exactly_below_what_analyze_finds(lenet, digits, settings):
    train, test = digits
    found = idc.analyze(lenet, train, test, "fc2", **settings)
    idc.testing.assert_coverage(lenet, test, "fc2", found.score, train=train, **settings)
    with pytest.raises(AssertionError, match=f"^IDC of fc2 is {found.score:.6g}, below at_least="):
        idc.testing.assert_coverage(lenet, test, "fc2", np.nextafter(found.score, 1), train=train, **settings)


def test_the_failure_names_uncovered_cells_and_the_closest_tests(lenet, digits):
    train, test = digits
    found = idc.analyze(lenet, train, test, "fc2", 4)
    with pytest.raises(AssertionError) as failure:
        idc.testing.assert_coverage(lenet, test, "fc2", 1.0, train=train, m=4, cells=7, closest_tests=2)
    _, counts, neurons, first, *cells = str(failure.value).splitlines()
    missing = found.total - found.covered
    assert counts == f"{found.covered} of {found.total} cells are covered, {missing} are not."
    assert neurons.endswith(f"of neurons {', '.join(map(str, found.important))}.")
    assert first.startswith("The first 7 uncovered cells")
    assert len(cells) == 7
    sizes = [one.k for one in found.clusters]
    covered = {tuple(map(int, cell)) for cell in decode(np.unique(found.codes), sizes)}
    for line in cells:
        name, one, away, other, further = re.fullmatch(
            r"  ([\d-]+): tests (\d+) \(([\d.]+)\), (\d+) \(([\d.]+)\)", line
        ).groups()
        cell = tuple(map(int, name.split("-")))
        assert cell not in covered
        assert any(np.abs(np.subtract(cell, near)).sum() == 1 for near in covered)
        places, distances = closest(found.test_activations, found.centroids, cell, spread(found.train_activations), 2)
        assert [int(one), int(other)] == places.tolist()
        assert [float(away), float(further)] == pytest.approx(distances, abs=0.006)


def test_arrays_tensors_and_batches_count_alike(lenet, digits):
    train, test = digits
    said = set()
    for convert in (np.array, torch.tensor, lambda inputs: [inputs[:100], inputs[100:]]):
        with pytest.raises(AssertionError) as failure:
            idc.testing.assert_coverage(lenet, convert(test.inputs), "fc2", 1, train=convert(train.inputs))
        said.add(str(failure.value))
    assert len(said) == 1


def test_a_network_of_the_registry_brings_its_training_data_and_others_must_be_given_some(lenet, digits):
    test = digits[1]
    whole = idc.analyze(lenet, idc.load_dataset("digits", "train"), test, "fc2")
    with pytest.raises(AssertionError, match=f"is {whole.score:.6g}"):
        idc.testing.assert_coverage(lenet, test, "fc2", 1)
    with pytest.raises(SettingError, match="pass train="):
        idc.testing.assert_coverage(torch.nn.Sequential(torch.nn.Linear(2, 2)), np.zeros((2, 2)), "0")
    with pytest.raises(SettingError, match="at_least must be a number from 0 to 1"):
        idc.testing.assert_coverage(lenet, test, "fc2", 40)
    with pytest.raises(SettingError, match="pass train as a Dataset"):
        idc.testing.assert_coverage(lenet, test, "fc2", train=digits[0].inputs, original=True)


def test_the_failure_is_shown_where_the_person_asserts():
    """pytest leaves frames with this name out: the line of the person's own test is shown."""
    with pytest.raises(AssertionError) as failure:
        idc.testing.assert_coverage(
            idc.load_model("lenet1-digits"),
            idc.load_dataset("digits", limit=3),
            "conv2",
            1,
            train=idc.load_dataset("digits", "train", 60),
        )
    frames = failure.traceback.filter(failure)
    assert [frame.path.name for frame in frames] == ["test_assert_coverage.py"]

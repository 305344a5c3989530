"""A clustering in one file outside the package: menus and command line have it, and IDC runs with it."""

import runpy
from pathlib import Path

import numpy as np
import pytest

import idc_core as idc
from idc_core.analysis.cluster_choices import try_choices
from idc_core.cli import main
from idc_core.clustering.methods import CLUSTERINGS
from tests.clustering import test_methods as laws

NAME = "toy-equal"


@pytest.fixture(scope="module", autouse=True)
def toy():
    runpy.run_path(str(Path(__file__).parent / "toys" / "clustering.py"))
    yield CLUSTERINGS[NAME]
    del CLUSTERINGS[NAME]


def test_it_is_in_the_registry_with_its_label():
    assert list(CLUSTERINGS)[-1] == NAME
    assert CLUSTERINGS[NAME].label == "Toy equal"


@pytest.mark.parametrize("kind", laws.KINDS)
def test_it_keeps_the_contract_of_every_clustering(kind):
    contract = laws.TestSameResults.test_every_way_keeps_the_contract.hypothesis.inner_test
    for n in (1, 2, 5, 100):
        contract(None, NAME, values=laws.draw(kind, n, seed=n))


def test_its_clusters_are_equally_large():
    found = CLUSTERINGS[NAME].cluster(np.arange(60.0), (3,))
    np.testing.assert_array_equal(found.counts, [20, 20, 20])
    np.testing.assert_allclose(found.centroids, [9.5, 29.5, 49.5])


def test_idc_and_the_choices_of_clusters_run_with_it():
    model, layer = idc.load_model("lenet5-digits"), "fc1"
    train, test = (idc.load_dataset("digits", split, limit=200) for split in ("train", "test"))
    found = idc.analyze(model, train, test, layer, 4, clustering=NAME)
    criterion = idc.IDC(model, layer, 4, clustering=NAME).fit(train).update(test)
    assert (criterion.covered, criterion.total) == (found.covered, found.total)
    automatic = try_choices(found.train_activations, found.test_activations, NAME)[0]
    assert (automatic.covered, automatic.total) == (found.covered, found.total)


def test_the_command_line_takes_it(capsys):
    few = ["analyze", "--limit-train", "60", "--limit-test", "20"]
    assert main([*few, "--clustering", NAME]) == 0
    assert main([*few, "--clustering", "nothing"]) == 2
    assert NAME in capsys.readouterr().err

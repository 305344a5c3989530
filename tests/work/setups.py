"""What the tests of executors compare: every criterion on a LeNet and digits, fitted and measured in one process."""

import os
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

import numpy as np
import psutil

from idc_core.analysis.analysis import analyze
from idc_core.base.threads import number
from idc_core.confusion import collect_statistics, count_again
from idc_core.coverage import CRITERIA
from idc_core.coverage.idc_settings import IdcSettings
from idc_core.coverage.streamed import fit_all, update_all
from idc_core.datasets import load_dataset
from idc_core.generation import differential_search
from idc_core.generation.ascent import AscentSettings
from idc_core.inspection import inspect, library
from idc_core.models import load_model
from idc_core.perturbation import attack
from idc_core.work import Source
from idc_core.work.analysis import analyze_tests
from idc_core.work.attacks import attack_inputs
from idc_core.work.class_errors import count_classes
from idc_core.work.criteria import fit_criteria, update_criteria
from idc_core.work.inspections import inspect_units
from idc_core.work.rows import BlockRows
from idc_core.work.searches import search_seeds

MODEL, DATA, LAYERS, BATCH = "lenet5-digits", "digits", ("conv2", "fc1", "fc2"), 32
TRAIN, TEST = Source(MODEL, DATA, "train"), Source(MODEL, DATA, "test")
MACHINE = {"num_cpus": 1, "object_store_memory": 80 << 20}
"""Of a cluster of one worker per machine, simulated on this one."""
HEAD = {"include_dashboard": False, "include_log_monitor": False, "no_monitor": True}
"""Without the processes of a cluster's first machine that tests need not wait for."""
EXACT = ("nc", "tknc", "tknp", "kmnc", "snac", "lsc", "dsc", "cc")
"""Criteria whose targets follow from comparisons alone: no sum over the inputs is in them."""


@dataclass(frozen=True)
class ThreadsOfEachBlock:
    """Work that says with how many threads each block is computed."""

    keeps: str = ""

    def __call__(self, opened, block):
        return BlockRows([np.array([number()])])


@cache
def network():
    return load_model(MODEL)


def criteria(names=tuple(CRITERIA)):
    """Unfitted criteria; IDC once as the paper has it, once as the original program."""
    found = [CRITERIA[name](network(), LAYERS) for name in names if name != "idc"]
    if "idc" in names:
        found += [
            CRITERIA["idc"](network(), "fc2", batch_size=BATCH),
            CRITERIA["idc"](network(), "conv2", 4, original=True, batch_size=BATCH),
        ]
    return found


@cache
def in_one_process(names=tuple(CRITERIA)):
    """Criteria fitted and measured in this process without an engine."""
    found = criteria(names)
    fit_all(found, load_dataset(DATA, "train"), batch_size=BATCH)
    update_all(found, load_dataset(DATA, "test"), batch_size=BATCH)
    return {(one.card.name, getattr(one, "layer", "")): one for one in found}


def on_engine(engine, names=tuple(CRITERIA), **progress):
    """The same on an engine."""
    found = criteria(names)
    fit_criteria(engine, found, TRAIN, batch_size=BATCH, **progress)
    update_criteria(engine, found, TEST, batch_size=BATCH, **progress)
    return found


def assert_equal(found, names=tuple(CRITERIA)):
    """Bit for bit where all is comparisons and counts, else to 1e-6."""
    assert {one.card.name for one in found} == set(names)
    for one in found:
        expected = in_one_process(names)[one.card.name, getattr(one, "layer", "")]
        if one.card.name == "idc":
            np.testing.assert_allclose(one.importance, expected.importance, rtol=1e-6)
            assert np.array_equal(one.important, expected.important)
            assert all(map(np.array_equal, one.centroids, expected.centroids))
            assert np.array_equal(one.counts.codes, expected.counts.codes)
            assert np.array_equal(one.counts.counts, expected.counts.counts)
        elif one.card.name in EXACT:
            assert one.score == expected.score, one.card.name
            if hasattr(one, "reached"):
                assert np.array_equal(one.reached, expected.reached), one.card.name
        else:
            np.testing.assert_allclose(one.score, expected.score, rtol=1e-6, err_msg=one.card.name)


def assert_others_equal(engine):
    """Counts for confusion, an attack with random starts, a search, inspection, an analysis, equal to one process."""
    statistics, one, whole, analysis = others_in_one_process()
    counted = count_classes(engine, TEST, LAYERS, 0.4, batch_size=BATCH)
    expected = count_again(statistics.values, statistics.predictions, 10, 0.4)
    assert np.array_equal(counted.counts.active, expected.active)
    assert np.array_equal(counted.counts.images, expected.images)
    assert np.array_equal(counted.predicted.joined(), statistics.predictions)

    found = attack_inputs(engine, TEST, "pgd", **ATTACK, most=200)
    assert found.settings == one.settings
    assert found.complete
    for name in ("inputs", "targets", "before", "predictions", "success", "l0", "l2", "linf"):
        assert np.array_equal(getattr(found, name), getattr(one, name)), name

    settings = search_settings()
    assert_searches_equal(searched(engine, settings), settings)

    seen = inspect_units(engine, TEST, FAMILIES, *INSPECTED)
    assert len(seen) == len(whole) > 0
    for name, column in whole.table.items():
        if column.dtype.kind == "f":
            np.testing.assert_allclose(seen.table[name], column, rtol=1e-6, atol=1e-9, err_msg=name)
        else:
            assert np.array_equal(seen.table[name], column), name
    for place, units in whole.units.items():
        np.testing.assert_allclose(seen.units[place], units, rtol=1e-6)

    assert_analyses_equal(analyze_tests(engine, TRAIN, TEST, "fc1", 5, IdcSettings.of(**OPTIONS)), analysis)


ATTACK = {"seed": 3, "batch_size": 64, "steps": 3}
FAMILIES, INSPECTED = ("labels", "regions"), (("pearson", "iou"), ("conv2", "fc2"))
OPTIONS = {"original": True, "priority": "absolute"}


@cache
def others_in_one_process():
    """What those find without an engine: statistics for confusion, an attack, an inspection, an analysis."""
    test = load_dataset(DATA, "test")
    return (
        collect_statistics(network(), test, LAYERS, batch_size=BATCH),
        attack(network(), load_dataset(DATA, "test", 200), name="pgd", **ATTACK),
        inspect(network(), test, library(test, FAMILIES), *INSPECTED),
        analyze(network(), load_dataset(DATA, "train"), test, "fc1", 5, **OPTIONS),
    )


SEARCHED = (MODEL, "lenet1-digits")


def search_settings(**changed):
    """Of a search in which seeds end at several steps, and what they cover steers the others."""
    return AscentSettings(**{"constraint": "linf", "step": 10.0, "iterations": 5, "weight_coverage": 0.5, **changed})


def searched(engine, settings, guidance=None, count=120, source=TEST, **progress):
    """A search on an engine from the first tests."""
    models = [network(), companion()]
    return search_seeds(engine, source, SEARCHED, models, np.arange(count), settings, guidance, **progress)


@cache
def companion():
    return load_model(SEARCHED[1])


@cache
def search_in_one_process(settings, guidance, count):
    seeds = load_dataset(DATA, "test", count).inputs
    return differential_search([network(), companion()], seeds, **vars(settings), guidance=guidance or None)


def assert_searches_equal(found, settings, guidance=None, count=120):
    """All fields of a search in one process, but for how long it took."""
    one = search_in_one_process(settings, tuple(guidance or ()), count)
    assert 0 < len(one) < count
    for name, value in vars(one).items():
        if isinstance(value, np.ndarray):
            assert np.array_equal(getattr(found, name), value), name
        elif name != "seconds":
            assert getattr(found, name) == value, name


def assert_analyses_equal(found, expected):
    """All fields, but for how long it took; sums of relevance to 1e-6."""
    for name, value in vars(expected).items():
        mine = getattr(found, name)
        if name == "importance":
            np.testing.assert_allclose(mine, value, rtol=1e-6)
        elif name == "clusters":
            assert all(np.array_equal(a.boundaries, b.boundaries) for a, b in zip(mine, value, strict=True))
        elif name == "centroids":
            assert all(map(np.array_equal, mine, value))
        elif isinstance(value, np.ndarray):
            assert np.array_equal(mine, value), name
        elif name != "seconds":
            assert mine == value, name


def worker_processes():
    """Processes of workers that this process's Ray has."""
    found = []
    for one in psutil.Process(os.getpid()).children(recursive=True):
        with suppress(psutil.Error):  # it may end meanwhile
            if "ray::_Worker" in " ".join(one.cmdline()[:1]):
                found.append(one)
    return found

"""Runs that are made without a network: an analysis's own arrays, drawn from a seed."""

from dataclasses import replace

import numpy as np
import pytest

from idc_core import store
from idc_core.analysis.result import Analysis
from idc_core.clustering.kmeans import Clusters
from idc_core.runs import RUN_KINDS


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("IDC_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def analysis(seed=0, m=3, tests=60, centres=((0.0, 1.0), (0.0, 1.0, 2.0), (0.0, 3.0))):
    """An analysis whose tests lie in cells at random."""
    draw = np.random.default_rng(seed)
    sizes = [len(one) for one in centres[:m]]
    cells = np.stack([draw.integers(0, size, tests) for size in sizes], 1).astype(np.uint8)
    activations = np.zeros((tests, m), np.float32)
    codes = np.ravel_multi_index(cells.T.astype(int), sizes).astype(np.int64)
    covered, total = len(set(codes.tolist())), int(np.prod(sizes))
    centroids = tuple(np.array(one) for one in centres[:m])
    return Analysis(
        layer="fc",
        m=m,
        settings={"original": False},
        accuracy=0.5,
        rmse=None,
        predictions=np.zeros(tests, np.int64),
        confidence=np.ones(tests, np.float32),
        correct=np.arange(tests) % 2 == 0,
        importance=np.arange(5.0),
        important=np.arange(m, dtype=np.int64),
        clusters=tuple(_clusters(one, tests) for one in centroids),
        centroids=centroids,
        train_activations=activations,
        test_activations=activations,
        test_relevance=activations,
        assignments=cells,
        codes=codes,
        covered=covered,
        total=total,
        score=covered / total,
        seconds={"all": 0.1},
    )


def _clusters(centroids, values):
    """Clusters of equal numbers of values around centroids."""
    counts = np.bincount(np.arange(values) % len(centroids), minlength=len(centroids))
    return Clusters(centroids, (centroids[1:] + centroids[:-1]) / 2, {}, {}, counts, values)


def told(**more):
    """Settings of a run."""
    usual = {"network": "net", "network_label": "Net", "network_fingerprint": "a" * 16, "training_data": "digits"}
    usual |= {"tests": "digits", "tests_fingerprint": "b" * 16, "layer": "fc", "m": 3, "address": "model=net&m=3"}
    return usual | more


def keep(key, value=None, kind="analysis", **more):
    """Keep a run; return its id."""
    value, settings = value or analysis(), told(**more)
    store.kept(
        kind, key, lambda: value, settings=settings, scores=lambda found: RUN_KINDS[kind].figures(found, settings)
    )
    return store.place(kind, key).stem


def remade(id, **changes):
    """Write a kept result anew with other facts."""
    path = store.results_folder() / f"{id}{store.ENDING}"
    facts, value = store.read_facts(path), store.read(path)
    store.keep(path, value, replace(facts, **changes))

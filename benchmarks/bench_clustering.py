"""Clusters of one neuron: exact optimum and exact silhouette for 2, 3 and 4 clusters."""

import time
import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score

from benchmarks.measure import Row, medians
from idc_core.clustering.kmeans import cluster


def run() -> list[Row]:
    random = np.random.default_rng(0)
    normal = random.normal(size=60_000)
    neurons = {
        "normal": normal,
        "normal behind a ReLU": np.maximum(normal, 0),
        "four clumps": random.normal(size=60_000) * 0.3 + random.integers(0, 4, 60_000) * 2,
        "heavy tails": random.standard_cauchy(60_000),
    }
    columns = {name: values.astype(np.float32) for name, values in neurons.items()}
    times = medians(*(lambda values=values: cluster(values) for values in columns.values()))
    rows = [
        Row(f"60,000 activations, {name}", seconds, at_most=0.1) for name, seconds in zip(columns, times, strict=True)
    ]
    return [*rows, _against_scikit_learn(columns["normal"][:10_000])]


def _against_scikit_learn(values: NDArray[np.float32]) -> Row:
    (ours,) = medians(lambda: cluster(values))
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in (2, 3, 4):
            labels = KMeans(k, n_init=10, random_state=0).fit_predict(values[:, None])
            silhouette_score(values[:, None], labels)
    theirs = time.perf_counter() - start
    return Row(
        "10,000 activations, normal",
        ours,
        "scikit-learn KMeans (10 starts) and silhouette_score",
        theirs,
        times_faster=300,
        note="one repetition of scikit-learn",
    )

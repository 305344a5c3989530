"""Clusters of one neuron: exact optimum and exact silhouette for 2, 3 and 4 clusters."""

import time
import warnings

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score

from benchmarks.measure import Row, few, medians
from idc_core.clustering.kmeans import cluster


def of_sixty_thousand() -> list[Row]:
    random = np.random.default_rng(0)
    count = few(60_000)
    normal = random.normal(size=count)
    neurons = {
        "normal": normal,
        "normal behind a ReLU": np.maximum(normal, 0),
        "four clumps": random.normal(size=count) * 0.3 + random.integers(0, 4, count) * 2,
        "heavy tails": random.standard_cauchy(count),
    }
    columns = {name: values.astype(np.float32) for name, values in neurons.items()}
    times = medians(*(lambda values=values: cluster(values) for values in columns.values()))
    return [
        Row(f"{count:,} activations, {name}", taken, at_most=0.1) for name, taken in zip(columns, times, strict=True)
    ]


def against_scikit_learn() -> list[Row]:
    values = np.random.default_rng(0).normal(size=few(10_000)).astype(np.float32)
    (ours,) = medians(lambda: cluster(values))
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in (2, 3, 4):
            labels = KMeans(k, n_init=10, random_state=0).fit_predict(values[:, None])
            silhouette_score(values[:, None], labels)
    theirs = time.perf_counter() - start
    against, note = "scikit-learn KMeans (10 starts) and silhouette_score", "one repetition of scikit-learn"
    return [Row(f"{len(values):,} activations, normal", ours, against, theirs, times_faster=300, note=note)]


PARTS = {"60,000 activations": of_sixty_thousand, "against scikit-learn": against_scikit_learn}

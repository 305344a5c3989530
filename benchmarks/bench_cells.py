"""Coverage of a million inputs by twelve neurons: nearest centroids, cell codes, number of different cells."""

import numpy as np

from benchmarks.measure import Row, few, medians
from idc_core.coverage.cells import CellCounts, assign

INPUTS = few(1_000_000)


def covered() -> list[Row]:
    random = np.random.default_rng(0)
    activations = np.maximum(random.normal(size=(INPUTS, 12)), 0).astype(np.float32)
    rows = []
    for label, counts in (("2 to 4", [2, 3, 4] * 4), ("4", [4] * 12)):
        centroids = [np.linspace(0, 2, k) for k in counts]

        def coverage(centroids: list[np.ndarray] = centroids, counts: list[int] = counts) -> int:
            return CellCounts(counts).update(assign(activations, centroids)).covered

        ours, plain = medians(coverage, lambda: activations.max(0))
        rows.append(Row(f"{INPUTS:,} x 12, {label} clusters a neuron", ours, "array.max(0)", plain, at_most=3))
    return rows


PARTS = {"coverage": covered}

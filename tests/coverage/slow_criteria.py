"""The criteria straight from their papers, one input, one neuron, one section after the other.

Everywhere: `train` and `tests` are lists of traces, a trace is a list of layers, a layer is a 1-d array of neurons.
"""

import math

import numpy as np


def neurons(trace):
    return [float(value) for layer in trace for value in layer]


def nc(tests, threshold=0.75):
    """DeepXplore, section 4.1, on activations as they are."""
    count = len(neurons(tests[0]))
    return sum(any(neurons(x)[n] > threshold for x in tests) for n in range(count)) / count


def scaled(trace):
    """Each layer of one input brought to 0..1."""
    return [(layer - layer.min()) / (layer.max() - layer.min()) for layer in trace]


def sections(train, n, k):
    """Bounds of DeepGauge's k sections of a neuron."""
    values = [neurons(x)[n] for x in train]
    low, high = min(values), max(values)
    return [(low + (high - low) * i / k, low + (high - low) * (i + 1) / k) for i in range(k)], high


def kmnc(train, tests, k):
    """DeepGauge, section 3.1."""
    reached, count = 0, len(neurons(tests[0]))
    for n in range(count):
        bounds, high = sections(train, n, k)
        for i, (start, stop) in enumerate(bounds):
            values = [neurons(x)[n] for x in tests]
            reached += any(start <= value < stop or (i == k - 1 and value == high) for value in values)
    return reached / (k * count)


def corners(train, tests, margin=0.0):
    """DeepGauge's |LowerCornerNeuron| and |UpperCornerNeuron|."""
    lower = upper = 0
    for n in range(len(neurons(tests[0]))):
        values = [neurons(x)[n] for x in train]
        spread = margin * math.sqrt(sum((v - sum(values) / len(values)) ** 2 for v in values) / len(values))
        lower += any(neurons(x)[n] < min(values) - spread for x in tests)
        upper += any(neurons(x)[n] > max(values) + spread for x in tests)
    return lower, upper


def nbc(train, tests, margin=0.0):
    return sum(corners(train, tests, margin)) / (2 * len(neurons(tests[0])))


def snac(train, tests, margin=0.0):
    return corners(train, tests, margin)[1] / len(neurons(tests[0]))


def top(layer, k):
    return sorted(range(len(layer)), key=lambda n: (-layer[n], n))[:k]


def tknc(tests, k):
    """DeepGauge, section 3.2."""
    found = {(i, n) for x in tests for i, layer in enumerate(x) for n in top(layer, k)}
    return len(found) / len(neurons(tests[0]))


def tknp(tests, k, ordered=False):
    kind = tuple if ordered else frozenset
    return len({tuple(kind(top(layer, k)) for layer in x) for x in tests})


def dsa(train, classes, test, label, second="neighbour"):
    """Kim, Feldt, Yoo, equations 5 to 7; traces are 1-d arrays."""
    same = [a for a, c in zip(train, classes, strict=True) if c == label]
    others = [a for a, c in zip(train, classes, strict=True) if c != label]
    near = min(same, key=lambda a: np.linalg.norm(test - a))
    source = near if second == "neighbour" else test
    return np.linalg.norm(test - near) / min(np.linalg.norm(source - a) for a in others)


def lsa(train, test):
    """Kim, Feldt, Yoo, equations 3 and 4, with Scott's bandwidth; of the traces of one class."""
    n, d = np.shape(train)
    mean = sum(train) / n
    covariance = sum(np.outer(a - mean, a - mean) for a in train) / (n - 1)
    bandwidth = covariance * n ** (-2 / (d + 4))
    scale = math.sqrt((2 * math.pi) ** d * np.linalg.det(bandwidth))
    kernels = [math.exp(-0.5 * (test - a) @ np.linalg.inv(bandwidth) @ (test - a)) / scale for a in train]
    return -math.log(sum(kernels) / n)


def mdsa(train, test):
    """Kim, Ju, Feldt, Yoo; of the traces of one class."""
    n = len(train)
    mean = sum(train) / n
    covariance = sum(np.outer(a - mean, a - mean) for a in train) / (n - 1)
    return math.sqrt((test - mean) @ np.linalg.inv(covariance) @ (test - mean))


def surprise_coverage(values, upper, buckets, lower=0.0):
    width = (upper - lower) / buckets
    return (
        sum(any(lower + i * width < value <= lower + (i + 1) * width for value in values) for i in range(buckets))
        / buckets
    )


def nlc(tests):
    """Yuan, Pang, Wang: every covariance of every layer by itself."""
    total = 0.0
    for i in range(len(tests[0])):
        rows = [x[i] for x in tests]
        for a in range(len(rows[0])):
            for b in range(len(rows[0])):
                one, other = [row[a] for row in rows], [row[b] for row in rows]
                mean, rest = sum(one) / len(rows), sum(other) / len(rows)
                covariance = sum((u - mean) * (v - rest) for u, v in zip(one, other, strict=True)) / len(rows)
                total += abs(covariance) / len(rows[0])
    return total


def cc(tests, threshold):
    """TensorFuzz: a vector is new when its nearest neighbour among the kept ones is far enough."""
    total = 0
    for i in range(len(tests[0])):
        kept = []
        for x in tests:
            if all(np.sum((x[i] - c) ** 2) > threshold for c in kept):
                kept.append(x[i])
        total += len(kept)
    return total

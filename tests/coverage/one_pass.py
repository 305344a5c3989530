"""A small network, inputs, and every criterion that shares a pass, fitted once for the tests of all."""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import torch
import torch.nn.functional as F
from hypothesis import strategies as st
from torch import nn

from idc_core import CRITERIA
from idc_core.coverage.streamed import StreamedCriterion
from idc_core.tracing.trace import collect
from tests.lrp.networks import Written, numbers, settle

LAYERS = ("conv", "fc", "out")
IMAGES = numbers(150, 1, 6, 6, seed=7)
TRAIN, TESTS = IMAGES[:90], 1.2 * IMAGES[90:]


def forward(net, x):
    return net.out(F.elu(net.fc(F.max_pool2d(F.relu(net.conv(x)), 2).flatten(1))))


NETWORK = settle(Written(forward, conv=nn.Conv2d(1, 5, 3), fc=nn.Linear(20, 6), out=nn.Linear(6, 3)), seed=9)


def plain(inputs):
    """Return the activations of the network's layers by a plain pass, one list of layers an input, and predictions."""
    with torch.no_grad():
        conv = F.relu(NETWORK.conv(inputs))
        fc = F.elu(NETWORK.fc(F.max_pool2d(conv, 2).flatten(1)))
        out = NETWORK.out(fc)
    rows = zip(conv.mean((2, 3)).numpy(), fc.numpy(), out.numpy(), strict=True)
    return [list(row) for row in rows], out.argmax(1).numpy()


(TRAINED, TRAINED_CLASSES), (TESTED, TESTED_CLASSES) = plain(TRAIN), plain(TESTS)


def fc_only(traces):
    return [trace[1] for trace in traces]


def make(name, **options):
    kind = CRITERIA[name]
    return kind(NETWORK, "fc" if kind.card.one_layer else LAYERS, **options)


OPTIONS = defaultdict(
    dict,
    {
        "kmnc": {"k": 20},
        "tknc": {"k": 2},
        "tknp": {"k": 2},
        "cc": {"threshold": 2.0},
        "lsc": {"upper": 40.0, "buckets": 50},
        "dsc": {"buckets": 50},
        "mdsc": {"upper": 10.0, "buckets": 50},
    },
)
"""Settings under which so small a network's targets are neither all reached nor all missed; else the defaults."""


class Fitted(dict):
    def __missing__(self, name):
        return self.setdefault(name, make(name, **OPTIONS[name]).fit(TRAIN))


FITTED = Fitted()
NAMES = sorted(name for name, kind in CRITERIA.items() if issubclass(kind, StreamedCriterion))

POOL = collect(NETWORK, torch.cat([TESTS, 3 * TRAIN[:20]]), LAYERS)
rows = st.lists(st.integers(0, len(POOL.scores) - 1), min_size=1, max_size=30)


def some(chosen):
    """Return the traces of these inputs of the pool, so that examples need no pass."""
    return replace(POOL, scores=POOL.scores[chosen], activations={k: v[chosen] for k, v in POOL.activations.items()})


def seeing(name, *parts):
    criterion = FITTED[name].fresh()
    for part in parts:
        criterion.update(some(part))
    return criterion


def state(criterion):
    """Return all that a criterion has accumulated, in a form in which equal states are equal."""
    if hasattr(criterion, "_hit"):
        return criterion.reached.tolist()
    if hasattr(criterion, "_patterns"):
        return sorted(criterion._patterns)
    if hasattr(criterion, "_centres"):
        return [np.unique(centres.points, axis=0).tolist() for centres in criterion._centres]
    if hasattr(criterion, "_tests"):
        return np.concatenate([[m.count, *m.mean, *m.scatter.ravel()] for m in criterion._tests.found])
    return criterion.score


def assert_same(one, other):
    if hasattr(one, "_tests"):
        np.testing.assert_allclose(state(one), state(other), rtol=1e-9, atol=1e-9)
    else:
        assert state(one) == state(other)

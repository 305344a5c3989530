"""Values of another kind than a public function takes: each works, or is one sentence."""

from contextlib import suppress

import numpy as np
import pytest
import torch
from torch import nn

import idc_core as idc
from idc_core.analysis.layer_sweep import sweep
from idc_core.datasets import Dataset
from idc_core.errors import IdcError
from tests.coverage.one_pass import NAMES, NETWORK, TESTS, TRAIN

ODD = (3, 3.5, "a", "", None, (), [], ["fc"], {"a": 1}, object(), float("nan"), b"x", -1, np.array([1, 2]))


def data(inputs, split):
    targets = np.arange(len(inputs)) % 3
    return Dataset("rows", split, inputs.numpy(), targets, ("a", "b", "c"), "classification", (), (), targets, split)


LEARNT, TESTED = data(TRAIN[:30], "train"), data(TESTS[:10], "test")
FITTED = idc.IDC(NETWORK, "fc", m=2).fit(TRAIN[:30])
EVEN = [idc.Hypothesis("even", "test", "binary", lambda records: records.inputs[:, 0] > 0)]
with torch.random.fork_rng():
    torch.manual_seed(0)
    LOOKS, PICTURES = nn.Sequential(nn.Flatten(), nn.Linear(16, 3)), np.full((2, 1, 4, 4), 0.5, np.float32)
METHOD = ("model", "layer", "m", "rule", "clusters", "clustering", "priority", "drop_zeros", "original", "in_memory")
CALLS = {
    "IDC": (lambda **of: idc.IDC(**{"model": NETWORK, "layer": "fc"} | of).fit(TRAIN[:30]), (*METHOD, "batch_size")),
    "update": (lambda **of: FITTED.fresh().update(**of), ("inputs",)),
    "profile": (lambda **of: FITTED.profile(**of), ("inputs",)),
    "analyze": (
        lambda **of: idc.analyze(**{"model": NETWORK, "layer": "fc", "train": LEARNT, "test": TESTED} | of),
        (*METHOD, "train", "test"),
    ),
    "assert_coverage": (
        lambda **of: idc.testing.assert_coverage(
            **{"model": NETWORK, "tests": TESTED, "layer": "fc", "at_least": 0, "train": LEARNT} | of
        ),
        ("model", "tests", "layer", "at_least", "m", "clusters", "clustering", "priority", "cells", "closest_tests"),
    ),
    "sweep": (
        lambda **of: sweep(
            **{"model": NETWORK, "train": LEARNT, "tests": {"t": TESTED}, "layers": ["fc"], "ms": [2]} | of
        ),
        ("model", "layers", "ms", "tests", "clusters", "clustering", "priority"),
    ),
    "relevance": (
        lambda **of: idc.relevance(**{"model": NETWORK, "inputs": TESTS[:9], "layers": ["fc"]} | of),
        ("model", "inputs", "layers", "epsilon", "batch_size"),
    ),
    "trace": (
        lambda **of: list(idc.trace(**{"model": NETWORK, "inputs": TESTS[:9], "layers": ["fc"]} | of)),
        ("model", "inputs", "layers", "batch_size"),
    ),
    "attack": (
        lambda **of: idc.attack(
            **{"model": NETWORK, "inputs": TESTED.inputs, "targets": TESTED.targets, "name": "fgsm"} | of
        ),
        ("name", "seed"),
    ),
    "load_dataset": (lambda **of: idc.load_dataset(**{"name": "digits"} | of), ("name", "split", "limit")),
    "load_model": (
        lambda **of: idc.load_model(**{"name": "lenet1-digits"} | of),
        ("name", "weights", "data", "device"),
    ),
    "open_setup": (lambda **of: idc.open_setup(**{"path": "nowhere.py"} | of), ("path",)),
    "inspect": (
        lambda **of: idc.inspect(**{"models": NETWORK, "dataset": TESTED, "hypotheses": EVEN, "layers": ["fc"]} | of),
        (
            "models",
            "dataset",
            "hypotheses",
            "measures",
            "layers",
            "groups",
            "error",
            "confidence",
            "records",
            "seed",
            "pilot",
            "passes",
        ),
    ),
    "differential_search": (
        lambda **of: idc.differential_search(**{"models": [LOOKS, LOOKS], "seeds": PICTURES, "iterations": 2} | of),
        (
            "models",
            "seeds",
            "constraint",
            *["weight_difference", "weight_coverage", "step", "iterations", "threshold", "seed"],
            "guidance",
            "objective",
            "turn",
            "bound",
        ),
    ),
    "explaining": (
        lambda **of: idc.explaining(**{"network": NETWORK, "explain": "mean-pixels"} | of).remove(),
        ("network", "explain"),
    ),
    "composite": (lambda **of: idc.composite(**{"name": "z", "table": "conv: z"} | of), ("table",)),
    "load_criterion": (lambda **of: idc.load_criterion(**{"path": "nowhere", "model": NETWORK} | of), ("path",)),
    **{
        name: (
            lambda name=name, **of: idc.CRITERIA[name](**{"model": NETWORK, "layers": "fc"} | of).fit(TRAIN[:30]),
            ("model", "layers", *idc.CRITERIA[name].card.defaults),
        )
        for name in NAMES
    },
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", CALLS)
def test_it_works_or_is_one_sentence(name):
    call, parameters = CALLS[name]
    for parameter in parameters:
        for value in ODD:
            with suppress(IdcError, AssertionError):
                call(**{parameter: value})


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: idc.IDC(3, "fc"), r"Expected a network, a torch\.nn\.Module, not 3"),
        (lambda: idc.IDC(NETWORK, ["fc"]), r"layer must be the name of one layer, not \['fc'\]"),
        (lambda: idc.IDC(NETWORK, "fc", rule=None), "rule must be the name of a rule, a table, or Rele.*, not None"),
        (lambda: idc.IDC(NETWORK, "fc", clusters=(3, 3)), r"clusters to be whole numbers.*each once; got \(3, 3\)"),
        (lambda: idc.IDC(NETWORK, "fc", clusters=1), r"clusters to be whole numbers from 2 to 256.*got 1"),
        (lambda: idc.IDC(NETWORK, "fc", clusters=None), r"clusters to be whole numbers.*got None"),
        (lambda: idc.IDC(NETWORK, "fc", clustering=[]), r"Unknown clustering \[\]: expected one of k-means"),
        (lambda: idc.IDC(NETWORK, "fc", in_memory="a"), "in_memory must be a whole number of at least 0, not 'a'"),
        (
            lambda: idc.CRITERIA["nc"](NETWORK, 3),
            r"Expected names of layers, such as those of named_modules\(\), not 3",
        ),
        (lambda: idc.CRITERIA["nc"](NETWORK, "fc", "a"), "threshold must be a finite number, not 'a'"),
        (
            lambda: idc.CRITERIA["nbc"](NETWORK, "fc", None),
            "margin must be a number of standard deviations of at least 0",
        ),
        (
            lambda: idc.CRITERIA["dsc"](NETWORK, "fc", "a"),
            "finite bounds of surprise with lower < upper, not 0.0 and 'a'",
        ),
        (lambda: idc.analyze(NETWORK, TRAIN, TESTS, "fc"), r"data sets, as load_dataset gives them, not Tensor\. For"),
        (lambda: sweep(NETWORK, LEARNT, TESTED, ["fc"]), "data sets by name as tests of a sweep"),
        (lambda: idc.load_model(3.5), "Expected the name of a network, or the path .*, not 3.5"),
        (lambda: idc.open_setup(3), "Expected the path of a setup file, not 3"),
        (lambda: idc.inspect(NETWORK, TESTED, 3), "Expected a list of hypotheses, .* not 3"),
        (
            lambda: idc.differential_search([LOOKS, LOOKS], PICTURES, step=0),
            "step must be a finite number above 0, not 0",
        ),
        (lambda: idc.load_dataset(3), "There is no dataset 3; choose one of digits"),
    ],
)
def test_sentences(call, said):
    with pytest.raises(IdcError, match=said):
        call()


def test_one_where_several_can_be():
    assert (
        sweep(NETWORK, LEARNT, {"t": TESTED}, "fc", 2).cells == sweep(NETWORK, LEARNT, {"t": TESTED}, ["fc"], [2]).cells
    )
    assert idc.relevance(NETWORK, TESTS[:2], "fc")["fc"].shape == (2, 6)

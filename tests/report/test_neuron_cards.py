"""The best hypotheses on cards: of the newest inspection of the same network, tests and layer, if significant."""

from types import SimpleNamespace

import numpy as np
import pytest

from idc_core.inspection.result import Inspection, ScoreRows
from idc_core.report import neuron_cards
from idc_core.report.neuron_cards import best_hypotheses
from idc_core.store import MISSING


@pytest.fixture
def kept(monkeypatch):
    rows = ScoreRows()
    for name, scores, p in (
        ("loop", (0.2, -0.9, 0.1), (1e-9, 1e-9, 0.9)),
        ("stroke", (0.7, 0.3, 0.4), (1e-9, 1e-9, 0.8)),
    ):
        rows.add(
            3,
            model="net",
            layer="fc",
            group="",
            unit=np.arange(3),
            hypothesis=name,
            measure="correlation",
            score=np.array(scores),
            low=0.0,
            high=0.0,
            margin=0.0,
            p_value=np.array(p),
            records=10,
            remark="",
        )
    names = (("loop", "", ""), ("stroke", "", ""))
    found = Inspection(rows.table(), {("net", "fc"): np.zeros((3, 2))}, names, {})
    monkeypatch.setattr(neuron_cards, "find", lambda path: found if path.stem == "there" else MISSING)


def run(id="there", tests="t", layers=("fc",), current=True):
    settings = {"network_fingerprint": "n", "tests_fingerprint": tests, "inspected": list(layers)}
    facts = SimpleNamespace(settings=settings)
    return SimpleNamespace(id=id, facts=facts, is_current=current, said=lambda name: "net")


def test_the_strongest_significant_hypotheses_of_each_neuron_are_told(kept):
    of = SimpleNamespace(analysis=SimpleNamespace(layer="fc"), test=SimpleNamespace(fingerprint="t"))
    others = [run(tests="other"), run(layers=("conv",)), run(current=False), run(id="gone")]
    assert best_hypotheses(of, others, "n") is None
    assert best_hypotheses(of, [run()], "another network") is None
    assert best_hypotheses(of, [*others, run()], "n") == {
        0: (("stroke", "0.70"), ("loop", "0.20")),
        1: (("loop", "\u22120.90"), ("stroke", "0.30")),
    }

"""A kept result lives as long as its numbers: what it computes with is written down, and its classes are found."""

import json
from pathlib import Path

import pytest

from idc_core import store
from idc_core.runs import RUN_KINDS
from idc_core.store import values
from tests.store import computed_with

CLASSES = Path(__file__).with_name("kept_classes.txt").read_text(encoding="utf-8").split()


def test_what_kinds_compute_with_changes_knowingly():
    written, now = json.loads(computed_with.WRITTEN.read_text(encoding="utf-8")), computed_with.computed_with()
    changed = [kind for kind in {*written, *now} if written.get(kind) != now.get(kind)]
    assert not changed, (
        f"What {', '.join(sorted(changed))} compute with has changed. Where their numbers or the form of their results "
        "change, raise their versions in idc_core/store/versions.py; then run `make versions`."
    )


def test_kinds_are_found_by_what_they_compute_with():
    kinds = computed_with.kinds()
    assert set(RUN_KINDS) <= set(kinds)
    assert "idc_core.clustering.kmeans" in computed_with.closure(kinds["analysis"])
    assert "idc_core.perturbation.attacks.ddn" in computed_with.closure(kinds["attacks"])
    assert "idc_core.lrp.operations" in computed_with.closure(kinds["heatmaps"])
    assert "idc_core.perturbation.attacks.ddn" not in computed_with.closure(kinds["projections"])


def test_docstrings_and_comments_are_no_part_of_it():
    written = '"""Of the module."""\n\ndef f(x):  # why\n    """Of the\n    function: "#"."""\n    return x + "#"\n'
    assert computed_with.code_of(written) == computed_with.code_of(written.replace("why", "how").replace("Of", "On"))
    assert computed_with.code_of(written) != computed_with.code_of(written.replace('x + "#"', 'x + "%"'))
    assert 'return x + "#"' in computed_with.code_of(written)


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_that_a_result_names_is_found(name):
    """One that was moved or renamed has a place in `MOVED`."""
    assert values._named(name).__module__.startswith(values._PACKAGES)


def test_classes_of_runs_are_among_them():
    assert {kind.result for kind in RUN_KINDS.values()} <= set(CLASSES)


def test_a_result_names_a_class_that_has_moved(monkeypatch):
    monkeypatch.setitem(values.MOVED, "idc_core.former:Marked", "idc_core.store.marks:Mark")
    tree, arrays = values.pack(store.Mark("before", True))
    tree = {"object": ["idc_core.former:Marked", tree["object"][1]]}
    assert values.unpack(tree, arrays) == store.Mark("before", True)

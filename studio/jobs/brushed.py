"""The tests that are selected together: every chart of tests marks them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from studio.jobs.results import View
from studio.state.selection import drawn_around, last_of_many, selected
from studio.text import parse_cell


def brushed(view: View) -> NDArray[np.int64]:
    """Return the positions of the chosen tests that were selected together last: in a chart, by cell or cluster."""
    inside = _INSIDE[last_of_many()](view)
    return view.chosen[:0] if inside is None else view.chosen[inside[view.chosen]]


def in_chart(view: View) -> NDArray[np.int64]:
    """Return the positions of the chosen tests that were selected in a chart."""
    return view.chosen[_drawn_around(view)[view.chosen]]


def _drawn_around(view: View) -> NDArray[np.bool_]:
    inside: NDArray[np.bool_] = np.isin(view.test.ids, drawn_around(view.setup.data))
    return inside


def _in_cell(view: View) -> NDArray[np.bool_] | None:
    cell = parse_cell(selected().cell, view.sizes)
    return None if cell is None else (view.analysis.assignments == np.array(cell)).all(axis=1)


def _in_cluster(view: View) -> NDArray[np.bool_] | None:
    here = selected()
    ranks = np.flatnonzero(view.analysis.important == here.neuron)
    if not len(ranks) or here.cluster is None:
        return None
    inside: NDArray[np.bool_] = view.analysis.assignments[:, ranks[0]] == here.cluster
    return inside


_INSIDE: dict[str, Callable[[View], NDArray[np.bool_] | None]] = {
    "tests": _drawn_around,
    "cell": _in_cell,
    "cluster": _in_cluster,
}

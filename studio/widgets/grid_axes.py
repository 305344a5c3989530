"""Choose the shown part of the grid of combinations: neurons fixed to one cluster, neurons on rows and columns.

The address names neurons by their index in the layer, after the layer itself: a zoom holds for as long as the
layer and its neurons are there, whatever happens to m.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import streamlit as st

from idc_core.figures.colourings import CROSS, find_colouring
from idc_core.figures.grid import MOST_CELLS, MOST_ON_AXIS, Axes, Grid, fit_axes
from studio.jobs.results import View
from studio.state import address
from studio.text import cell_name, literal, plural
from studio.widgets.cluster_names import called, names_in
from studio.widgets.grid_pictures import usual_axes
from studio.widgets.layout import Headline, counted, label, settings

FIXED, ROWS, COLUMNS = "zoom", "rows", "columns"
"""Names in the address."""

_MARK = "~"
"""Between the parts of a value in the address."""

_FREE = -1
"""Stands for any cluster in the menu of a neuron."""


@dataclass(frozen=True)
class Zoom:
    """What of the grid is shown: neurons held in one cluster, by their rank, and neurons on rows and columns.

    `left_out` are neurons that the person wanted on an axis and that would make more tiles than can be drawn.
    """

    fixed: Mapping[int, int]
    axes: Axes
    left_out: tuple[int, ...]


def read_zoom(view: View) -> Zoom:
    """Return what of the grid the address says, else what the session kept, else all of it."""
    fixed = {}
    for part in _parts(view, FIXED) or ():
        neuron, _, cluster = part.partition("-")
        rank = _rank(view, neuron)
        if rank is not None and cluster in map(str, range(view.sizes[rank])):
            fixed[rank] = int(cluster)
    neurons = [_free(view, name, fixed) for name in (ROWS, COLUMNS)]
    if neurons[0] or neurons[1]:
        axes = fit_axes(view.sizes, *neurons)
        return Zoom(fixed, axes, tuple(i for i in (*neurons[0], *neurons[1]) if i not in (*axes.rows, *axes.columns)))
    return Zoom(fixed, usual_axes(view.sizes, fixed), ())


def _parts(view: View, name: str) -> list[str] | None:
    """Read a value of this layer; None where there is none."""
    layer, *parts = address.read(name).split(_MARK)
    return parts if layer == view.setup.layer else None


def _rank(view: View, neuron: str) -> int | None:
    important = [str(entry) for entry in view.analysis.important]
    return important.index(neuron) if neuron in important else None


def _free(view: View, name: str, fixed: Mapping[int, int]) -> list[int]:
    ranks = [_rank(view, part) for part in _parts(view, name) or ()]
    return [rank for rank in dict.fromkeys(ranks) if rank is not None and rank not in fixed]


def fix(view: View, fixed: Mapping[int, int]) -> None:
    """Hold these neurons, by their rank, in these clusters and no others; for callbacks."""
    fix_in(view.setup.layer, view.analysis.important.tolist(), fixed)


def fix_in(layer: str, important: Sequence[int], fixed: Mapping[int, int]) -> None:
    """Do the same where no view is loaded yet, for the important neurons of a layer."""
    parts = [f"{important[rank]}-{cluster}" for rank, cluster in sorted(fixed.items())]
    address.keep(FIXED, _MARK.join([layer, *parts]) if parts else "")


def _put(view: View, rows: Sequence[int], columns: Sequence[int]) -> None:
    """Put neurons, by their rank, on rows and columns; none at all for what fits best; for callbacks."""
    for name, ranks in ((ROWS, rows), (COLUMNS, columns)):
        parts = [str(view.analysis.important[rank]) for rank in ranks]
        address.keep(name, _MARK.join([view.setup.layer, *parts]) if rows or columns else "")


def around(view: View, cell: Sequence[int]) -> dict[int, int]:
    """Return the clusters to hold so that a cell is drawn as a tile of its own, and as few as that takes."""
    sizes, fixed = view.sizes, dict[int, int]()
    while True:
        axes = usual_axes(sizes, fixed)
        drawn = (*axes.rows, *axes.columns)
        if len(drawn) + len(fixed) == len(sizes):
            return fixed
        fixed |= {rank: cell[rank] for rank in drawn or [i for i in range(len(sizes)) if i not in fixed]}


def _words(view: View, fixed: Mapping[int, int]) -> str:
    """Put held neurons into words; empty where there are none."""
    neurons = [view.neurons[rank].removeprefix("neuron ") for rank in fixed]
    where = f"{', '.join(neurons)} in cluster{'s' * (len(fixed) > 1)} {cell_name(list(fixed.values()))}"
    return f"neuron{'s' * (len(fixed) > 1)} {where}" if fixed else ""


def crumbs(view: View, zoom: Zoom) -> None:
    """Draw the way back: all cells, then one held neuron after the other."""
    if not zoom.fixed:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall", key="crumbs"):
        st.button(
            f"All {plural(view.table.total, 'cell')}",
            key="crumb-all",
            type="tertiary",
            on_click=fix,
            args=(view, {}),
            help="Show the whole grid.",
        )
        held: dict[int, int] = {}
        for rank, cluster in zoom.fixed.items():
            held[rank] = cluster
            st.markdown("\u203a")
            said = names_in(view)[rank][cluster] or str(cluster)
            name = f"{view.neurons[rank].removeprefix('neuron ')}: {said}"
            if len(held) == len(zoom.fixed):
                left = math.prod(size for i, size in enumerate(view.sizes) if i not in zoom.fixed)
                st.markdown(f"{label(name)} ({plural(left, 'cell')})")
                break
            st.button(
                literal(name),
                key=f"crumb-{rank}",
                type="tertiary",
                on_click=fix,
                args=(view, dict(held)),
                help=f"Go back to {_words(view, held)}.",
            )


def controls(view: View, zoom: Zoom) -> None:
    """Draw what chooses the neurons on the axes and the clusters that neurons are held in."""
    names = dict(enumerate(view.neurons))
    free = [rank for rank in names if rank not in zoom.fixed]
    with settings(FIXED, ROWS, COLUMNS):
        st.session_state[ROWS], st.session_state[COLUMNS] = list(zoom.axes.rows), list(zoom.axes.columns)
        for name, place in ((ROWS, "the rows"), (COLUMNS, "the columns")):
            other = zoom.axes.columns if name == ROWS else zoom.axes.rows
            st.multiselect(
                f"Neurons on {place}",
                [rank for rank in free if rank not in other],
                format_func=names.__getitem__,
                key=name,
                on_change=_take_axes,
                args=(view,),
                help=f"Every combination of their clusters is one of {place}, at most {MOST_ON_AXIS}. Other neurons "
                "are "
                "summed up in each tile. Default as many neurons as fit, the most important first.",
            )
        if zoom.left_out:
            left = ", ".join(names[rank] for rank in zoom.left_out)
            st.warning(
                f"Left out: {left}. At most {MOST_ON_AXIS} rows or columns and {MOST_CELLS:,} tiles are readable on "
                "a screen. "
                "Remove another neuron from an axis first, or fix one to a cluster."
            )
        st.caption("Fix a neuron to one cluster to show only those cells:")
        with st.container(horizontal=True, gap="small"):
            for rank, name in names.items():
                st.session_state[f"fix-{rank}"] = zoom.fixed.get(rank, _FREE)
                clusters: list[int] = [_FREE, *range(view.sizes[rank])]
                st.selectbox(
                    name.capitalize(),
                    clusters,
                    format_func=partial(_option, view, rank),
                    key=f"fix-{rank}",
                    on_change=_fix,
                    args=(view,),
                    width=150,
                    help=f"Show only the cells with {name} in this cluster; default any.",
                )


def _option(view: View, rank: int, cluster: int) -> str:
    if cluster == _FREE:
        return "any"
    return f"{cluster} ({called(view, rank, cluster)})"


def _take_axes(view: View) -> None:
    _put(view, st.session_state[ROWS], st.session_state[COLUMNS])


def _fix(view: View) -> None:
    chosen = {rank: st.session_state[f"fix-{rank}"] for rank in range(len(view.sizes))}
    fix(view, {rank: cluster for rank, cluster in chosen.items() if cluster != _FREE})


def reading(view: View, grid: Grid, colouring: str) -> str:
    """Say how to read the grid: what exactly a tile is, and what its colour and mark say."""
    chosen = find_colouring(colouring)
    reads = f"{chosen.reads} {CROSS}" if chosen.crosses and view.correct is not None else chosen.reads
    held = f" Fixed: {_words(view, grid.fixed)}." if grid.fixed else ""
    if not grid.folded:
        return (
            "Each tile is one cell. Row and column: the clusters of the neurons on the axes, 0 the lowest. "
            f"{reads}{held}"
        )
    noun = "neuron" if len(grid.folded) == 1 else "neurons"
    folded = ", ".join(view.neurons[rank].removeprefix("neuron ") for rank in grid.folded)
    return (
        f"Each tile is {plural(grid.cells_per_tile, 'cell')}. Row and column: the clusters of the neurons on the "
        "axes, 0 the "
        f"lowest; {noun} {folded} in any cluster. Filled tiles contain covered cells. {reads}{held}"
    )


def finding(view: View, grid: Grid) -> Headline:
    """State what the grid shows, as its title."""
    inside = f" with {_words(view, grid.fixed)}" if grid.fixed else ""
    return counted(f"Covered{inside}", int((grid.tile >= 0).sum()), grid.total, "cell")

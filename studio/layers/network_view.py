"""The network as a drawing in which a layer can be chosen."""

from __future__ import annotations

import pandas as pd

from idc_core.analysis.layer_sweep import Sweep
from idc_core.base.progress import Progress
from idc_core.figures.network_drawing import network_drawing
from studio.jobs.explanations import EXPLANATIONS
from studio.jobs.jobs import Waiting
from studio.jobs.results import View
from studio.state.selection import select
from studio.text import percent, plural
from studio.widgets import layout


def draw_network(view: View, sweep: Sweep) -> None:
    """Draw every layer with its shape and its IDC at the setup's m; a click makes it the setup's layer."""
    m, layers = view.setup.m, list(sweep.layers)
    cells = [cell for cell in sweep.cells if (cell.suite, cell.m) == (view.setup.data, m)]
    scores = {cell.layer: cell.score for cell in cells if cell.coverable}
    shapes = _shapes(view, layers)
    weakest = min(scores, key=scores.__getitem__) if scores else ""
    title = f"{plural(len(layers), 'layer')} of {view.card.label.partition(' on ')[0]}"
    if weakest:
        title += f"; the tests cover {weakest} least at m = {m}: {percent(scores[weakest])}"
    table = pd.DataFrame(
        [{"layer": layer, "output": "x".join(map(str, shapes[layer])), "idc": scores.get(layer)} for layer in layers]
    )
    layout.chart(
        view,
        "network",
        lambda dark: network_drawing(layers, shapes, scores, title, selected=view.setup.layer, dark=dark),
        alt=title,
        read="Each box is one layer, from input to output: its name, the shape of its output, and its IDC in per cent. "
        "The setup's layer is framed. Click a box to examine that layer on all pages.",
        depends=(m, tuple(scores.items())),
        clicked=_clicked,
        table=table,
    )


def _clicked(points: list[dict[str, object]]) -> None:
    select(layer=str(points[0]["customdata"]))


def _shapes(view: View, layers: list[str]) -> dict[str, tuple[int, ...]]:
    """Return the shape of every layer's output for one input."""

    def work(report: Progress) -> dict[str, tuple[int, ...]]:
        from idc_core.tracing.trace import collect

        return dict(collect(view.model, view.test.inputs[:1], layers, on_progress=report).shapes)

    key = (*view.key, "shapes")
    shapes: dict[str, tuple[int, ...]] = Waiting(1).get(EXPLANATIONS, key, "running one test", work)
    return shapes

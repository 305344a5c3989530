"""Show the relevance of every layer, from the scores to the input."""

from __future__ import annotations

import numpy as np

from idc_core.figures.layer_relevance import layer_sums
from studio.jobs.explanations import INPUT
from studio.relevance import choices
from studio.relevance.findings import conserved
from studio.relevance.one_test import Explained, is_image
from studio.widgets import layout, relevance_view
from studio.widgets.relevance_view import Display


def draw(one: Explained) -> None:
    """Show each layer's map, and the sums of all layers."""
    with one.settings:
        scale, scheme = choices.choose_colours()
    view, first = one.view, one.explanations[0]
    second = one.explanations[1] if len(one.explanations) > 1 else None
    display = Display(view, one.position, one.explanations, scale, scheme)
    title, expected, expected_label = conserved(view, one.position, one.score, first)
    layout.chart(
        view,
        "layer-sums",
        lambda dark: layer_sums(
            list(first.layers),
            first.signed(1),
            first.signed(-1),
            expected,
            expected_label,
            title,
            beside=None if second is None else [second.sums.get(layer, np.nan) for layer in first.layers],
            beside_label="" if second is None else second.label,
            scheme=scheme,
            dark=dark,
        ),
        alt=title,
        read="Each bar is one layer. Height: its summed relevance for (plain) and against (hatched) the "
        f"{'score' if first.neuron is None else 'activation'}; the "
        f"diamond is their sum. {first.method.label} sums to {first.method.sums_to}."
        + ("" if is_image(view) else " Parallel layers, such as the three convolutions, share the sum."),
        depends=(one.position, first.label, second and second.label, tuple(one.asked.settings.items()), scheme),
        table=display.table(),
    )
    relevance_view.draw_flow(display, skip=() if is_image(view) else (INPUT,))
    layout.how_to_read(
        "Each picture is one layer: convolutions summed over channels, tokens over features, other layers with their "
        "units in rows. "
        + ("Top: first explanation; bottom: second. " if second else "")
        + "The numbers are sums over the layer."
    )

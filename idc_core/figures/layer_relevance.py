"""The relevance of every layer as bars: what is for, what is against, and whether the sum is conserved."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from idc_core.figures.palette import SCHEMES, palette, signed_fill
from idc_core.figures.style import finish

_WIDE = 90
"""Characters of all layers, each as long as the longest, up to which their names fit beside each other."""


def layer_sums(
    layers: Sequence[str],
    supports: Sequence[float],
    against: Sequence[float],
    expected: float,
    expected_label: str,
    title: str,
    *,
    beside: Sequence[float] | None = None,
    beside_label: str = "",
    scheme: str = "red-blue",
    dark: bool = False,
) -> go.Figure:
    """Draw the positive and the negative relevance of every layer, from the scores to the input, and their sum.

    `beside` holds the sums of a second explanation.
    """
    colours = palette(dark)
    negative, positive = SCHEMES[scheme].fills
    figure = go.Figure()
    for name, values, fill, pattern in (("for", supports, positive, ""), ("against", against, negative, "/")):
        figure.add_bar(
            x=list(layers),
            y=list(values),
            name=name,
            marker=signed_fill(fill, pattern, colours),
            hovertemplate=f"%{{x}}<br>{name} %{{y:.4g}}<extra></extra>",
        )
    sums = [a + b for a, b in zip(supports, against, strict=True)]
    lines: tuple[tuple[str, Sequence[float] | None, str, str], ...] = (
        ("sum", sums, "diamond", colours.ink),
        (f"{beside_label}: sum", beside, "circle-open", colours.accent),
    )
    for label, values_of, symbol, colour in lines:
        if values_of is not None:
            figure.add_scatter(
                x=list(layers),
                y=list(values_of),
                mode="lines+markers",
                name=label,
                line={"color": colour, "width": 1},
                marker={"symbol": symbol, "size": 9, "color": colour},
                hovertemplate=f"%{{x}}<br>{label} %{{y:.5g}}<extra></extra>",
            )
    figure.add_scatter(
        x=list(layers),
        y=[expected] * len(layers),
        mode="lines",
        name=expected_label,
        line={"color": colours.muted, "dash": "dash", "width": 1.5},
        hoverinfo="skip",
    )
    figure.update_layout(barmode="relative", bargap=0.45)
    longest = max(map(len, layers))
    angle, room = (-45, 4 * longest) if len(layers) * longest > _WIDE else (0, 0)
    figure.update_xaxes(title="layer, from the scores to the input", type="category", tickangle=angle, showgrid=False)
    figure.update_yaxes(title="relevance (score units)")
    return finish(figure, title, colours, height=380 + room)

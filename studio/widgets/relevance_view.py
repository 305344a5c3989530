"""Draw the explanations of one test: pictures, words, and the relevance of every layer."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from numpy.typing import NDArray

from idc_core.figures import heatmaps, text_relevance, vectors
from idc_core.figures.input_images import GAP, pictures
from idc_core.figures.palette import SCHEMES
from studio.jobs.explanations import INPUT, Explanation, marks_of
from studio.jobs.results import View
from studio.jobs.wording import feature_names, is_series
from studio.text import rounded, signed
from studio.widgets import layout
from studio.widgets.picture import draw_picture

_SIDE = 168
"""Width of the large pictures in pixels, at least."""

_SMALL_SIDE = 112
"""The same of a layer's map."""


@dataclass(frozen=True, eq=False)
class Display:
    """What is drawn of one test: one explanation, or two to compare.

    `scale` and `scheme` are keys of `heatmaps.SCALES` and of `palette.SCHEMES`; `dark` is by default the page's ground.
    """

    view: View
    position: int
    explanations: list[Explanation]
    scale: str
    scheme: str
    dark: bool = field(default_factory=layout.is_dark)

    def heatmap(self, values: NDArray[np.floating], limit: float, side: int) -> NDArray[np.uint8]:
        """Return one map as a picture."""
        return heatmaps.heatmap(values, limit, side, self.scheme, dark=self.dark)

    @property
    def limits(self) -> list[dict[str, float]]:
        """The relevance of the strongest colour, by explanation and layer."""
        return heatmaps.limits([explanation.maps for explanation in self.explanations], self.scale)

    @property
    def difference(self) -> tuple[str, NDArray[np.float64]] | None:
        """The unit where it is not the score's, and the first input map minus the second one."""
        if len(self.explanations) < 2:
            return None
        first, second = self.explanations
        one, other = first.maps[INPUT], second.maps[INPUT]
        if first.method is second.method and first.neuron == second.neuron:
            return "", one - other
        return ", as shares of each one's sum of absolute values", heatmaps.shares(one) - heatmaps.shares(other)

    @property
    def image(self) -> tuple[NDArray[np.uint8], str]:
        """The picture with its caption."""
        number = self.view.test.ids[self.position]
        tile = pictures(self.view.test.inputs[self.position][None], _SIDE)[0]
        return tile, f"Test {number}: {layout.answer(self.view, self.position)}"

    @property
    def heatmaps(self) -> list[tuple[NDArray[np.uint8], str]]:
        """The heatmap of every explanation with its caption."""
        return [
            (
                self.heatmap(explanation.maps[INPUT], limit[INPUT], _SIDE),
                f"{explanation.label}: {_scale_text(explanation, limit[INPUT])}",
            )
            for explanation, limit in zip(self.explanations, self.limits, strict=True)
        ]

    def pictures(self, strength: float) -> list[tuple[NDArray[np.uint8], str]]:
        """Return image, overlay, heatmaps and difference with their captions; strength is in 0..1."""
        image, first = self.view.test.inputs[self.position], self.explanations[0]
        covered = heatmaps.overlay(image, first.maps[INPUT], strength, _SIDE, self.scheme)
        shown = [self.image, (covered, f"{first.label}, overlay"), *self.heatmaps]
        if self.difference is not None:
            unit, values = self.difference
            largest = float(np.abs(values).max()) or 1.0
            tile = self.heatmap(values, largest, _SIDE)
            shown.append((tile, f"Difference (first \u2212 second){unit}: colour range ±{rounded(largest)}"))
        return shown

    def table(self) -> pd.DataFrame:
        """Return the sums of every layer."""
        return pd.DataFrame(
            [
                {
                    "layer": layer,
                    "shape": "x".join(map(str, values.shape)),
                    "explanation": explanation.label,
                    "sum": values.sum(),
                    "positive": np.clip(values, 0, None).sum(),
                    "negative": np.clip(values, None, 0).sum(),
                }
                for explanation in self.explanations
                for layer, values in explanation.layers.items()
            ]
        )

    def archive(self) -> bytes:
        """Pack the test and every layer's relevance."""
        arrays: dict[str, Any] = {}
        for prefix, explanation in zip(("first", "second"), self.explanations, strict=False):
            arrays |= {f"{prefix}_{layer}": values for layer, values in explanation.layers.items()}
            made = {"explanation": explanation.label, "method": explanation.method.label, **explanation.settings}
            arrays[f"{prefix}_settings"] = np.array(json.dumps(made, default=str))
        if self.difference is not None:
            arrays["difference_input"] = self.difference[1]
        file = io.BytesIO()
        test = self.view.test
        np.savez_compressed(file, test=test.ids[self.position], input=test.inputs[self.position], **arrays)
        return file.getvalue()


def _scale_text(one: Explanation, limit: float) -> str:
    return f"sum {signed(one.sums[INPUT])}, colour range ±{rounded(limit)}"


def draw_pictures(shown: Sequence[tuple[NDArray[np.uint8], str]], key: str = "heatmaps") -> None:
    """Show pictures in a row."""
    with st.container(horizontal=True, gap="xsmall", key=key):
        for tile, caption in shown:
            draw_picture(tile, caption)


def draw_groups(groups: Sequence[Sequence[tuple[NDArray[np.uint8], str]]], key: str = "heatmaps") -> None:
    """Show pictures in a row, or in a narrow window group by group: none of them stands alone in a row."""
    with st.container(horizontal=True, gap="xsmall", key=key):
        for number, group in enumerate(groups):
            with st.container(width="content"):
                draw_pictures(group, f"{key}-{number}")


def draw_words(display: Display, tokens: Sequence[str]) -> None:
    """Show the text once for every explanation, each word on a ground of its relevance."""
    columns = st.columns(len(display.explanations), gap="large")
    for column, explanation, limit in zip(columns, display.explanations, display.limits, strict=True):
        with column:
            st.markdown(f"{layout.label(explanation.label)}: {_scale_text(explanation, limit[INPUT])}")
            st.html(_written(display, tokens, explanation.layers[INPUT], limit[INPUT]))
            beyond = float(explanation.layers[INPUT][len(tokens) :].sum())
            if abs(beyond) >= 0.005:
                st.caption(f"Padding after the text has the relevance {signed(beyond)}.")
    if display.difference is not None:
        unit, values = display.difference
        with st.expander(f"Difference (first \u2212 second){unit}"):
            largest = float(np.abs(values).max()) or 1.0
            st.html(_written(display, tokens, values[0], largest))


def _written(display: Display, tokens: Sequence[str], relevance: NDArray[np.float64], limit: float) -> str:
    """Write tokens on a ground of their relevance, which may have padding behind it."""
    test = display.view.test
    glue, marks = "" if test.is_pieces else " ", marks_of(test)
    shown = relevance[: len(tokens)]
    return text_relevance.words(tokens, shown, limit, display.scheme, glue=glue, marks=marks, dark=layout.is_dark())


def draw_vector(display: Display, key: str, table: pd.DataFrame | None = None) -> None:
    """Show a feature vector as bars, or a time series as lines, and its relevance by every explanation.

    `table` is the data behind the chart.
    """
    view, test = display.view, display.view.test.inputs[display.position]
    explained = [(each.label, each.parts.reshape(-1)) for each in display.explanations]
    title = layout.topic("Test {}: {}", view.test.ids[display.position], layout.answer(view, display.position))
    supports, against = SCHEMES[display.scheme].supports, SCHEMES[display.scheme].against
    bars = f"{supports.capitalize()} bars are relevance for, hatched {against} ones against the prediction or class."

    def draw(dark: bool) -> go.Figure:
        if is_series(view.test):
            return vectors.series_lines(test, explained, title, scheme=display.scheme, dark=dark)
        like = view.train.inputs.reshape(len(view.train), -1)
        names = feature_names(view.test)
        return vectors.feature_bars(names, test.reshape(-1), like, explained, title, scheme=display.scheme, dark=dark)

    most = f" The {vectors.MOST} of {test.size} features with the strongest relevance are shown."
    read = (
        f"Lines are the values at each step. {bars} Relevance is summed over channels."
        if is_series(view.test)
        else f"Each row is one feature, the most relevant first. Numbers at the left bars are the values. {bars}"
        + (most if test.size > vectors.MOST else "")
    )
    depends = (display.position, display.scheme, tuple((label, part.tobytes()) for label, part in explained))
    layout.chart(view, key, draw, alt=title, read=read, depends=depends, table=table)


def draw_flow(display: Display, skip: Sequence[str] = ()) -> None:
    """Show every layer's map from the scores to the input with its sum, the second explanation below the first."""
    limits = display.limits
    with st.container(horizontal=True, gap="xsmall", key="heatmaps-of-layers"):
        for layer, values in display.explanations[0].layers.items():
            if layer in skip:
                continue
            parts: list[NDArray[np.uint8]] = []
            there = [
                (explanation, limit)
                for explanation, limit in zip(display.explanations, limits, strict=True)
                if layer in limit
            ]
            for explanation, limit in there:
                tile = display.heatmap(explanation.maps[layer], limit[layer], _SMALL_SIDE)
                parts += [tile, np.zeros((GAP, tile.shape[1], 4), dtype=np.uint8)]
            shape = " by ".join(map(str, values.shape))
            sums = " | ".join(signed(explanation.sums[layer]) for explanation, _ in there)
            caption = f"{layer}, {shape}: sum {sums}"
            draw_picture(np.concatenate(parts[:-1]), caption)

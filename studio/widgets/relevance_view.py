"""Draw the explanations of one test: pictures, words, and the relevance of every layer."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from idc_core.figures import heatmaps, text_relevance
from idc_core.figures.input_images import GAP, pictures
from studio.engine.explanations import INPUT, Explanation
from studio.engine.results import View
from studio.text import signed
from studio.widgets import layout

SIDE = 168
"""Width of the large pictures in pixels, at least."""

SMALL_SIDE = 112
"""The same of a layer's map."""


@dataclass(frozen=True, eq=False)
class Display:
    """What is drawn of one test: one explanation, or two to compare.

    `scale` and `scheme` are keys of `heatmaps.SCALES` and of `palette.SCHEMES`.
    """

    view: View
    position: int
    explanations: list[Explanation]
    scale: str
    scheme: str

    @property
    def limits(self) -> list[dict[str, float]]:
        """The relevance of the strongest colour, by explanation and layer."""
        return heatmaps.limits([one.maps for one in self.explanations], self.scale)

    @property
    def difference(self) -> tuple[str, NDArray[np.float64]] | None:
        """The unit where it is not the score's, and the first input map minus the second one."""
        if len(self.explanations) < 2:
            return None
        first, second = self.explanations
        one, other = first.maps[INPUT], second.maps[INPUT]
        if first.method is second.method:
            return "", one - other
        return ", as shares of each one's sum of absolute values", heatmaps.shares(one) - heatmaps.shares(other)

    def pictures(self, strength: float) -> list[tuple[NDArray[np.uint8], str]]:
        """Return image, overlay, heatmaps and difference with their captions; strength is in 0..1."""
        image, first, limits = self.view.test.inputs[self.position], self.explanations[0], self.limits
        number = self.view.test.ids[self.position]
        covered = heatmaps.overlay(image, first.maps[INPUT], strength, SIDE, self.scheme)
        shown = [
            (pictures(image[None], SIDE)[0], f"Test {number}: {layout.answer(self.view, self.position)}"),
            (covered, f"{first.label}, overlay"),
        ]
        for one, limit in zip(self.explanations, limits, strict=True):
            tile = heatmaps.heatmap(one.maps[INPUT], limit[INPUT], SIDE, self.scheme)
            shown.append((tile, f"{one.label}: {_scale_text(one, limit[INPUT])}"))
        if self.difference is not None:
            unit, values = self.difference
            largest = float(np.abs(values).max()) or 1.0
            tile = heatmaps.heatmap(values, largest, SIDE, self.scheme)
            shown.append((tile, f"Difference (first \u2212 second){unit}: colour range ±{largest:.2g}"))
        return shown

    def table(self) -> pd.DataFrame:
        """Return the sums of every layer."""
        return pd.DataFrame(
            [
                {
                    "layer": layer,
                    "shape": "x".join(map(str, values.shape)),
                    "explanation": one.label,
                    "sum": values.sum(),
                    "positive": np.clip(values, 0, None).sum(),
                    "negative": np.clip(values, None, 0).sum(),
                }
                for one in self.explanations
                for layer, values in one.layers.items()
            ]
        )

    def archive(self) -> bytes:
        """Pack the test and every layer's relevance."""
        arrays: dict[str, Any] = {}
        for prefix, one in zip(("first", "second"), self.explanations, strict=False):
            arrays |= {f"{prefix}_{layer}": values for layer, values in one.layers.items()}
        if self.difference is not None:
            arrays["difference_input"] = self.difference[1]
        file = io.BytesIO()
        test = self.view.test
        np.savez_compressed(file, test=test.ids[self.position], input=test.inputs[self.position], **arrays)
        return file.getvalue()


def _scale_text(one: Explanation, limit: float) -> str:
    return f"sum {signed(one.sums[INPUT])}, colour range ±{limit:.2g}"


def draw_pictures(shown: Sequence[tuple[NDArray[np.uint8], str]], key: str = "heatmaps") -> None:
    """Show pictures in a row."""
    with st.container(horizontal=True, gap="xsmall", key=key):
        for tile, caption in shown:
            st.image(tile, caption=caption, width=tile.shape[1], output_format="PNG", alt=caption)


def draw_groups(groups: Sequence[Sequence[tuple[NDArray[np.uint8], str]]], key: str = "heatmaps") -> None:
    """Show pictures in a row, or in a narrow window group by group: none of them stands alone in a row."""
    with st.container(horizontal=True, gap="xsmall", key=key):
        for number, group in enumerate(groups):
            with st.container(width="content"):
                draw_pictures(group, f"{key}-{number}")


def draw_words(display: Display, tokens: Sequence[str]) -> None:
    """Show the text once for every explanation, each word on a ground of its relevance."""
    columns = st.columns(len(display.explanations), gap="large")
    for column, one, limit in zip(columns, display.explanations, display.limits, strict=True):
        with column:
            st.markdown(f"**{one.label}**: {_scale_text(one, limit[INPUT])}")
            st.html(text_relevance.words(tokens, one.layers[INPUT][: len(tokens)], limit[INPUT], display.scheme))
            beyond = float(one.layers[INPUT][len(tokens) :].sum())
            if abs(beyond) >= 0.005:
                st.caption(f"Padding after the text has the relevance {signed(beyond)}.")
    if display.difference is not None:
        unit, values = display.difference
        with st.expander(f"Difference (first \u2212 second){unit}"):
            largest = float(np.abs(values).max()) or 1.0
            st.html(text_relevance.words(tokens, values[0, : len(tokens)], largest, display.scheme))


def draw_flow(display: Display, skip: Sequence[str] = ()) -> None:
    """Show every layer's map from the scores to the input with its sum, the second explanation below the first."""
    limits = display.limits
    with st.container(horizontal=True, gap="xsmall", key="heatmaps-of-layers"):
        for layer, values in display.explanations[0].layers.items():
            if layer in skip:
                continue
            parts: list[NDArray[np.uint8]] = []
            for one, limit in zip(display.explanations, limits, strict=True):
                tile = heatmaps.heatmap(one.maps[layer], limit[layer], SMALL_SIDE, display.scheme)
                parts += [tile, np.zeros((GAP, tile.shape[1], 4), dtype=np.uint8)]
            shape = " by ".join(map(str, values.shape))
            sums = " | ".join(signed(one.sums[layer]) for one in display.explanations)
            caption = f"{layer}, {shape}: sum {sums}"
            sheet = np.concatenate(parts[:-1])
            st.image(sheet, caption=caption, width=sheet.shape[1], output_format="PNG", alt=caption)

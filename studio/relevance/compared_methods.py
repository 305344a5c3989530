"""Compare what several methods say of one test."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from idc_core.attribution.methods import METHODS
from idc_core.base.statistics import spearman
from idc_core.errors import IdcError
from idc_core.figures import heatmaps
from idc_core.figures.neurons import agreement
from studio.jobs.explanations import INPUT, ONE_PASS, Explanation, explain, read_tokens, scores
from studio.jobs.results import View
from studio.jobs.wording import input_parts
from studio.relevance import choices
from studio.relevance.findings import activation
from studio.state.choices import choose_several
from studio.text import count, literal, signed
from studio.widgets import layout, relevance_view
from studio.widgets.relevance_view import Display

_MOST = 5
"""Parts named of an input that is no picture."""


_EQUAL = 1e-3
"""Share of the strongest relevance within which two methods' relevance is the same to the eye."""

_PROPAGATING = ("z", "epsilon", "attnlrp", "value-path")
"""Rules that share by contributions alone; they differ at attention, and where epsilon is not small."""

_FROM_BASELINE = ("integrated-gradients", "deeplift", "conductance")


def draw(view: View, position: int) -> None:
    """Show what several methods say of the test."""
    _draw_compared(view, position)
    layout.computed(
        view, "Every method runs with its default parameters. Methods are compared by Spearman's rank correlation."
    )


def _draw_compared(view: View, position: int) -> None:
    """Show one test explained by several methods, and how far they agree."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        neuron = choices.choose_neuron(view)
        explained, method = choices.choose_class(view) if neuron is None else None, choices.choose_method()
        settings = layout.settings("methods", "scale", "colours")
    with settings:
        names = choose_several(
            st.multiselect,
            "Methods",
            {name: entry.label for name, entry in METHODS.items()},
            ONE_PASS,
            "methods",
            placeholder="None",
            help=f"Methods beside the chosen one, with their default parameters. Default the {len(ONE_PASS)} that need "
            "one pass; the others take seconds to a minute.",
        )
        scale, scheme = choices.choose_colours()
    score = scores(view, position)
    target = int(score.argmax()) if explained is None else view.train.class_names.index(explained)
    explanations = _by_methods(view, position, target, neuron, list(dict.fromkeys((method, *names))))
    if not explanations:
        return
    st.markdown(f"{_sums(view, position, score, explanations)}{_why_equal(view, position, explanations)}")
    display = Display(view, position, explanations, scale, scheme)
    if view.has_pictures:
        relevance_view.draw_pictures([display.image, *display.heatmaps])
        layout.how_to_read("Each heatmap is one method; its sum is what it explains of the score or activation.")
    else:
        st.dataframe(_strongest(view, position, explanations), hide_index=True)
    if len(explanations) > 1:
        _draw_agreement(view, position, explanations)


def _by_methods(view: View, position: int, target: int, neuron: int | None, names: list[str]) -> list[Explanation]:
    """Explain a test by several methods; say which cannot."""
    explanations = []
    for name in names:
        try:
            explained = explain(view, position, name, target, {}, METHODS[name].label, neuron)
            explanations.append(explained.seen_at(INPUT, view.test, position))
        except IdcError as error:
            st.warning(f"{METHODS[name].label} is left out. {literal(error)}")
    return explanations


def _sums(view: View, position: int, score: NDArray[np.float32], found: list[Explanation]) -> str:
    """Say between which sums the methods' explanations lie."""
    sums, target = [explanation.sums[INPUT] for explanation in found], found[0].target
    of = f" of class {literal(view.train.class_names[target])}" if view.is_classifier else ""
    sentence = f"{count(len(found))} methods find {signed(min(sums))} to {signed(max(sums))} of relevance"
    if len(found) == 1:
        sentence = f"{found[0].label} finds {signed(sums[0])} of relevance"
    if found[0].neuron is not None:
        return (
            f"{sentence}; the activation of neuron {found[0].neuron} is {signed(activation(view, position, found[0]))}."
        )
    return f"{sentence}; the score{of} is {signed(float(score[target]))}."


def _why_equal(view: View, position: int, found: list[Explanation]) -> str:
    """Say why some methods find the same; empty where none do.

    Contributions to a network that is piecewise linear are gradients times inputs (M. Ancona, E. Ceolini, C. Öztireli,
    M. Gross, "Towards better understanding of gradient-based attribution methods", ICLR 2018, proposition 1). Without
    biases they are the same along the way from a baseline of zeros.
    """
    maps = [_parts(view, position, one) for one in found]
    limits = [float(np.abs(values).max()) for values in maps]
    alike = [
        [float(np.abs(own - other).max()) <= _EQUAL * max(limit, 1e-12) for other in maps]
        for own, limit in zip(maps, limits, strict=True)
    ]
    equal = max(alike, key=sum)
    names = [one.method.name for one, is_equal in zip(found, equal, strict=True) if is_equal]
    if len(names) == 1:
        return ""
    if "gradient-x-input" in names:
        why = "contributions to a piecewise linear network are gradients times inputs"
    else:
        why = "they differ at attention alone, or by a larger epsilon" if set(names) <= {*_PROPAGATING} else ""
    if why and set(names) & {*_FROM_BASELINE}:
        why += ", and no bias changes that on the way from the baseline"
    labels = layout.names([METHODS[name].label for name in names])
    return f" {labels} are equal{f': {why}' if why else ''}."


def _parts(view: View, position: int, one: Explanation) -> NDArray[np.float64]:
    """Return the relevance of every pixel, or of every part of an input that is no picture, without padding."""
    if view.has_pictures:
        return one.maps[INPUT].ravel()
    return one.parts[: len(read_tokens(view.test, position))]


def _strongest(view: View, position: int, found: list[Explanation]) -> pd.DataFrame:
    """Return sum and most relevant parts of an input that is no picture, a row per method."""
    tokens, units = read_tokens(view.test, position), input_parts(view.test)
    halves = [heatmaps.half(_parts(view, position, explanation)) for explanation in found]
    return pd.DataFrame(
        {
            "method": [explanation.label for explanation in found],
            "sum": [round(explanation.sums[INPUT], 4) for explanation in found],
            "most relevant": [", ".join(tokens[place] for place in half[:_MOST]) for half in halves],
            f"{units} with half of the positive relevance": [len(half) for half in halves],
        }
    )


def _draw_agreement(view: View, position: int, found: list[Explanation]) -> None:
    """Show how far the methods agree on which parts of the input are relevant."""
    labels, units = [explanation.label for explanation in found], input_parts(view.test)
    matrix = spearman(np.stack([_parts(view, position, explanation) for explanation in found]))
    title = layout.topic("Rank correlation of the methods, over the {} of this test", units)
    layout.chart(
        view,
        "methods-agreement",
        lambda dark: agreement(matrix, labels, title, "method", dark=dark),
        alt=title,
        read=f"Each square compares two methods by the order of the {units}: 1 is the same order, 0 no relation, "
        "\u22121 the reverse.",
        depends=(position, found[0].target, *labels),
        table=pd.DataFrame(matrix, columns=labels, index=labels).rename_axis("method").reset_index(),
    )

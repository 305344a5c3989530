"""Pieces of layout, and the one place to import them from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import streamlit as st

from studio.engine.results import View
from studio.text import lower
from studio.widgets.charts import chart, grid_chart, how_to_read, is_dark, plot
from studio.widgets.downloads import npz, take_away, take_inputs
from studio.widgets.gallery import answer, gallery

if TYPE_CHECKING:
    from idc_core.datasets import Dataset

__all__ = [
    "answer",
    "chart",
    "computed",
    "explain",
    "explain_criteria",
    "gallery",
    "grid_chart",
    "how_to_read",
    "is_dark",
    "names",
    "npz",
    "one_of",
    "plot",
    "take_away",
    "take_inputs",
]

Option = TypeVar("Option")


def one_of(label: str, options: Mapping[Option, str], default: Option, key: str, help: str) -> Option:
    """Choose one of a few options for this session alone: the address does not hold it."""
    chosen: Option = st.segmented_control(
        label,
        list(options),
        default=default,
        required=True,
        format_func=options.__getitem__,
        key=key,
        help=f"{help} Default {options[default]}.",
    )
    return chosen


def computed(view: View, *sentences: str) -> None:
    """Say, folded away, how the page was computed, and from what."""
    card = view.model.card
    facts = [
        ("network", f"{card.label}, {card.parameters:,} parameters, fingerprint `{card.fingerprint}`"),
        ("training inputs", _origin(view.train) + _left_out(view)),
        ("tests", _origin(view.test)),
        ("relevance", "layer-wise relevance propagation, epsilon rule, from the predicted class's score"),
        ("source", "Gerasimou et al., Importance-Driven Deep Learning System Testing, ICSE 2020"),
    ]
    explain(*sentences, "\n".join(f"* {name}: {value}" for name, value in facts))


def explain(*paragraphs: str) -> None:
    """Say, folded away, how the page was computed."""
    with st.expander("How this was computed"):
        for paragraph in paragraphs:
            st.markdown(paragraph)


def explain_criteria() -> None:
    """Say, folded away, what the criteria's abbreviations stand for, and what each measures."""
    from idc_core.coverage import CRITERIA

    cards = {name.upper(): kind.card for name, kind in CRITERIA.items()}
    with st.expander("What each criterion measures"):
        st.markdown("\n".join(f"* **{n}**, {lower(card.label)}: {lower(card.help)}" for n, card in cards.items()))


def _origin(data: Dataset) -> str:
    return f"{len(data):,} of {data.name}, fingerprint `{data.fingerprint}`"


def _left_out(view: View) -> str:
    """Say that neurons and clusters are not learnt from all training inputs, where that is so."""
    from idc_core.datasets import DATASETS

    if DATASETS[view.train.name].learns_from is None:
        return ""
    return (
        f"; only the first ones, so that a page opens within seconds (the network was trained on "
        f"{view.model.card.split}). On the command line: `--limit-train {len(view.train)}`"
    )


def names(values: Sequence[str]) -> str:
    """Join names as in a sentence."""
    return values[0] if len(values) == 1 else ", ".join(values[:-1]) + f" and {values[-1]}"

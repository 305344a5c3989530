"""Pieces of layout, and the one place to import them from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from studio.jobs.results import View
from studio.jobs.wording import tests_name
from studio.state import address
from studio.state.selection import picked_row
from studio.text import literal, lower
from studio.widgets.charts import chart, grid_chart, how_to_read, is_dark, plot
from studio.widgets.downloads import npz, take_away, take_inputs
from studio.widgets.gallery import answer, gallery, neuron_heatmaps
from studio.widgets.headlines import Headline, claim, counted, estimated, label, lead, topic

if TYPE_CHECKING:
    import pandas as pd
    from streamlit.elements.lib.column_types import ColumnConfig

    from idc_core.base.parameters import Number, Parameter
    from idc_core.datasets import Dataset

__all__ = [
    "Headline",
    "answer",
    "ask",
    "chart",
    "claim",
    "computed",
    "counted",
    "estimated",
    "explain",
    "explain_criteria",
    "gallery",
    "grid_chart",
    "how_to_read",
    "is_dark",
    "label",
    "lead",
    "names",
    "neuron_heatmaps",
    "npz",
    "one_of",
    "pick_table",
    "plot",
    "settings",
    "take_away",
    "take_inputs",
    "topic",
]

_V = TypeVar("_V")


def one_of(label: str, options: Mapping[_V, str], default: _V, key: str, help: str) -> _V:
    """Choose one of a few options for this session alone: the address does not hold it."""
    chosen: _V = st.segmented_control(
        label,
        list(options),
        default=default,
        required=True,
        format_func=options.__getitem__,
        key=key,
        help=f"{help} Default {options[default]}.",
    )
    return chosen


def ask(
    draw: Callable[..., object], asked: Parameter, key: str, ends: Sequence[Number] = (), label: str = "", **how: Any
) -> Any:
    """Ask for a parameter: for one of its words, for yes or no, or by `draw` for a number between `ends`, in steps."""
    default: Any = asked.default
    label, how = label or asked.label, {"key": key, **how}
    if isinstance(default, str):
        words = [str(word) for word in asked.offered]
        text = f"{asked.help} Default {default}."
        return st.selectbox(label, words, words.index(default), help=text, bind="query-params", **how)
    if isinstance(default, bool):
        text = f"{asked.help} Default {'on' if default else 'off'}."
        return st.toggle(label, default, help=text, bind="query-params", **how)
    low, high, step = map(type(default), ends or (asked.low, asked.high, asked.step))
    text = f"{asked.help} From {low:g} to {high:g}; default {default:g}."
    return draw(label, low, high, default, step, help=text, bind="query-params", **how)


def settings(*names: str) -> DeltaGenerator:
    """Return the place of controls that are rarely used, behind a button with the number of those changed.

    `names` are the controls' names in the address, which holds none that is at its default. Back on a page, the
    address is empty until its controls are drawn: what the session kept counts.
    """
    changed = sum(bool(address.read(name)) for name in names)
    return st.popover(f"Settings ({changed})" if changed else "Settings", key="settings")


def computed(view: View, *sentences: str) -> None:
    """Say, folded away, how the page was computed, and from what."""
    card = view.card
    facts = [
        ("network", f"{literal(card.label)}, {card.parameters:,} parameters, fingerprint `{card.fingerprint}`"),
        ("training inputs", _origin(view.train) + _left_out(view)),
        ("tests", _origin(view.test)),
        ("relevance", "layer-wise relevance propagation, epsilon rule, from the predicted class's score"),
        ("source", "Gerasimou et al., Importance-Driven Deep Learning System Testing, ICSE 2020"),
    ]
    explain(*sentences, "\n".join(f"* {name}: {value}" for name, value in facts))


def explain(*paragraphs: str) -> None:
    """Say, folded away, how the page was computed."""
    with st.expander("How this was computed"):
        st.markdown("\n\n".join(paragraphs))  # one element: each costs the browser milliseconds, also folded away


def explain_criteria() -> None:
    """Say, folded away, what the criteria's abbreviations stand for, what each measures, and whose it is."""
    from idc_core.coverage import CRITERIA

    cards = {name.upper(): kind.card for name, kind in CRITERIA.items()}
    lines = [f"* {label(n)}, {lower(card.label)}: {lower(card.help)} {card.citation}" for n, card in cards.items()]
    with st.expander("Criteria explained"):
        st.markdown("\n".join(lines))


def _origin(data: Dataset) -> str:
    return f"{len(data):,} of {literal(tests_name(data))}, fingerprint `{data.fingerprint}`"


def _left_out(view: View) -> str:
    """Say that neurons and clusters are not learnt from all training inputs, where that is so."""
    from idc_core.datasets import DATASETS

    if DATASETS[view.train.name].learns_from is None:
        return ""
    return (
        f"; only the first ones, so that a page opens within seconds (the network was trained on "
        f"{view.card.split}). On the command line: `--limit-train {len(view.train)}`"
    )


def names(values: Sequence[str]) -> str:
    """Join names as in a sentence."""
    return values[0] if len(values) == 1 else ", ".join(values[:-1]) + f" and {values[-1]}"


def pick_table(
    table: pd.DataFrame,
    key: str,
    pick: Callable[[int], None] | None,
    alt: str,
    height: int | Literal["auto", "content"] = "auto",
    columns: Mapping[str, ColumnConfig] | None = None,
    order: Sequence[str] | None = None,
) -> None:
    """Show a table; `pick` is called with the number of a row that is chosen, where it can be.

    `columns` says how columns are written, and `order` which are shown, both by their names.
    """

    def picked() -> None:
        row = picked_row(key, len(table))
        if row is not None and pick is not None:
            pick(row)

    st.dataframe(
        table,
        hide_index=True,
        key=key,
        on_select="ignore" if pick is None else picked,
        selection_mode="single-row",
        height=height,
        column_config=columns,
        column_order=order,
        alt=alt,
    )

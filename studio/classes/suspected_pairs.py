"""Pairs of classes on the Class errors page: finding, map of distances, ranked table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray
from streamlit.delta_generator import DeltaGenerator
from streamlit.elements.lib.column_types import ColumnConfig

from idc_core.base.spreadsheets import csv
from idc_core.confusion import countable_layers
from idc_core.confusion.distance import cluster_order, neighbours
from idc_core.confusion.findings import least_recalled
from idc_core.confusion.matrix import class_table
from idc_core.errors import IdcError
from idc_core.evidence.finding import Verdict
from idc_core.figures import classes as figures
from idc_core.runs import ErrorSettings
from studio.classes import class_errors, effectiveness
from studio.classes.class_errors import Looked
from studio.classes.class_pair import draw_confused
from studio.jobs.results import View
from studio.shell import pins, tabs
from studio.state.choices import choose_one
from studio.state.selection import Point, Selection, carried
from studio.text import literal, percent, plural
from studio.widgets import layout

_MOST_PAIRS = 500
"""Pairs in the ranked list at most; all are in the file for download."""

_NEAR = 24
"""Classes drawn around the chosen pair where there are too many to draw all."""

_NONE = "\u2013"
"""No verdict: the pair is neither reported nor truly confused."""

_PARTS = {"map": "pairs", "cost": "cost-effectiveness"}
"""What is shown of the pairs: name and label."""

_SHOWN = (
    "first",
    "second",
    "distance",
    "suspicion",
    "reported",
    "labels",
    "certain",
    "confused",
    "inputs",
    "confusion (%)",
    "from (%)",
    "to (%)",
    "average bias",
)
"""Columns of the table of pairs, what matters most first: a narrow window cuts off the last ones."""


def tell(looked: Looked, finding: DeltaGenerator) -> None:
    """Say the finding, and what of the inputs is not analysed."""
    finding.markdown(_sentence(looked))
    if looked.positions is None:
        st.info("These are your own predictions, not those of the setup's network.")
    if looked.found.unseen:
        st.caption(f"No input is predicted as {literal(_some_names(looked.found.unseen))}: not analysed.")


def draw(view: View, looked: Looked, settings: ErrorSettings, pair: tuple[int, int]) -> None:
    """Show the distances of all pairs, the ranked ones and the selected one; or what inspecting them in order saves."""
    shown = choose_one(
        st.segmented_control,
        "Show",
        _PARTS,
        "map",
        "pairs-shown",
        required=True,
        help="The pairs and their distances, or how many truly confused pairs the first ones hold. Default pairs.",
    )
    if shown == "cost":
        effectiveness.draw(view, looked)
        return
    table = _pair_table(looked, _MOST_PAIRS)
    _draw_map(looked, view, "distances", pair, table)
    draw_confused(view, looked, pair)
    st.button("Open this pair", key="open-pair", on_click=tabs.open_at, args=("classes", "pair"))
    st.header("The most suspected pairs", anchor=False)
    _draw_pairs(looked, table)
    if looked.positions is not None:
        pins.beside(view, partial(_draw_side, settings, view), partial(_compare, settings, view))
    layout.computed(
        view,
        "Every input passes through the network once. A layer's output before its activation function is scaled to "
        "0..1 per input and layer. A neuron is active where the mean of its scaled output is above "
        f"{settings.threshold:g}. Each class has a vector: per neuron, the share of the inputs *predicted* as the "
        "class that activate it. The distance of two classes is that of their vectors (equation 2 of the paper). Pairs "
        f"closer than the mean \u2212 {settings.deviations:g} SD are reported.",
        "Labels enter no distance, only the verdicts. Confusion: share of inputs of one class predicted as the other, "
        "mean of both directions. Its 95 % interval joins Wilson's intervals of the two directions (Zou, Huang and "
        "Zhang, 2009). The cut-off is the paper's; the interval is not part of it. Truly confused: above the cut-off, "
        "and more often than the other pairs (Fisher's exact test, corrected for the number of pairs).",
        class_errors.SOURCE,
    )


def _sentence(looked: Looked) -> str:
    """Put what labels say of confusion into words, and what is found without them."""
    errors = looked.found
    first, second = errors.suspected[0].tolist()
    reported = int((errors.distance[tuple(errors.suspected.T)] < errors.confusion_cutoff).sum())
    most = errors.most_confused(looked.inputs_word)
    is_said = most is not None and most.where == (("pair", f"{first}-{second}"),)
    without = layout.lead(
        layout.counted("Reported without labels", reported, len(errors.suspected), "pair"),
        f"Ranked by distance, {literal(looked.pair_name((first, second)))} come first.",
        "" if is_said else class_errors.told(looked, (first, second)),
        "" if errors.report_finding is None else literal(errors.report_finding.sentence),
    )
    return "\n\n".join(part for part in (_by_labels(looked), without) if part)


def _by_labels(looked: Looked) -> str:
    """Say which pairs are truly confused, and which class is recalled worst; empty without labels or other pairs."""
    errors, counts = looked.found, looked.found.pair_counts
    most = errors.most_confused(looked.inputs_word)
    if counts is None or most is None:
        return ""
    certain = errors.certainly_confused(counts.known)
    number = 0 if certain is None else int(certain.sum())
    recall = class_table(np.asarray(looked.evidence.true), np.asarray(looked.evidence.predicted), looked.names).recall
    worst = least_recalled(looked.names, recall, looked.inputs_word)
    stands_out = worst is not None and worst.verdict is Verdict.STANDS_OUT
    return layout.lead(
        layout.counted("Truly confused", number, counts.looks, "pair"),
        literal(most.sentence),
        literal(worst.sentence) if worst is not None and stands_out else "",
    )


def _marks(looked: Looked) -> dict[str, NDArray[np.int64]]:
    """Sort the pairs by whether they are reported, and whether labels confirm them."""
    errors = looked.found
    pairs = errors.suspected
    reported = errors.distance[pairs[:, 0], pairs[:, 1]] < errors.confusion_cutoff
    true = errors.certainly_confused(pairs)
    if true is None:
        return {"reported": pairs[reported]}
    return {"hit": pairs[reported & true], "false": pairs[reported & ~true], "missed": pairs[~reported & true]}


def _draw_map(
    looked: Looked, one: View, key: str, pair: tuple[int, int] | None, table: pd.DataFrame | None = None
) -> None:
    """Draw the distances of all classes, and where they are many those around the pair; `table` is saved with them."""
    order = cluster_order(looked.found.distance)
    title = layout.topic("Distances of the classes, by how they activate the neurons")
    many = len(order) > figures.MOST_CLICKABLE
    read = (
        "each square is one pair of classes. The stronger the colour, the smaller their distance and the more likely "
        "their confusion. "
    )
    if many:
        if len(order) > figures.MOST_ROWS:
            read += f"Up to {-(-len(order) // figures.MOST_ROWS)} classes share a row, which shows their closest pair. "
        read += "Class names are in the map around the chosen pair below."
    clickable = key == "distances"
    _draw_distances(looked, one, key, order, title, read, pair, clickable and not many, table)
    if many and pair is not None:
        near = order[np.isin(order, neighbours(looked.found.distance, *pair, _NEAR))]
        title = layout.topic("Distances of the classes around {}", looked.pair_name(pair))
        read = "as above, for the chosen pair and the classes closest to either of the two."
        _draw_distances(looked, one, f"{key}-near", near, title, read, pair, clickable, None)


def _draw_distances(
    looked: Looked,
    one: View,
    key: str,
    order: NDArray[np.int64],
    title: layout.Headline,
    read: str,
    pair: tuple[int, int] | None,
    clickable: bool,
    table: pd.DataFrame | None,
) -> None:
    def clicked(points: Sequence[Point]) -> None:
        if values := carried(points[0]):
            class_errors.keep_pair(*map(int, str(values[0]).split("-")))

    layout.chart(
        one,
        key,
        lambda dark: figures.distance_map(
            looked.found.distance, order, looked.names, _marks(looked), title, selected=pair, dark=dark
        ),
        alt=title,
        read=read + (" Click a square to select its pair." if clickable else ""),
        depends=(looked.key, pair),
        clicked=clicked if clickable else None,
        table=table,
    )


def _pair_table(looked: Looked, most: int) -> pd.DataFrame:
    """List the most suspected pairs."""
    errors = looked.found
    pairs = errors.suspected[:most]
    a, b = pairs.T
    names = np.asarray(looked.names)
    table = {
        "place": np.arange(1, len(pairs) + 1),
        "first": names[a],
        "second": names[b],
        "distance": errors.distance[a, b],
        "suspicion": errors.suspicion[a, b],
    }
    if errors.bias is not None:
        table["average bias"] = errors.bias[a, b]
    reported = errors.distance[a, b] < errors.confusion_cutoff
    table["reported"] = np.where(reported, "yes", "no")
    true, checked, certain = errors.truly_confused(pairs), errors.verdicts(pairs), errors.certainly_confused(pairs)
    if true is not None and checked is not None and certain is not None and errors.directional is not None:
        table["first as second (%)"] = 100 * errors.directional[a, b]
        table["second as first (%)"] = 100 * errors.directional[b, a]
        table["confused"], table["inputs"] = checked.confused, checked.inputs
        table["confusion (%)"], table["from (%)"], table["to (%)"] = (
            100 * checked.rate,
            100 * checked.low,
            100 * checked.high,
        )
        table["labels"] = np.select(
            [reported & true, reported, true], ["confirmed", "not confirmed", "not reported"], _NONE
        )
        table["certain"] = np.where(table["labels"] == _NONE, _NONE, np.where(certain, "yes", "no"))
    return pd.DataFrame(table)


def _all_pairs(looked: Looked) -> bytes:
    """Write all pairs as a table; made only when it is asked for, as there can be half a million."""
    return csv(_pair_table(looked, len(looked.found.suspected))).encode()


def _draw_pairs(looked: Looked, table: pd.DataFrame) -> None:
    """Show the ranked pairs; choosing one selects it."""
    pairs = looked.found.suspected
    layout.pick_table(
        table,
        "pairs",
        lambda row: class_errors.keep_pair(*pairs[row].tolist()),
        "Pairs of classes, most suspected first; choose a row to select the pair",
        300,
        _columns(looked),
        [name for name in _SHOWN if name in table],
    )
    if cutoffs := _cutoffs(looked):
        st.caption(cutoffs)
    if len(pairs) > _MOST_PAIRS:
        every = partial(_all_pairs, looked)
        layout.take_away({}, {"All pairs (CSV)": ("class-pairs.csv", "text/csv", every)})
        st.caption(f"The table above holds the first {_MOST_PAIRS} of {len(pairs):,} pairs.")


def _columns(looked: Looked) -> dict[str, ColumnConfig]:
    """Say what each column of the table of pairs is, where its name does not."""
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    return {
        "distance": number(format="%.2f", help=f"Reported below {looked.found.confusion_cutoff:.2f}."),
        "suspicion": number(format="%+.2f", help="Standard deviations below the mean distance of all pairs."),
        "labels": text(help="By the paper's cut-off: whether labels confirm a reported pair, or one not reported."),
        "certain": text(help="Truly confused: confirmed, and more than the other pairs (5 %, for all pairs together)."),
        "confused": number(help="Inputs of one of the two classes that are predicted as the other."),
        "inputs": number(help="Inputs of the two classes."),
        "confusion (%)": number(format="%.2f", help="Mean of the shares confused in either direction."),
        "from (%)": number(format="%.2f", help="Lower end of the 95 % interval of the confusion."),
        "to (%)": number(format="%.2f", help="Upper end of the 95 % interval of the confusion."),
        "average bias": number(format="%.3f"),
    }


def _draw_side(settings: ErrorSettings, own: View, shown: View, chosen: Selection, key: str) -> None:
    """Draw the distances of one of two setups."""
    try:
        _draw_map(_other_look(settings, own, shown), shown, f"distances-{key}", None)
    except IdcError as error:
        st.caption(literal(error))


def _other_look(settings: ErrorSettings, own: View, shown: View) -> Looked:
    """Find the errors of a setup with the settings of this page; of another network with its own layers."""
    offered = countable_layers(shown.model)
    layers = tuple(name for name in settings.layers if name in offered) or offered
    groups = settings.groups if shown.train.class_names == own.train.class_names else ""
    return class_errors.look(shown, replace(settings, layers=layers, groups=groups), None)


def _compare(settings: ErrorSettings, own: View, here: View, there: View) -> str:
    """Compare the most suspected pairs of two setups."""
    try:
        sides = [_other_look(settings, own, side) for side in (here, there)]
    except IdcError as error:
        return literal(error)
    firsts = [side.found.suspected[0].tolist() for side in sides]
    pairs = [literal(side.pair_name((one, other))) for side, (one, other) in zip(sides, firsts, strict=True)]
    if pairs[0] == pairs[1]:
        return f"In both setups {pairs[0]} come first, ranked by distance."
    return f"Ranked by distance, {pairs[0]} come first here, {pairs[1]} in the pinned setup."


def _cutoffs(looked: Looked) -> str:
    """Say above what labels confirm a pair, and that this depends on the other pairs."""
    result = looked.found.confusion_found
    if result is None:
        return ""
    text = (
        f"Labels confirm a pair above {percent(result.truth_cutoff)} confusion: the mean of all "
        f"{plural(result.pairs, 'pair')} + {looked.found.deviations:g} SD. This cut-off depends on the network: where "
        "few inputs are misclassified, a single one can confirm a pair."
    )
    counts = looked.found.pair_counts
    if counts is None or counts.looks < 2:
        return text
    first, second = looked.found.suspected[0].tolist()
    needed = counts.needed((first, second))
    if needed is None:
        return text + " No pair can be certain with so few misclassified inputs."
    name, confused = literal(looked.pair_name((first, second))), plural(needed, f"confused {looked.inputs_word}")
    return f"{text} A pair as large as {name} is certain from {confused} on."


def _some_names(names: list[str], most: int = 8) -> str:
    """Join names as in a sentence, not all of many."""
    if len(names) <= most:
        return layout.names(names)
    return f"{', '.join(names[:most])} and {len(names) - most} others"

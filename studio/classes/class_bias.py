"""Bias between classes: third classes of a pair, ranked triplets, and examples of their inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from idc_core.base.progress import Progress
from idc_core.confusion.bias import most_biased, third_classes
from idc_core.errors import IdcError
from idc_core.figures import classes as figures
from idc_core.runs import ErrorSettings
from studio.classes import class_errors
from studio.classes.class_errors import Looked
from studio.classes.controls import choose_pair
from studio.jobs.jobs import JobKind, Waiting
from studio.jobs.results import View
from studio.state import address, choices
from studio.state.selection import Point, carried
from studio.text import literal
from studio.widgets import layout

if TYPE_CHECKING:
    from idc_core.confusion.bias import Triplet

_TRIPLETS = 50
_EXAMPLES = 3
_THIRD = "third"
"""Name in the address: the selected third class."""


def draw(view: View, looked: Looked, settings: ErrorSettings) -> None:
    """Show towards which of the two classes third ones are biased, and the largest biases of all."""
    if sentence := _sentence(looked):
        st.markdown(sentence)
    _draw_pair(view, looked, choose_pair(looked), settings.filtered)
    st.header("Triplets with the largest bias", anchor=False)
    triplets = _draw_triplets(view, looked, settings.filtered)
    layout.computed(
        view,
        "The bias of a third class towards one of a pair is the difference of its two distances divided by their sum "
        "(equation 3). The average bias of a pair is the mean over all third classes (equation 4). Labels enter no "
        "bias. Disparity: mean difference of two classes' confusion with third classes, from labels. It is above 0 by "
        "chance alone: equal rates are those of both classes together, in 1,000 drawn test sets of the same sizes.",
        f"{class_errors.SOURCE} The published program departs from its paper in its bias, which uses labels; its form "
        "is in the engine as an option, for reproducing the published tables.",
    )
    if triplets is not None:
        layout.take_away({"triplets": triplets})


def _sentence(looked: Looked) -> str:
    """Say which pair comes first by average bias, and its disparity beside that of equal rates."""
    errors = looked.found
    if errors.bias is None or not len(errors.biased):
        return ""
    a, b = errors.biased[0].tolist()
    name = literal(looked.pair_name((a, b)))
    said = f"Ranked by average bias, without labels, {name} come first ({errors.bias[a, b]:.2f})."
    finding = errors.disparity_finding((a, b))
    return said if finding is None else layout.lead(layout.claim(finding), said)


def _draw_pair(view: View, looked: Looked, pair: tuple[int, int], filtered: bool) -> None:
    """Draw the bias of each third class towards one of the two."""
    errors = looked.found
    if errors.bias is None:
        st.caption("Bias needs at least three predicted classes.")
        return
    bias = third_classes(errors.distance, *pair, filtered=filtered)
    names = (looked.names[pair[0]], looked.names[pair[1]])
    place = int(np.flatnonzero((errors.biased == sorted(pair)).all(1))[0]) + 1
    known = np.flatnonzero(np.isfinite(bias) & (bias != 0))
    disparity = _disparity(looked, pair) if place > 1 else ""  # of the first one the tab's finding says it
    st.markdown(
        f"{literal(looked.pair_name(pair))}: average bias {errors.bias[pair]:.3f}, rank {place:,} of "
        f"{len(errors.biased):,}." + (f" {disparity}" if disparity else "")
    )
    if not len(known):
        st.caption("No third class is close enough to either of the two.")
        return
    most = int(known[np.argmax(np.abs(bias[known]))])
    title = layout.topic("Bias of third classes between {} and {}", *names)

    def clicked(points: Sequence[Point]) -> None:
        address.keep(_THIRD, str(int(carried(points[0])[0])))

    layout.chart(
        view,
        "third-classes",
        lambda dark: figures.third_classes(bias, looked.names, names, title, dark=dark),
        alt=title,
        read=f"each bar is one third class. Right: closer to {literal(names[0])}; left: closer to {literal(names[1])}. "
        "The longer the bar, the more likely the class is confused with that one. Click a bar to see inputs of the "
        "three.",
        depends=(looked.key, pair, filtered),
        clicked=clicked,
        table=pd.DataFrame({"third class": looked.names, "bias": bias}),
    )
    new, text = address.is_new(_THIRD), address.read(_THIRD)
    third = address.position(text)
    if third is None or third not in known.tolist():
        choices.not_there("Third class", [text] if new else [])
        third = most
    _pictures(view, looked, pair, third)


def _pictures(view: View, looked: Looked, pair: tuple[int, int], third: int) -> None:
    """Show a few inputs of the pair and of the third class."""
    if looked.positions is None:
        return
    for column, label in zip(st.columns(3, gap="medium"), (pair[0], third, pair[1]), strict=True):
        with column:
            st.markdown(f"Classified as {layout.label(looked.names[label])}")
            rows = looked.positions[looked.of_class(label)]
            layout.gallery(view, rows, _EXAMPLES, key=f"bias-{label}")


def _draw_triplets(view: View, looked: Looked, filtered: bool) -> pd.DataFrame | None:
    """Show the triplets of largest bias; choosing one selects its pair. Returns the table."""
    distance = looked.found.distance

    def work(report: Progress) -> list[Triplet]:
        return most_biased(distance, _TRIPLETS, filtered=filtered)

    try:
        key = (looked.key, filtered)
        triplets = Waiting(1).get(JobKind("biased-triplets", kept=48), key, "ranking all triplets", work)
    except IdcError as error:
        st.caption(literal(error))
        return None
    names, confusion = looked.names, looked.found.confusion
    rows = [
        {
            "third class": names[triplet.third],
            "closer to": names[triplet.near],
            "than to": names[triplet.far],
            "bias": triplet.bias,
            **(
                {}
                if confusion is None
                else {
                    "confused with the closer (%)": 100 * confusion[triplet.third, triplet.near],
                    "with the farther (%)": 100 * confusion[triplet.third, triplet.far],
                }
            ),
        }
        for triplet in triplets
    ]
    if not rows:
        st.caption("No triplet has a bias.")
        return None
    table = pd.DataFrame(rows)

    def pick(row: int) -> None:
        triplet = triplets[row]
        class_errors.keep_pair(triplet.near, triplet.far)
        address.keep(_THIRD, str(triplet.third))

    percents = st.column_config.NumberColumn(format="%.2f")
    layout.pick_table(
        table,
        "triplets",
        pick,
        "Triplets of classes with the largest bias",
        250,
        {"bias": st.column_config.NumberColumn(format="%.3f")}
        | {name: percents for name in table.columns if name.endswith("(%)")},
    )
    return table


def _disparity(looked: Looked, pair: tuple[int, int]) -> str:
    """Say how unequally a pair is treated, beside equal rates; empty where labels say nothing."""
    finding = looked.found.disparity_finding(pair)
    return "" if finding is None else literal(finding.sentence)

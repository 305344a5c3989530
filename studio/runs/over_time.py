"""A figure over the successive versions of one network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from idc_core.figures.runs import over_versions
from idc_core.runs import RUN_KINDS, VERSION, Run, Score, VersionLine, figure_text, versions
from studio.jobs.runs import ADDRESS
from studio.state.choices import choose_one
from studio.text import literal
from studio.widgets import layout

if TYPE_CHECKING:
    import plotly.graph_objects as go

_MOST = 6
"""Lines that are drawn at most, those with most versions."""


def draw(runs: Sequence[Run]) -> None:
    """Choose a network and a figure, and draw it over the network's versions."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen, score = _choose(runs)
    lines = [line for line in versions(chosen, [ADDRESS]) if _drawn(line, score)]
    several = [line for line in lines if len(line.runs) > 1]
    if not several:
        st.markdown(f"Only one version of {literal(chosen[0].network)} was measured with the same settings.")
        st.caption(
            "A version is a state of the weights. Train the network further, save it to the same file, read it again "
            "in the library, and open the same page: the next version appears here."
        )
        return
    title = layout.topic("{} of {}, by version", score.label, chosen[0].network)
    shown = several[:_MOST]
    scores = [[run.facts.scores[score.name] for run in line.runs] for line in shown]
    made = [[f"{run.facts.made[:10]} {run.said(VERSION)[:6]}" for run in line.runs] for line in shown]
    names = [line.label or "all runs" for line in shown]

    def draw(dark: bool) -> go.Figure:
        return over_versions(scores, made, names, score.label, title, share=score.form == "share", dark=dark)

    layout.plot("over-versions", draw, title, "Each point is the newest run of one version of the weights.")
    st.dataframe(_table(shown, score), hide_index=True, key="versions-table")


def _choose(runs: Sequence[Run]) -> tuple[list[Run], Score]:
    networks = {run.said("network"): run.network for run in runs}
    # Opens on the network with most versions.
    most = max(networks, key=lambda name: len({run.said(VERSION) for run in runs if run.said("network") == name}))
    text = f"Whose versions are shown. Default {literal(networks[most])}."
    network = choose_one(st.selectbox, "Network", networks, most, "version-of", width=280, help=text)
    own = [run for run in runs if run.said("network") == network]
    kinds = {name: kind.label for name, kind in RUN_KINDS.items() if any(run.facts.kind == name for run in own)}
    text = f"Whose figures are shown. Default {next(iter(kinds.values()))}."
    kind = choose_one(st.selectbox, "Kind of run", kinds, next(iter(kinds)), "version-kind", width=200, help=text)
    scores = {known.name: known for known in RUN_KINDS[kind].scores}
    name = choose_one(
        st.selectbox,
        "Figure",
        {name: known.label for name, known in scores.items()},
        next(iter(scores)),
        "version-score",
        width=240,
        help=f"What is followed over the versions. Default {next(iter(scores.values())).label}.",
    )
    return [run for run in own if run.facts.kind == kind], scores[name]


def _drawn(line: VersionLine, score: Score) -> bool:
    return all(score.name in run.facts.scores for run in line.runs)


def _table(lines: Sequence[VersionLine], score: Score) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "settings": line.label or "all runs",
                "version": run.said(VERSION),
                "made (UTC)": run.facts.made[:16].replace("T", " "),
                score.label: figure_text(score, run.facts.scores[score.name]),
            }
            for line in lines
            for run in line.runs
        ]
    )

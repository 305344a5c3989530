"""What two experiments on the important neurons show: silencing them, and changing the most relevant pixels."""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from idc_core.errors import IdcError
from idc_core.evidence.finding import Finding
from idc_core.figures import experiments
from studio.jobs.results import View
from studio.jobs.wording import input_parts, quantity
from studio.neurons.trial_runs import CURVE_DRAWS, DRAWS, MOVED_DRAWS, comparable, move, silence
from studio.state.choices import choose_one
from studio.text import count, literal, lower
from studio.widgets import layout

if TYPE_CHECKING:
    from idc_core.experiments.ablation import Ablation
    from idc_core.experiments.rq1 import RQ1
    from idc_core.importance.ranking import Ranking

_TESTS, _ALL = (100, 500, 2000), "all"
"""Numbers of tests that can be chosen, besides all."""

_USUAL = 500
"""The default number of tests."""

_SHARES = (1, 2, 5, 10)
"""Percentages of an input that can be changed; the paper's are 1 and 2."""

_LOOKS = 2
"""The two experiments stand side by side, and share the level."""

_WRAP = 50
"""Characters per line of the titles: the charts stand side by side."""


def draw(view: View, first: Ranking) -> None:
    """Show what silencing the first neurons costs, and how far they move when the input changes."""
    try:
        _draw_trials(view, first)
    except IdcError as error:
        st.error(literal(error))
    part = input_parts(view.test)
    change = "inverted" if part == "pixels" else "replaced by unknown ones"
    moved = (
        f" The second experiment is the paper's RQ1: the {part} with the largest absolute relevance are {change}, and "
        "the L2 distance between the neurons' activations before and after is measured."
    )
    layout.computed(
        view,
        "Silencing sets a neuron to zero after its activation function."
        + (moved if part in ("pixels", "words", "characters") else "")
        + f" Random neurons are drawn from the others, each draw another set: {DRAWS} to silence and {MOVED_DRAWS} to "
        "move, where there are as many. What stands out lies beyond all of them; silencing counts where it costs more.",
    )


def _draw_trials(view: View, first: Ranking) -> None:
    """Silence the first neurons of a ranking, change the most relevant pixels, and show both results."""
    layer, m, neurons = view.analysis.layer, comparable(view.analysis.m, len(first.values)), len(first.values)
    if not m:
        st.caption(f"Layer {layer} has only one neuron, so there is none to compare it with.")
        return
    part = input_parts(view.test)
    number, share, scaled = _choose(view, part)
    if m < view.analysis.m:
        st.caption(f"Layer {layer} has {neurons} neurons, so {m} of them are compared with {m} others.")
    possible = comb(neurons - m, m)
    if possible < DRAWS:
        draws = f"is only 1 draw of {m}" if possible == 1 else f"are only {possible} draws of {m}"
        st.caption(f"There {draws} among the other neurons: too few to tell whether a difference is chance.")
    left, right = st.columns(2, gap="medium")
    with left:
        if view.is_classifier and not view.is_comparable:
            st.caption("Accuracy is not defined for these tests: their classes are not the network's.")
        else:
            _draw_silenced(view, first.order, first, m, number)
    with right:
        if part in ("features", "steps"):
            st.caption(f"Changing the most relevant part of an input is defined for pixels and words, not for {part}.")
        else:
            result = move(view, first.order, number, share)
            _draw_moved(view, result, first, part, scaled, (number, share))


def _choose(view: View, part: str) -> tuple[int, int, bool]:
    """Choose the number of tests, the share of each that is changed, and the unit of the distances."""
    sizes = [number for number in _TESTS if number < len(view.chosen)]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        number = choose_one(
            st.segmented_control,
            "Number of tests",
            {**{str(size): count(size) for size in sizes}, _ALL: f"all {count(len(view.chosen))}"},
            str(_USUAL) if _USUAL in sizes else _ALL,
            "tried",
            required=True,
            help=f"Evenly spaced tests of the setup, from {_TESTS[0]} to all; default {_USUAL}, or all where there are "
            "fewer.",
        )
        with layout.settings("changed", "scaled"):
            share = choose_one(
                st.segmented_control,
                f"Changed {part}",
                {share: f"{share} %" for share in _SHARES},
                2,
                "changed",
                required=True,
                help=f"Share of the most relevant {part} of each test that are changed. From 1 to 10 %; default 2 %.",
            )
            scaled = st.toggle(
                "In standard deviations",
                value=True,
                key="scaled",
                bind="query-params",
                help="Divide each neuron's change by its own standard deviation, so that neurons with a wide range do "
                "not dominate: raw activation is mostly size. The title always does. Default on.",
            )
    return 0 if number == _ALL else int(number), share, scaled


def _first_neurons(m: int) -> str:
    """Name the first m neurons of a ranking."""
    return "the first neuron" if m == 1 else f"the first {m} neurons"


def _by(ranking: Ranking) -> str:
    """Name a ranking other than the usual one."""
    return "" if ranking.name == "sum" else f" by {lower(ranking.label)}"


def _cost(ablation: Ablation, m: int, ranking: Ranking, unit: str) -> Finding:
    """Return the accuracy or error with m neurons silenced, beside that with random ones."""
    measure = "Accuracy" if ablation.task == "classification" else f"RMSE ({unit})" if unit else "RMSE"
    claim = f"{measure} with {_first_neurons(m)}{_by(ranking)} silenced"
    return ablation.finding(m, claim, "with as many random ones", _LOOKS)


def _draw_silenced(view: View, order: NDArray[np.int64], first: Ranking, m: int, number: int) -> None:
    """Show what silencing neurons costs."""
    ablation, drawn = silence(view, order, number)
    title = layout.claim(_cost(drawn, m, first, quantity(view.test).unit))
    layout.chart(
        view,
        "ablation",
        lambda dark: experiments.ablation_curve(ablation, title, wrap=_WRAP, dark=dark),
        alt=title,
        read=f"Each point is one number of silenced neurons, the first by {lower(first.label)}. The band shows "
        f"{CURVE_DRAWS} draws of random neurons, the title the mean and range of {DRAWS}.",
        depends=(first.name, number),
        table=pd.DataFrame(
            {"silenced": ablation.counts, f"{ablation.unit}_ranked": ablation.important}
            | {f"{ablation.unit}_random_{seed}": row for seed, row in zip(ablation.seeds, ablation.random, strict=True)}
        ),
    )


def _draw_moved(view: View, result: RQ1, first: Ranking, part: str, scaled: bool, depends: tuple[int, int]) -> None:
    """Show how far activations move when the most relevant part of the tests is changed."""
    summary = result.summary(scaled)
    who = f"{_first_neurons(len(result.important))}{_by(first)}"
    claim = f"Distance moved by {who} (in deviations) when the most relevant {part} change"
    title = layout.claim(result.finding(claim, "by as many random ones", _LOOKS))
    mean = f"{result.changed.mean():.3g}"
    amount = f"1 {part[:-1]} is" if mean == "1" else f"{mean} {part} are"
    own, others = summary.important, summary.random
    rows = {f"first {len(result.important)}": result.distances(scaled)[0]}
    rows |= {f"random {seed}": row for seed, row in zip(result.seeds, result.distances(scaled)[1], strict=True)}
    layout.chart(
        view,
        "moved",
        lambda dark: experiments.rq1_boxes(result, title, scaled=scaled, wrap=_WRAP, dark=dark),
        alt=title,
        read="Each box is one set of neurons, at most 10 of random ones. Height: the distance they move (box: half of "
        f"the tests; whiskers: 90 %). On average {amount} changed per test. Mean and standard deviation: "
        f"{own.mean:.3g} ± {own.deviation:.3g} by {lower(first.label)}, {others.mean:.3g} ± {others.deviation:.3g} at "
        "random.",
        depends=(first.name, scaled, *depends),
        table=pd.DataFrame(
            [
                {"neurons": name, "mean_distance": row.mean(), "standard_deviation": row.std()}
                for name, row in rows.items()
            ]
        ),
    )

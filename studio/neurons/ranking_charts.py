"""Show which neurons a ranking puts first, whether other measures agree, and whether relevance follows activation."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from idc_core.analysis.overview import shares
from idc_core.base.statistics import spearman
from idc_core.figures import neurons as figures
from idc_core.importance.ranking import Ranking, shared_finding
from studio.jobs.brushed import brushed
from studio.jobs.explanations import ONE_PASS
from studio.jobs.results import View
from studio.neurons import rankings
from studio.neurons.neuron import draw_highest, inspected, told
from studio.neurons.rankings import Ranked
from studio.shell import pins, tabs
from studio.state.choices import choose_one, choose_several
from studio.state.selection import Selection, select, select_tests
from studio.text import count, lower, percent, plural
from studio.widgets import layout
from studio.widgets.hover_pictures import hover_pictures

_RULE = "epsilon"
"""The rule by which all training inputs were traced; the other methods run on a sample."""


def important(view: View) -> layout.Headline:
    """Say how many of the layer's neurons are important."""
    return layout.counted("Important", view.analysis.m, len(view.analysis.importance), "neuron")


def carried(view: View) -> str:
    """Say how much of the positive relevance the important neurons carry."""
    analysis = view.analysis
    alone, together = shares(analysis.importance, analysis.important)
    if analysis.m == 1:
        return f"Neuron {analysis.important[0]} carries {percent(alone)} of the positive relevance."
    return (
        f"They carry {percent(together)} of the positive relevance, neuron {analysis.important[0]} alone "
        f"{percent(alone)}."
    )


_TEXT = "Relevance over all training inputs or those of one class; attribution methods run on a sample."


def choose_first(view: View, found: Ranked) -> Ranking:
    """Choose the ranking that orders the neurons in all tabs."""
    choices = _offered(found)
    usual = next(iter(choices))
    name = choose_one(
        st.selectbox, "Rank by", choices, usual, "rank", width=260, help=f"{_TEXT} Default {choices[usual]}."
    )
    return _take_ranking(view, found, name, "sum")


def draw_ranking(view: View, found: Ranked, first: Ranking) -> None:
    """Show the neurons by one measure beside another one, and the tests that activate the framed neuron."""
    other = _choose_second(view, found)
    framed = inspected(view, first)
    _draw_ranking(view, found, first, other, framed)
    draw_highest(view, framed)
    st.button(
        f"See neuron {framed} in detail",
        key="neuron-detail",
        type="tertiary",
        icon=":material/arrow_forward:",
        on_click=tabs.open_at,
        args=("neurons", "neuron"),
        help="Open the tab One neuron.",
    )
    pins.beside(view, _draw_side)
    if (pin := pins.open_pinned()) is not None:
        st.markdown(_compare(view, pin.view))
    layout.computed(
        view,
        "Relevance starts at the predicted class's score before the softmax and is propagated back layer by layer. A "
        "neuron's cumulative relevance is its sum over all training inputs; the m neurons with the largest sums are "
        "the important ones (Algorithm 1 of the paper). The chart shows the mean per input, so that rankings over "
        "different inputs share a unit; the order is the same.",
        "  \n".join(f"{_over(ranking)}: {_measure_help(ranking.name)}" for ranking in dict.fromkeys((first, other))),
        f"Other attribution methods use their default parameters and run on {rankings.SAMPLE} training inputs (seed 0; "
        "equally many per class, or evenly spaced for regression).",
    )


def draw_agreement(view: View, found: Ranked, first: Ranking) -> None:
    """Show how far other measures agree, and whether relevance correlates with activation."""
    _draw_agreement(view, found, first)
    _draw_activation_relevance(view)
    layout.computed(view, "Rankings are compared by Spearman's rank correlation over all neurons of the layer.")


def _choose_second(view: View, found: Ranked) -> Ranking:
    """Choose the ranking to compare with."""
    choices = _offered(found)
    usual = _default_second(view, found)
    name = choose_one(
        st.selectbox,
        "Compare with",
        choices,
        usual,
        "ranked-beside",
        width=260,
        help=f"A second ranking of the same neurons. {_TEXT} Default {choices[usual]}.",
    )
    return _take_ranking(view, found, name, usual)


def _take_ranking(view: View, found: Ranked, name: str, instead: str) -> Ranking:
    """Return a ranking; where its method cannot explain this network, say so and return another one."""
    if name in found.rankings:
        return found.rankings[name]
    answers, refusals = rankings.by_methods(view, [name])
    for refusal in refusals:
        st.error(f"{refusal} Shown instead: {found.rankings[instead].label}.")
    return answers.get(name, found.rankings[instead])


def _draw_ranking(view: View, found: Ranked, first: Ranking, other: Ranking, neuron: int) -> None:
    """Show the neurons by one measure, with another one and their activation below."""
    m, title = view.analysis.m, layout.topic("Neurons by {}", lower(first.label))
    if other is not first:
        title = layout.claim(shared_finding(first, other, m, (lower(first.label), lower(other.label))))
    rows = [figures.Row(ranking.label, "relevance", ranking.values) for ranking in dict.fromkeys((first, other))]
    rows.append(figures.Row("Activation", "mean activation", found.activations))
    read = (
        "Each bar is one neuron (convolutions: one channel). Height: mean contribution to the predicted class's score; "
        "last row: mean activation. Hatched bars are the important neurons. Click a bar to inspect its neuron."
    )
    layout.chart(
        view,
        "ranking",
        lambda dark: figures.ranking(first.order, view.analysis.important, rows, title, selected=neuron, dark=dark),
        alt=title,
        read=read,
        depends=(first.name, other.name, neuron),
        clicked=lambda points: select(neuron=told(points)),
        table=_ranking_table(view, found, first, other),
    )


def _draw_activation_relevance(view: View) -> None:
    """Show relevance against activation over the tests, a panel per important neuron."""
    analysis, correct = view.analysis, view.correct
    activations, relevance = analysis.test_activations[view.chosen], analysis.test_relevance[view.chosen]
    r = figures.correlations(activations, relevance)
    title = layout.topic("Relevance and activation of the important neurons")
    labels = [
        f"{name}, r = {value:.2f}" if np.isfinite(value) else name for name, value in zip(view.neurons, r, strict=True)
    ]
    read = (
        "Each point is one test. x: activation of the neuron; y: its relevance for the predicted class. Active without "
        "relevance: no influence on the prediction; negative: evidence against it. Click a point to "
        "select its test, or draw around several."
    )
    if len(view.chosen) > (most := figures.most_points(len(view.neurons))):
        read += f" {most} tests are drawn" + ("." if correct is None else ", up to half of them misclassified.")
    marked = np.flatnonzero(view.chosen == view.position) if view.position is not None else np.zeros(0, np.int64)
    position = int(marked[0]) if len(marked) else None
    together = np.flatnonzero(np.isin(view.chosen, brushed(view)))
    layout.chart(
        view,
        "activation-relevance",
        lambda dark: figures.activation_relevance(
            activations,
            relevance,
            None if correct is None else correct[view.chosen],
            labels,
            title,
            ids=view.test.ids[view.chosen],
            selected=position,
            together=together,
            dark=dark,
        ),
        alt=title,
        read=read,
        depends=(position, together.tobytes()),
        clicked=lambda points: select_tests(view.setup.data, points),
        modes=("points", "lasso", "box"),
        table=_activation_table(view, activations, relevance),
    )
    right = np.ones(len(view.chosen), np.bool_) if correct is None else correct[view.chosen]
    hover_pictures(view, "activation-relevance", view.chosen[figures.drawn_tests(right, 0, most)])


def _activation_table(view: View, activations: NDArray[np.floating], relevance: NDArray[np.floating]) -> pd.DataFrame:
    """Return activation and relevance of every important neuron, a row per test."""
    table: dict[str, NDArray[np.generic]] = {"test": view.test.ids[view.chosen]}
    for column, neuron in enumerate(view.analysis.important):
        table |= {
            f"activation_neuron_{neuron}": activations[:, column],
            f"relevance_neuron_{neuron}": relevance[:, column],
        }
    return pd.DataFrame(table)


def _draw_agreement(view: View, found: Ranked, first: Ranking) -> None:
    """Show how far the measures agree."""
    methods = _methods()
    with layout.settings("compared", "agreement-classes"):
        chosen = choose_several(
            st.multiselect,
            "Attribution methods",
            methods,
            ONE_PASS,
            "compared",
            placeholder="None",
            help=f"Each runs on {rankings.SAMPLE} training inputs. Default the {len(ONE_PASS)} that need one "
            "pass; the others take seconds to a minute.",
        )
        classes = st.toggle(
            f"Add the {len(found.classes)} {'classes' if view.is_classifier else 'ranges of the target'}",
            key="agreement-classes",
            bind="query-params",
            help="Adds one ranking per class, over its training inputs. Default off.",
        )
    answers, refusals = rankings.by_methods(view, [name for name in methods if name in {*chosen, first.name}])
    for refusal in refusals:
        st.warning(refusal)
    compared = [ranking for name, ranking in found.rankings.items() if classes or name not in found.classes]
    if first not in compared and first.name not in answers:
        compared.append(first)
    compared += answers.values()
    matrix = spearman(np.stack([ranking.values for ranking in compared]))
    labels = [ranking.label for ranking in compared]
    title = layout.topic("Rank correlation of the rankings of the neurons")
    layout.chart(
        view,
        "agreement",
        lambda dark: figures.agreement(matrix, labels, title, dark=dark),
        alt=title,
        read="Each square compares two rankings of all neurons: 1 is the same order, 0 no relation, \u22121 the "
        "reverse.",
        depends=tuple(ranking.name for ranking in compared),
        table=pd.DataFrame(matrix, columns=labels).assign(ranking=labels).set_index("ranking").reset_index(),
    )


def _draw_side(side: View, chosen: Selection, name: str) -> None:
    """Show the ranking of one of two setups."""
    importance = side.analysis.importance / len(side.train)
    order = np.argsort(-importance, kind="stable")
    title = layout.topic("Neurons by cumulative relevance")
    neuron = chosen.neuron if chosen.neuron is not None and chosen.neuron < len(order) else None
    rows = [figures.Row("Cumulative relevance", "relevance", importance)]
    layout.chart(
        side,
        f"ranking-{name}",
        lambda dark: figures.ranking(order, side.analysis.important, rows, title, selected=neuron, dark=dark),
        alt=title,
        depends=neuron,
    )


def _compare(here: View, there: View) -> str:
    """Say how far the rankings of two setups agree."""
    mine, theirs = here.analysis.importance, there.analysis.importance
    same = here.model.card.fingerprint == there.model.card.fingerprint and here.analysis.layer == there.analysis.layer
    if same and len(mine) == len(theirs):
        return "The neurons of both setups have the same ranking: it depends only on the network's training inputs."
    _, first = shares(mine, here.analysis.important)
    _, pinned = shares(theirs, there.analysis.important)
    return (
        f"The {plural(here.analysis.m, 'important neuron')} here carry {percent(first)} of the positive relevance of "
        f"{count(len(mine))} neurons, the {there.analysis.m} pinned ones {percent(pinned)} of {count(len(theirs))}."
    )


def _ranking_table(view: View, found: Ranked, first: Ranking, other: Ranking) -> pd.DataFrame:
    """Return every ranking that is drawn, a row per neuron."""
    order = first.order
    columns = {ranking.label: ranking.values[order] for ranking in (first, other, *found.rankings.values())}
    return pd.DataFrame(
        {"neuron": order, **columns, "mean activation": found.activations[order]}
        | {"important": np.isin(order, view.analysis.important)}
    )


def _default_second(view: View, found: Ranked) -> str:
    """Return the ranking to compare with: the chosen classes, where there are any."""
    if "chosen" in found.rankings:
        return "chosen"
    if len(view.setup.classes) == 1 and view.is_comparable:
        return f"group-{found.labels.index(view.setup.classes[0])}"
    return "absolute"


def _offered(found: Ranked) -> dict[str, str]:
    """Return every ranking that can be chosen: name and label."""
    return {name: ranking.label for name, ranking in found.rankings.items()} | _methods()


def _methods() -> dict[str, str]:
    """Return the attribution methods that rank neurons beside the usual rule: name and label."""
    from idc_core.attribution.methods import METHODS

    return {name: entry.label for name, entry in METHODS.items() if entry.inside and name != _RULE}


def _measure_help(name: str) -> str:
    """Say what a ranking measures."""
    from idc_core.attribution.methods import METHODS
    from idc_core.importance.important_neurons import PRIORITIES

    if name in PRIORITIES:
        return PRIORITIES[name].help
    if name in METHODS:
        return METHODS[name].help
    return "Cumulative relevance over these training inputs alone."


def _over(ranking: Ranking) -> str:
    """Name a ranking with its number of inputs."""
    return f"{ranking.label}, {count(ranking.inputs)} training inputs"

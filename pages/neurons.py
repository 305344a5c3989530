"""Neurons: which of a layer's neurons decide by any measure, what stands behind one, and whether they really do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from idc_core.analysis.overview import shares
from idc_core.attribution.methods import METHODS
from idc_core.errors import IdcError
from idc_core.figures import neurons as agreement_figures
from idc_core.figures import neurons as figures
from idc_core.importance.ranking import Ranking, shared
from idc_core.statistics import spearman
from studio.engine.results import View
from studio.neurons import rankings
from studio.neurons.neuron import choose_neuron, draw_neuron, told
from studio.neurons.rankings import Ranked, ranked
from studio.neurons.trials import draw_trials, first_neurons
from studio.shell.frame import current_view
from studio.shell.pins import beside, open_pinned
from studio.shell.selection import Selection, select
from studio.widgets import layout
from studio.widgets.text import count, lower, percent, plural, signed

FOLLOWS = 0.5
"""Correlation from which relevance is said to follow activation."""

view = current_view()
analysis = view.analysis
finding = st.empty()


def carried() -> str:
    """Say how much the important neurons carry."""
    alone, together = shares(analysis.importance, analysis.important)
    if analysis.m == 1:
        of = f"Of {count(len(analysis.importance))} neurons neuron {analysis.important[0]}"
        return f"{of} carries {percent(alone)} of the positive relevance"
    return (
        f"The {plural(analysis.m, 'important neuron')} of {len(analysis.importance)} carry {percent(together)} of "
        f"the positive relevance, neuron {analysis.important[0]} alone {percent(alone)}"
    )


def choose_rankings(found: Ranked) -> tuple[Ranking, Ranking]:
    """Choose the ranking that orders the neurons, and the one beside it."""
    choices = rankings.offered(found)
    labels, second = list(choices.values()), choices[rankings.default_second(view, found)]
    names = {label: name for name, label in choices.items()}
    text = "Relevance over all training inputs or those of a class; attribution methods run on a sample when chosen."
    with st.container(horizontal=True, vertical_alignment="bottom"):
        first_label = st.selectbox(
            "Rank by", labels, key="rank", bind="query-params", width=260, help=f"{text} Default {labels[0]}."
        )
        second_label = st.selectbox(
            "Beside it",
            labels,
            index=labels.index(second),
            key="ranked-beside",
            bind="query-params",
            width=260,
            help=f"A second measure of the same neurons. {text} Default {second}.",
        )
    first = take_ranking(found, names[first_label], "sum")
    other = take_ranking(found, names[second_label], rankings.default_second(view, found))
    st.caption(
        "  \n".join(f"{rankings.over(one)}: {rankings.measure_help(one.name)}" for one in dict.fromkeys((first, other)))
    )
    return first, other


def take_ranking(found: Ranked, name: str, instead: str) -> Ranking:
    """Return a ranking; where its method cannot explain this network, say so and return another one."""
    if name in found.rankings:
        return found.rankings[name]
    answers, refusals = rankings.by_methods(view, [name])
    for refusal in refusals:
        st.error(f"{refusal} Shown instead: {found.rankings[instead].label}.")
    return answers.get(name, found.rankings[instead])


def draw_ranking(found: Ranked, first: Ranking, other: Ranking, neuron: int) -> None:
    """Show the neurons by one measure, with another one and their activation below."""
    m, best = analysis.m, int(first.order[0])
    correlation = spearman(np.stack([first.values, other.values]))[0, 1]
    title = f"Neuron {best} decides most by {lower(first.label)}"
    if other is not first:
        common = shared(first, other, m)
        title += f"; {lower(other.label)} shares {common} of {first_neurons(m)}"
        title += f" (rank correlation {signed(correlation, '.2f')})" if np.isfinite(correlation) else ""
    rows = [figures.Row(one.label, "relevance", one.values) for one in dict.fromkeys((first, other))]
    rows.append(figures.Row("Activation", "mean activation", found.activations))
    read = (
        "each column is a neuron (a channel, in a convolution): how much it contributes to the network's answers, in "
        "score units, mean of an input; below, how active it is. Hatched bars are the important neurons of all "
        "pages. Click a bar to see what is behind it."
    )
    if len(first.values) > figures.MOST_BARS:
        read += (
            f" Drawn are the first {figures.MOST_BARS - figures.LAST_BARS} and the last {figures.LAST_BARS} of "
            f"{count(len(first.values))} neurons."
        )
    layout.chart(
        view,
        "ranking",
        lambda dark: figures.ranking(first.order, analysis.important, rows, title, selected=neuron, dark=dark),
        alt=title,
        read=read,
        depends=(first.name, other.name, neuron),
        clicked=lambda points: select(neuron=told(points)),
    )


def draw_activation_relevance() -> None:
    """Show relevance against activation over the tests, a panel an important neuron."""
    st.header("Does relevance follow activation?", anchor=False)
    activations, relevance = analysis.test_activations[view.chosen], analysis.test_relevance[view.chosen]
    r = figures.correlations(activations, relevance)
    known = r[np.isfinite(r)]
    title = "These neurons never change over these tests"
    if len(known):
        follows = "follows" if known.min() >= FOLLOWS else "does not always follow"
        title = f"Relevance {follows} activation: their correlation is {signed(known.min(), '.2f')} to "
        title += signed(known.max(), ".2f")
    labels = [
        f"{name}, r = {value:.2f}" if np.isfinite(value) else name for name, value in zip(view.neurons, r, strict=True)
    ]
    read = (
        "a mark is a test. A neuron that is active without relevance does not decide; one with negative relevance "
        "speaks against the answer that the network gave. Click a mark to select its test on all pages."
    )
    if len(view.chosen) > (most := figures.most_points(len(view.neurons))):
        read += f" {most} tests are drawn"
        read += "." if view.correct is None else ", up to half of them misclassified."
    marked = np.flatnonzero(view.chosen == view.position) if view.position is not None else []
    position = int(marked[0]) if len(marked) else None
    layout.chart(
        view,
        "activation-relevance",
        lambda dark: figures.activation_relevance(
            activations,
            relevance,
            None if view.correct is None else view.correct[view.chosen],
            labels,
            title,
            ids=view.test.ids[view.chosen],
            selected=position,
            dark=dark,
        ),
        alt=title,
        read=read,
        depends=position,
        clicked=lambda points: select(input=told(points)),
    )


def draw_agreement(found: Ranked, first: Ranking) -> pd.DataFrame:
    """Show how far the measures agree, and return their correlations."""
    st.header("Do other measures agree?", anchor=False)
    methods = [name for name in METHODS if name != rankings.RULE]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        wanted = st.multiselect(
            "Attribution methods",
            methods,
            default=list(rankings.USUAL),
            format_func=lambda name: METHODS[name].label,
            key="compared",
            bind="query-params",
            placeholder="None",
            help=f"Each runs on {rankings.SAMPLE} training inputs; default the {len(rankings.USUAL)} that need one "
            "pass, the others take seconds to a minute.",
        )
        classes = st.toggle(
            f"The {len(found.classes)} {'classes' if view.is_classifier else 'ranges of answers'} too",
            key="agreement-classes",
            bind="query-params",
            help="Adds the rankings over the training inputs of each class; default off.",
        )
    answers, refusals = rankings.by_methods(view, [name for name in methods if name in {*wanted, first.name}])
    for refusal in refusals:
        st.warning(refusal)
    compared = [one for name, one in found.rankings.items() if classes or name not in found.classes]
    if first not in compared and first.name not in answers:
        compared.append(first)
    compared += answers.values()
    matrix = spearman(np.stack([one.values for one in compared]))
    labels = [one.label for one in compared]
    row = matrix[0, 1:]
    title = "Every neuron has the same relevance: there is no ranking"
    if np.isfinite(row).any():
        least = int(np.nanargmin(row))
        title = (
            f"{labels[least + 1]} agrees least with {lower(labels[0])}: rank correlation {signed(row[least], '.2f')}, "
            f"{shared(compared[0], compared[least + 1], analysis.m)} of {first_neurons(analysis.m)} shared"
        )
    layout.chart(
        view,
        "agreement",
        lambda dark: agreement_figures.agreement(matrix, labels, title, dark=dark),
        alt=title,
        read="a square compares two rankings of all neurons: 1 is the same order, 0 no relation, \u22121 the reverse.",
        depends=tuple(one.name for one in compared),
    )
    return pd.DataFrame(matrix, columns=labels).assign(ranking=labels).set_index("ranking").reset_index()


def draw_side(side: View, chosen: Selection, name: str) -> None:
    """Show the ranking of one of two benches."""
    importance = side.analysis.importance / len(side.train)
    order = np.argsort(-importance, kind="stable")
    alone, together = shares(importance, side.analysis.important)
    title = f"{plural(side.analysis.m, 'neuron')} carry {percent(together)}, neuron {order[0]} alone {percent(alone)}"
    neuron = chosen.neuron if chosen.neuron is not None and chosen.neuron < len(order) else None
    rows = [figures.Row("Cumulative relevance", "relevance", importance)]
    layout.chart(
        side,
        f"ranking-{name}",
        lambda dark: figures.ranking(order, side.analysis.important, rows, title, selected=neuron, dark=dark),
        alt=title,
        read="as above, by cumulative relevance.",
        depends=neuron,
    )


def both(there: View) -> str:
    """Say how far the rankings of the pinned bench and of this one agree."""
    mine, theirs = analysis.importance, there.analysis.importance
    same = view.model.card.fingerprint == there.model.card.fingerprint and analysis.layer == there.analysis.layer
    if same and len(mine) == len(theirs):
        return (
            "The neurons of both benches are ranked alike: they are learnt from the network's training inputs, which "
            "are the same."
        )
    _, here = shares(mine, analysis.important)
    _, pinned = shares(theirs, there.analysis.important)
    return (
        f"The {plural(analysis.m, 'important neuron')} here carry {percent(here)} of the positive relevance of "
        f"{count(len(mine))} neurons, the {there.analysis.m} pinned ones {percent(pinned)} of {count(len(theirs))}."
    )


def ranking_table(found: Ranked, first: Ranking, other: Ranking) -> pd.DataFrame:
    """Return every ranking that is drawn, a row a neuron."""
    order = first.order
    columns = {one.label: one.values[order] for one in (first, other, *found.rankings.values())}
    return pd.DataFrame(
        {"neuron": order, **columns, "mean activation": found.activations[order]}
        | {"important": np.isin(order, analysis.important)}
    )


found = ranked(view)
finding.markdown(f"**{carried()}.**")
first, other = choose_rankings(found)
place_of_ranking = st.container()
neuron = choose_neuron(view, first)
with place_of_ranking:
    draw_ranking(found, first, other, neuron)
draw_neuron(view, found, neuron)
st.header("Do they really decide?", anchor=False)
# Their place is here, their turn comes when the rest of the page stands.
place_of_trials = st.container()
draw_activation_relevance()
tables = {"neuron-ranking": ranking_table(found, first, other), "rank-correlations": draw_agreement(found, first)}
tables["relevance-by-class"] = (
    pd.DataFrame(found.by_class, columns=list(found.labels)).rename_axis("neuron").reset_index()
)
with place_of_trials:
    try:
        trials = draw_trials(view, first)
    except IdcError as error:
        st.error(str(error))
    else:
        tables |= trials.tables
        if trials.sentence:
            finding.markdown(f"**{carried()}. {trials.sentence}.**")
beside(view, draw_side)
if (pin := open_pinned()) is not None:
    st.markdown(both(pin.view))
layout.computed(
    view,
    "Relevance starts from the score of the predicted class before the softmax and is passed back layer by "
    "layer; a neuron's cumulative relevance is its sum over all training inputs, and the m neurons with the "
    "largest sums are the important ones (Algorithm 1 of the paper). It is drawn as the mean of an input, so that "
    "rankings over different inputs share a unit; the order is the same.",
    f"Other attribution methods have their default parameters and run on {rankings.SAMPLE} training inputs (seed 0; "
    "equally many of each class, or at even distances where the answer is a number). Rankings are compared by "
    "Spearman's rank correlation over all neurons of the layer.",
    "Silencing sets a neuron to zero after its activation function. The experiment beside it is the paper's RQ1: the "
    "pixels with the largest absolute relevance are flipped (dark to light, light to dark; words become unknown), and "
    "the L2 distance is taken between the neurons' activations before and after. Random neurons are drawn from the "
    "others, with seeds 0 to 4.",
)
layout.take_away(tables)

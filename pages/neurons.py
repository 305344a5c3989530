"""Neurons: which of a layer's neurons decide by any measure, the tests that activate one, and whether they decide."""

import streamlit as st

from idc_core.errors import IdcError
from studio.jobs.wording import input_parts
from studio.neurons import neuron, ranking_charts, rankings, trials
from studio.shell import tabs
from studio.shell.frame import current_view
from studio.shell.pages import PageEntry
from studio.shell.pins import beside, open_pinned
from studio.text import literal
from studio.widgets import layout

PAGE = PageEntry(
    "Neurons",
    ":material/hub:",
    "Which neurons decide, and do they really?",
    "Neurons ranked by relevance or attribution, tests that activate one, and the effect of silencing.",
    place=60,
    tabs={"ranking": "Ranking", "neuron": "One neuron", "decide": "Do they decide?", "agreement": "Do measures agree?"},
    controls={
        "ranked-beside": "ranking",
        "tried": "decide",
        "changed": "decide",
        "scaled": "decide",
        "compared": "agreement",
        "agreement-classes": "agreement",
    },
)

view = current_view()
st.markdown(f"**{ranking_charts.carried(view)}.**")
found = rankings.ranked(view)
first = ranking_charts.choose_first(view, found)


def draw_ranking() -> None:
    """Show the neurons by one measure beside another one, and the tests that activate the framed neuron."""
    other = ranking_charts.choose_second(view, found)
    framed = neuron.inspected(view, first)
    ranking_charts.draw_ranking(view, found, first, other, framed)
    neuron.draw_highest(view, framed)
    st.button(
        f"See neuron {framed} in detail",
        key="neuron-detail",
        type="tertiary",
        icon=":material/arrow_forward:",
        on_click=tabs.open_at,
        args=("neurons", "neuron"),
        help="Open the tab One neuron.",
    )
    beside(view, ranking_charts.draw_side)
    if (pin := open_pinned()) is not None:
        st.markdown(ranking_charts.compare(view, pin.view))
    layout.computed(
        view,
        "Relevance starts at the predicted class's score before the softmax and is propagated back layer by layer. A "
        "neuron's cumulative relevance is its sum over all training inputs; the m neurons with the largest sums are "
        "the important ones (Algorithm 1 of the paper). The chart shows the mean per input, so that rankings over "
        "different inputs share a unit; the order is the same.",
        "  \n".join(
            f"{rankings.over(ranking)}: {rankings.measure_help(ranking.name)}"
            for ranking in dict.fromkeys((first, other))
        ),
        f"Other attribution methods use their default parameters and run on {rankings.SAMPLE} training inputs (seed 0; "
        "equally many per class, or evenly spaced for regression).",
    )


def draw_neuron() -> None:
    """Show the tests that activate one neuron most and least, and its relevance per class."""
    looked_at = neuron.choose_neuron(view, first)
    neuron.draw_neuron(view, found, looked_at)
    layout.computed(view, "A neuron's relevance per class is the mean over the training inputs of that class.")


def draw_decide() -> None:
    """Show what silencing the first neurons costs, and how far they move when the input changes."""
    try:
        trials.draw_trials(view, first)
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
        + " Random neurons are drawn from the others, with seeds 0 to 4.",
    )


def draw_agreement() -> None:
    """Show how far other measures agree, and whether relevance correlates with activation."""
    ranking_charts.draw_agreement(view, found, first)
    ranking_charts.draw_activation_relevance(view)
    layout.computed(view, "Rankings are compared by Spearman's rank correlation over all neurons of the layer.")


tabs.draw(
    "neurons", {"ranking": draw_ranking, "neuron": draw_neuron, "decide": draw_decide, "agreement": draw_agreement}
)

"""Neurons: which of a layer's neurons decide by any measure, the tests that activate one, and whether they decide."""

import pandas as pd
import streamlit as st

from idc_core.errors import IdcError
from studio.neurons import rankings
from studio.neurons.neuron import choose_neuron, draw_neuron
from studio.neurons.ranking_charts import (
    carried,
    choose_rankings,
    compare,
    draw_activation_relevance,
    draw_agreement,
    draw_ranking,
    draw_side,
    ranking_table,
)
from studio.neurons.trials import draw_trials
from studio.shell.frame import current_view
from studio.shell.pins import beside, open_pinned
from studio.text import literal
from studio.widgets import layout

view = current_view()
finding = st.empty()
found = rankings.ranked(view)
finding.markdown(f"**{carried(view)}.**")
first, other = choose_rankings(view, found)
place_of_ranking = st.container()
neuron = choose_neuron(view, first)
with place_of_ranking:
    draw_ranking(view, found, first, other, neuron)
draw_neuron(view, found, neuron)
st.header("Do they really decide?", anchor=False)
# Their place is here, their turn comes when the rest of the page stands.
place_of_trials = st.container()
draw_activation_relevance(view)
tables = {
    "neuron-ranking": ranking_table(view, found, first, other),
    "rank-correlations": draw_agreement(view, found, first),
    "relevance-by-class": pd.DataFrame(found.by_class, columns=list(found.labels)).rename_axis("neuron").reset_index(),
}
with place_of_trials:
    try:
        trials = draw_trials(view, first)
    except IdcError as error:
        st.error(literal(error))
    else:
        tables |= trials.tables
        if trials.sentence:
            finding.markdown(f"**{carried(view)}. {trials.sentence}.**")
beside(view, draw_side)
if (pin := open_pinned()) is not None:
    st.markdown(compare(view, pin.view))
layout.computed(
    view,
    "Relevance starts at the predicted class's score before the softmax and is propagated back layer by layer. A "
    "neuron's cumulative relevance is its sum over all training inputs; the m neurons with the largest sums are the "
    "important ones (Algorithm 1 of the paper). The chart shows the mean per input, so that rankings over different "
    "inputs share a unit; the order is the same.",
    f"Other attribution methods use their default parameters and run on {rankings.SAMPLE} training inputs (seed 0; "
    "equally many per class, or evenly spaced for regression). Rankings are compared by Spearman's rank correlation "
    "over all neurons of the layer.",
    "Silencing sets a neuron to zero after its activation function. The second experiment is the paper's RQ1: the "
    "pixels with the largest absolute relevance are inverted (words become unknown), and the L2 distance between the "
    "neurons' activations before and after is measured. Random neurons are drawn from the others, with seeds 0 to 4.",
)
layout.take_away(tables)

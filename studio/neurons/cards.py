"""Cards of neurons: one per important neuron, and the atlas of the whole layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray
from streamlit.delta_generator import DeltaGenerator

from idc_core.errors import CancelledError, IdcError
from idc_core.figures.palette import palette
from idc_core.importance.ranking import carrying
from studio.jobs.results import View
from studio.jobs.runs import find_hypotheses
from studio.neurons import card_data
from studio.shell import tabs
from studio.shell.pages import draw_link, go_to
from studio.state import visitor
from studio.state.choices import choose_one
from studio.state.selection import select, selected
from studio.text import literal, plural
from studio.widgets import exports, layout
from studio.widgets.charts import component
from studio.widgets.gallery import select_or_drop
from studio.widgets.headlines import counted
from studio.widgets.storytelling import add_slide

if TYPE_CHECKING:
    from idc_core.figures.card_parts import Card
    from idc_core.importance.examples import NeuronExamples
    from idc_core.importance.maximisation import Measure
    from idc_core.importance.ranking import Ranking
    from studio.neurons.rankings import Ranked

_MEASURES: dict[Measure, str] = {"relevance": "Relevance", "activation": "Activation"}
_PARTS = {"crop": "Cropped", "whole": "Whole"}

_A_PAGE, _SMALL_A_PAGE = 6, 25
"""Cards that are shown together, and small ones."""

_NARROW, _WIDE, _SHORT = 120, 220, 9
"""Pixels of the choice of a class, and letters of a name that need the more of them."""

_BUTTONS = 6
"""Pages up to which each has a button."""

_SHOWN = {"important": "Important", "all": "All", "named": "Named"}
_ORDERS = {"rank": "Rank", "number": "Number"}

_cards = component("idc_cards", "cards", "cards")


def draw(view: View, found: Ranked, ranking: Ranking) -> None:
    """Show a card per important neuron, or small ones of all neurons of the layer."""
    try:
        _draw(view, found, ranking)
    except CancelledError:
        raise
    except IdcError as error:
        st.error(literal(error))


def _draw(view: View, found: Ranked, ranking: Ranking) -> None:
    controls = st.container(horizontal=True, vertical_alignment="bottom")
    with controls:
        shown, by = _choose_neurons(), _choose_measure()
    small = shown != "important"
    neurons = view.analysis.important if not small else _atlas(view, found, ranking, controls)
    if shown == "named":
        neurons = neurons[np.isin(neurons, list(view.names))]
    if not len(neurons):
        st.caption("No neuron of this kind. Open one to name it.")
        return
    neurons = _page(neurons, _SMALL_A_PAGE if small else _A_PAGE)
    examples = card_data.find_examples(view, neurons, by)
    whole = _choose_part(controls, view, examples)
    if small:
        _show(view, card_data.drawn(view, examples, by, whole=whole, small=True, dark=layout.is_dark()), "atlas")
    else:
        draw_cards(view, neurons, by, whole=whole, key="cards")
        layout.how_to_read(
            f"Top: the tests with most {by} of the neuron, cropped to what it looks at. Dotted: boundaries between "
            "clusters. Bars: mean relevance per true class, red for the prediction, blue against. Dots: the change "
            "when the neuron is silenced; grey: the range of 95 % of other neurons. A full dot lies beyond, as one in "
            "twenty does by chance. Click a test to select it, a title to open the neuron."
        )
    layout.computed(
        view,
        "Tests are ranked by relevance that flows from the predicted class's score, summed over positions and divided "
        "by the absolute relevance of all neurons of the layer (relevance maximisation; Achtibat et al., From "
        "attribution maps to human-understandable explanations through concept relevance propagation, Nature Machine "
        "Intelligence 2023). A crop is the receptive field of the position with most relevance; where that is the "
        "whole input, the smallest square that holds 80 % of the positive relevance for the neuron's activation. "
        "Accuracy is measured on up to 500 tests without the neuron, and without each of up to 40 random other ones. "
        "Per cent behind a title: share of the layer's positive relevance.",
    )


def _choose_neurons() -> str:
    """Choose which neurons are shown."""
    return choose_one(
        st.segmented_control,
        "Neurons",
        _SHOWN,
        "important",
        "card-shown",
        required=True,
        help="The important neurons on one card each, or all of the layer, or those that you named, on small cards. "
        "Default Important.",
    )


def _atlas(view: View, found: Ranked, ranking: Ranking, place: DeltaGenerator) -> NDArray[np.int64]:
    """Return the neurons of the layer, or those that are most relevant for a class, in the order that is chosen."""
    with place:
        order = choose_one(
            st.segmented_control,
            "Order",
            _ORDERS,
            "rank",
            "card-order",
            required=True,
            help="By the ranking above, or for one class by relevance for it; or by number. Default Rank.",
        )
        label = choose_one(
            st.selectbox,
            "Class" if view.is_classifier else "Target",
            {"": "All", **{name: name for name in found.labels}},
            "",
            "card-class",
            width=_NARROW if max(map(len, found.labels)) < _SHORT else _WIDE,
            help="The neurons most relevant for a class: the fewest that carry half of the positive relevance over the "
            "training inputs of that class. Default all neurons.",
        )
    if not label:
        return ranking.order if order == "rank" else np.arange(len(ranking.values))
    neurons = carrying(found.by_class[:, found.labels.index(label)])
    what = "class" if view.is_classifier else "targets"
    st.caption(
        f"{counted('Carrying half of the positive relevance', len(neurons), len(ranking.values), 'neuron')}, "
        f"for {what} {literal(label)}."
    )
    return neurons if order == "rank" else np.sort(neurons)


def draw_cards(view: View, neurons: NDArray[np.int64], by: Measure, *, whole: bool, key: str) -> None:
    """Draw cards: at once, and again with what silencing changes when that is measured."""
    examples = card_data.find_examples(view, neurons, by)
    hypotheses, place = find_hypotheses(view), st.empty()
    if hypotheses is None:
        draw_link("hypotheses", "Test hypotheses to see the best of each neuron on its card")
    if examples.remark:
        st.caption(f"Inputs are shown whole. {literal(examples.remark)}")
    how: dict[str, Any] = {"hypotheses": hypotheses, "whole": whole}
    if not card_data.is_silenced(view, neurons):
        with place:
            cards = card_data.drawn(view, examples, by, **how, dark=layout.is_dark())
            _show(view, cards, f"{key}-first", lambda: card_data.cards_of(view, examples, **how))
    try:
        silenced = card_data.silence(view, neurons)
    except CancelledError:
        return
    with place:
        cards = card_data.drawn(view, examples, by, silenced, **how, dark=layout.is_dark())
        _show(view, cards, key, lambda: card_data.cards_of(view, examples, silenced, **how))


def _choose_measure() -> Measure:
    """Choose by what tests are ranked."""
    return choose_one(
        st.segmented_control,
        "Tests by",
        _MEASURES,
        "relevance",
        "card-by",
        required=True,
        help="Relevance: where the neuron contributed most to the prediction. Activation: where it was most active. "
        "Default Relevance.",
    )


def _choose_part(place: DeltaGenerator, view: View, examples: NeuronExamples) -> bool:
    """Choose whether inputs are shown whole, where neurons look at parts of them."""
    if not examples.are_parts(view.test.inputs.shape):
        return False
    with place:
        part = choose_one(
            st.segmented_control,
            "Inputs",
            _PARTS,
            "crop",
            "card-part",
            required=True,
            help="Cropped to what the neuron looks at, or whole. Default Cropped.",
        )
    return part == "whole"


def _page(neurons: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Let a person leaf through neurons; return those of the open page."""
    pages = -(-len(neurons) // most)
    if pages < 2:
        return neurons
    names = {page: f"{1 + page * most}\u2013{min(len(neurons), (page + 1) * most)}" for page in range(pages)}
    many = pages > _BUTTONS
    draw: Any = st.selectbox if many else st.segmented_control
    page = choose_one(
        draw,
        f"Of {plural(len(neurons), 'neuron')}",
        names,
        0,
        "card-page",
        help=f"Which neurons are shown. Default {names[0]}.",
        **({"width": 160} if many else {"required": True}),
    )
    return neurons[page * most : (page + 1) * most]


def _show(
    view: View, cards: Sequence[dict[str, object]], key: str, made: Callable[[], list[Card]] | None = None
) -> None:
    """Show cards; a click selects a test, opens a neuron, or leads to its cells.

    Cards that can be saved, and added to a story, are `made` once more when they are.
    """

    def tell() -> None:
        chosen = st.session_state[key].chosen
        kind, value = chosen["kind"], int(chosen["value"])
        if kind == "test":
            select_or_drop(value)
        elif kind == "story" and made is not None:
            _add_to_story(view, next(card for card in made() if card.neuron == value))
        elif kind == "neuron":
            select(neuron=value)
            tabs.open_at("neurons", "neuron")
        else:
            select(neuron=value)
            go_to("coverage")

    data = {
        "cards": list(cards),
        "selected": selected().input,
        "saved": "" if made is None else exports.stem("neuron-{}", view.setup),
        "told": made is not None and not visitor.uploads_refused(),
        "ground": palette(layout.is_dark()).ground,
        "origin": "" if made is None else exports.origin(),
    }
    _cards(key=key, data=data, on_chosen_change=tell)


def _add_to_story(view: View, card: Card) -> None:
    """Make a card the next slide of the story."""
    from idc_core.figures.card_figure import card_figure

    title = f"{card.title}: the tests in which it matters most, and what it does for each class"
    add_slide(title, lambda dark: card_figure(card, title, dark=dark), view.line)

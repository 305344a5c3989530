"""What the cards of neurons show, each part found once; a card is drawn once for each ground."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idc_core.base.progress import Progress
from studio.jobs.jobs import JobKind, Waiting, shelf
from studio.jobs.results import View

if TYPE_CHECKING:
    from idc_core.experiments.ablation import SilencedClasses
    from idc_core.figures.card_parts import Card
    from idc_core.importance.examples import NeuronExamples
    from idc_core.importance.maximisation import Measure
    from idc_core.report.neuron_cards import Best

_EXAMPLES = JobKind("neuron-examples", kept=48)
_SILENCED = JobKind("neurons-silenced")

Silenced: TypeAlias = "tuple[SilencedClasses, SilencedClasses]"
"""What silencing changes: of the neurons on cards, and of those that they are compared with."""


def find_examples(view: View, neurons: NDArray[np.int64], by: Measure) -> NeuronExamples:
    """Return the chosen tests in which neurons (m,) of the layer mattered most."""

    def work(report: Progress) -> NeuronExamples:
        from idc_core.report.neuron_cards import examples_of

        return examples_of(view, view.model, neurons, by, report)

    return Waiting(1).get(_EXAMPLES, (*_key(view, neurons), by), "looking for the tests of the neurons", work)


def silence(view: View, neurons: NDArray[np.int64]) -> Silenced:
    """Return what silencing each of some neurons (m,) changes for each class, and each of others to compare with."""
    waiting = Waiting(2)

    def silenced(some: NDArray[np.int64], doing: str) -> SilencedClasses:
        def work(report: Progress) -> SilencedClasses:
            from idc_core.report.neuron_cards import silenced_of

            return silenced_of(view, view.model, some, report)

        return waiting.get(_SILENCED, _key(view, some), doing, work)

    return silenced(neurons, "silencing each neuron"), silenced(_others(view), "silencing others to compare with")


def is_silenced(view: View, neurons: NDArray[np.int64]) -> bool:
    """Whether that is known already."""
    return all(shelf().finished(_SILENCED, _key(view, some)) is not None for some in (neurons, _others(view)))


def _others(view: View) -> NDArray[np.int64]:
    from idc_core.report.neuron_cards import others_of

    return others_of(view)


def _key(view: View, neurons: NDArray[np.int64]) -> tuple[object, ...]:
    from idc_core.report.neuron_cards import card_key

    return card_key(view.key, view.setup.layer, view.chosen_key, neurons)


def cards_of(
    view: View,
    examples: NeuronExamples,
    silenced: Silenced | None = None,
    *,
    hypotheses: Best | None = None,
    whole: bool = False,
    small: bool = False,
) -> list[Card]:
    """Put together the cards of the neurons of `examples`, with the names that the person gave them."""
    from idc_core.report.neuron_cards import make_cards

    return make_cards(view, examples, silenced, names=view.names, hypotheses=hypotheses, whole=whole, small=small)


def drawn(
    view: View,
    examples: NeuronExamples,
    by: Measure,
    silenced: Silenced | None = None,
    *,
    hypotheses: Best | None = None,
    whole: bool = False,
    small: bool = False,
    dark: bool,
) -> list[dict[str, object]]:
    """Return the cards of the neurons of `examples`, found by a measure, as the browser shows them."""
    options = tuple(sorted(view.setup.options.items())), view.analysis.m
    key = (*_key(view, examples.neurons), options, by, silenced is not None, whole, small, dark)
    texts = tuple(view.names.items()), hypotheses
    return _drawn(
        (*key, texts),
        small,
        dark,
        lambda: cards_of(view, examples, silenced, hypotheses=hypotheses, whole=whole, small=small),
    )


@st.cache_resource(max_entries=48, show_spinner=False)
def _drawn(
    key: tuple[object, ...], small: bool, dark: bool, _make: Callable[[], list[Card]]
) -> list[dict[str, object]]:
    from idc_core.figures.cards import draw_card, draw_small

    draw = draw_small if small else draw_card
    return [{"neuron": card.neuron, "picture": draw(card, dark=dark)} for card in _make()]

"""What the cards of neurons show, each part found once; a card is drawn once for each ground."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idc_core.base.progress import Progress
from studio.jobs.jobs import JobKind, Waiting, shelf
from studio.jobs.results import View
from studio.state import visitor

if TYPE_CHECKING:
    from idc_core.experiments.ablation import SilencedClasses
    from idc_core.figures.cards import Card
    from idc_core.importance.examples import NeuronExamples
    from idc_core.importance.maximisation import Measure

_EXAMPLES = JobKind("neuron-examples", kept=48)
_SILENCED = JobKind("neurons-silenced")

_FRESH_S = 30
"""Seconds for which what is kept of hypotheses is not looked for again."""


def find_examples(view: View, neurons: NDArray[np.int64], by: Measure) -> NeuronExamples:
    """Return the chosen tests in which neurons (m,) of the layer mattered most."""

    def work(report: Progress) -> NeuronExamples:
        from idc_core.report.neuron_cards import examples_of

        return examples_of(view, view.model, neurons, by, report)

    return Waiting(1).get(_EXAMPLES, (*_key(view, neurons), by), "looking for the tests of the neurons", work)


def silence(view: View, neurons: NDArray[np.int64]) -> SilencedClasses:
    """Return what silencing each of some neurons (m,) changes for each class."""

    def work(report: Progress) -> SilencedClasses:
        from idc_core.report.neuron_cards import silenced_of

        return silenced_of(view, view.model, neurons, report)

    return Waiting(1).get(_SILENCED, _key(view, neurons), "silencing each neuron", work)


def is_silenced(view: View, neurons: NDArray[np.int64]) -> bool:
    """Whether that is known already."""
    return shelf().finished(_SILENCED, _key(view, neurons)) is not None


def _key(view: View, neurons: NDArray[np.int64]) -> tuple[object, ...]:
    from idc_core.report.neuron_cards import card_key

    return card_key(view.key, view.setup.layer, view.chosen_key, neurons)


@st.cache_data(ttl=_FRESH_S, show_spinner=False)
def find_hypotheses(key: tuple[str, ...], layer: str, _view: View) -> dict[int, str]:
    """Return the best hypothesis of each neuron of a layer by the newest inspection that is kept, where there is one.

    `key` is the network's, the tests' and the person's. The list of runs is asked for at most twice a minute.
    """
    from idc_core.report.neuron_cards import best_hypotheses
    from idc_core.runs import find_runs

    runs = find_runs("inspections", _view.card.name, owner=visitor.person() or "", sees=visitor.may_see())
    return best_hypotheses(_view, runs, _view.card.fingerprint)


def drawn(
    view: View,
    examples: NeuronExamples,
    by: Measure,
    silenced: SilencedClasses | None = None,
    *,
    hypotheses: Mapping[int, str] | None = None,
    whole: bool = False,
    small: bool = False,
    dark: bool,
) -> list[dict[str, object]]:
    """Return the cards of the neurons of `examples`, found by a measure, as the browser shows them."""
    options = tuple(sorted(view.setup.options.items())), view.analysis.m
    key = (*_key(view, examples.neurons), options, by, silenced is not None, whole, small, dark)
    texts = tuple(view.names.items()), tuple((hypotheses or {}).items())
    return _drawn(key, texts, view, examples, silenced, whole, small, dark)


@st.cache_resource(max_entries=48, show_spinner=False)
def _drawn(
    key: tuple[object, ...],
    texts: tuple[tuple[tuple[int, str], ...], tuple[tuple[int, str], ...]],
    _view: View,
    _examples: NeuronExamples,
    _silenced: SilencedClasses | None,
    _whole: bool,
    _small: bool,
    _dark: bool,
) -> list[dict[str, object]]:
    from idc_core.figures.cards import draw_card, draw_small
    from idc_core.report.neuron_cards import make_cards

    cards: list[Card] = make_cards(
        _view, _examples, _silenced, names=dict(texts[0]), hypotheses=dict(texts[1]), whole=_whole, small=_small
    )
    draw = draw_small if _small else draw_card
    return [{"neuron": card.neuron, "picture": draw(card, dark=_dark)} for card in cards]

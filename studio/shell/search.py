"""The search: by name to a page, a tab, an action, what can be chosen, or a term, by number to a test or a neuron.

Tests are found by their classes and words too, by the server, and only when that is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from idc_core.base.progress import Progress
from idc_core.errors import CancelledError, IdcError
from studio.jobs import jobs
from studio.jobs.jobs import JobKind, shelf
from studio.jobs.results import View, neuron_names, open_view
from studio.jobs.suite_catalog import chosen_names, keep_names
from studio.shell import asked, presenting, tabs, test_filter, tour
from studio.shell.pages import PAGES, go_to, unmet
from studio.state import address, visitor
from studio.state.selection import change_setup, select
from studio.state.setup import DEFAULT, FILTER, Setup, fitting_data, parse
from studio.widgets import report
from studio.widgets.charts import component
from studio.widgets.gallery import answer, caption

_KEY = "search"
_SOUGHT = "search-tests"
"""In the session: what tests were searched for last."""

_MOST_TESTS = 50
"""Tests that are listed at most."""

_WORDS_SHOWN = 12
"""Words of a text that is found."""

_SOON_S = 0.02
"""Seconds that are waited for the criteria's labels where they are loaded; else they come with the next run."""

_SHORTCUTS = (
    ("Ctrl K or /", "Search"),
    ("?", "Show this list"),
    ("Tab, Shift Tab", "Go to the next control, or the one before"),
    ("Arrow keys", "Move within tabs, choices, grids and sliders; on Relevance and Adversarial, step through tests"),
    ("R", "Run the page again"),
)
"""Keys, and what they do."""

_GLOSSARY = {
    "Activation": "The value that a neuron has for one input, after its activation function.",
    "Adversarial example": "An input changed so little that a person sees no difference, yet misclassified.",
    "Attribution": "A number per pixel, word or neuron that says how much it contributed to a prediction.",
    "Boundary": "The activation half way between two centroids, where one cluster ends and the next begins.",
    "Cell": "A combination of clusters, one per important neuron. Every test falls into one cell (INCC in the paper).",
    "CC": "Cluster-based coverage here (TensorFuzz); elsewhere also causal coverage (ICSE 2023), which is another one.",
    "Centroid": "The mean activation of a cluster.",
    "Cluster": "A range of a neuron's activations, found on the training inputs.",
    "Coverage criterion": "A number that says how much of a network's behaviour a test set exercises.",
    "Disagreement": "An input on which networks for one task predict differently, so that at least one is wrong.",
    "False discovery rate": "The share of significant results that are expected to be significant by chance.",
    "Heatmap": "The relevance of every pixel or word of one input.",
    "Hypothesis": "What a neuron might respond to, as a value per symbol or pixel: a class, a word, a shape.",
    "IDC": "Importance-Driven Coverage: the share of cells that at least one test falls into. TEASMA's IDC is "
    "another one: input distribution coverage.",
    "Important neuron": "One of the m neurons of a layer with the largest relevance summed over the training inputs.",
    "INCC": "Important neurons cluster combinations: all cells of the grid.",
    "LRP": "Layer-wise relevance propagation: distributes a prediction's score backwards over neurons and pixels.",
    "m": "The number of important neurons that are combined. Every further one multiplies the number of cells.",
    "Mutant": "A network with a small change of its weights. A test kills it that the network classifies rightly and "
    "it does not.",
    "Neuron": "One output of a layer, also called unit; in a convolution a channel, summed over positions.",
    "NLC": "NeuraL coverage: the spread of each layer's activations. Its critics (arXiv 2601.08729) note that it can "
    "fall when tests are added; as published, it also depends on their order.",
    "Relevance": "The part of a prediction's score that a neuron or pixel receives: positive for, negative against.",
    "Silhouette": "How well values fit their own cluster compared with the next one, from -1 to 1.",
    "Surprise": "How unlike the training inputs a test's activations are.",
    "Test set": "Inputs with their true classes on which a network is tested.",
}
"""What a term means, by the term."""

_search = component("idc_search", "search", "search")


def draw(setup: Setup | None, *, parts: bool = True) -> None:
    """Draw the buttons that search and copy the address; with `parts`, those of a setup are found."""
    tests = _find_tests(setup) if setup is not None and parts else None
    _search(
        key=_KEY,
        data={
            "entries": _entries(setup, parts=parts),
            "keys": _SHORTCUTS,
            "tests": tests,
            "searchable": setup is not None and parts,
        },
        on_chosen_change=_open,
        on_sought_change=_seek,
    )


def _seek() -> None:
    """Keep what tests are searched for."""
    st.session_state[_SOUGHT] = str(st.session_state[_KEY].sought)


def _find_tests(setup: Setup) -> dict[str, object] | None:
    """Return the tests whose classes or text hold every word that was asked for; None where nothing was.

    The filter of the tests counts. Nothing is found while the setup cannot be opened: the page says why.
    """
    text = st.session_state.get(_SOUGHT, "")
    if not text or st.session_state.get(jobs.STOPPED):
        return None
    try:
        view = open_view(setup)
    except (CancelledError, IdcError):
        return None
    return _held(view.key, setup, text, view)


@st.cache_data(max_entries=16, show_spinner=False)
def _held(key: tuple[object, ...], setup: Setup, text: str, _view: View) -> dict[str, object]:
    """Return the tests of a view that hold every word of a text, looked for once: pages run again at every click."""
    words, texts = text.lower().split(), _view.test.texts
    lines = {int(place): f"{answer(_view, place)} {texts[place] if texts else ''}".lower() for place in _view.chosen}
    places = [place for place, line in lines.items() if all(word in line for word in words)]
    shown = [_entry("test", _shown(_view, place), str(_view.test.ids[place])) for place in places[:_MOST_TESTS]]
    return {"text": text, "entries": shown, "total": len(places)}


def _shown(view: View, place: int) -> str:
    """Write a test with its answers, and the first words of a text."""
    words = view.test.texts[place].split() if view.test.texts else []
    return " ".join((f"Test {caption(view, place)}", *words[:_WORDS_SHOWN]))


def _entries(setup: Setup | None, *, parts: bool = True) -> list[dict[str, str]]:
    """Return all that can be found by its name: its kind, what is shown, and what is opened or said."""
    listed = [_entry("page", page.title, page.name) | _lack(page.name, setup) for page in PAGES.values()]
    for page in PAGES.values():
        lack = _lack(page.name, setup)
        listed += [
            _entry("tab", f"{page.title}: {title}", f"{page.name} {tab}") | lack for tab, title in page.tabs.items()
        ]
    if setup is not None and parts:
        from idc_core.datasets import DATASETS
        from idc_core.models import MODELS

        listed += [_entry("layer", f"Layer {name}", name) for name in MODELS[setup.model].layers]
        listed += [_entry("class", f"Class {name}", name) for name in DATASETS[setup.data].class_names]
        listed += [
            _entry("neuron", f"Neuron {number} ({name})", str(number)) for number, name in neuron_names(setup).items()
        ]
        listed += [_entry(kind, label, name) for kind, labels in _methods().items() for name, label in labels.items()]
    if setup is not None:
        listed += [_entry("network", one.label, name) for name, one in visitor.models().items()]
        listed += [_entry("data set", one.label, name) for name, one in visitor.datasets().items()]
        listed += [_entry("report", f"{one.line}, {one.date}", id) for id, one in report.made_before().items()]
    listed += [_entry("story", f"Present: {title}", id) for id, title in presenting.stories().items()]
    listed += [_entry("action", label, label) for label in (*_ACTIONS, *_THEMES)]
    return listed + [{"kind": "term", "label": term, "says": meaning} for term, meaning in _GLOSSARY.items()]


def _methods() -> dict[str, dict[str, str]]:
    """Return labels by kind and name, once they are known: who defines these needs torch, and a page does not."""

    def look(report: Progress) -> dict[str, dict[str, str]]:
        from idc_core.coverage import CRITERIA
        from idc_core.perturbation.attacks import ATTACKS
        from idc_core.perturbation.transforms import TRANSFORMS

        return {
            "criterion": {name: kind.card.label for name, kind in CRITERIA.items()},
            "attack": {name: entry.label for name, entry in ATTACKS.items()},
            "transform": {name: entry.label for name, entry in TRANSFORMS.items()},
        }

    job = shelf().job(JobKind("labels", is_light=True, lives="here"), (), look)
    labels: dict[str, dict[str, str]] = job.result() if job.wait(_SOON_S) and job.done else {}
    return labels


def _entry(kind: str, label: str, value: str) -> dict[str, str]:
    return {"kind": kind, "label": label, "value": value}


def _lack(page: str, setup: Setup | None) -> dict[str, str]:
    """Return what a page needs and a setup does not have, in short and as a sentence; nothing where it applies."""
    need = unmet(page, setup)
    return {"needs": need.short, "reason": need.reason} if need else {}


def _open() -> None:
    """Open what was chosen."""
    chosen = st.session_state[_KEY].chosen
    _OPENED[chosen["kind"]](str(chosen["value"]))


def _tab(value: str) -> None:
    page, tab = value.split()
    go_to(page)
    tabs.open_at(page, tab)


def _neuron(number: str) -> None:
    select(neuron=number)
    asked.ask_for("neuron")
    _tab("neurons neuron")


def _test(number: str) -> None:
    select(input=number)
    asked.ask_for("input")
    go_to("relevance")


def _network(name: str) -> None:
    change_setup(model=name, data="", layer="")
    go_to("overview")


def _data_set(name: str) -> None:
    """Look at tests: with the present network where it takes them, else with the first one that was trained on them."""
    models = visitor.models()
    present = parse({"model": address.read("model")}).model
    takes = [present] if name in fitting_data(models[present]) else []
    takes += [model for model, entry in models.items() if entry.dataset == name]
    if not takes:
        go_to("library")
        return
    if takes[0] != present:
        change_setup(model=takes[0], layer="")
    change_setup(data=name)
    go_to("overview")


def _attack(name: str) -> None:
    address.keep("attack", name)
    st.session_state["attack"] = name
    go_to("adversarial")


def _transform(name: str) -> None:
    keep_names([*chosen_names(), name])
    go_to("testsets")


def _make_report() -> None:
    report.ask(parse({name: address.read(name) for name in vars(DEFAULT)}))
    go_to("overview")


def _report(id: str) -> None:
    report.reopen(id)
    go_to("overview")


_ACTIONS: dict[str, Callable[[], None]] = {
    "Make report": _make_report,
    "Take the tour": tour.start,
    "Clear filter": partial(change_setup, **dict.fromkeys(FILTER, "")),
}
"""Actions by what they are called."""

_THEMES = ("Dark theme", "Light theme")
"""Actions that the browser does by itself."""

_OPENED: dict[str, Callable[[str], None]] = {
    "page": go_to,
    "tab": _tab,
    "action": lambda name: _ACTIONS[name](),
    "story": presenting.play,
    "report": _report,
    "network": _network,
    "data set": _data_set,
    "layer": lambda name: select(layer=name),
    "class": test_filter.choose_class,
    "criterion": lambda _: go_to("criteria"),
    "attack": _attack,
    "transform": _transform,
    "neuron": _neuron,
    "test": _test,
}
"""What opens a thing of each kind, called with its name or number."""

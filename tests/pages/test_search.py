"""What the search finds, and where it leads."""

import pytest

from idc_core.stories.story import shipped
from studio.jobs.jobs import shelf
from studio.jobs.results import open_view
from studio.shell import search, tabs
from studio.shell.pages import PAGES
from studio.state.setup import DEFAULT, parse
from tests.pages.reading import open_page


def labels(setup, kind):
    return [one["label"] for one in search._entries(setup) if one["kind"] == kind]


def test_pages_tabs_and_terms_are_found_before_anything_is_loaded():
    assert labels(None, "page") == [page.title for page in PAGES.values()]
    assert len(labels(None, "tab")) == sum(len(page.tabs) for page in PAGES.values())
    assert "Clusters: Map of the tests" in labels(None, "tab")
    assert "Silhouette" in labels(None, "term")
    assert labels(None, "layer") == []


def test_layers_classes_and_criteria_are_those_of_the_setup():
    assert labels(DEFAULT, "layer")[-2:] == ["Layer fc2", "Layer logits"]
    assert labels(DEFAULT, "class") == [f"Class {number}" for number in range(10)]
    (job,) = shelf()._jobs["labels"].values()
    assert job.wait(60)  # it imports torch, for which no page waits
    assert "Importance-Driven Coverage" in labels(DEFAULT, "criterion")
    assert {"PGD", "JSMA"} <= set(labels(DEFAULT, "attack"))
    assert {"Rotation", "JPEG"} <= set(labels(DEFAULT, "transform"))


def test_networks_data_sets_and_actions_are_found():
    assert "ViT on CIFAR-10" in labels(DEFAULT, "network")
    assert "MNIST" in labels(DEFAULT, "data set")
    assert {"Make report", "Dark theme"} <= set(labels(None, "action"))


@pytest.mark.parametrize(
    ("setup", "text"),
    [
        (DEFAULT, "3 \u2192 5"),
        (parse({"classes": "3"}), "\u2192 5"),
        pytest.param(parse({"model": "textcnn-20newsgroups"}), "graphics Screen", marks=pytest.mark.slow),
        (DEFAULT, "no such words"),
    ],
)
def test_tests_are_found_by_their_classes_and_words(monkeypatch, request, setup, text):
    if setup.model != DEFAULT.model:
        request.getfixturevalue("data_folder")
    monkeypatch.setitem(search.st.session_state, search._SOUGHT, text)
    found = search._find_tests(setup)
    view = open_view(setup)
    names = [view.train.class_names[one] for one in view.analysis.predictions]
    true = [view.test.class_names[one] for one in view.test.targets]
    texts = view.test.texts or [""] * len(view.test)
    whole = [f"{one} \u2192 {other} {words}".lower() for one, other, words in zip(true, names, texts, strict=True)]
    wanted = [int(place) for place in view.chosen if all(word in whole[place] for word in text.lower().split())]
    assert found["total"] == len(wanted)
    assert bool(wanted) == (text != "no such words")
    shown = wanted[: search._MOST_TESTS]
    assert [one["value"] for one in found["entries"]] == [str(view.test.ids[place]) for place in shown]
    assert all(len(one["label"].split()) <= search._WORDS_SHOWN + 8 for one in found["entries"])


def test_nothing_is_searched_before_it_is_asked_for(monkeypatch):
    monkeypatch.setattr(search, "open_view", lambda setup: pytest.fail("the setup was opened"))
    assert search._find_tests(DEFAULT) is None


@pytest.mark.parametrize(
    ("kind", "value", "page", "said"),
    [
        ("page", "layers", "layers", {}),
        ("tab", "clusters map", "clusters", {tabs.TAB: "map"}),
        ("layer", "fc1", "coverage", {"layer": "fc1"}),
        ("class", "3", "coverage", {"classes": "3"}),
        ("neuron", "8", "neurons", {"neuron": "8"}),
        ("test", "519", "relevance", {"input": "519"}),
        ("criterion", "nc", "criteria", {}),
        ("network", "lenet1-digits", "overview", {"model": "lenet1-digits"}),
        ("data set", "digits", "overview", {}),
        ("attack", "pgd", "adversarial", {"attack": "pgd"}),
        ("action", "Take the tour", "overview", {"tour": "1"}),
        ("story", "lesson", "stories", {"story": "lesson", "slide": "1"}),
    ],
)
def test_what_is_chosen_is_opened(monkeypatch, kind, value, page, said):
    app = open_page("coverage")
    with monkeypatch.context() as patch:
        patch.setattr(search, "_search", lambda **given: given["on_chosen_change"]())
        patch.setattr(search, "_open", lambda: search._OPENED[kind](value) if "done" not in asked else None)
        asked: set[str] = set()
        app.run()
        asked.add("done")
    app.run()
    assert not app.exception
    sentence = shipped()[value].slides[0].sentence if kind == "story" else PAGES[page].question
    assert app.title[0].value == sentence
    assert {name: app.query_params[name] for name in said} == said

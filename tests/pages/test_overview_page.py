"""The Overview page: what its headline means, where its findings lead, and the tests that argue for them."""

import json
from dataclasses import replace
from urllib.parse import parse_qs

import numpy as np
import pytest

from idc_core.errors import CancelledError
from idc_core.report import sentences
from studio.jobs.overview import OVERVIEWS, snapshot, summarise
from studio.jobs.results import open_view
from studio.overview import shipped, worst_tests
from studio.overview.result import _PLACES, _findings, _headline
from studio.shell.pages import PAGES
from studio.state.setup import DEFAULT, default_setup, parse
from studio.text import cell_name, literal, percent
from tests.pages.reading import read_page, text


@pytest.fixture(scope="module")
def view():
    return open_view(DEFAULT)


def links(app):
    """Pages that findings lead to, with the addresses' parameters."""
    found = [(one.proto.page, parse_qs(one.proto.query_string, keep_blank_values=True)) for one in app.get("page_link")]
    return [(page, {name: values[0] for name, values in query.items()}) for page, query in found if query]


def cells_of(view, positions):
    activations = view.train_traces.activations[view.setup.layer][positions][:, view.analysis.important]
    cells = [
        tuple(int(np.abs(values - one).argmin()) for values, one in zip(view.analysis.centroids, row, strict=True))
        for row in activations.astype(np.float64)
    ]
    return set(cells)


@pytest.mark.parametrize("texts", [{}, {"classes": "3,5", "m": "4"}])
def test_the_headline_says_what_is_within_reach_beside_chance(texts):
    view = open_view(parse(texts))
    wanted = [i for i, name in enumerate(view.train.class_names) if name in view.setup.classes or not texts]
    train = np.flatnonzero(np.isin(view.train.targets, wanted))
    reached, covered = cells_of(view, train), {tuple(cell) for cell in view.table.cells.tolist()}
    said = _headline(summarise(view))
    assert said.startswith(f"**Untested combinations that training inputs reach: {len(reached - covered)}, and ")
    assert "for as many inputs drawn at random" in said
    within = len(reached | covered)
    assert f"cover {len(covered)} of {view.table.total} combinations" in said
    assert f"IDC is {percent(len(covered) / view.table.total)}, and {percent(len(covered) / within)} of the " in said
    assert said.endswith(f"of the {within} within reach.")


def test_tests_chosen_by_their_predictions_are_like_no_training_inputs():
    result = summarise(open_view(parse({"predicted": "3"})))
    assert result.training is None
    assert {one.subject for one in result.findings} <= {"errors-only"}
    table = result.table
    assert _headline(result).startswith(f"**Covered: {table.covered} of {table.total} cells (")


def test_where_nothing_stands_out_the_page_says_so(view):
    app = read_page("overview")
    result = summarise(view)
    assert not _findings(result)
    looks = sum(one.looks for one in result.findings if one.subject != "untested")
    assert f"Nothing stands out among {looks} comparisons" in text(app)
    assert not links(app)


def standing_out(view, *subjects):
    """An overview of which these things stand out, as if their probabilities were tiny."""
    result = summarise(view)
    return replace(result, findings=tuple(replace(one, p=1e-9) for one in result.findings if one.subject in subjects))


@pytest.mark.parametrize("subject", [one for one in _PLACES if one != sentences.UNTESTED])
def test_a_finding_opens_its_page_on_its_subject(view, open_page, subject):
    result = standing_out(view, subject)
    (one,), (told,) = _findings(result), sentences.told(result)
    assert one.sentence == literal(told.sentence)
    assert not told.sentence.endswith(("as expected.", "too few to tell."))
    assert one.query.get("tab", "") in {*PAGES[one.page].tabs, ""}
    app = open_page(one.page, **one.query)
    assert not app.exception
    if subject == "cluster":
        assert f" of neuron {one.query['neuron']}:" in told.sentence
        assert app.selectbox(key="clustered-neuron").value == int(one.query["neuron"])
    if subject == "pair":
        true, predicted = map(int, one.query["pair"].split("-"))
        assert told.sentence.startswith(f"Tests of class {true} classified as {predicted}: ")
        assert (app.selectbox(key="pair-first").value, app.selectbox(key="pair-second").value) == (true, predicted)
    if subject == "errors-only":
        lonely = [cell_name(view.table.cells[row]) for row in view.errors_only]
        assert one.query["cell"] in lonely


def test_every_finding_has_its_place(view):
    assert {one.subject for one in summarise(view).findings} == set(_PLACES)


def test_the_misclassified_tests_are_shown(view, open_page):
    found = worst_tests._find(view)
    wrong = view.test.ids[~view.analysis.correct].tolist()
    assert {tile["test"] for tile in found.tiles} < set(wrong)
    assert f"{len(found.tiles)} of {len(wrong)} tests are shown" in found.note
    alone = [cell_name(view.table.cells[row]) for row in view.errors_only]
    cells = {int(view.test.ids[i]): cell_name(view.analysis.assignments[i]) for i in range(len(view.test))}
    lonely = sorted((cells[number] in alone for number in wrong), reverse=True)
    assert [cells[tile["test"]] in alone for tile in found.tiles] == lonely[: len(found.tiles)]
    app = open_page("overview", m="5")
    sent = [json.loads(one.proto.json) for one in app.get("bidi_component") if '"tiles"' in one.proto.json]
    assert len(sent[0]["tiles"]) == len(found.tiles)
    assert {tile["test"] for tile in sent[0]["tiles"]} < set(wrong)
    assert "Misclassified tests" in text(app)


def test_the_files_are_the_live_results(view):
    assert not shipped.differences(view), "run `python -m studio.overview` to write the Overview's files anew"


def test_files_that_differ_are_told(view, monkeypatch, tmp_path):
    monkeypatch.setattr(shipped, "OVERVIEWS", tmp_path)
    assert shipped.differences(view) == ["result.json is missing", "tests.json is missing", "tiles.json is missing"]
    shipped.write(view)
    file = tmp_path / DEFAULT.model / "result.json"
    file.write_text(file.read_text("utf-8").replace('"tests": 540', '"tests": 541'), encoding="utf-8")
    assert shipped.differences(view) == ["result/overview/tests: 541 is kept, 540 is live"]


@pytest.mark.parametrize(
    "name", ["lenet1-digits", "lenet4-digits", pytest.param("charlstm-sql", marks=pytest.mark.slow)]
)
def test_files_of_other_networks_are_the_live_results(name):
    assert not shipped.differences(shipped.view_of(name)), f"run `python -m studio.overview {name}`"


def test_every_shipped_network_opens_at_once():
    lines = {name: snapshot(default_setup(name)).line for name in shipped.names()}
    assert len(lines) == 18
    assert lines["vit-cifar10"] == "ViT · cifar10 · layer norm · m = 6 · 10,000 tests"
    size = sum(file.stat().st_size for file in OVERVIEWS.rglob("*.json"))
    assert size < 3_000_000


def test_a_shipped_network_is_painted_from_its_files(open_page, monkeypatch):
    def stop(setup):
        raise CancelledError("This would take long.")

    monkeypatch.setattr("studio.shell.frame.open_view", stop)
    for page, said in (("overview", "Misclassified tests"), ("coverage", "The tests cover 63 of 64 combinations")):
        app = open_page(page, model="vit-cifar10")
        assert not app.exception
        assert "ViT · cifar10 · layer norm · m = 6 · 10,000 tests" in text(app)
        assert said in text(app)


def test_tests_with_classes_of_their_own_have_no_misclassified_ones(small_data, open_page):
    app = open_page("overview", data="fashion-mnist")
    assert not app.exception
    assert "Misclassified tests" not in text(app)
    assert "Untested combinations that training inputs reach" in text(app)

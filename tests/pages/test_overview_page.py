"""The Overview page: what its headline means, where its findings lead, and the tests that argue for them."""

import base64
import io
import json
from urllib.parse import parse_qs

import numpy as np
import pytest
from PIL import Image

from studio.jobs.overview import summarise
from studio.jobs.results import open_view
from studio.overview import worst_tests
from studio.overview.result import _findings, _headline
from studio.shell.pages import PAGES
from studio.state.setup import DEFAULT, parse
from studio.text import cell_name
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
def test_the_headline_compares_with_training_inputs(texts):
    view = open_view(parse(texts))
    wanted = [i for i, name in enumerate(view.train.class_names) if name in view.setup.classes or not texts]
    train = np.flatnonzero(np.isin(view.train.targets, wanted))
    reached, covered = cells_of(view, train), {tuple(cell) for cell in view.table.cells.tolist()}
    missed = view.table.total - len(covered)
    said = _headline(summarise(view))
    assert f"**{missed} of {view.table.total} combinations" in said
    assert f" {len(reached - covered)} of the {missed} occur" in said
    assert f"among the {len(train):,} training inputs. {len(view.chosen)} training inputs drawn at random" in said
    assert said.endswith(f"in 20 draws), the tests {len(covered)}.")


def test_findings_open_their_page_on_their_subject(view):
    app = read_page("overview")
    found = _findings(summarise(view))
    assert [one.sentence for one in found] == [one.proto.label for one in app.get("page_link")][: len(found)]
    led = links(app)
    lonely = cell_name(view.table.cells[view.errors_only[0]])
    assert led[0] == ("coverage", {"tab": "grid", "cell": lonely})
    assert f"Cell {lonely} is reached only by misclassified tests." in found[0].sentence
    for (page, query), one in zip(led, found, strict=True):
        assert page == one.page
        assert query.get("tab", "") in {*PAGES[page].tabs, ""}
        if "neuron" in query:
            assert f"euron {query['neuron']} " in one.sentence.replace(".", " ").replace(":", " ")
    assert {page for page, _ in led} == {"coverage", "clusters", "neurons"}


def test_a_finding_is_found_selected(open_page):
    page, query = links(read_page("overview"))[2]
    app = open_page(page, **query)
    assert app.selectbox(key="clustered-neuron").value == int(query["neuron"])
    app = open_page("neurons", neuron="8", cluster="")
    assert "cluster" not in app.query_params


def test_the_misclassified_tests_are_shown(view, open_page):
    found = worst_tests._find(view)
    wrong = view.test.ids[~view.analysis.correct].tolist()
    assert sorted(tile["test"] for tile in found.tiles) == sorted(wrong)
    alone = [cell_name(view.table.cells[row]) for row in view.errors_only]
    cells = {int(view.test.ids[i]): cell_name(view.analysis.assignments[i]) for i in range(len(view.test))}
    assert [cells[tile["test"]] in alone for tile in found.tiles] == sorted(
        (cells[number] in alone for number in wrong), reverse=True
    )
    app = open_page("overview", m="5")
    sent = [json.loads(one.proto.json) for one in app.get("bidi_component") if '"tiles"' in one.proto.json]
    assert sorted(tile["test"] for tile in sent[0]["tiles"]) == sorted(wrong)
    assert "Misclassified tests" in text(app)


def test_the_tests_in_the_file_are_the_live_ones(view):
    kept, live = json.loads(worst_tests._KEPT.read_text(encoding="utf-8")), worst_tests._find(view)
    again = "run `python -m studio.overview` to write the Overview's files anew"
    assert json.loads(json.dumps(live.tiles)) == kept["tiles"], again
    assert live.note == kept["note"], again
    pictures = []
    for sheet in (kept["sheet"], live.sheet):
        content = base64.b64decode(sheet.pop("address").partition(",")[2])
        pictures.append(np.asarray(Image.open(io.BytesIO(content))))
    assert kept["sheet"] == live.sheet
    np.testing.assert_array_equal(*pictures, err_msg=again)


def test_tests_with_classes_of_their_own_have_no_misclassified_ones(small_data, open_page):
    app = open_page("overview", data="fashion-mnist")
    assert not app.exception
    assert "Misclassified tests" not in text(app)
    assert "training inputs." in text(app)

"""Coverage, Fill the grid: the ranked list, decisions that a second visit finds, and what accepted inputs change."""

import io
import itertools
import zipfile

import numpy as np
import pytest

from idc_core.filling import change_by
from idc_core.store.decisions import DECISIONS, Decisions, decided
from idc_core.suites import open_saved, saved_suites
from studio.coverage import accepted, decisions, filling
from studio.jobs.jobs import shelf
from studio.jobs.overview import summarise
from studio.jobs.results import open_view
from studio.state import visitor
from studio.state.setup import DEFAULT
from studio.text import cell_name, percent
from tests.pages.reading import text

pytestmark = pytest.mark.usefixtures("few")


@pytest.fixture(scope="module")
def view():
    return open_view(DEFAULT)


@pytest.fixture(name="opened")
def opened_fixture(open_page):
    """The list with inputs for all empty cells, whether they were made before or not."""

    def opened(**parameters):
        app = open_page("coverage", tab="fill", **parameters)
        for button in [one for one in app.button if one.key == "fill-all-start"]:
            button.click().run()
        assert not app.exception
        return app

    return opened


@pytest.fixture
def undecided(opened, view):
    """The list on which nothing is decided, and its inputs."""
    for path, *_ in DECISIONS.state():
        path.unlink()
    app = opened()
    return app, shelf().finished(filling._FILLINGS, filling._planned(view).key).result()


def kept(view) -> Decisions:
    return decided(decisions._grid(view))


def listed(app):
    return next(frame.value for frame in app.dataframe if "empty cell" in frame.value.columns)


def closest_to(app) -> str:
    return next(one.value for one in app.header if one.value.startswith("Tests closest to cell ")).split()[-1]


def made(table, least=1) -> list[str]:
    """Cells with inputs, as they are listed."""
    return table["empty cell"][table["inputs made"] >= least].tolist()


def tuple_of(cell: str) -> tuple[int, ...]:
    return tuple(map(int, cell.split("-")))


def test_empty_cells_are_listed_with_what_is_beside_them(open_page, view):
    app = open_page("coverage", tab="fill")
    table = listed(app)
    covered = {tuple(cell): row for row, cell in enumerate(view.table.cells.tolist())}
    training = dict(zip(summarise(view).training.cells, summarise(view).training.counts, strict=True))
    rows = {}
    for cell in itertools.product(*map(range, view.sizes)):
        near = [row for one, row in covered.items() if sum(abs(a - b) for a, b in zip(one, cell, strict=True)) == 1]
        if cell not in covered and (near or cell in training):
            wrong, tests = int(view.table.wrong[near].sum()), int(view.table.counts[near].sum())
            rows[cell_name(cell)] = (training.get(cell, 0), wrong, tests, len(near))
    columns = ("training inputs", "misclassified beside", "tests beside", "covered neighbours")
    found = zip(*(table[name] for name in columns), strict=True)
    assert dict(zip(table["empty cell"], found, strict=True)) == rows
    assert table["reached by"].tolist() == ["training inputs"] * len(training) + ["nothing yet"] * (
        len(rows) - len(training)
    )
    empty = view.table.total - len(covered)
    assert f"**Empty: {empty} of {view.table.total} cells (" in text(app)
    assert f" Training inputs reach {len(training)} of them." in text(app)
    assert closest_to(app) == table["empty cell"][0]


def test_the_list_is_ranked_and_filtered_and_the_address_says_how(open_page, view):
    app = open_page("coverage", tab="fill")
    every = listed(app)
    app.segmented_control(key="gaps-by").set_value("errors").run()
    assert listed(app)["misclassified beside"].is_monotonic_decreasing
    app.segmented_control(key="gaps-by").set_value("training").run()
    assert listed(app)["training inputs"].is_monotonic_decreasing
    app.button_group(key="gaps-reached").set_value(["nothing"]).run()
    assert not app.exception
    assert set(listed(app)["empty cell"]) == set(every["empty cell"][every["reached by"] == "nothing yet"])
    said = {name: "".join(app.query_params[name]) for name in ("gaps-by", "gaps-reached")}
    assert said == {"gaps-by": "training", "gaps-reached": "nothing"}
    again = open_page("coverage", **said)
    assert listed(again)["empty cell"].tolist() == listed(app)["empty cell"].tolist()
    none = open_page("coverage", tab="fill", **{"gaps-decided": "later"})
    assert "No empty cell passes this filter." in text(none)
    assert not none.exception


def test_what_training_inputs_say_nothing_of_is_not_said(open_page):
    app = open_page("coverage", tab="fill", answers="right")
    assert not app.exception
    assert "**Empty: " in text(app)
    assert not {"reached by", "training inputs"} & set(listed(app).columns)
    assert [one for one in app.button_group if one.key == "gaps-reached"] == []


@pytest.mark.slow
def test_accepted_rejected_and_relabelled_inputs_are_found_at_a_second_visit(undecided, opened, view):
    app, filling = undecided
    first, second, third = made(listed(app), 2)[:3]
    digests = {
        cell: [filling.digests[row] for row in filling.by_cell[tuple_of(cell)]] for cell in (first, second, third)
    }
    app.text_input(key="cell").set_value(first).run()
    app.button(key="made-reject").click().run()
    assert closest_to(app) == first, "its next input is offered"
    assert app.button(key="made-accept").label == "Accept input 2"
    app.button(key="made-accept").click().run()
    assert closest_to(app) != first, "the next cell of the list is opened"
    app.text_input(key="cell").set_value(second).run()
    other = (int(filling.targets[filling.by_cell[tuple_of(second)][0]]) + 1) % 10
    app.selectbox(key=f"made-class-{digests[second][0]}").set_value(other).run()
    app.button(key="made-accept").click().run()
    app.text_input(key="cell").set_value(third).run()
    app.button(key="gap-later").click().run()
    assert not app.exception
    again = opened()
    said = dict(zip(listed(again)["empty cell"], listed(again)["decision"], strict=True))
    assert {said[cell] for cell in (first, second)} == {"accepted"}
    assert said[third] == "later"
    assert set(said.values()) == {"accepted", "later", ""}
    again.text_input(key="cell").set_value(second).run()
    assert f"Decision: accepted as {other}. {len(digests[second])} made for it, 0 rejected." in text(again)
    again.button(key="gap-undo").click().run()
    assert "Decision: undecided." in text(again)
    only = opened(**{"gaps-decided": "accepted"})
    assert listed(only)["empty cell"].tolist() == [first]
    held = kept(view)
    assert held.inputs[digests[first][0]] is None
    assert held.inputs[digests[first][1]] is not None


def test_what_accepted_inputs_change_is_what_the_engine_says(undecided, view):
    app, filling = undecided
    assert "None yet." in text(app)
    app.button(key="accept-all").click().run()
    assert not app.exception
    held = kept(view).inputs
    which = np.array([digest in held for digest in filling.digests])
    assert which.sum() == len(np.unique(filling.cell[filling.usable]))
    labels = filling.labels[which]
    change = change_by(
        view.table,
        filling.cells[filling.cell[which]],
        filling.predictions[which] == labels,
        summarise(view).reach(filling.valid_codes),
        summarise(view).training.inputs,
    )
    shown = {metric.label: (metric.value, metric.delta) for metric in app.metric}
    covered, after = change.covered
    assert shown["IDC"] == (percent(after / change.total), f"before {percent(covered / change.total)}")
    before = percent(change.accuracy[0])
    assert shown["Accuracy"] == (percent(change.accuracy[1]), f"before {before}")
    assert shown["Chance of a new cell"][0] == percent(change.chance[1].value)
    for one in change.findings:
        assert one.sentence in text(app)


def test_accepted_inputs_are_kept_exported_and_offered_to_robustness(undecided, view, monkeypatch):
    offered, real = {}, accepted.st.download_button

    def offer(label, data, *rest, **more):
        offered[label] = data
        return real(label, data, *rest, **more)

    monkeypatch.setattr(accepted.st, "download_button", offer)
    app, filling = undecided
    app.button(key="accept-all").click().run()
    app.button(key="keep-filled").click().run()
    assert not app.exception
    (saved,) = saved_suites(view.test).values()
    suite = open_saved(saved.name)
    held = kept(view).inputs
    which = np.array([digest in held for digest in filling.digests])
    np.testing.assert_array_equal(suite.take(range(len(suite))), filling.inputs[which])
    np.testing.assert_array_equal(suite.targets, filling.labels[which])
    (link,) = [one.proto for one in app.get("page_link") if one.proto.page == "robustness"]
    assert f"own-suite={saved.name}" in link.query_string
    with zipfile.ZipFile(io.BytesIO(offered["Class folders (zip)"]())) as archive:
        assert len(archive.namelist()) == len(suite)
    with np.load(io.BytesIO(offered["Accepted inputs (npz)"]())) as arrays:
        np.testing.assert_array_equal(arrays["targets"], suite.targets)


def test_decisions_of_who_may_keep_nothing_end_with_the_session(undecided, opened, monkeypatch):
    monkeypatch.setattr(visitor, "uploads_refused", lambda: "Not here.")
    app = opened()
    cell = listed(app)["empty cell"][0]
    app.button(key="gap-not-needed").click().run()
    assert not app.exception
    assert dict(zip(listed(app)["empty cell"], listed(app)["decision"], strict=True))[cell] == "not needed"
    assert "Decisions are kept until this window is closed." in text(app)
    assert set(listed(opened())["decision"]) == {""}

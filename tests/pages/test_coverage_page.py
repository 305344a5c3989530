"""The Coverage page: zooming and its address, what is behind a cell, and the smallest set of tests."""

import itertools
import json
import re

import numpy as np
import pytest

from idc_core.figures.grid import MOST_CELLS
from studio.coverage.cell_details import _CELL, _LISTED, _NEURONS, SHOWN
from studio.jobs.results import open_view
from studio.state.setup import DEFAULT, parse
from studio.text import cell_name, percent

HUGE = {"m": "12", "k": "4"}


@pytest.fixture(scope="module")
def view():
    return open_view(DEFAULT)


@pytest.fixture(scope="module")
def huge():
    return open_view(parse(HUGE))


def grids(app) -> list[dict]:
    return [json.loads(chart.proto.spec) for chart in app.get("echarts_chart")]


def shape(app) -> tuple[int, int]:
    """Rows and columns of the first grid."""
    grid = grids(app)[0]
    return len(grid["yAxis"][0]["data"]), len(grid["xAxis"][0]["data"])


def title(app) -> str:
    return grids(app)[0]["title"]["text"].replace("\n", " ")


def listed(app):
    """The table of covered cells, unfolded."""
    app.session_state[_LISTED] = True
    app.run()
    return next(frame.value for frame in app.dataframe if "only misclassified" in frame.value.columns)


def frame(app) -> tuple[int, int] | None:
    """Row and column of the framed tile; None where no tile is framed."""
    styles = [one.proto.body for one in app.get("html") if "::after" in one.proto.body]
    found = [re.findall(r"px \+ (\d+) \*", style) for style in styles]
    return (int(found[0][1]), int(found[0][0])) if found else None


def place(app, cell) -> tuple[int, int]:
    """Row and column of a cell of six neurons."""
    grid = grids(app)[0]
    return grid["yAxis"][0]["data"].index(cell[:5]), grid["xAxis"][0]["data"].index(cell[6:])


def cell_heading(app) -> str:
    return next(one.value for one in app.header if one.value.startswith("Cell "))


def words(app) -> str:
    kinds = (app.markdown, app.caption, app.warning)
    return "\n".join(str(element.value) for kind in kinds for element in kind)


def parameter(app, name) -> str:
    """What the address says under a name."""
    return "".join(app.query_params.get(name, ""))


def test_every_covered_cell_is_listed_and_errors_come_first(open_page, view):
    table = view.table
    app = open_page("coverage")
    assert not any("only misclassified" in frame.value.columns for frame in app.dataframe)
    frame = listed(app)
    assert sorted(frame["cell"]) == sorted(cell_name(cell) for cell in table.cells)
    lonely = {cell_name(cell) for cell in table.cells[table.wrong == table.counts]}
    assert lonely
    assert set(frame["cell"][: len(lonely)]) == lonely
    assert frame["only misclassified"].tolist() == ["\u00d7"] * len(lonely) + [""] * (len(frame) - len(lonely))
    shares = frame["misclassified (%)"].tolist()
    assert shares == sorted(shares, reverse=True)
    assert shares == pytest.approx((100 * frame["misclassified"] / frame["tests"]).tolist())


def test_holding_a_neuron_shows_only_its_cells_and_stays_in_the_address(open_page, view):
    first, second = view.analysis.important[:2]
    app = open_page("coverage")
    app.selectbox(key="fix-1").set_value(1).run()
    app.selectbox(key="fix-0").set_value(0).run()
    assert not app.exception
    assert parameter(app, "zoom") == f"fc2~{first}-0~{second}-1"
    inside = [cell for cell in view.table.cells.tolist() if cell[:2] == [0, 1]]
    assert sorted(listed(app)["cell"]) == sorted(map(cell_name, inside))
    left = view.table.total // (view.sizes[0] * view.sizes[1])
    where = f"neurons {first}, {second} in clusters 0-1"
    assert title(app) == f"Covered with {where}: {len(inside)} of {left} cells ({percent(len(inside) / left)})"
    again = open_page("coverage", zoom=parameter(app, "zoom"))
    assert title(again) == title(app)
    app.button(key="crumb-0").click().run()
    assert parameter(app, "zoom") == f"fc2~{first}-0"
    app.selectbox(key="fix-1").set_value(1).run()
    app.button(key="crumb-all").click().run()
    assert parameter(app, "zoom") == ""
    assert len(listed(app)) == view.table.covered
    assert not [button for button in app.button if button.key.startswith("crumb")]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "zoom", ["fc1~18-0", "fc2~18-9", "fc2~999-0", "fc2~18", "nonsense", "fc2~-~x-1", "fc2~18-" + 5000 * "9"]
)
def test_an_address_that_holds_nothing_sensible_shows_everything(open_page, view, zoom):
    app = open_page("coverage", zoom=zoom, rows=zoom, columns=zoom)
    assert not app.exception
    assert len(listed(app)) == view.table.covered
    assert shape(app)[0] * shape(app)[1] == (view.table.total if zoom != "fc2~18" else 2)


def test_neurons_on_rows_and_columns_are_the_persons_choice(open_page, view):
    important = view.analysis.important
    app = open_page("coverage")
    assert app.multiselect(key="rows").value == [0, 1, 2]
    assert app.selectbox(key="fix-0").options[:2] == ["any", "0 (lowest)"]
    app.multiselect(key="columns").set_value([5]).run()
    app.multiselect(key="rows").set_value([3, 0]).run()
    assert not app.exception
    assert parameter(app, "rows") == f"fc2~{important[3]}~{important[0]}"
    assert shape(app) == (view.sizes[3] * view.sizes[0], view.sizes[5])
    folded = view.sizes[1] * view.sizes[2] * view.sizes[4]
    assert f"Each tile is {folded} cells" in words(app)
    again = open_page("coverage", rows=parameter(app, "rows"), columns=parameter(app, "columns"))
    assert grids(again)[0]["yAxis"] == grids(app)[0]["yAxis"]
    app.multiselect(key="rows").set_value([]).run()
    app.multiselect(key="columns").set_value([]).run()
    assert shape(app) == (np.prod(view.sizes[:3]), np.prod(view.sizes[3:]))
    assert "rows" not in app.query_params


def test_sixteen_million_cells_open_folded_and_three_looks_deep(open_page, huge):
    important = huge.analysis.important.tolist()
    app = open_page("coverage", **HUGE)
    assert not app.exception
    assert huge.table.total == 4**12
    assert shape(app) == (16, 16)
    assert "Each tile is 65,536 cells" in words(app)
    assert title(app).startswith(f"Covered: {huge.table.covered} of 16.8 M cells (")
    assert app.button(key="zoom-to-cell")
    cell = huge.table.cells[huge.errors_only[0]].tolist()
    assert cell_heading(app) == f"Cell {cell_name(cell)}"
    app.button(key="zoom-to-cell").click().run()
    held = [f"{neuron}-{cluster}" for neuron, cluster in zip(important[:8], cell[:8], strict=True)]
    assert parameter(app, "zoom") == "~".join(["fc2", *held])
    assert shape(app) == (16, 16)
    assert "Each tile is one cell" in words(app)
    inside = [one for one in huge.table.cells.tolist() if one[:8] == cell[:8]]
    assert sorted(listed(app)["cell"]) == sorted(map(cell_name, inside))
    assert cell_heading(app) == f"Cell {cell_name(cell)}"


def test_more_tiles_than_can_be_drawn_are_refused_in_a_sentence(open_page, huge):
    app = open_page("coverage", **HUGE, pictures="off")
    assert shape(app) == (64, 64)
    app.multiselect(key="rows").set_value([0, 1, 2, 6, 7]).run()
    assert not app.exception
    assert shape(app)[0] * shape(app)[1] <= MOST_CELLS
    names = [f"neuron {huge.analysis.important[rank]}" for rank in (6, 7)]
    assert f"Left out: {', '.join(names)}." in app.warning[0].value
    assert app.multiselect(key="rows").value == [0, 1, 2]


def empty_cell(view) -> tuple[int, ...]:
    covered = {tuple(cell) for cell in view.table.cells.tolist()}
    return next(cell for cell in itertools.product(*map(range, view.sizes)) if cell not in covered)


def test_an_uncovered_cell_leads_to_the_closest_tests_in_order(open_page, view):
    empty = empty_cell(view)
    app = open_page("coverage", cell=cell_name(empty))
    app.button(key="fill-this").click().run()
    assert parameter(app, "tab") == "fill"
    frame = next(frame.value for frame in app.dataframe if "distance" in frame.value.columns)
    analysis = view.analysis
    centre = np.array([values[c] for values, c in zip(analysis.centroids, empty, strict=True)])
    away = [
        float(np.sqrt((((row - centre) / analysis.train_activations.std(axis=0)) ** 2).sum()))
        for row in analysis.test_activations.astype(np.float64)
    ]
    order = sorted(range(len(away)), key=lambda i: (away[i], i))[:SHOWN]
    assert frame["test"].tolist() == view.test.ids[order].tolist()
    assert frame["distance"].tolist() == pytest.approx([away[i] for i in order], rel=1e-4)
    assert frame["cell"].tolist() == [cell_name(analysis.assignments[i]) for i in order]
    assert f"Tests closest to cell {cell_name(empty)}" in [head.value for head in app.header]


def test_a_covered_cell_is_not_filled(open_page, view):
    cell = cell_name(view.table.cells[0])
    app = open_page("coverage", cell=cell, tab="fill")
    assert f"Cell {cell} is covered. Choose an empty one." in words(app)
    assert not any("distance" in frame.value.columns for frame in app.dataframe)
    assert not [one for one in app.button if one.key == "make-inputs"]


def test_growth_says_how_much_is_left_beside_what_one_half_says_of_the_other(open_page, view):
    app = open_page("coverage", tab="growth")
    chance = "Chance that the next test like these reaches a new cell: 5.0 % (2.2 % to 7.8 %, 95 % interval)"
    assert f"**{chance}.**" in words(app)
    assert "540 more would reach about 15 new cells (5 to 30). At least 92 cells can be reached." in words(app)
    codes = view.analysis.codes
    found = len(set(codes[270:].tolist()) - set(codes[:270].tolist()))
    assert f"New cells in the second half of the tests: {found}, and " in words(app)
    assert "predicted from the first half, as expected." in words(app)


def test_growth_of_few_tests_and_of_whole_coverage(open_page):
    some = open_page("coverage", tab="growth", classes=["3"])
    assert not some.exception
    assert "more would reach about" in words(some)
    whole = open_page("coverage", tab="growth", m="1", k="2")
    assert not whole.exception
    assert "Every cell is covered." in words(whole)
    assert "reaches a new cell" not in words(whole)
    assert "Left: " not in words(whole)


def test_what_is_left_is_counted_by_cluster(open_page, view):
    table = view.table
    app = open_page("coverage", tab="growth")
    frame = next(frame.value for frame in app.dataframe if "covered (%)" in frame.value.columns)
    assert frame["covered (%)"].is_monotonic_increasing
    assert len(frame) == sum(view.sizes)
    for _, row in frame.iterrows():
        rank = view.neurons.index(row["neuron"])
        assert row["covered"] == (table.cells[:, rank] == row["cluster"]).sum()
        assert row["tests"] == (view.analysis.assignments[:, rank] == row["cluster"]).sum()
        assert row["cells"] == str(table.total // view.sizes[rank])


def test_texts_in_a_cell_are_few(small_data, open_page):
    app = open_page("coverage", model="textcnn-20newsgroups")
    assert not app.exception
    sent = [json.loads(one.proto.json) for one in app.get("bidi_component") if '"tiles"' in one.proto.json]
    assert [len(data["tiles"]) <= 2 for data in sent] == [True]
    app = open_page("coverage", model="textcnn-20newsgroups", tab="fill")
    assert "Inputs can be generated for pictures only." in words(app)


def test_the_selected_tests_cell_is_shown_where_no_cell_is_selected(open_page, view):
    cell = cell_name(view.analysis.assignments[17])
    number = str(view.test.ids[17])
    app = open_page("coverage", input=number)
    assert cell_heading(app) == f"Cell {cell}"
    assert frame(app) == place(app, cell)
    other = cell_name(view.table.cells[view.table.counts.argmax()])
    assert cell_heading(open_page("coverage", input=number, cell=other)) == f"Cell {other}"


def test_another_cell_moves_the_frame_and_leaves_the_chart_and_what_was_picked(open_page, view):
    """The browser draws a chart anew where its option changes, and a table where its key does."""
    first, second = (cell_name(cell) for cell in view.table.cells[[0, 5]])
    app = open_page("coverage", cell=first)
    drawn = app.get("echarts_chart")[0].proto.spec
    assert frame(app) == place(app, first)
    app.session_state[_NEURONS] = {"selection": {"rows": [2]}}
    app.run()
    assert app.session_state[_NEURONS]["selection"]["rows"] == [2]
    app.text_input(key=_CELL).set_value(second).run()
    assert cell_heading(app) == f"Cell {second}"
    assert app.get("echarts_chart")[0].proto.spec == drawn
    assert frame(app) == place(app, second)
    assert app.session_state[_NEURONS]["selection"]["rows"] == []


def test_the_selected_cluster_is_offered_for_a_closer_look(open_page, view):
    neuron = view.analysis.important[2]
    app = open_page("coverage", neuron=str(neuron), cluster="1")
    button = app.button(key="only-selected")
    assert button.label == f"Show only cells with neuron {neuron} in cluster 1"
    button.click().run()
    assert parameter(app, "zoom") == f"fc2~{neuron}-1"
    assert all(cell.split("-")[2] == "1" for cell in listed(app)["cell"])
    assert not [one for one in app.button if one.key == "only-selected"]
    unknown = next(n for n in range(99) if n not in view.analysis.important)
    app = open_page("coverage", neuron=str(unknown), cluster="1")
    assert not [one for one in app.button if one.key == "only-selected"]


def test_the_smallest_set_is_said_with_its_share(open_page, view):
    covered, tests = view.table.covered, len(view.chosen)
    app = open_page("coverage", tab="smallest")
    said = f"**Fewest that reach every covered cell: {covered} of {tests} tests ({100 * covered / tests:.1f} %).**"
    assert said in words(app)
    app.toggle(key="prefer").set_value(True).run()
    assert said in words(app)


def test_a_pinned_setup_with_the_same_cells_is_told_cell_by_cell(open_page, view):
    app = open_page("coverage", classes="3", pin="classes=5")
    assert not app.exception
    mine, theirs = (open_view(parse({"classes": name})).table.cells.tolist() for name in ("3", "5"))
    shared = [cell for cell in mine if cell in theirs]
    assert f"{len(shared)} cells are covered on both, {len(mine) - len(shared)} only here" in words(app)
    both, only = "both reach", "only these tests reach"
    labels = [[piece["label"] for piece in grid["visualMap"]["pieces"]] for grid in grids(app)]
    assert labels[0] == ["reached by nothing yet", "\u25b3 reached by training inputs only", "covered"]
    for found in labels[1:]:
        assert (any(both in label for label in found), any(only in label for label in found)) == (bool(shared), True)


def test_a_pinned_setup_with_other_cells_keeps_the_chosen_colour(open_page):
    app = open_page("coverage", pin="m=3", colour="how often")
    assert not app.exception
    assert len(grids(app)) == 3
    assert "The cells are not comparable" in words(app)
    assert any("2 to 4" in piece["label"] for piece in grids(app)[2]["visualMap"]["pieces"])


def test_misclassified_tests_are_listed_with_what_they_most_likely_are(open_page, view):
    app = open_page("coverage", tab="mistakes")
    said = words(app)
    wrong = np.flatnonzero(~view.correct)
    assert f"**Misclassified: {len(wrong)} of 540 tests ({percent(len(wrong) / 540)}).** Most likely" in said
    assert "by chance if all labels were right" in said
    [listed] = [frame.value for frame in app.dataframe if "most likely" in frame.value.columns]
    assert listed["test"].tolist() == view.test.ids[wrong].tolist()
    doubtful = listed["most likely"].isin(["a wrong label", "outside the domain"]).to_numpy()
    assert doubtful.any()
    kept = np.setdiff1d(np.arange(len(view.test)), wrong[doubtful])
    idc = len(np.unique(view.analysis.codes[kept])) / view.table.total
    accuracy = f"accuracy {percent(view.correct[kept].mean())} ({percent(view.correct.mean())} with them)"
    assert f"Without the {doubtful.sum()} tests in doubt: {accuracy}, IDC {percent(idc)}" in said


def test_a_network_for_regression_has_no_mistakes(open_page):
    app = open_page("coverage", tab="mistakes", model="dave2-udacity")
    assert not app.exception
    assert "There is nothing to judge" in words(app)


def test_from_a_test_in_a_cell_a_way_leads_back_to_the_grid(open_page, view):
    cell, number = cell_name(view.analysis.assignments[17]), str(view.test.ids[17])
    app = open_page("relevance", input=number, cell=cell)
    app.button(key="crumb-Cell").click().run()
    assert cell_heading(app) == f"Cell {cell}"
    app = open_page("relevance", input=number, cell=cell_name(empty_cell(view)))
    assert not [one for one in app.button if (one.key or "").startswith("crumb")]

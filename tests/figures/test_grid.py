"""The grid of combinations: every cell has one place, tiles hold what their cells hold, and never too many marks."""

import itertools
import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from idc_core.coverage.cell_table import tabulate
from idc_core.coverage.cells import encode
from idc_core.coverage.reach import CellState, find_reach
from idc_core.errors import SettingError
from idc_core.figures import colourings, coverage, grid_axes, grid_tiles, palette
from idc_core.figures.grid import MOST_CELLS, MOST_ON_AXIS, Axes, default_axes, fit_axes, lay_out
from studio.widgets.cell_rows import cell_rows

SIZES = (2, 3, 2, 4)
GENERATED, NOTHING = CellState.GENERATED, CellState.NOTHING
NAMES = ("7", "1", "4", "9")
CLASSES = ("a", "b", "c")


def random_table(seed=0, tests=30):
    rng = np.random.default_rng(seed)
    assignments = np.stack([rng.integers(0, size, tests) for size in SIZES], axis=1).astype(np.uint8)
    return tabulate(assignments, SIZES, rng.integers(0, 3, tests), rng.random(tests) < 0.5, classes=3)


@pytest.fixture
def table():
    return random_table()


@st.composite
def layouts(draw):
    """Neurons on rows, on columns, held fixed and left over, in any order."""
    ranks = draw(st.permutations(range(len(SIZES))))
    first, second, third = sorted(draw(st.tuples(*[st.integers(0, len(SIZES))] * 3)))
    fixed = {rank: draw(st.integers(0, SIZES[rank] - 1)) for rank in ranks[second:third]}
    return Axes(tuple(ranks[:first]), tuple(ranks[first:second])), fixed


def cells_of(clusters):
    """All cells that have these clusters, one by one."""
    return [cell for cell in itertools.product(*map(range, SIZES)) if all(cell[i] == c for i, c in clusters.items())]


@given(layouts(), st.integers(0, 5))
def test_every_drawn_cell_lies_in_one_tile(layout, seed):
    axes, fixed = layout
    table = random_table(seed)
    grid = lay_out(table, NAMES, axes, fixed)
    tiles = [cells_of(grid.clusters(tile)) for tile in range(grid.tiles)]
    assert {len(cells) for cells in tiles} == {grid.cells_per_tile}
    assert sorted(itertools.chain(*tiles)) == sorted(cells_of(fixed))
    assert grid.total == len(cells_of(fixed))
    places = {cell: tile for tile, cells in enumerate(tiles) for cell in cells}
    assert grid.tile.tolist() == [places.get(tuple(cell), -1) for cell in table.cells.tolist()]
    for tile, name in enumerate(grid.names):
        clusters = {i: int(part) for i, part in enumerate(name.split("-")) if part != "x"}
        assert clusters == grid.clusters(tile)
    labels = list(itertools.product(grid.row_labels, grid.column_labels))
    assert len(set(labels)) == grid.tiles
    for cell in itertools.product(*map(range, SIZES)):
        assert grid.place(cell) == (labels[places[cell]] if cell in places else None)


@given(layouts(), st.integers(0, 5))
def test_tiles_hold_what_their_cells_hold(layout, seed):
    axes, fixed = layout
    table = random_table(seed)
    grid = lay_out(table, NAMES, axes, fixed)
    shared = np.arange(table.covered) % 3 == 0
    tiles = colourings.hold(grid, table, shared)
    rows = {tuple(cell): row for row, cell in enumerate(table.cells.tolist())}
    for tile in range(grid.tiles):
        inside = [rows[cell] for cell in cells_of(grid.clusters(tile)) if cell in rows]
        assert tiles.covered[tile] == len(inside)
        assert tiles.tests[tile] == sum(table.counts[row] for row in inside)
        assert tiles.wrong[tile] == sum(table.wrong[row] for row in inside)
        assert tiles.shared[tile] == sum(shared[row] for row in inside)
        assert tiles.by_class[tile].tolist() == [sum(table.by_class[row, c] for row in inside) for c in range(3)]


def test_the_name_of_a_tile_says_which_neurons_may_be_anything(table):
    grid = lay_out(table, NAMES, Axes((3,), (0,)), {2: 1})
    assert grid.folded == (1,)
    assert grid.cells_per_tile == 3
    assert grid.names[0] == "0-x-1-0"
    assert grid.names[-1] == "1-x-1-3"
    assert grid.row_title == "cluster of neuron 9"


def test_small_grids_show_every_cell_with_as_few_rows_and_columns_as_can_be():
    assert default_axes(SIZES) == Axes((0, 1), (2, 3))
    assert default_axes((5,)) == Axes((), (0,))
    assert default_axes((4, 4, 4)) == Axes((0,), (1, 2))
    assert default_axes((2, 2, 2, 4, 4)) == Axes((0, 1, 2), (3, 4))
    assert default_axes((4, 4, 2, 2, 2)) == Axes((2, 3, 4), (0, 1))
    assert default_axes(SIZES, {0: 1, 2: 0}) == Axes((1,), (3,))
    assert default_axes(SIZES, dict.fromkeys(range(4), 0)) == Axes((), ())


@pytest.mark.parametrize("sizes", [(2,) * 6, (2,) * 12, (4,) * 12, (8,) * 12, (3, 4) * 6, (256, 2, 2), (100, 100)])
def test_no_more_tiles_than_can_be_told_apart(sizes):
    fixed = {}
    looks = 0
    while len(fixed) < len(sizes):
        axes = default_axes(sizes, fixed)
        rows, columns = (math.prod(sizes[i] for i in axis) for axis in (axes.rows, axes.columns))
        assert rows <= MOST_ON_AXIS
        assert columns <= MOST_ON_AXIS
        assert rows * columns <= MOST_CELLS
        if not axes.columns:
            break
        fixed |= dict.fromkeys((*axes.rows, *axes.columns), 0)
        looks += 1
    assert looks <= 3


def test_sixteen_million_cells_are_two_looks_away():
    sizes = (4,) * 12
    first = default_axes(sizes)
    assert first == Axes((0, 1, 2), (3, 4, 5))
    assert default_axes(sizes, dict.fromkeys(range(6), 3)) == Axes((6, 7, 8), (9, 10, 11))
    rng = np.random.default_rng(1)
    table = tabulate(rng.integers(0, 4, (3000, 12)).astype(np.uint8), sizes)
    grid = lay_out(table, [str(i) for i in range(12)])
    assert (grid.tiles, grid.cells_per_tile, grid.total) == (4096, 4096, 4**12)
    assert grid.sums(table.counts).sum() == 3000
    option = coverage.coverage_grid(grid, table, "covered", "A finding")
    source = option["dataset"]["source"]
    assert len(source) == 4096
    assert source.memory_usage(deep=True).sum() < 2e6


def test_neurons_that_make_too_many_tiles_are_left_out_from_the_longer_axis():
    sizes = (4,) * 12
    assert fit_axes(sizes, [5, 1], [0]) == Axes((5, 1), (0,))
    assert fit_axes(sizes, [0, 1, 2, 3, 4], [5, 6]) == Axes((0, 1, 2), (5, 6))
    assert fit_axes(sizes, [0, 1, 2], [3, 4, 5, 6]) == Axes((0, 1, 2), (3, 4, 5))
    assert fit_axes(sizes, [0], [0, 1]) == Axes((0,), (1,))
    assert fit_axes((256,), [0], []) == Axes((), ())


@pytest.mark.parametrize(
    ("axes", "fixed", "words"),
    [
        (Axes((0, 4), ()), {}, r"rank 0 to 3 .* \[0, 4\]"),
        (Axes((0,), (0,)), {}, r"different neurons .* \[0\], \[0\]"),
        (Axes((0,), ()), {0: 1}, r"different neurons"),
        (Axes((0,), ()), {1: 3}, r"from 0 to 2 for the neuron of rank 1; got 3"),
    ],
)
def test_impossible_layouts_are_refused(table, axes, fixed, words):
    with pytest.raises(SettingError, match=words):
        lay_out(table, NAMES, axes, fixed)


def test_more_tiles_than_can_be_drawn_are_refused():
    table = tabulate(np.zeros((1, 8), np.uint8), [4] * 8)
    with pytest.raises(SettingError, match="at most 4096 tiles"):
        lay_out(table, ["n"] * 8, Axes((0, 1, 2, 3), (4, 5, 6, 7)))


@pytest.mark.parametrize(
    ("rows", "columns", "tests", "mark"),
    [(40, 30, 99, "99"), (41, 30, 99, "\u2022"), (40, 30, 999, "\u2022"), (40, 20, 999, "999"), (2, 69, 9, "9")],
)
def test_numbers_are_written_where_they_have_room(rows, columns, tests, mark):
    table = tabulate(np.zeros((tests, 2), np.uint8), (rows, columns), correct=np.ones(tests, bool))
    grid = lay_out(table, NAMES, Axes((0,), (1,)))
    assert coverage.grid_rows(grid, table, "count")["mark"][0] == mark


@pytest.mark.parametrize("colouring", colourings.COLOURINGS)
def test_rows_say_what_a_cell_holds(table, colouring):
    grid = lay_out(table, NAMES)
    rows = coverage.grid_rows(grid, table, colouring, CLASSES)
    held = {tile: row for row, tile in enumerate(grid.tile.tolist())}
    for tile, drawn in enumerate(rows.itertuples()):
        assert drawn.cell == "-".join(map(str, grid.clusters(tile).values()))
        assert (drawn.category > 0) == (tile in held)
        if tile not in held:
            assert (drawn.mark, drawn.tests) == ("", "no test")
            continue
        row = held[tile]
        count, wrong = int(table.counts[row]), int(table.wrong[row])
        assert drawn.mark
        assert drawn.tests.startswith(f"{count} test")
        assert (f"{wrong} misclassified" in drawn.tests) == (wrong > 0)
        if colouring in ("covered", "count"):
            assert drawn.mark == ("\u00d7" if wrong == count else str(count))
        if colouring == "class":
            most = int(table.by_class[row].argmax())
            assert (drawn.category, drawn.mark) == (1 + most, CLASSES[most])


@pytest.mark.parametrize(
    ("tests", "wrong", "category", "mark"),
    [
        (8, 0, 1, "\u25cb"),
        (8, 1, 2, "\u25d4"),
        (8, 2, 2, "\u25d4"),
        (8, 3, 3, "\u25d1"),
        (8, 4, 3, "\u25d1"),
        (8, 5, 4, "\u25d5"),
        (8, 7, 4, "\u25d5"),
        (8, 8, 5, "\u00d7"),
    ],
)
def test_the_share_misclassified_is_told_in_bins_with_marks(tests, wrong, category, mark):
    correct = np.arange(tests) >= wrong
    table = tabulate(np.zeros((tests, 1), np.uint8), (2,), correct=correct)
    rows = coverage.grid_rows(lay_out(table, ("7",)), table, "errors")
    assert rows["category"].tolist() == [category, 0]
    assert rows["mark"].tolist() == [mark, ""]
    assert colourings.categories("errors", palette.LIGHT)[category]["label"].startswith(mark)


def test_a_tile_of_several_cells_says_how_many_of_them_are_covered(table):
    grid = lay_out(table, NAMES, Axes((0,), (1,)))
    rows = coverage.grid_rows(grid, table, "covered", CLASSES)
    for tile, drawn in enumerate(rows.itertuples()):
        covered = int((grid.tile == tile).sum())
        assert drawn.tests.startswith(f"{covered} of 8 cells covered, ")
        assert drawn.category == sum(covered >= start for start in colourings._BINS)
        label = colourings.categories("covered", palette.LIGHT, CLASSES, 8)[drawn.category]["label"]
        ends = [int(word) for word in label.split() if word.isdigit()]
        assert ends[0] <= covered <= ends[-1]


def test_cells_that_another_test_set_reaches_too_are_told_apart(table):
    grid = lay_out(table, NAMES, Axes((0,), (1,)))
    for shared, words in ((np.ones, "both reach"), (np.zeros, "only these tests reach")):
        values = shared(table.covered, dtype=bool)
        rows = coverage.grid_rows(grid, table, colourings.SHARED, shared=values)
        legend = colourings.categories(colourings.SHARED, palette.LIGHT)
        filled = rows[rows["category"] > 0]
        assert {legend[category]["label"][2:] for category in filled["category"]} == {words}
        assert {legend[category]["label"][0] for category in filled["category"]} == set(filled["mark"])
    half = np.arange(table.covered) % 2 == 0
    rows = coverage.grid_rows(grid, table, colourings.SHARED, shared=half)
    for tile, drawn in enumerate(rows.itertuples()):
        inside = half[grid.tile == tile]
        assert drawn.category == (0 if not len(inside) else 1 if inside.all() else 2 if inside.any() else 3)
        assert f"{inside.sum()} reached by both" in drawn.tests


@pytest.mark.parametrize("colouring", [*colourings.COLOURINGS, colourings.SHARED])
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("axes", [Axes((0, 1), (2, 3)), Axes((0,), (1,))])
def test_every_category_drawn_is_in_the_legend(table, colouring, dark, axes):
    grid = lay_out(table, NAMES, axes)
    place = grid.place((0, 0, 0, 0))
    shared = np.arange(table.covered) % 2 == 0 if colouring == colourings.SHARED else None
    option = coverage.coverage_grid(
        grid, table, colouring, "A finding", class_names=CLASSES, shared=shared, selected=place, dark=dark
    )
    shown = {piece["value"] for piece in option["visualMap"]["pieces"]}
    assert set(option["dataset"]["source"]["category"]) <= shown
    assert option["series"][0]["cursor"] == "pointer"
    assert option["series"][1]["data"] == [{"value": [place[1], place[0], 0]}]
    json.dumps({key: value for key, value in option.items() if key != "dataset"})
    assert isinstance(option["dataset"]["source"], pd.DataFrame)


def test_the_legend_stays_inside_a_narrow_column_and_above_the_axis_title():
    names = [f"a long class name {i}" for i in range(10)]
    table = tabulate(np.arange(10, dtype=np.uint8)[:, None], (10,), np.arange(10), classes=10)
    grid = lay_out(table, ("7",))
    option = coverage.coverage_grid(grid, table, "class", "A finding", class_names=names)
    texts = [element for element in option["graphic"] if element["type"] == "text"]
    assert [text["style"]["text"] for text in texts] == ["not covered", *names]
    assert max(text["left"] + 6.5 * len(text["style"]["text"]) for text in texts) <= coverage.grid_size(grid, option)[0]
    places = [(text["left"], text["bottom"]) for text in texts]
    assert len(set(places)) == len(places)
    labels = grid_axes.margins(grid)[1]
    assert max(bottom for _, bottom in places) + 12 + labels <= option["grid"]["bottom"]


@pytest.mark.parametrize("sizes", [(4, 4), (4,) * 4, (4,) * 6, (2,) * 12, (3,) * 8, (128, 2), (5,)])
def test_every_neuron_has_a_line_of_labels_where_these_have_room(sizes):
    table = tabulate(np.zeros((1, len(sizes)), np.uint8), sizes)
    grid = lay_out(table, [str(i) for i in range(len(sizes))])
    option = coverage.coverage_grid(grid, table, "covered", "A finding")
    side = grid_axes.tile_side(grid)
    for name, neurons in (("xAxis", grid.axes.columns), ("yAxis", grid.axes.rows)):
        tiles, *lines = option[name]
        assert len(tiles["data"]) == math.prod(sizes[i] for i in neurons)
        # From the tiles outwards, until the first neuron of the axis.
        assert [line["name"].split()[-1] for line in lines] == [str(i) for i in reversed(neurons)][-len(lines) :]
        assert [line["offset"] for line in lines] == [19 * place for place in range(len(lines))]
        for line in lines:
            size = sizes[int(line["name"].split()[-1])]
            assert line["data"] == [str(i % size) for i in range(len(line["data"]))]
            every = line["axisLabel"]["interval"] + 1
            assert side * len(tiles["data"]) / len(line["data"]) * every >= 13


def test_tiles_are_squares_and_all_of_them_fit_on_a_small_screen():
    for sizes in ((2, 2, 3, 2, 4, 2), (2,) * 6, (4,) * 6, (3,), (2, 2)):
        table = tabulate(np.zeros((1, len(sizes)), np.uint8), sizes)
        for within in ((MOST_ON_AXIS, MOST_ON_AXIS), grid_axes.MOST_PICTURED):
            grid = lay_out(table, [str(i) for i in range(len(sizes))], default_axes(sizes, within=within))
            option = coverage.coverage_grid(grid, table, "covered", "A finding")
            width, height = coverage.grid_size(grid, option)
            inner, side = option["grid"], grid_axes.tile_side(grid)
            assert width - inner["left"] - inner["right"] == side * len(grid.column_cells)
            assert height - inner["top"] - inner["bottom"] == side * len(grid.row_cells)
            assert (width <= 850, height <= 720) == (True, True)
        assert grid_axes.has_room(grid)
        assert side >= 33


def test_a_persons_names_of_clusters_stand_on_the_axes():
    table = tabulate(np.zeros((1, 2), np.uint8), (2, 3))
    grid = lay_out(table, ("7", "1"), cluster_names=(("", "loop below"), ("", "", "")))
    option = coverage.coverage_grid(grid, table, "covered", "A finding")
    assert option["yAxis"][1]["data"] == ["0", "loop below"]
    assert option["xAxis"][1]["data"] == ["0", "1", "2"]
    assert option["dataset"]["source"]["cell"][3:5].tolist() == ["1-0: loop below", "1-1: loop below"]


def test_tests_fall_in_their_order_and_first_ones_are_never_left_out():
    rng = np.random.default_rng(3)
    assignments = np.stack([rng.integers(0, size, 5000) for size in SIZES], axis=1).astype(np.uint8)
    assignments[:4000] = 0  # few cells at first
    table = tabulate(assignments, SIZES)
    rows = np.unique(assignments, axis=0, return_inverse=True)[1].reshape(-1)
    grid = lay_out(table, NAMES, fixed={1: 0})
    fallen = grid_tiles.falls(grid, rows)
    inside = assignments[assignments[:, 1] == 0]
    seen = [len({tuple(cell) for cell in inside[:number].tolist()}) for number in fallen["number"][::97]]
    assert fallen["cells"][::97] == seen
    assert [grid.tiles_of(inside)[number - 1] for number in fallen["number"]] == fallen["tile"]
    assert fallen["number"][-1] == len(inside)
    assert fallen["cells"][-1] == (grid.tile >= 0).sum()
    assert len(fallen["tile"]) < 3100 < len(inside)


def test_a_tile_of_several_cells_shows_the_one_with_most_tests(table):
    grid = lay_out(table, NAMES, Axes((0,), (1,)))
    filled = grid_tiles.filled(grid, table)
    for tile, row in zip(filled.tile, filled.row, strict=True):
        assert table.counts[row] == table.counts[grid.tile == tile].max()
    assert filled.tile.tolist() == sorted(set(grid.tile.tolist()))


@pytest.mark.parametrize("dark", [False, True])
def test_marks_can_be_read_on_every_fill(dark):
    def luminance(colour):
        channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for name in (*colourings.COLOURINGS, colourings.SHARED):
        for piece in colourings.categories(name, palette.palette(dark), CLASSES, reach=True)[1:]:
            low, high = sorted((luminance(piece["color"]), luminance(palette.ON_FILL)))
            assert (high + 0.05) / (low + 0.05) >= 4.5, (name, piece)


def test_unknown_colouring_is_refused(table):
    with pytest.raises(SettingError, match="covered, count, class, errors; got 'mood'"):
        coverage.grid_rows(lay_out(table, NAMES), table, "mood")


@given(layouts(), st.integers(0, 5))
def test_tiles_without_a_test_say_what_else_reaches_them(layout, seed):
    axes, fixed = layout
    table, rng = random_table(seed), np.random.default_rng(seed)
    covered = {tuple(cell) for cell in table.cells.tolist()}
    left = sorted(set(itertools.product(*map(range, SIZES))) - covered)
    learnt = [left[i] for i in sorted(rng.permutation(len(left))[:4])]
    made = [left[i] for i in rng.permutation(len(left))[:6]]
    inputs = [1, 2, 1, 5]
    everywhere = np.array([*made, *learnt[:1], next(iter(covered))], np.uint8)
    reach = find_reach(table, learnt, inputs, encode(everywhere, SIZES))
    assert {tuple(cell) for cell in reach.cells.tolist()} == {*learnt, *made}
    grid = lay_out(table, NAMES, axes, fixed)
    rows = coverage.grid_rows(grid, table, "count", reach=reach)
    for tile, drawn in enumerate(rows.itertuples()):
        cells = set(cells_of(grid.clusters(tile)))
        if cells & covered:
            assert drawn.category > 0
            continue
        only = [cell for cell in made if cell not in learnt and cell in cells]
        trained = [cell for cell in learnt if cell in cells]
        assert drawn.mark == ("\u25b3" if trained else "\u25c7" if only else "")
        if grid.cells_per_tile == 1:
            number = inputs[learnt.index(trained[0])] if trained else 0
            words = f"{number} training input" if trained else str(GENERATED if only else NOTHING)
            assert words in drawn.tests
        else:
            assert (f"{len(trained)} reached by training inputs only" in drawn.tests) == bool(trained)
            assert (f"{len(only)} reached by valid generated inputs only" in drawn.tests) == bool(only)


@pytest.mark.parametrize("colouring", [*colourings.COLOURINGS, colourings.SHARED])
@pytest.mark.parametrize("dark", [False, True])
def test_states_differ_by_mark_legend_and_colour(table, colouring, dark):
    covered = {tuple(cell) for cell in table.cells.tolist()}
    left = sorted(set(itertools.product(*map(range, SIZES))) - covered)
    reach = find_reach(table, left[:2], [3, 1], encode(np.array(left[2:4], np.uint8), SIZES))
    assert reach.states == [CellState.TRAINING, CellState.TRAINING, GENERATED, GENERATED]
    grid = lay_out(table, NAMES)
    option = coverage.coverage_grid(grid, table, colouring, "A finding", class_names=CLASSES, reach=reach, dark=dark)
    pieces = {piece["value"]: piece for piece in option["visualMap"]["pieces"]}
    rows = option["dataset"]["source"]
    assert set(rows["category"]) <= set(pieces)
    assert len({piece["color"] for piece in pieces.values()}) == len(pieces)
    states = {
        CellState.TRAINING: ("\u25b3", {grid.names.index("-".join(map(str, cell))) for cell in left[:2]}),
        GENERATED: ("\u25c7", {grid.names.index("-".join(map(str, cell))) for cell in left[2:4]}),
    }
    for state, (mark, tiles) in states.items():
        drawn = rows.iloc[sorted(tiles)]
        assert set(drawn["mark"]) == {mark}
        assert {pieces[kind]["label"] for kind in drawn["category"]} == {f"{mark} {state}"}
    assert pieces[0]["label"] == NOTHING


def test_the_file_of_a_grid_says_the_state_of_each_cell(table):
    covered = {tuple(cell) for cell in table.cells.tolist()}
    left = sorted(set(itertools.product(*map(range, SIZES))) - covered)
    reach = find_reach(table, left[:1], [3], encode(np.array(left[1:2], np.uint8), SIZES))
    rows = cell_rows(table, reach, CLASSES)
    assert rows["state"].tolist() == ["covered"] * len(covered) + [str(CellState.TRAINING), str(GENERATED)]
    assert rows["tests"].tolist() == [*table.counts.tolist(), 0, 0]
    assert rows["cell"].tolist()[-2:] == ["-".join(map(str, cell)) for cell in left[:2]]
    assert cell_rows(table, None)["state"].tolist() == ["covered"] * len(covered)

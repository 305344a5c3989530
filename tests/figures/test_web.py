"""Figures as web pages of their own: whole, without a network, and saying what the chart on the page says."""

import base64
import io
import re
from html.parser import HTMLParser

import numpy as np
import plotly.graph_objects as go
import pytest
from PIL import Image

from idc_core.coverage.cell_table import tabulate
from idc_core.figures.coverage import coverage_grid, grid_rows
from idc_core.figures.grid import default_axes, lay_out
from idc_core.figures.palette import palette
from idc_core.figures.style import finish
from idc_core.figures.tile_contents import TileContents
from idc_core.figures.web import grid_figure, web_page
from idc_core.stories.drawing import check, large

SIZES = (2, 3, 2, 4)


class Tags(HTMLParser):
    """Every tag of a page with what it refers to, and all text."""

    def __init__(self):
        super().__init__()
        self.references, self.texts = [], []

    def handle_starttag(self, tag, attributes):
        self.references += [(tag, value) for name, value in attributes if name in ("src", "href")]

    def handle_data(self, data):
        self.texts.append(data.strip())


def test_page_holds_title_figure_and_lines_and_refers_to_nothing():
    figure = finish(go.Figure(go.Bar(x=["a"], y=[0.123456])), "A <finding> & more", palette(True), height=300)
    page = web_page(figure, "A <finding> & more", ["LeNet-5 · digits", "How to read this: <b>"], dark=True)
    read = Tags()
    read.feed(page)
    assert read.references == []
    for text in ("A <finding> & more", "LeNet-5 · digits", "How to read this: <b>"):
        assert text in read.texts
    assert "0.123456" in page
    assert "Plotly.newPlot" in page
    assert f"background: {palette(True).ground}" in page


@pytest.fixture
def grid():
    rng = np.random.default_rng(0)
    assignments = np.stack([rng.integers(0, size, 30) for size in SIZES], axis=1).astype(np.uint8)
    table = tabulate(assignments, SIZES, rng.integers(0, 3, 30), rng.random(30) < 0.5, classes=3)
    return lay_out(table, ("7", "1", "4", "9"), default_axes(SIZES)), table


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("colouring", ["covered", "errors"])
def test_grid_is_the_same_in_plotly(grid, colouring, dark):
    laid, table = grid
    outlined = (laid.row_labels[1], laid.column_labels[2])
    option = coverage_grid(laid, table, colouring, "A finding of the grid", selected=outlined, dark=dark)
    rows = grid_rows(laid, table, colouring)
    figure = grid_figure(option, 400, dark=dark)
    heatmap = figure.data[0]
    shape = (len(laid.row_labels), len(laid.column_labels))
    assert heatmap.z.shape == shape
    assert list(heatmap.x) == list(laid.column_labels)
    assert list(heatmap.y) == list(laid.row_labels)
    assert heatmap.text.ravel().tolist() == rows["mark"].tolist()
    assert heatmap.customdata.reshape(-1, 2).tolist() == rows[["cell", "tests"]].to_numpy().tolist()
    pieces = {piece["value"]: piece for piece in option["visualMap"]["pieces"]}
    legend = {trace.name: trace.marker.color for trace in figure.data[1:]}
    assert legend == {piece["label"]: piece["color"] for piece in pieces.values()}
    # The colour that a value gets from plotly's scale is its category's.
    drawn = (heatmap.z.ravel() - heatmap.zmin) / (heatmap.zmax - heatmap.zmin)
    for share, category in zip(drawn, rows["category"], strict=True):
        below = max(place for place, (edge, _) in enumerate(heatmap.colorscale) if edge < share)
        assert heatmap.colorscale[below][1] == pieces[category]["color"]
    assert figure.layout.title.text == "A finding of the grid"
    (frame,) = figure.layout.shapes
    assert (frame.x0, frame.x1, frame.y0, frame.y1) == (1.5, 2.5, 0.5, 1.5)
    assert re.fullmatch("#[0-9a-f]{6}", figure.layout.paper_bgcolor)


def picture_in(figure):
    """The picture that lies on a grid's tiles, (H, W, 4)."""
    kind, _, content = figure.layout.images[0].source.partition(";base64,")
    assert kind == "data:image/webp"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(content))).convert("RGBA"))


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("size", [(8, 8), (28, 20), (96, 96), (300, 300)])
def test_tiles_show_their_pictures_on_their_own_colour_with_the_mark_in_a_corner(grid, size, dark):
    laid, table = grid
    option = coverage_grid(laid, table, "errors", "A finding of the grid", dark=dark)
    tile = np.unique(laid.tile)
    shades = 40 + np.arange(len(tile)) * 5
    pictures = np.broadcast_to(shades[:, None, None, None], (len(tile), *size, 3)).astype(np.uint8)
    figure = grid_figure(option, 400, contents=TileContents(tile, pictures, []), dark=dark)
    rows, columns = shape = (len(laid.row_labels), len(laid.column_labels))
    picture = picture_in(figure)
    side = picture.shape[0] // rows
    assert picture.shape == (side * rows, side * columns, 4)
    assert max(picture.shape) <= 1440
    tiles = picture.reshape(rows, side, columns, side, 4).swapaxes(1, 2).reshape(-1, side, side, 4)
    assert (tiles[tile, side // 2, side // 2] == np.stack([shades] * 3 + [np.full(len(tile), 255)], axis=1)).all()
    assert (tiles[:, [0, -1], :, 3] == 0).all(), "a tile's own colour frames it"
    assert (np.delete(tiles, tile, axis=0)[..., 3] == 0).all()
    # Squares, where the tiles of the heatmap are; its marks lie in their corners instead of under the pictures.
    image = figure.layout.images[0]
    assert (image.x, image.y, image.sizex, image.sizey, image.layer) == (-0.5, -0.5, columns, rows, "above")
    assert (figure.layout.yaxis.scaleanchor, figure.layout.yaxis.range) == ("x", (rows - 0.5, -0.5))
    marks = option["dataset"]["source"]["mark"].to_numpy()
    assert figure.data[0].text.ravel().tolist() == np.where(np.isin(np.arange(laid.tiles), tile), "", marks).tolist()
    notes = {(note.x, note.y): note.text for note in figure.layout.annotations}
    assert notes == {(one % columns + 0.5, one // columns + 0.5): marks[one] for one in tile.tolist()}
    assert shape == figure.data[0].z.shape
    slide = large(figure)
    check(slide, "The file a.html")
    crosses = [mark for mark in notes.values() if mark == "\u00d7"]
    assert [note["text"] for note in slide["layout"].get("annotations", [])] == crosses


def test_tiles_of_texts_show_words(grid):
    laid, table = grid
    tile = np.unique(laid.tile)
    words = [["w" * 500, "a\0\ud800b"]] + [[]] * (len(tile) - 1)
    contents = TileContents(tile, np.zeros((0, 1, 1, 3), np.uint8), words)
    figure = grid_figure(coverage_grid(laid, table, "covered", "A finding"), 400, contents=contents)
    picture = picture_in(figure)
    side = picture.shape[0] // len(laid.row_labels)

    def dark_pixels(number):
        row, column = divmod(int(number), len(laid.column_labels))
        inside = picture[row * side : (row + 1) * side, column * side : (column + 1) * side]
        return int(((inside[..., :3].max(axis=2) < 128) & (inside[..., 3] == 255)).sum())

    assert dark_pixels(tile[0]) > 100
    assert dark_pixels(tile[1]) == 0

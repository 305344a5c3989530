"""Charts are saved from their buttons, without a network, and the files are what they say."""

import io
import re
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from playwright.sync_api import expect

from idc_core.figures.palette import palette
from studio.engine.results import open_view
from studio.shell.bench import DEFAULT
from studio.widgets.text import cell_name

pytestmark = pytest.mark.browser

SVG = "{http://www.w3.org/2000/svg}"
CHARTS = {"classes": "distances", "clusters": "histograms", "coverage": "grid", "overview": "grid"}


@pytest.fixture(scope="module")
def view():
    return open_view(DEFAULT)


def title_of(visitor):
    """What the first line of buttons says it saves."""
    group = visitor.page.locator('[class*="st-key-save-"]').first.get_by_role("group")
    return group.get_attribute("aria-label").removeprefix("Save the chart ")


def texts(root):
    """All writing of an SVG, line breaks as spaces."""
    return " ".join(" ".join(part.itertext()) for part in root.iter(f"{SVG}text"))


@pytest.fixture(scope="module", params=CHARTS)
def opened(request, visit):
    """The name of a page with a chart, and the page, opened once for all that is asked of it."""
    with visit() as visitor:
        visitor.open(request.param)
        yield request.param, visitor


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pictures_have_their_own_ground_and_the_whole_chart(opened, scheme):
    name, visitor = opened
    visitor.show(scheme)
    wanted = tuple(int(palette(scheme == "dark").ground[i : i + 2], 16) for i in (1, 3, 5))
    file, content = visitor.save("PNG")
    assert file == f"idc-{CHARTS[name]}.png"
    picture = Image.open(io.BytesIO(content))
    assert picture.format == "PNG"
    pixels = np.asarray(picture.convert("RGBA"))
    assert (pixels[..., 3] == 255).all(), "nothing shines through"
    corners = pixels[[2, 2, -3, -3], [2, -3, 2, -3], :3]
    assert {tuple(map(int, corner)) for corner in corners} == {wanted}
    assert len(np.unique(pixels.reshape(-1, 4), axis=0)) > 20
    file, content = visitor.save("SVG")
    assert file == f"idc-{CHARTS[name]}.svg"
    root = ElementTree.fromstring(content)
    assert root.tag == f"{SVG}svg"
    size = [float(root.get(side)) for side in ("width", "height")]
    assert picture.size == pytest.approx([2 * length for length in size], abs=2), "twice as fine as on the screen"
    finding = title_of(visitor).removeprefix("Grid of combinations: ")
    if name == "clusters":
        finding = "The activations of the important neurons fall into"
    assert finding in re.sub(r"\s+", " ", texts(root))


def test_saved_pages_stay_interactive_without_a_network(opened, browser, tmp_path):
    name, visitor = opened
    title = title_of(visitor)
    file, content = visitor.save("HTML")
    assert file == f"idc-{CHARTS[name]}.html"
    (tmp_path / file).write_bytes(content)
    page = browser.new_page(viewport={"width": 1100, "height": 900})
    asked, errors = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto((tmp_path / file).as_uri())
    assert page.title() == title
    expect(page.locator(".js-plotly-plot .gtitle")).to_be_visible()
    text = page.locator("body").inner_text()
    assert "LeNet-5 · digits · layer fc2 · m = 6 · 540 tests" in text
    said = visitor.page.locator('[class*="st-key-save-"]').first.get_by_test_id("stCaptionContainer").inner_text()
    assert said in text
    # What lies under the pointer is said: the figure is alive.
    box = page.locator(".nsewdrag").first.bounding_box()
    for step in range(1, 40):
        page.mouse.move(box["x"] + step * box["width"] / 40, box["y"] + box["height"] * (0.9 - 0.01 * step))
        page.wait_for_timeout(30)
        if page.locator(".hovertext").count():
            break
    assert page.locator(".hovertext").count()
    buttons = "() => document.querySelector('.js-plotly-plot')._fullLayout._modeBar.buttons.flat().map(one => one.name)"
    offered = page.evaluate(buttons)
    assert "toImage" in offered
    assert not [button for button in offered if "Cloud" in button], "nothing is sent away"
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    assert errors == []
    page.close()


def test_a_table_reads_again_with_its_numbers(visitor, view):
    visitor.open("coverage")
    with visitor.page.expect_download() as download:
        visitor.page.get_by_role("button", name="Covered cells (CSV)").click()
    table = pd.read_csv(download.value.path())
    assert table["cell"].tolist() == [cell_name(cell) for cell in view.table.cells]
    assert table["tests"].tolist() == view.table.counts.tolist()
    assert table["misclassified"].tolist() == view.table.wrong.tolist()
    assert table["tests"].sum() == len(view.chosen)

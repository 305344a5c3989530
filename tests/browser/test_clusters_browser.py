"""The Clusters page as a person uses it: clicks in histograms, choices that hold everywhere, a lasso around tests."""

import io
import re

import numpy as np
import pytest

from tests.browser.waiting import expect

pytestmark = pytest.mark.browser


def plot(visitor, part):
    """The chart whose title holds these words."""
    figure = visitor.page.locator(".js-plotly-plot").filter(has_text=part).first
    figure.scroll_into_view_if_needed()
    return figure


def middle(locator):
    box = locator.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def click_mark(visitor, mark):
    mark.scroll_into_view_if_needed()
    visitor.page.mouse.move(*middle(mark))
    visitor.page.wait_for_timeout(200)
    visitor.page.mouse.click(*middle(mark))
    visitor.settle()


@pytest.mark.slow
def test_back_returns_to_a_tab_and_a_click_on_a_cluster_leads_to_its_cells(visitor):
    visitor.open("clusters")
    for tab in ("Effect on cells", "Number of clusters"):
        visitor.page.get_by_role("tab", name=tab).click()
        visitor.settle()
    assert "tab=number" in visitor.page.url
    for tab in ("Effect on cells", "Histograms"):
        visitor.page.go_back()
        visitor.settle()
        assert visitor.page.get_by_role("tab", selected=True).inner_text() == tab
    assert "tab=" not in visitor.page.url
    histograms = plot(visitor, "Activations of the important neurons")
    click_mark(visitor, histograms.locator(".scatterlayer .points path").nth(1))
    assert "cluster=1" in visitor.page.url
    neuron = re.search(r"neuron=(\d+)", visitor.page.url)[1]
    assert "Show fewer" in visitor.text()
    visitor.page.get_by_role("link", name=f"See the cells with neuron {neuron} in cluster 1").click()
    visitor.page.wait_for_url("**/coverage*")
    visitor.settle()
    expect(
        visitor.page.get_by_role("button", name=f"Show only cells with neuron {neuron} in cluster 1")
    ).to_be_visible()
    assert visitor.faults() == []


@pytest.mark.rare
def test_a_choice_holds_on_other_pages_and_in_a_copied_link(visitor, stranger):
    visitor.open("clusters?tab=cells&clustering=hierarchical")
    assert "· hierarchical ·" in visitor.setup()
    click_mark(
        visitor,
        plot(visitor, "Cells, and covered cells").locator(".scatterlayer .trace").nth(0).locator(".point").nth(2),
    )
    assert "k=3" in visitor.page.url
    assert "3 clusters each, 729 combinations" in visitor.text()
    stranger.open(visitor.page.url.removeprefix(f"{visitor.address}/").replace("clusters", "coverage"))
    assert "k = 3 · " in stranger.setup()
    assert "· hierarchical ·" in stranger.setup()
    assert "of 729 combinations" in stranger.text()


@pytest.mark.rare
def test_a_lasso_gathers_tests_that_can_be_taken_away(visitor):
    visitor.open("clusters?tab=map")
    visitor.page.get_by_text("lasso", exact=True).click()
    visitor.settle()
    figure = plot(visitor, "Tests whose nearest neighbour")
    area = figure.locator(".nsewdrag").first
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    left, right = box["x"] + 0.05 * box["width"], box["x"] + 0.35 * box["width"]
    top, bottom = box["y"] + 0.05 * box["height"], box["y"] + 0.6 * box["height"]
    mouse = visitor.page.mouse
    mouse.move(left, top)
    mouse.down()
    for x, y in ((right, top), (right, bottom), (left, bottom), (left, top)):
        mouse.move(x, y, steps=8)
    mouse.up()
    visitor.settle()
    said = visitor.page.get_by_text(re.compile(r"^[\d,]+ tests in \d+ cells?\."))
    expect(said).to_be_visible()
    # Its picture is beside a mark that is pointed at.
    mark = figure.locator(".scatterlayer .points path").nth(7).bounding_box()
    mouse.move(mark["x"] - 2, mark["y"])
    mouse.move(mark["x"] + mark["width"] / 2, mark["y"] + mark["height"] / 2)
    expect(visitor.page.locator(".hovered")).to_be_visible()
    mouse.move(2, 2)
    expect(visitor.page.locator(".hovered")).to_be_hidden()
    number = int(said.inner_text().split()[0].replace(",", ""))
    with visitor.page.expect_download() as download:
        visitor.page.get_by_role("button", name=f"Download these {number} tests (npz)").click()
    content = np.load(io.BytesIO(download.value.path().read_bytes()), allow_pickle=False)
    assert len(content["ids"]) == len(content["inputs"]) == number > 20
    visitor.page.get_by_role("button", name="Clear", exact=True).last.click()
    visitor.settle()
    assert "No test is selected in a chart yet." in visitor.text()
    assert visitor.faults() == []


@pytest.mark.rare
def test_a_click_on_a_point_selects_its_test_everywhere(visitor):
    visitor.open("clusters?tab=map")
    click_mark(visitor, plot(visitor, "Tests whose nearest neighbour").locator(".scatterlayer .point").first)
    number = re.search(r"input=(\d+)", visitor.page.url)[1]
    assert "1 test in 1 cell" in visitor.text()
    visitor.page.get_by_role("tab", name="Histograms").click()
    visitor.settle()
    assert f"Test {number}: neuron" in visitor.text()
    expect(plot(visitor, "Activations of the important").locator("text=selected test")).to_be_visible()


@pytest.mark.rare
def test_umap_is_kept_in_the_address(visitor):
    visitor.open("clusters?tab=map&classes=3,8")
    visitor.page.get_by_role("radio", name="UMAP").or_(visitor.page.get_by_role("button", name="UMAP")).first.click()
    # UMAP compiles itself at its first use, which takes long beside other work.
    expect(visitor.page.get_by_text("Neighbours have similar activations")).to_be_visible()
    assert "plane=umap" in visitor.page.url

"""A report in a browser without a network: drawn in both themes, sound for screen readers, printed to a few pages."""

import re

import pytest

import idc_core as idc
from idc_core.report.writing import make_files
from tests.browser.violations import serious_violations
from tests.report.reading import gathered

pytestmark = pytest.mark.browser

PAGES = range(2, 7)


@pytest.fixture(scope="module")
def write(tmp_path_factory):
    """Write the report on a network with so many important neurons, and return its file."""

    def write(name, m):
        model = idc.load_model(name)
        train, test = (idc.load_dataset(model.card.dataset, split, 200) for split in ("train", "test"))
        path = tmp_path_factory.mktemp("report") / "report.html"
        path.write_bytes(make_files(gathered(model, train, test, model.card.default_layer, m), date="2026-11-23").page)
        return path

    return write


@pytest.mark.slow
def test_it_needs_no_network_and_its_charts_are_drawn(browser, write):
    file = write("lenet5-digits", 6)
    context = browser.new_context(viewport={"width": 1000, "height": 900}, color_scheme="light")
    context.set_offline(True)
    page = context.new_page()
    faults = []
    page.on("request", lambda request: None if request.url == file.as_uri() else faults.append(request.url[:100]))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda said: faults.append(said.text) if said.type in ("error", "warning") else None)
    try:
        page.goto(file.as_uri())
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.locator(f"html[data-drawn={scheme}]").wait_for(state="attached")
            assert page.locator("#grid .heatmaplayer .hm").count() == 1
            assert page.locator("#histograms .barlayer .point").count() > 100
            assert page.locator("svg.still:visible").count() == 0
            assert serious_violations(page, colours_only=scheme == "dark") == []
        page.locator("#grid .nsewdrag").hover()
        page.locator("#grid .hoverlayer text").first.wait_for()
        page.set_viewport_size({"width": 600, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert pages(page) in PAGES
        page.emulate_media(media="print")
        assert page.locator("svg.still:visible").count() == 2
        assert page.locator(".chart:visible").count() == 0
        assert faults == []
    finally:
        context.close()


@pytest.mark.slow
def test_without_scripts_its_still_pictures_are_there_and_printed(browser, write):
    """Of many neurons and of texts, which take most room."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    try:
        page.goto(write("charlstm-sql", 12).as_uri())
        assert page.locator("svg.still:visible").count() == 2
        assert page.locator("svg.still text").count() > 100
        assert pages(page) in PAGES
    finally:
        context.close()


def pages(page):
    """How many pages are printed."""
    return len(re.findall(rb"/Type\s*/Page\b", page.pdf(prefer_css_page_size=True)))

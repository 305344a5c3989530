"""Titles of several lines stay above the panels of their figure, as a browser draws them."""

import numpy as np
import pytest

from idc_core.figures.criteria import suite_scores

pytestmark = pytest.mark.browser

LINE = "IDC, TKNP and KMNC score the last classes higher than the first classes, "
TOPS = """() => [...document.querySelectorAll('.js-plotly-plot')].map(plot => {
    const top = plot.getBoundingClientRect().top;
    const box = name => plot.querySelector(name).getBoundingClientRect();
    return [box('.g-gtitle').top - top, box('.g-gtitle').bottom - top, box('.annotation').top - top];
})"""


def test_a_title_of_any_number_of_lines_ends_above_the_panels(browser):
    page = browser.new_page(viewport={"width": 1000, "height": 700})
    parts = []
    for lines in (1, 2, 3):
        figure = suite_scores(np.ones((2, 2)), ["IDC", "NC"], ["All", "Half"], [["1", "1"]] * 2, LINE * lines)
        assert figure.layout.title.text.count("<br>") == lines - 1
        parts.append(figure.to_html(full_html=False, include_plotlyjs=lines == 1))
    page.set_content("".join(parts))
    page.wait_for_function("() => document.querySelectorAll('.g-gtitle text').length === 3")
    for top, bottom, panel in page.evaluate(TOPS):
        assert top == pytest.approx(2, abs=3)
        assert bottom < panel
    page.close()

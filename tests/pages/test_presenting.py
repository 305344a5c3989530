"""Presentation mode: the slides of a story in turn, what they are about, and back; the address carries the slide."""

import re

import pytest

from idc_core.figures.wording import typeset
from idc_core.stories.story import shipped
from studio.shell.pages import PAGES
from studio.state import address
from tests.pages.reading import open_page, read_page

SLIDES = [(name, place) for name, story in shipped().items() for place in range(len(story.slides))]


def test_slides_are_turned_opened_and_ended():
    slides = shipped()["lesson"].slides
    app = open_page("stories", story="lesson", slide="9")
    assert not app.exception
    assert app.title[0].value == slides[8].sentence
    app.button(key="present-PageDown").click().run()
    assert app.query_params["slide"] == "10"
    app.button(key="present-PageUp").click().run()
    app.button(key="present-PageUp").click().run()
    assert app.title[0].value == slides[7].sentence
    app.button(key="present-open").click().run()
    assert app.title[0].value == PAGES["clusters"].question
    assert not app.get("idc_tour_offer")
    app.button(key="present-PageDown").click().run()
    assert app.title[0].value == slides[8].sentence
    app.button(key="present-end").click().run()
    assert not {address.STORY, address.SLIDE} & app.query_params.keys()
    assert app.title[0].value == PAGES["stories"].question


def test_the_sidebar_plays_a_story():
    app = open_page("overview", layer="fc1")
    app.button(key="present-examined").click().run()
    assert app.title[0].value == shipped()["examined"].slides[0].sentence
    assert app.query_params["slide"] == "1"


def test_what_is_not_there_is_said():
    app = open_page("stories", story="nonsense")
    assert "There is no story" in app.warning[0].value
    app = open_page("stories", story="lesson", slide="99")
    assert "slide 11 is shown" in app.warning[0].value


@pytest.mark.parametrize(("name", "place"), SLIDES, ids=str)
def test_every_slide_of_a_shipped_story_says_what_its_page_says(name, place):
    """Made anew by `python -m studio.stories`."""
    slide = shipped()[name].slides[place]
    app = read_page(slide.page, **slide.query)
    assert not app.exception
    assert not app.error
    titles = [f"{chart.proto.alt}. " for kind in ("plotly_chart", "echarts_chart") for chart in app.get(kind)]
    said = " ".join([*titles, *(element.value for element in app.main.markdown)])
    assert slide.sentence in re.sub(r"\*\*", "", typeset(said)), "made anew by python -m studio.stories"
    assert slide.setup in ("", *(caption.value for caption in app.caption))

"""One slide: its chart, for the front of a room or beside the list of slides; its sentence is the heading."""

from __future__ import annotations

import streamlit as st

from idc_core.figures.drawn import drawn_once
from idc_core.stories.drawing import Drawing, small
from idc_core.stories.story import Slide
from studio.shell.presenting import Playing
from studio.text import literal
from studio.widgets.layout import is_dark


def play(shown: Playing) -> None:
    """Show the slide that is played."""
    with st.container(key="slide" if shown.slide.drawings else "slide-alone"):
        if shown.slide.drawings:
            _draw_chart(shown.slide, _drawing(shown.slide), f"slide-{shown.id}-{shown.at}", 520)


def draw_beside(slide: Slide, key: str) -> None:
    """Show the chart of a slide beside the list of slides, with the setup that it is from."""
    if slide.drawings:
        _draw_chart(slide, small(_drawing(slide)), key, 360)
    if slide.setup:
        st.caption(literal(slide.setup))


def _drawing(slide: Slide) -> Drawing:
    return slide.drawings["dark" if is_dark() else "light"]


def _draw_chart(slide: Slide, drawing: Drawing, key: str, height: int) -> None:
    import plotly.graph_objects as go

    # It was checked when it was made or read; plotly's own check takes longer than all the rest.
    figure = drawn_once(go.Figure(drawing["data"], drawing["layout"], _validate=False))
    st.plotly_chart(figure, key=key, height=height, theme=None, alt=slide.sentence, config={"displayModeBar": False})

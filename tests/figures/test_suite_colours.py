import re

import plotly.graph_objects as go
import pytest

from idc_core.figures.palette import _DARK, _GREEN, _SUITE_STYLES, LIGHT, contrast, suite_style
from idc_core.suites import SUITES


def test_every_kind_of_suite_has_a_style():
    assert {*SUITES, "own"} >= set(_SUITE_STYLES)
    assert all(suite_style(name) for name in SUITES)


def test_no_two_kinds_share_dash_and_mark_or_mark():
    styles = [suite_style(name) for name in (*SUITES, "own")]
    assert len({style.marker for style in styles}) == len(styles)
    assert len({(style.dash, style.light) for style in styles}) == len(styles)
    for colours in ([style.light for style in styles], [style.dark for style in styles]):
        own = [colour for colour in colours if colour != _GREEN]
        assert len(set(own)) == len(own), "only transforms share a colour"


@pytest.mark.parametrize("name", [*SUITES, "own"])
def test_marks_are_seen_on_either_ground(name):
    """WCAG AA asks 3:1 of graphics."""
    style = suite_style(name)
    assert re.fullmatch(r"#[0-9a-f]{6}", style.light)
    assert contrast(style.colour(False), LIGHT.ground) >= 3
    assert contrast(style.colour(True), _DARK.ground) >= 3
    assert contrast(LIGHT.ink, LIGHT.ground) >= 3


@pytest.mark.parametrize("name", [*SUITES, "own"])
def test_plotly_knows_every_dash_and_mark(name):
    style = suite_style(name)
    go.Scatter(line={"dash": style.dash, "color": style.light}, marker={"symbol": style.marker})
    bare = go.scatter.Marker(symbol=style.marker)
    assert bare.symbol == style.marker

"""docs/DESIGN.md says what the code does; its page shows every colour that it names."""

import re

from docs.pictures import design
from idc_core.base.files import SHIPPED


def test_the_tables_are_as_the_code_is():
    text = design.DOCUMENT.read_text(encoding="utf-8")
    assert design.filled(text) == text, "run python -m docs.pictures.design"
    assert [name for name in design.TABLES if f"<!-- table: {name} -->" not in text] == []


def test_the_page_shows_every_colour_on_both_grounds():
    named = set(re.findall(r"(#[0-9a-f]{6})", design.DOCUMENT.read_text(encoding="utf-8")))
    assert len(named) > 50
    shown = re.findall(r'<i style="background:(#[0-9a-f]{6})"', design.page())
    assert all(shown.count(colour) >= 2 for colour in named)


def test_the_styles_are_let_through():
    """Streamlit takes every style away from a page whose styles hold what may begin an element."""
    assert "<" not in (SHIPPED / "assets" / "styles" / "studio.css").read_text(encoding="utf-8")

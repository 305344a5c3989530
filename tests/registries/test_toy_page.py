"""A page is one file: registered from outside the package, it is in the navigation and opens; no other file changes."""

import importlib.util
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from studio.shell.pages import PAGES

ROOT = Path(__file__).parents[2]
TOY = Path(__file__).parent / "toys" / "page.py"


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setitem(PAGES, "toy", None)  # and so removed again, whatever happens
    spec = importlib.util.spec_from_file_location("toy_page", TOY)
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    return PAGES["toy"]


def test_a_page_from_one_file_is_in_the_navigation_and_opens(toy, monkeypatch):
    listed, draw = [], st.navigation
    monkeypatch.setattr(st, "navigation", lambda pages, **how: listed.append(pages) or draw(pages, **how))
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=600).run()
    assert [page.title for page in listed[-1]][-1] == "Toy"
    app.switch_page(str(TOY)).run()
    assert not app.exception
    assert app.title[0].value == toy.question
    assert app.metric[0].value == "540"
    assert "540 tests" in app.caption[0].value, "the setup is there without a line of the page"


def test_an_unknown_page_is_answered_with_the_pages_there_are():
    with pytest.raises(ValueError, match="Unknown page 'toy': expected one of overview, learn"):
        PAGES["toy"]

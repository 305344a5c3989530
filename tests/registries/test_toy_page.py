"""A page is one file: its place in the studio, its tabs, controls and jobs; no other file changes or names it."""

import shutil
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from idc_core.errors import SettingError
from studio.jobs.turns import Turns
from studio.shell import frame
from studio.shell.pages import PAGES, register

ROOT = Path(__file__).parents[2]
TOY = Path(__file__).parent / "toys" / "page.py"


@pytest.fixture
def toy(monkeypatch, tmp_path):
    """Enter the toy as a page of the name `toy`."""
    monkeypatch.setitem(PAGES, "toy", PAGES["runs"])  # and so removed again, whatever happens
    del PAGES["toy"]
    register(Path(shutil.copy(TOY, tmp_path / "toy.py")))
    return PAGES["toy"]


def opened(toy, **address):
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=600)
    app.query_params.update(address)
    app = app.switch_page(str(toy.file)).run()
    assert not app.exception
    return app


def test_it_is_in_the_navigation_and_opens(toy, monkeypatch):
    listed, draw = [], st.navigation
    monkeypatch.setattr(st, "navigation", lambda pages, **how: listed.append(pages) or draw(pages, **how))
    app = opened(toy)
    titles = [page.title for page in listed[-1]]
    assert titles.index("Toy") == titles.index("Hypotheses") + 1, "the last one under Explore"
    assert app.title[0].value == toy.question
    assert [one.label for one in app.tabs] == ["Once", "Several times"]
    assert app.metric[0].value == "540"
    assert "540 tests" in app.caption[0].value, "the setup is there without a line of the page"
    assert "toy-times" in frame._history_names()


def test_its_control_is_in_the_address_and_its_job_is_long(toy, monkeypatch):
    long, submit = {}, Turns.submit

    def noted(self, session, is_long, work):
        long[is_long] = long.get(is_long, 0) + 1
        return submit(self, session, is_long, work)

    opened(toy)
    monkeypatch.setattr(Turns, "submit", noted)
    app = opened(toy, **{"toy-times": "3"})
    assert app.query_params["tab"] == "often"
    assert app.metric[0].value == "1620"
    assert long == {True: 1}


def test_nothing_else_names_it(toy):
    product = [file for folder in ("studio", "pages", "idc_core") for file in (ROOT / folder).rglob("*.py")]
    names = (f'"{toy.name}"', *toy.controls, "toy-counts")
    assert [file for file in [*product, TOY] if any(name in file.read_text(encoding="utf-8") for name in names)] == [
        TOY
    ]


def test_a_script_that_is_no_page_is_refused(tmp_path):
    (tmp_path / "mine.py").write_text("import streamlit as st\n")
    with pytest.raises(SettingError, match=r"mine\.py is no page: expected a line PAGE = PageEntry"):
        register(tmp_path / "mine.py")


def test_an_unknown_page_is_answered_with_the_pages_there_are():
    with pytest.raises(ValueError, match="Unknown page 'toy': expected one of overview, learn"):
        PAGES["toy"]

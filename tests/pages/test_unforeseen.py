"""An error that nobody foresaw is told in a sentence, with lines to report that hold nothing of a person."""

import runpy
from pathlib import Path

import streamlit as st
from streamlit.testing.v1 import AppTest

from studio import unforeseen


def failing():
    """A page that fails inside of the program, at a text of a person."""
    from idc_core.coverage.cells import total
    from studio import unforeseen
    from studio.state import address

    address.arrive("coverage")
    try:
        total(7)
    except TypeError as error:
        error.args = ("secret of /home/ann",)
        unforeseen.show(error)


def test_the_page_says_what_to_do_and_what_to_report():
    app = AppTest.from_function(failing).run()
    assert not app.exception
    assert "unforeseen error stopped the page \u201ccoverage\u201d" in app.error[0].value
    lines = app.code[0].value.splitlines()
    assert lines[1:3] == ["page: coverage", "error: TypeError"]
    assert lines[3].startswith("idc_core/coverage/cells.py, line ")
    assert "secret" not in app.code[0].value


def test_the_server_shows_it_for_every_script_callback_and_fragment(monkeypatch):
    seen = {}
    monkeypatch.setattr(st, "App", lambda file, **how: seen.update(how))
    runpy.run_path(str(Path(__file__).parents[2] / "app.py"), run_name="app")
    assert seen["on_script_error"] is unforeseen.show

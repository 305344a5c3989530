"""Addresses hold the names of options, and no texts, which may change; texts of today are understood."""

import ast
from pathlib import Path
from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from studio.state import address

ROOT = Path(__file__).parents[2]

BIND_THEIR_VALUES = {
    "studio/adversarial/attack_controls.py",  # words that are values of a parameter
    "studio/widgets/layout.py",
    "studio/learn/chapters.py",  # numbers
}
"""Files in which a choice is bound by Streamlit: its options are values, and no texts."""


def page_of_choices():
    """A page with one control of each kind."""
    import streamlit as st

    from studio.state.choices import choose_one, choose_several

    scale = {"picture": "per picture now", "layer": "per layer now", "all": "shared now"}
    one = choose_one(st.segmented_control, "Scale", scale, "picture", "scale", required=True)
    methods = {"z": "Z", "gamma": "G", "deeplift": "D"}
    several = choose_several(st.multiselect, "Methods", methods, ("z", "gamma"), "compared")
    st.markdown(f"{one} {several}")


def opened(**parameters):
    app = AppTest.from_function(page_of_choices)
    for name, value in parameters.items():
        app.query_params[name] = value
    return app.run()


@pytest.mark.parametrize(
    ("said", "scale", "compared", "held"),
    [
        ({}, "picture", ["z", "gamma"], {}),
        ({"scale": "all", "compared": "deeplift"}, "all", ["deeplift"], {"scale": "all", "compared": "deeplift"}),
        ({"scale": "shared now"}, "all", ["z", "gamma"], {"scale": "all"}),
        ({"scale": "nonsense", "compared": "nonsense"}, "picture", ["z", "gamma"], {}),
        ({"compared": ["z", "deeplift"]}, "picture", ["z", "deeplift"], {"compared": "z,deeplift"}),
        ({"compared": ""}, "picture", [], {"compared": "none"}),
        ({"compared": "none"}, "picture", [], {"compared": "none"}),
        ({"scale": "picture", "compared": "z,gamma"}, "picture", ["z", "gamma"], {}),
    ],
)
def test_an_address_is_read_and_written_again_by_names(said, scale, compared, held):
    app = opened(**said)
    assert not app.exception
    assert app.markdown[0].value == f"{scale} {compared}"
    assert {name: "".join(value) for name, value in app.query_params.items()} == held


def test_a_choice_is_written_by_its_name_and_the_default_not_at_all():
    app = opened(scale="all")
    app.segmented_control(key="scale").set_value("layer").run()
    assert app.markdown[0].value.startswith("layer ")
    assert "".join(app.query_params["scale"]) == "layer"
    app.segmented_control(key="scale").set_value("picture").run()
    assert app.markdown[0].value.startswith("picture ")
    assert "scale" not in app.query_params


def test_going_back_in_the_browser_takes_a_choice_back(monkeypatch):
    app = opened(scale="layer", compared="deeplift")
    del app.query_params["scale"], app.query_params["compared"]
    app.run()
    assert app.markdown[0].value == "layer ['deeplift']", "an address that comes late takes nothing back"
    del app.query_params["scale"], app.query_params["compared"]
    monkeypatch.setattr(address, "get_script_run_ctx", lambda **_: SimpleNamespace(is_history_navigation=True))
    app.run()
    assert app.markdown[0].value == "picture ['z', 'gamma']"


def test_streamlit_writes_no_texts_of_options_into_addresses():
    choices = {"selectbox", "segmented_control", "pills", "multiselect", "radio", "tabs", "select_slider"}
    found = set()
    for file in [*ROOT.glob("studio/**/*.py"), *ROOT.glob("pages/*.py")]:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and any(word.arg == "bind" for word in node.keywords):
                name = getattr(node.func, "attr", "")
                found |= {file.relative_to(ROOT).as_posix()} if name in choices else set()
    assert found == BIND_THEIR_VALUES

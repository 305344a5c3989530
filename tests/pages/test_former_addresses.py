"""Addresses written before open what they meant: with the texts of options that were, and with those that are."""

import ast
from pathlib import Path
from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from idc_core.attribution.methods import METHODS
from idc_core.coverage import CRITERIA
from idc_core.coverage.prioritisation import UNCERTAINTIES
from idc_core.figures import heatmaps
from idc_core.figures.colourings import COLOURINGS
from idc_core.figures.palette import SCHEMES
from idc_core.generation import CONSTRAINTS, OBJECTIVES, SEEDS
from idc_core.perturbation.attacks import ATTACKS
from idc_core.suites import SUITES
from studio.adversarial import attack_controls, attack_results, attacks
from studio.classes.controls import KINDS
from studio.clusters import projected_tests
from studio.criteria import score_charts
from studio.hypotheses import inspections, verification
from studio.learn.chapters import CHAPTERS, DECISION
from studio.neurons import trials
from studio.relevance import choices as relevance_choices
from studio.robustness.controls import STARTS
from studio.state import address
from studio.state.choices import meant
from studio.state.former_texts import FORMER

ROOT = Path(__file__).parents[2]
GROUPS = [f"group-{place}" for place in range(10)]
ORDERS = [*CRITERIA, *(f"{name}-{by}" for by in ("value", "total") for name in CRITERIA), *UNCERTAINTIES]

OPTIONS = {
    "chapter": CHAPTERS,
    "explained": [DECISION, *attacks.EXPLAINED],
    "step": relevance_choices.WAYS,
    "explain": [relevance_choices.PREDICTED],
    "method": METHODS,
    "second": [
        relevance_choices.NEXT,
        *(f"class {place}" for place in range(10)),
        *(f"method {name}" for name in METHODS),
    ],
    "scale": heatmaps.SCALES,
    "colours": SCHEMES,
    "rank": ["sum", "absolute", *GROUPS, *METHODS],
    "ranked-beside": ["sum", "absolute", *GROUPS, *METHODS],
    "compared": METHODS,
    "changed": trials.SHARES,
    "tried": [*map(str, trials.TESTS), trials.ALL],
    "plane": projected_tests.PROJECTIONS,
    "plane-colour": projected_tests.COLOURED,
    "colour": COLOURINGS,
    "attack": ATTACKS,
    "goal": [attack_controls.ANY],
    "show": attack_results.SHOWS,
    "magnify": [attack_results.AUTO],
    "seeds": SEEDS,
    "constraint": CONSTRAINTS,
    "guide": [*CRITERIA, "none"],
    "objective": OBJECTIVES,
    "perturbed-by": SUITES,
    "begin": STARTS,
    "over": score_charts.OVERS,
    "coefficient": score_charts.METHODS,
    "order": ORDERS,
    "kind": KINDS,
    "records": inspections.RECORDS,
    "early": inspections.ERRORS,
    "rate": inspections.RATES,
    "swaps": verification.SWAPS,
}
"""What every control offers today."""

REWORDED = [
    ("chapter", "4 States", "clusters"),
    ("chapter", "4 Clusters", "clusters"),
    ("explained", "the winning answer", "answer"),
    ("explained", "the right class", "right"),
    ("step", "least certain", "uncertain"),
    ("step", "least confident", "uncertain"),
    ("scale", "one for all", "all"),
    ("scale", "shared", "all"),
    ("rank", "Answer \u22120.01 to +0.02", "group-2"),
    ("plane-colour", "right answer", "target"),
    ("goal", "any wrong answer", "any"),
    ("goal", "any wrong class", "any"),
    ("show", "in new cells (16)", "new"),
    ("show", "in added cells (1,016)", "new"),
    ("magnify", "as fits", "auto"),
    ("over", "subsets of one size", "same"),
    ("early", "\u00b1 0.1", "0.1"),
    ("rate", "1 %", 1),
]

BIND_THEIR_VALUES = {
    "studio/adversarial/attack_controls.py",  # words that are values of a parameter
    "studio/criteria/criterion_controls.py",
    "studio/learn/chapters.py",  # numbers
}
"""Files in which a choice is bound by Streamlit: its options are values, and no texts."""


def named(key):
    """What a control offers, each option with a text that no address has said."""
    return {option: f"reworded {option}" for option in OPTIONS[key]}


@pytest.mark.parametrize("key", FORMER)
def test_every_former_text_means_an_option_of_today(key):
    for text, name in FORMER[key].items():
        assert str(meant(key, text, named(key))) == name, text


@pytest.mark.parametrize(("key", "text", "option"), REWORDED)
def test_texts_that_were_reworded(key, text, option):
    assert meant(key, text, named(key)) == option


@pytest.mark.parametrize("key", OPTIONS)
def test_names_are_known_whatever_the_texts_say(key):
    for option in OPTIONS[key]:
        assert meant(key, str(option), named(key)) == option
    assert meant(key, "nonsense", named(key)) is None


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
        ({"scale": "one for all"}, "all", ["z", "gamma"], {"scale": "all"}),
        ({"scale": "shared now"}, "all", ["z", "gamma"], {"scale": "all"}),
        ({"scale": "nonsense", "compared": "nonsense"}, "picture", ["z", "gamma"], {}),
        ({"compared": ["LRP-0 (z)", "DeepLift"]}, "picture", ["z", "deeplift"], {"compared": "z,deeplift"}),
        ({"compared": ""}, "picture", [], {"compared": "none"}),
        ({"compared": "none"}, "picture", [], {"compared": "none"}),
        ({"scale": "each picture", "compared": "z,gamma"}, "picture", ["z", "gamma"], {}),
    ],
)
def test_an_address_is_read_and_written_again_by_names(said, scale, compared, held):
    app = opened(**said)
    assert not app.exception
    assert app.markdown[0].value == f"{scale} {compared}"
    assert {name: "".join(value) for name, value in app.query_params.items()} == held


def test_a_choice_is_written_by_its_name_and_the_default_not_at_all():
    app = opened(scale="shared")
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

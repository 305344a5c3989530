"""The Hypotheses page on texts: activations symbol by symbol, verification, and the grammar of SQL."""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest

import idc_core.datasets as datasets
from idc_core.datasets.sql import _LEARNS_FROM
from idc_core.figures.wording import signed
from idc_core.inspection import inspect, library
from idc_core.inspection.result import grid
from idc_core.inspection.verification import verify
from studio.hypotheses import controls, inspections
from studio.jobs.results import open_view
from studio.state.setup import DEFAULT
from tests.pages.reading import forget_all
from tests.pages.test_hypotheses_page import chart, opened, own_home, text, titles  # noqa: F401 (own_home)


@pytest.fixture(scope="module")
def few_strings():
    """The SQL strings' first 300 records of each split; holds how many pages asked for."""
    real, asked = datasets.load_dataset, defaultdict(set)

    def few(name, split, limit=None, **more):
        asked[split].add(limit)
        return real(name, split, 300, **more)

    forget_all()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets, "load_dataset", few)
        yield asked
    forget_all()


def test_text_is_drawn_symbol_by_symbol_with_the_hypothesis_under_it(few_strings):
    app = opened(
        model="charlstm-sql", words="engine", families="words", records="256", hypothesis="word “engine”", tab="unit"
    )
    assert not app.error
    line, bars = chart(app, " over test ")["data"]
    symbols = "".join(line["text"])
    at = symbols.index("engine")
    assert [bars["y"][at + place] for place in range(6)] == [1] * 6
    assert sum(bars["y"]) % 6 == 0
    assert len(line["y"]) == len(symbols) == 30
    assert app.text_input(key="words").value == "engine"
    assert _LEARNS_FROM in few_strings["train"]
    assert few_strings["test"] == {None}
    assert "learnt from 300 training inputs · 300 tests" in text(app), "what is left out is said where results stand"
    assert "the network was trained on 29,696 training and 5,120 test inputs" in text(app)


@pytest.mark.slow
def test_swapped_symbols_verify_a_hypothesis_as_the_engine_does(few_strings):
    asked = {
        "model": "charlstm-sql",
        "families": "characters",
        "records": "256",
        "hypothesis": "is a digit",
        "tab": "unit",
    }
    assert not [title for title in titles(opened(**asked)) if title.startswith("Silhouette of the changes")], (
        "only where asked for"
    )
    app = opened(**asked, verify="true", **{"verified-units": "5"})
    assert not app.error
    opened_view = open_view(replace(DEFAULT, model="charlstm-sql", data="sql", layer="lstm"))
    (digit,) = [one for one in library(opened_view.test, ["characters"]) if one.name == "is a digit"]
    scores = inspect(opened_view.model, opened_view.test.sample(256), [digit], ["pearson"], ["lstm"])
    units = grid(scores, "pearson", opened_view.card.name, "lstm").units_of(0)[:5].tolist()
    found = verify(opened_view.model, "lstm", units, opened_view.test, digit, swaps="symbols")
    claim = "Silhouette of the changes of the 5 neurons with the highest scores when swaps make “is a digit” false: "
    said = next(one for one in text(app).splitlines() if one.startswith(f"**{claim}"))
    low, high = np.quantile(found.random, [0.025, 0.975])
    beside = [signed(value, ".2f") for value in (found.silhouette, found.random.mean(), low, high)]
    assert "{}, and {} ({} to {}) of random sets of neurons".format(*beside) in said
    assert (" Confirmed: " in said) == (found.p_value <= 0.05)
    dots, _, diamond = chart(app, "Silhouette of the changes")["data"]
    assert sorted(dots["x"]) == pytest.approx(sorted(found.random))
    assert diamond["x"] == pytest.approx([found.silhouette])
    assert any(button.key == "data-verification" for button in app.get("download_button"))


@pytest.mark.rare
def test_grammar_verifies_what_takes_a_parse(few_strings):
    asked = {"model": "charlstm-sql", "families": "grammar,labels", "records": "256", "verify": "true"}
    app = opened(**asked, hypothesis="inside digit")
    assert "The grammar rewrote the texts" in text(app)
    assert "swaps" not in [control.key for control in app.button_group], "there is one way only"


def test_what_cannot_be_verified_says_why(few_strings):
    shown = opened(model="charlstm-sql", families="words", records="256", verify="true", hypothesis="word “SELECT”")
    assert "made it false; at least 10 of each are needed" in shown.error[0].value
    pictures = opened(families="labels", tab="unit")
    assert "Cause or correlation?" not in [one.value for one in pictures.subheader], "only symbols can be swapped"


def test_grammar_is_usual_for_sql(few_strings):
    view = open_view(replace(DEFAULT, model="charlstm-sql", data="sql", layer="lstm"))
    assert inspections.usual(view) == ["characters", "words", "grammar"]
    assert controls._words_of(" a, b,,a ") == ("a", "b")

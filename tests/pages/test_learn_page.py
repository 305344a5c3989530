"""The Learn page: six chapters, their answers, and an address that holds the reader's network."""

import json
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from idc_core.analysis import teaching
from idc_core.analysis.teaching import START, START_INPUTS
from studio.shell.pages import PAGES

ROOT = Path(__file__).parents[2]
CHAPTERS = ("network", "relevance", "importance", "clusters", "cells", "empty")


@pytest.fixture
def open_learn(open_page):
    return partial(open_page, "learn")


def words(app) -> str:
    """Everything a person can read, charts and the network aside."""
    kinds = (app.markdown, app.caption, app.title, app.header, app.metric, app.latex)
    return "\n".join(str(element.value) for kind in kinds for element in kind)


def titles(app) -> list[str]:
    return [json.loads(chart.proto.spec)["layout"]["title"]["text"] for chart in app.get("plotly_chart")]


def address(weights=START, inputs=START_INPUTS) -> str:
    numbers = np.concatenate([inputs, *(weight.ravel() for weight in weights)])
    return "_".join(str(round(100 * number)) for number in numbers)


def test_opens_on_the_first_chapter(open_learn):
    app = open_learn()
    assert not app.exception
    assert app.title[0].value == PAGES["learn"].question
    assert app.header[0].value == "What does a neuron do?"
    assert [one.key for one in app.get("bidi_component")] == [
        "theme",
        "history",
        "learn-network",
        "learn-top",
        "search",
    ]
    assert "Predicted: **seven** (scores: one \u22120.39, seven 1.12)" in words(app)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_chapter_asks_answers_and_says_what_to_try(open_learn, chapter):
    app = open_learn(chapter=chapter)
    assert not app.exception
    assert "chapter" not in app.query_params
    assert app.query_params.get("tab", "network") == chapter
    assert len(app.header) == 1
    assert sum("**Try:**" in element.value for element in app.markdown) == 1
    (answer,) = [found for found in app.expander if found.label.startswith("**Question**: ")]
    assert not answer.proto.expanded
    assert answer.markdown[0].value


def test_leafing_through(open_learn):
    app = open_learn()
    seen = [app.header[0].value]
    while True:
        onwards = [button for button in app.button if button.label.startswith("Next")]
        if not onwards:
            break
        onwards[0].click().run()
        assert not app.exception
        seen.append(app.header[0].value)
    assert len(set(seen)) == len(CHAPTERS)
    next(button for button in app.button if button.label.startswith("Previous")).click().run()
    assert app.header[0].value == seen[-2]


def test_needs_neither_torch_nor_data():
    script = (
        "import sys; from streamlit.testing.v1 import AppTest\n"
        "app = AppTest.from_file('app.py', default_timeout=30).switch_page('pages/learn.py')\n"
        "for chapter in sys.argv[1:]:\n"
        "    app.query_params['chapter'] = chapter; app.run(); assert not app.exception and app.header\n"
        "print(sorted({'torch', 'sklearn', 'captum'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script, *CHAPTERS], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_the_address_holds_network_and_line(open_learn):
    weights = tuple(weight.copy() for weight in START)
    weights[1][0, 0] = -1.25
    app = open_learn(chapter="relevance", net=address(weights, np.array([0.2, 0.4, 1.0])), line="a1-b2")
    assert not app.exception
    found = teaching.explain(weights, [[0.2, 0.4, 1.0]])
    sums = [metric.value for metric in app.metric]
    assert sums == [f"{found.values[-1].max():.3f}"] * 4
    assert "from a1 to b2" in words(app)
    (sent,) = [one for one in app.get("bidi_component") if one.key == "learn-network"]
    data = json.loads(sent.proto.json)
    assert data["weights"][1][0][0] == -1.25
    assert data["edge"] == [1, 0, 1]


@pytest.mark.parametrize(
    "wrong", ["nonsense", "1_2", address().replace("90", "101", 1), address().replace("90", "--9", 1), "9" * 90, ""]
)
def test_a_wrong_address_falls_back_to_the_start(open_learn, wrong):
    app = open_learn(net=wrong, line=wrong, chapter=wrong, explained=wrong, **{"lesson-k": wrong}, shown=wrong)
    assert not app.exception
    assert "(scores: one \u22120.39, seven 1.12)" in words(app)
    assert r"\text{a1} = 0.90 \times 1.00" in words(app)


def test_an_inactive_neuron_is_said_to_pass_on_nothing(open_learn):
    inactive = [r"passes on } 0" in words(open_learn(line=line)) for line in ("top-a3", "top-a1", "b1-one")]
    assert inactive == [True, False, False]  # the score of an output may be negative


def test_putting_all_numbers_back(open_learn):
    app = open_learn(net=address(inputs=np.array([0.0, 0.5, 0.4])))
    assert "Predicted: **one**" in words(app)
    next(button for button in app.button if button.label == "Reset").click().run()
    assert "Predicted: **seven**" in words(app)
    assert "net" not in app.query_params


def test_equation_gives_what_the_line_hands_back(open_learn):
    app = open_learn(chapter="relevance", line="foot-a1")
    formula = next(element.value for element in app.latex)
    with_numbers = r"\\frac\{([\d.]+) \\times \((-[\d.]+)\)\}\{([\d.]+) \+ 0.000001\} \\times ([\d.]+) = (-[\d.]+)"
    found = re.search(with_numbers, formula)
    x, w, z, above, result = map(float, found.groups())
    assert x * w / z * above == pytest.approx(result, abs=2e-3)
    assert result == pytest.approx(teaching.explain(START, [START_INPUTS]).flows[0][0, 2, 0], abs=5e-4)


def test_another_answer_can_be_explained(open_learn):
    app = open_learn(chapter="relevance")
    assert [metric.value for metric in app.metric] == ["1.125"] * 4
    app.segmented_control(key="explained").set_value("one").run()
    assert not app.exception
    assert [metric.value for metric in app.metric] == ["\u22120.394"] * 4


def test_importance_follows_the_weights(open_learn):
    assert titles(open_learn(chapter="importance")) == ["a2 is the most active neuron, a1 the most important"]
    weights = tuple(weight.copy() for weight in START)
    weights[1][1] = 1.5
    (title,) = titles(open_learn(chapter="importance", net=address(weights)))
    assert title == "a2 is both the most active and the most important neuron"


def test_clusters_step_by_step(open_learn):
    app = open_learn(chapter="clusters")
    slider = app.slider(key="step3")
    assert "Spread: none yet." in words(app), "nothing is assigned to a centroid yet"
    seen = []
    for step in range(int(slider.max) + 1):
        app.slider(key="step3").set_value(step).run()
        assert not app.exception
        seen.append(titles(app)[0])
    assert seen[0] == "Initial guess: the centroids are at the lowest values"
    assert seen[-1] == "Converged: no value changes its cluster"
    assert "Spread: 0.062." in words(app)
    assert "This is not the optimum" not in words(app)
    app.segmented_control(key="lesson-k").set_value(4).run()
    app.slider(key="step4").set_value(app.slider(key="step4").max).run()
    assert "This is not the optimum: the best 4 clusters have a spread of 0.025" in words(app)


def test_four_tests_fill_the_cells(open_learn):
    app = open_learn(chapter="cells")
    seen = []
    for shown in range(5):
        app.slider(key="tests-shown").set_value(shown).run()
        assert not app.exception
        seen += titles(app)
    assert seen == [
        "IDC of 0 tests: 0 of 6 cells",
        "IDC of 1 test: 1 of 6 cells (16.7 %)",
        "IDC of 2 tests: 2 of 6 cells (33.3 %)",
        "IDC of 3 tests: 3 of 6 cells (50.0 %)",
        "IDC of 4 tests: 3 of 6 cells (50.0 %)",
    ]


@pytest.mark.parametrize(
    ("ink", "said", "covered"),
    [
        ((0.0, 0.0, 0.0), "Your picture fills an empty cell, 0-0.", "4 of 6 cells (66.7 %)"),
        ((0.45, 0.9, 0.95), "Your picture fills an empty cell, 1-1.", "4 of 6 cells (66.7 %)"),
        ((1.0, 0.5, 0.0), "Your picture falls into a covered cell, 2-0.", "3 of 6 cells (50.0 %)"),
    ],
)
def test_an_own_picture_falls_into_its_cell(open_learn, ink, said, covered):
    app = open_learn(chapter="empty")
    for name, value in zip(("top", "middle", "foot"), ink, strict=True):
        app.slider(key=f"own-{name}").set_value(value)
    app.run()
    assert not app.exception
    assert said in words(app)
    assert titles(app) == [f"IDC with your picture: {covered}"]

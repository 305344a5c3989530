"""The guided tour: seven steps whose numbers are the setup's, from anywhere, and out of it at any time."""

from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from studio.jobs.overview import summarise
from studio.jobs.results import open_view
from studio.shell.pages import PAGES
from studio.shell.tour_steps import STEPS, Story, _only_by, overview
from studio.state.selection import parse as parse_selection
from studio.state.setup import DEFAULT, parse
from studio.text import cell_name, percent

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def view():
    return open_view(DEFAULT)


@pytest.fixture
def studio():
    """Open the studio through the front door, at a page or at its bare address."""

    def opened(page: str = "", **parameters: str) -> AppTest:
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        for name, value in parameters.items():
            app.query_params[name] = value
        if page:
            # Twice: what is set before the first run reaches only the page that it opens.
            app.switch_page(str(PAGES[page].file))
        return app.run()

    return opened


def heading(app) -> str:
    return next((one.value for one in app.main.header if one.value.startswith("Tour, ")), "")


def said(app) -> str:
    texts = [one.value for one in app.main.markdown]
    return "\n".join(text for text in texts if text.startswith(("**What you see", "**Try this", "**What it means")))


def buttons(app) -> list[str]:
    return [one.key for one in app.button if str(one.key).startswith("tour-")]


def address(app) -> dict[str, str]:
    return {name: values[0] if isinstance(values, list) else values for name, values in app.query_params.items()}


def alone(view) -> list[tuple[int, ...]]:
    """Cells that only misclassified tests reach, counted one test after the other."""
    rights: dict[tuple[int, ...], list[bool]] = {}
    for cell, right in zip(view.analysis.assignments.tolist(), view.correct.tolist(), strict=True):
        rights.setdefault(tuple(cell), []).append(right)
    return sorted(cell for cell, found in rights.items() if not any(found))


def test_the_default_setup_holds_the_finding(view):
    story = Story(view)
    cells = alone(view)
    assert story.cell == cells[0]
    assert tuple(view.analysis.assignments[story.position].tolist()) == story.cell
    assert not view.correct[story.position]
    covered = {tuple(cell) for cell in view.analysis.assignments.tolist()}
    steps = [
        cell for cell in np.ndindex(*view.sizes) if sum(abs(a - b) for a, b in zip(cell, story.cell, strict=True)) == 1
    ]
    assert set(story.around) == set(steps)
    assert set(story.empty) == set(steps) - covered
    assert story.empty, "the last step has nothing to show"
    same = [
        sum(cell[i] == cluster for cell in view.analysis.assignments.tolist()) for i, cluster in enumerate(story.cell)
    ]
    assert story.reached == same
    assert story.neuron == view.analysis.important[same.index(min(same))]
    unit = view.analysis.train_activations.std(axis=0, dtype=np.float64)

    def away(cell):
        target = [values[cluster] for values, cluster in zip(view.analysis.centroids, cell, strict=True)]
        return np.linalg.norm((view.analysis.test_activations[story.position] - target) / unit)

    assert story.goal == min(story.empty, key=away)
    assert story.distance(story.goal) == pytest.approx(away(story.goal))


def test_from_the_first_step_to_the_finding_and_out(studio, view):
    app = studio()
    story, result = Story(view), summarise(view)
    app.button(key="tour-start").click().run()
    seen = []
    for number, step in enumerate(STEPS, start=1):
        assert not app.exception
        assert app.title[0].value == PAGES[step.page].question
        assert heading(app) == f"Tour, step {number} of {len(STEPS)}: {step.title}"
        words = overview(result) if number == 1 else step.tell(story)
        assert all(text in said(app) for text in words)
        assert address(app)["tour"] == str(number)
        assert parse_selection(address(app)) == step.selects(story)
        seen.append(said(app))
        if number < len(STEPS):
            app.button(key="tour-next").click().run()
    confidence, positive = view.analysis.confidence.tolist(), np.clip(view.analysis.importance, 0, None)
    surer = sum(one > confidence[story.position] for one in confidence)
    activations = view.analysis.test_activations[:, story.rank]
    important = view.analysis.important.tolist()
    facts = {
        1: [percent(np.mean(view.correct)), f"{view.table.total - view.table.covered} of {view.table.total} cells"],
        2: [
            f"Test {story.test}: a {story.truth}",
            percent(confidence[story.position]),
            f"{surer} of 540 tests have a higher",
        ],
        3: [
            f"Neuron {important[0]} is first with {percent(positive[important[0]] / positive.sum())}",
            f"6 of 84 neurons carry {percent(positive[important].sum() / positive.sum())}",
            f"neuron {story.neuron} at {activations[story.position]:.1f}; the mean over all tests is "
            f"{activations.mean():.1f}",
        ],
        4: [f"{int((view.analysis.assignments[:, story.rank] == story.cell[story.rank]).sum())} of 540 tests"],
        5: [f"IDC {percent(view.table.covered / view.table.total)}", cell_name(story.cell)],
        6: [f"layer {DEFAULT.layer}, m = {DEFAULT.m}, {percent(view.analysis.score)}"],
        7: [cell_name(story.goal), f"{len(story.empty)} of {len(story.around)} neighbouring cells"],
    }
    for number, wanted in facts.items():
        for fact in wanted:
            assert fact in seen[number - 1]
    assert "only misclassified tests" in seen[0]
    assert "tour-skip" not in buttons(app)
    app.button(key="tour-finish").click().run()
    assert not app.exception
    assert heading(app) == ""
    assert "tour" not in app.query_params
    assert "Tour" in app.toast[0].value
    assert f"Tests closest to cell {cell_name(story.goal)}" in [one.value for one in app.header], "everything stays"


def test_back_selects_what_that_step_is_about(studio, view):
    app = studio("coverage", tour="5")
    app.button(key="tour-back").click().run()
    assert heading(app).startswith("Tour, step 4 of 7")
    assert app.title[0].value == PAGES["clusters"].question
    assert parse_selection(address(app)) == STEPS[3].selects(Story(view))


def test_skipping_leaves_the_page_and_the_selection(studio):
    app = studio("relevance", tour="2")
    before = parse_selection(address(app))
    app.button(key="tour-skip").click().run()
    assert not app.exception
    assert app.title[0].value == PAGES["relevance"].question
    assert heading(app) == ""
    assert parse_selection(address(app)) == before
    app.button(key="tour-start").click().run()
    assert heading(app).startswith("Tour, step 1 of 7")


def test_starting_puts_the_setup_on_the_default_and_says_so(studio):
    app = studio("clusters", layer="fc1", m="3", classes="3", input="17")
    app.button(key="tour-start").click().run()
    assert address(app) == {"tour": "1"}
    assert app.title[0].value == PAGES["overview"].question
    assert parse(address(app)) == DEFAULT
    assert any("default setup" in one.value for one in app.main.caption)


def test_another_setup_in_the_middle_and_back(studio, view):
    app = studio("neurons", tour="3")
    app.slider(key="m").set_value(4).run()
    assert not app.exception
    assert heading(app) == ""
    assert any("uses the default setup" in one.value for one in app.main.markdown)
    app.button(key="tour-continue").click().run()
    assert heading(app).startswith("Tour, step 3 of 7")
    assert parse_selection(address(app)) == STEPS[2].selects(Story(view))
    assert app.slider(key="m").value == DEFAULT.m


@pytest.mark.parametrize("name", ["learn", "coverage", "overview"])
def test_other_pages_say_where_the_tour_goes_on(studio, name):
    app = studio("neurons", tour="3")
    app.query_params.clear()  # as a change of page does
    app.switch_page(str(PAGES[name].file)).run()
    assert not app.exception
    assert app.title[0].value == PAGES[name].question
    assert heading(app) == ""
    app.button(key="tour-continue").click().run()
    assert app.title[0].value == PAGES["neurons"].question
    assert heading(app).startswith("Tour, step 3 of 7")


def test_an_address_without_a_page_leads_to_the_page_of_its_step(studio, view):
    app = studio(tour="4")
    assert not app.exception
    assert app.title[0].value == PAGES["clusters"].question
    assert parse_selection(address(app)) == STEPS[3].selects(Story(view))


def test_an_address_that_selects_something_else_keeps_it(studio, view):
    app = studio("neurons", tour="3", neuron="53")
    assert address(app)["neuron"] == "53"
    assert "tour-again" in buttons(app)
    app.button(key="tour-again").click().run()
    assert parse_selection(address(app)) == STEPS[2].selects(Story(view))
    assert "tour-again" not in buttons(app)


@pytest.mark.parametrize("text", ["0", "8", "-1", "two", "\u0663"])
def test_an_address_with_a_step_that_is_none_shows_no_tour(studio, text):
    app = studio(tour=text)
    assert not app.exception
    assert app.title[0].value == PAGES["overview"].question
    assert heading(app) == ""


def components(app) -> list[str]:
    return [one.proto.component_name for one in app.get("bidi_component") if "tour" in one.proto.component_name]


def test_only_the_overview_offers_the_tour_and_not_during_it(studio):
    app = studio()
    assert components(app) == ["idc_tour_offer"]
    app.button(key="tour-start").click().run()
    assert components(app) == ["idc_tour_memory"]
    app.button(key="tour-skip").click().run()
    assert components(app) == ["idc_tour_memory"], "what remembers the end, and no new offer"
    assert components(studio("learn")) == []


@pytest.mark.parametrize(
    ("tests", "wrong", "words"),
    [
        (1, 1, "by one test only, and that one is misclassified"),
        (3, 3, "by 3 tests, all of them misclassified"),
        (4, 1, "by 4 tests, 1 of them misclassified"),
        (1, 0, "by 1 test, 0 of them misclassified"),
    ],
)
def test_by_what_a_cell_is_reached(tests, wrong, words):
    assert _only_by(tests, wrong) == words

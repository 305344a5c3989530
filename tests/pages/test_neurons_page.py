"""The Neurons page: its rankings, the neuron it looks at, and the trials of whether neurons really decide."""

import base64
import json
import re

import numpy as np
import pytest

from idc_core.attribution.methods import METHODS, attribute
from idc_core.attribution.relevance import relevance
from idc_core.errors import UnsupportedOperationError
from idc_core.experiments.ablation import ablate, silence_each
from idc_core.experiments.random_neurons import seeds_of_draws, some_neurons
from idc_core.importance.ranking import extremes, sample_inputs
from idc_core.report.neuron_cards import examples_of
from idc_core.store import notes
from idc_core.stories.story import STORIES
from studio.jobs import results
from studio.jobs.jobs import STOPPED
from studio.jobs.results import open_view
from studio.neurons import cards, ranking_charts, rankings, trial_runs, trials
from studio.neurons.neuron import _EXAMPLES, told
from studio.state.setup import DEFAULT, Setup
from studio.text import percent
from studio.widgets import storytelling
from tests.pages.reading import forget_all


@pytest.fixture(autouse=True, scope="module")
def few():
    """Rank by fewer training inputs: what is told of the rankings is the same."""
    forget_all()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rankings, "SAMPLE", 60)
        yield
    forget_all()


@pytest.fixture(scope="module")
def view(few):
    return open_view(DEFAULT)


def words(app) -> str:
    kinds = (app.markdown, app.caption, app.header, app.warning, app.error)
    return "\n".join(str(element.value) for kind in kinds for element in kind)


def chart(app, start: str) -> dict:
    """The chart whose finding begins so, or the only one that holds these words."""
    found = [one for one in app.get("plotly_chart") if start in one.proto.alt]
    assert len(found) == 1, alternatives(app)
    return json.loads(found[0].proto.spec)


def array(values) -> list[float]:
    """Read numbers as plotly writes them."""
    if isinstance(values, dict):
        return np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"]).tolist()
    return values


def alternatives(app) -> list[str]:
    """The findings of the charts."""
    return [one.proto.alt for one in app.get("plotly_chart")]


def first_column(app) -> str:
    """The leftmost neuron of the ranking."""
    return json.loads(app.get("plotly_chart")[0].proto.spec)["layout"]["xaxis"]["categoryarray"][0]


def test_finding_says_what_the_important_neurons_carry_and_what_silencing_them_changes(open_page, view):
    app = open_page("neurons", tab="decide")
    importance = view.analysis.importance
    share = importance[view.analysis.important].sum() / importance[importance > 0].sum()
    said = app.markdown[0].value
    assert said.startswith(f"**Important: 6 of 84 neurons ({percent(6 / 84)}).** They carry {100 * share:.1f} % of the")
    finding = alternatives(app)[0]
    places = np.linspace(0, 539, trials._USUAL).astype(int)
    inputs, targets = view.test.inputs[places], view.test.targets[places]
    first = np.argsort(-importance)[:6]
    found = ablate(view.model, inputs, targets, "fc2", first, [6], seeds_of_draws(first, 84, 39))
    assert np.isfinite(found.random).all()
    low, high = 100 * np.quantile(found.random, [0.025, 0.975])
    beside = f"{100 * found.random.mean():.1f} % ({low:.1f} % to {high:.1f} %) with as many random ones"
    assert f"Accuracy with the first 6 neurons silenced: {100 * found.important[0]:.1f} %, and {beside}" in finding
    moved = alternatives(app)[1]
    assert moved.startswith(
        "Distance moved by the first 6 neurons (in deviations) when the most relevant pixels change: "
    )
    assert "by as many random ones" in moved


def test_ranking_beside_another_ranking_and_the_activation(open_page, view):
    app = open_page("neurons", tab="ranking")
    drawn = chart(app, "Of the first 6 neurons by cumulative relevance, also first by absolute relevance: ")
    assert "of as many random neurons" in alternatives(app)[0]
    assert first_column(app) == str(view.analysis.important[0])
    titles = [note["text"] for note in drawn["layout"]["annotations"]]
    assert titles[:3] == ["Cumulative relevance", "Absolute relevance", "Activation"]
    app.selectbox(key="rank").select("group-3").run()
    app.selectbox(key="ranked-beside").select("gamma").run()
    assert not app.exception
    relevance = view.train_traces.relevance["fc2"][view.train.targets == 3].mean(0)
    assert first_column(app) == str(relevance.argmax())
    assert "lRP" not in words(app)
    assert f"LRP-gamma, {rankings.SAMPLE} training inputs" in words(app)


def test_address_opens_the_same_rankings(open_page):
    app = open_page("neurons", tab="ranking", rank="Class 3", **{"ranked-beside": "Gradient times input"}, neuron="7")
    assert not app.exception
    assert "by class 3, also first by gradient times input: " in alternatives(app)[0]
    assert "Neuron 7, highest activation" in words(app)
    app.button(key="neuron-detail").click().run()
    assert app.query_params["tab"] == "neuron"
    assert app.selectbox(key="neuron-chosen").value == 7


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "method",
    [
        pytest.param(name, marks=pytest.mark.slow if name == "conductance" else ())
        for name, entry in METHODS.items()
        if entry.inside
        if name != ranking_charts._RULE
    ],
)
def test_every_method_ranks_the_neurons(open_page, view, method):
    app = open_page("neurons", tab="ranking", rank=METHODS[method].label)
    assert not app.exception
    assert not app.error
    inputs = view.train.inputs[sample_inputs(view.train, rankings.SAMPLE)]
    values = attribute(view.model, inputs, method, "fc2").mean(0, dtype=np.float64)
    assert first_column(app) == str(values.argmax())


def test_a_method_that_refuses_the_network_is_named_and_the_others_are_shown(open_page, monkeypatch):
    def refuse(*args, rule, **options):
        if rule == "gamma":
            raise UnsupportedOperationError("It cannot pass through a teapot.")
        return relevance(*args, rule=rule, **options)

    monkeypatch.setattr("idc_core.attribution.registry.relevance", refuse)
    forget_all()
    app = open_page("neurons", tab="agreement", rank="LRP-gamma")
    forget_all()
    assert not app.exception
    said = "LRP-gamma is left out. It cannot pass through a teapot."
    assert app.error[0].value == f"{said} Shown instead: Cumulative relevance."
    assert app.warning[0].value == said
    assert chart(app, "Rank correlation of the rankings")["layout"]["xaxis"]["ticktext"] == [
        "Cumulative relevance",
        "Absolute relevance",
        "Normalised relevance",
        "LRP-0 (z)",
        "LRP-alpha-beta",
        "LRP composite",
        "Gradient times input",
    ]


def test_chosen_classes_stand_beside_the_ranking(open_page):
    app = open_page("neurons", tab="ranking", classes="3")
    assert app.selectbox(key="ranked-beside").value == "group-3"
    app = open_page("neurons", tab="ranking", classes="3,5")
    assert app.selectbox(key="ranked-beside").value == "chosen"
    assert not app.exception


def drawn_cards(app) -> list[dict]:
    """The cards that the page draws last."""
    drawn = [json.loads(one.proto.json) for one in app.get("bidi_component") if '"cards"' in one.proto.json]
    return drawn[-1]["cards"]


def test_cards_show_the_tests_with_most_relevance_and_what_silencing_changes(open_page, view):
    app = open_page("neurons")
    assert not app.exception
    drawn = drawn_cards(app)
    assert [card["neuron"] for card in drawn] == view.analysis.important.tolist()
    relevance = view.test_traces.relevance["fc2"]
    shares = relevance / np.abs(relevance).sum(1, keepdims=True)
    for card in drawn:
        tests = [int(one) for one in re.findall(r'data-test="(\d+)"', card["picture"])]
        assert tests == view.test.ids[np.argsort(-shares[:, card["neuron"]], kind="stable")[:8]].tolist()
    picture = drawn[0]["picture"]
    assert "accuracy without it" in picture
    assert "\u2013</text>" not in picture, "what silencing changes is there"
    (verdict,) = re.findall(r">((?:Within what|Beyond) [^<]*)</text>", picture)
    places = view.chosen[np.linspace(0, 539, 500).astype(int)]
    inputs, targets = view.test.inputs[places], view.test.targets[places]
    others = np.setdiff1d(some_neurons(84, 40), [drawn[0]["neuron"]])
    found = silence_each(view.model, inputs, targets, "fc2", [drawn[0]["neuron"], *others], targets, 10)
    low, high = np.quantile(found.change[1:], [0.025, 0.975], axis=0)
    beyond = np.flatnonzero((found.change[0] < low - 1e-9) | (found.change[0] > high + 1e-9))
    said = f"Beyond {len(others)} others: {', '.join(map(str, beyond))}"
    assert verdict == (said if len(beyond) else f"Within what {len(others)} others do")
    assert app.segmented_control(key="card-part").value == "crop", "dense neurons look at parts, too"
    active = drawn_cards(open_page("neurons", layer="conv2", **{"card-by": "activation", "card-part": "whole"}))
    deep = open_view(Setup("lenet5-digits", "digits", "conv2", 6, ())).test_traces.activations["conv2"]
    best = deep[:, active[0]["neuron"]].argmax()
    assert f'data-test="{view.test.ids[best]}"' in active[0]["picture"]


def test_atlas_leafs_through_the_layer_in_its_order(open_page, view):
    app = open_page("neurons", **{"card-shown": "all", "card-order": "number", "card-page": "1"})
    assert not app.exception
    assert [card["neuron"] for card in drawn_cards(app)] == list(range(25, 50))
    app.segmented_control(key="card-shown").set_value("named").run()
    assert "No neuron of this kind" in words(app)


def test_atlas_shows_the_neurons_most_relevant_for_a_class(open_page, view):
    app = open_page("neurons", **{"card-shown": "all", "card-class": "3"})
    assert not app.exception
    relevance = view.train_traces.relevance["fc2"][view.train.targets == 3].mean(0, dtype=np.float64)
    shown = [card["neuron"] for card in drawn_cards(app)]
    order = np.argsort(-relevance)
    half = np.maximum(relevance, 0).sum() / 2
    assert shown == order[: len(shown)].tolist()
    assert relevance[shown[:-1]].sum() < half <= relevance[shown].sum()
    assert f"relevance: {len(shown)} of 84 neurons" in words(app)
    app.segmented_control(key="card-order").set_value("number").run()
    assert [card["neuron"] for card in drawn_cards(app)] == sorted(shown)
    app.selectbox(key="card-class").select("").run()
    assert len(drawn_cards(app)) == 25
    assert "card-class" not in app.query_params


def test_cards_tell_the_best_hypotheses_or_how_to_get_them(open_page, monkeypatch):
    def links(app):
        return [one.proto.label for one in app.get("page_link")]

    assert "Test hypotheses to see the best of each neuron on its card" in links(open_page("neurons"))
    monkeypatch.setattr("studio.neurons.cards.find_hypotheses", lambda view: {18: (("a loop", "0.81"),)})
    app = open_page("neurons")
    assert not app.exception
    first, second = drawn_cards(app)[:2]
    assert all(part in first["picture"] for part in ("Best hypotheses", "a loop", "0.81"))
    assert "none is significant" in second["picture"]
    assert "Test hypotheses to see the best of each neuron on its card" not in links(app)


def test_a_card_becomes_a_slide_of_a_story(open_page, view, monkeypatch, tmp_path):
    monkeypatch.setenv("IDC_HOME", str(tmp_path))
    neurons, by = view.analysis.important[:1], "relevance"
    examples = examples_of(view, view.model, neurons, by)
    monkeypatch.setattr(storytelling.address, "here", lambda: ("neurons", {"neuron": "18"}))
    cards._add_to_story(view, cards.card_data.cards_of(view, examples)[0])
    (story,) = STORIES.listed().values()
    (slide,) = story.slides
    assert slide.sentence.startswith("Neuron 18: the tests in which it matters most")
    assert set(slide.drawings) == {"light", "dark"}
    assert len(slide.drawings["light"]["layout"]["images"]) == 8


def test_a_name_is_kept_and_shown_wherever_the_neuron_is_named(open_page, view, monkeypatch, tmp_path):
    monkeypatch.setenv("IDC_HOME", str(tmp_path))
    app = open_page("neurons", tab="neuron", neuron="18")
    app.text_input(key="neuron-name-18").set_value("loop <below>").run()
    assert not app.exception
    assert "loop &lt;below&gt;" in drawn_cards(app)[0]["picture"]
    assert "neuron 18 (loop <below>), place 1 of 84" in app.selectbox(key="neuron-chosen").options
    assert open_view(DEFAULT).neurons[0] == "neuron 18 (loop <below>)"
    (note,) = notes.kept_notes()
    assert (note.text, note.names, note.place["layer"]) == ("loop <below>", True, "fc2")
    app.text_input(key="neuron-name-18").set_value("").run()
    assert notes.kept_notes() == []


def test_examples_are_the_tests_at_both_ends(open_page, view):
    neuron = 7
    activations = view.test_traces.activations["fc2"][:, neuron]
    most, least = extremes(activations, _EXAMPLES)
    app = open_page("neurons", tab="neuron", neuron=str(neuron))
    shown = [json.loads(one.proto.json)["tiles"] for one in app.get("bidi_component") if "tiles" in one.proto.json]
    tests = [[tile["test"] for tile in tiles] for tiles in shown]
    assert tests[:2] == [view.test.ids[most].tolist(), view.test.ids[least].tolist()]
    assert f"from {activations.max():.2f} down" in words(app)


def test_choosing_a_neuron_selects_it_everywhere(open_page, view):
    app = open_page("neurons", tab="neuron")
    assert app.selectbox(key="neuron-chosen").value == view.analysis.important[0]
    app.selectbox(key="neuron-chosen").select(30).run()
    assert not app.exception
    assert app.query_params["neuron"] in ("30", ["30"])
    (card,) = drawn_cards(app)
    means = [view.train_traces.relevance["fc2"][view.train.targets == one, 30].mean() for one in range(10)]
    told = [
        re.search(rf"<title>{one}: ([^<]*)</title>", card["picture"])[1].replace("\u2212", "-") for one in range(10)
    ]
    assert [float(one) for one in told] == pytest.approx(means, rel=1e-2, abs=1e-9)
    assert "neuron 30 is not one of them" in words(app)


def test_a_neuron_that_the_layer_has_not_is_passed_over(open_page, view):
    app = open_page("neurons", tab="neuron", neuron="4000")
    assert not app.exception
    assert app.selectbox(key="neuron-chosen").value == view.analysis.important[0]


def test_selected_input_is_marked_among_the_tests(open_page, view):
    value = view.test_traces.activations["fc2"][417, 18]
    assert f"; test 417 activates it at {value:.2f}" in words(open_page("neurons", tab="ranking", input="417"))
    marks = chart(
        open_page("neurons", tab="agreement", input="417"), "Relevance and activation of the important neurons"
    )
    assert "test 417" in {trace["name"] for trace in marks["data"]}


def test_a_click_tells_the_number_that_the_mark_carries():
    assert told([{"customdata": [12]}]) == told([{"customdata": 12}, {"customdata": 3}]) == 12


def test_trials_follow_the_ranking_and_their_settings(open_page):
    app = open_page("neurons", rank="Absolute relevance", tried="100", changed="10 %", scaled="true")
    assert not app.exception
    assert "on 100 tests" in chart(app, "Accuracy with the first")["layout"]["yaxis"]["title"]["text"]
    assert "On average 78 pixels are changed per test" in words(app)
    assert "standard deviations" in chart(app, "Distance moved by")["layout"]["yaxis"]["title"]["text"]
    assert "Accuracy with the first 6 neurons by absolute relevance silenced: " in alternatives(app)[0]


def test_layers_with_few_neurons_are_compared_as_far_as_there_are_others(open_page):
    app = open_page("neurons", tab="decide", model="LeNet-1 on digits", layer="conv1")
    assert not app.exception
    assert "Layer conv1 has 4 neurons, so 2 of them are compared with 2 others." in words(app)
    assert "There is only 1 draw of 2 among the other neurons: too few to tell" in words(app)
    assert all("too few to tell" in one for one in alternatives(app))
    assert trial_runs.comparable(1, 1) == 0


@pytest.mark.parametrize("tab", ["ranking", "decide"])
def test_one_neuron_is_written_as_one(open_page, tab):
    app = open_page("neurons", tab=tab, m="1")
    assert app.markdown[0].value.startswith("**Important: 1 of 84 neurons (1.2 %).** Neuron 18 carries ")
    assert tab == "ranking" or "Accuracy with the first neuron silenced: " in alternatives(app)[0]
    assert not any("1 neuron" in one.replace("first 1 neuron", "") for one in alternatives(app))


def test_classes_are_compared_when_asked_for(open_page):
    app = open_page("neurons", **{"agreement-classes": "true"})
    labels = chart(app, "Rank correlation of the rankings")["layout"]["xaxis"]["ticktext"]
    assert [label for label in labels if label.startswith("Class ")] == [f"Class {name}" for name in range(10)]


def test_pinned_setup_stands_beside(open_page):
    app = open_page("neurons", tab="ranking", pin="layer=fc1")
    assert not app.exception
    assert alternatives(app).count("Neurons by cumulative relevance") == 2
    assert "the 6 pinned ones" in words(app)


def test_a_stopped_trial_can_be_started_again(open_page):
    app = open_page("neurons", tab="decide")
    app.session_state[STOPPED] = True
    app.segmented_control(key="tried").set_value("all")
    app.selectbox(key="rank").select("group-7").run()
    assert not app.exception
    assert "Stopped. Finished results are kept" in app.info[0].value
    assert "Stopped while silencing neurons." in app.error[0].value
    next(button for button in app.button if button.label == "Start again").click().run()
    assert not app.error
    assert chart(app, "Accuracy with the first")


def test_trials_take_chosen_tests_at_even_distances():
    view = open_view(Setup("lenet5-digits", "digits", "fc2", 6, ("3",)))
    tests = trial_runs._some_tests(view, 10)
    assert tests.ids.tolist() == [
        view.test.ids[view.chosen[place]] for place in np.linspace(0, len(view.chosen) - 1, 10).astype(int)
    ]
    assert set(tests.targets.tolist()) == {3}
    assert np.array_equal(tests.inputs, view.test.inputs[tests.ids])
    assert len(trial_runs._some_tests(view, 0)) == len(view.chosen)


def test_a_neuron_is_shown_with_what_activates_it_and_opened_on_the_relevance_page(open_page, view):
    app = open_page("neurons", tab="neuron", neuron="6")
    assert not app.exception
    shown = [json.loads(one.proto.json)["tiles"] for one in app.get("bidi_component") if "tiles" in one.proto.json]
    assert [[len(tile["places"]) for tile in tiles] for tiles in shown] == [[2] * _EXAMPLES, [1] * _EXAMPLES]
    tests = [int(np.flatnonzero(view.test.ids == tile["test"])[0]) for tile in shown[0]]
    maps = results.heatmaps(view, np.array(tests), None, 6)
    expected = relevance(view.model, view.test.inputs[tests], ["input"], of=("fc2", 6))["input"]
    np.testing.assert_allclose(maps, expected, rtol=1e-5, atol=1e-6)
    app.button(key="neuron-explained").click().run()
    assert not app.exception
    assert app.segmented_control(key="of").value == "neuron"
    assert app.selectbox(key="explained-neuron").value == 6

"""The Relevance page: its finding, its choices in the address, what stands beside, and that sums are told truly."""

import base64
import io
import json
import os
from types import SimpleNamespace

import numpy as np
import pytest

from idc_core.attribution.methods import METHODS, attribute
from idc_core.base.statistics import spearman
from studio.jobs.explanations import INPUT, ONE_PASS, baseline_scores, explain, read_tokens, scores
from studio.jobs.results import open_view, pick
from studio.relevance import findings
from studio.state.setup import DEFAULT, Setup
from studio.text import percent
from studio.widgets.relevance_view import Display

TEXT = "Text CNN on 20 Newsgroups"


@pytest.fixture(scope="module")
def view():
    return open_view(DEFAULT)


@pytest.fixture(scope="module")
def wrong(view):
    return int(pick(view, "misclassified")[0])


def finding(app):
    return app.main.markdown[0].value


def headline(app):
    """The finding of the open tab."""
    return app.main.markdown[1].value


def sums(app):
    """The chart of layer sums."""
    return json.loads(app.get("plotly_chart")[0].proto.spec)


def array(values):
    """Read an array as plotly writes it."""
    read = np.frombuffer(base64.b64decode(values["bdata"]), dtype=values["dtype"])
    return read.reshape([int(side) for side in values["shape"].split(",")])


def captions(app):
    return [image.caption for element in app.get("image") for image in element.proto.imgs]


def test_opens_on_a_misclassified_test(open_page, view, wrong):
    app = open_page("relevance")
    assert not app.exception
    said = view.train.class_names[view.analysis.predictions[wrong]]
    true = view.test.class_names[view.test.targets[wrong]]
    assert finding(app) == f"**Test {view.test.ids[wrong]}** is classified as {said} (true class: {true})."
    score = scores(view, wrong).max()
    assert headline(app).startswith(f"Class {said} has the score {score:.2f}. Half of the positive relevance is in")
    heat = [text for text in captions(app) if "LRP-epsilon: sum" in text]
    assert [text.partition(",")[0] for text in heat] == [f"Class {said}", f"Class {true}"]
    assert any(text.startswith("Difference") for text in captions(app))


def test_share_of_pixels_is_the_one_that_holds_half(open_page, view, wrong):
    relevance = attribute(view.model, view.test.inputs[wrong : wrong + 1], "epsilon")[0, 0]
    positive = np.sort(np.clip(relevance, 0, None).ravel())[::-1]
    needed = next(n for n in range(1, positive.size + 1) if positive[:n].sum() >= positive.sum() / 2)
    assert f"is in {100 * needed / positive.size:.1f} % of the pixels" in headline(open_page("relevance"))


def test_address_opens_the_same_view(open_page):
    app = open_page(
        "relevance",
        input="17",
        explain="3",
        method="LRP-gamma",
        gamma="1",
        bias="redistribute",
        second="class 8",
        scale="shared",
        colours="orange and purple",
        overlay="90",
    )
    assert not app.exception
    assert "Test 17" in finding(app)
    assert app.selectbox(key="method").value == "gamma"
    assert app.selectbox(key="gamma").value == 1.0
    heat = [text for text in captions(app) if "LRP-gamma: sum" in text]
    assert [text.partition(",")[0] for text in heat] == ["Class 3", "Class 8"]
    assert len({text.rpartition(" ")[2] for text in heat}) == 1, "one scale for all"
    assert "Orange is evidence for" in "\n".join(caption.value for caption in app.caption)
    assert "Settings (5)" in [one.proto.popover.label for one in app.get("popover")]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_drawn_with_its_parameters(open_page, method):
    app = open_page("relevance", method=METHODS[method].label, second="nothing")
    assert not app.exception
    assert not app.error
    for parameter in METHODS[method].parameters:
        assert app.selectbox(key=parameter.name).value == parameter.default
    assert any(METHODS[method].label in text for text in captions(app))
    assert not any(text.startswith("Difference") for text in captions(app))


def test_a_neuron_is_explained_instead_of_the_prediction(open_page, view, wrong):
    app = open_page("relevance", of="neuron", neuron="6", second="method gradient-x-input")
    assert not app.exception
    assert not app.error
    activation = view.test_traces.activations["fc2"][wrong, 6]
    assert headline(app).startswith(f"Neuron 6 of fc2 has the activation {activation:+.2f}".replace("+", ""))
    heat = [text for text in captions(app) if ": sum" in text]
    assert [text.partition(":")[0] for text in heat] == ["Neuron 6, LRP-epsilon", "Neuron 6, Gradient times input"]
    one = view.test.inputs[wrong : wrong + 1]
    expected = attribute(view.model, one, "epsilon", of=("fc2", 6)).sum()
    assert f"sum {expected:+.2f}".replace("-", "\u2212") in heat[0]
    assert "activates the neuron" in "\n".join(caption.value for caption in app.caption)
    app.segmented_control(key="of").set_value("score").run()
    assert "of" not in app.query_params
    assert headline(app).startswith("Class")


def test_a_neuron_stands_beside_the_prediction_and_its_layers_end_there(open_page, view, wrong):
    app = open_page("relevance", of="neuron", tab="layers", bias="redistribute")
    assert not app.exception
    neuron = int(view.analysis.important[0])
    assert app.selectbox(key="explained-neuron").value == neuron
    activation = view.test_traces.activations["fc2"][wrong, neuron]
    assert headline(app) == f"Relevance is conserved: every layer sums to the activation, {activation:.2f}."
    assert app.get("plotly_chart")[0].proto.alt == "Relevance of every layer, and the activation"
    of_layers = [text for text in captions(app) if ": sum" in text]
    assert [text.partition(",")[0] for text in of_layers] == ["fc2", "fc1", "pool2", "conv2", "pool1", "conv1", "input"]
    app.selectbox(key="explained-neuron").set_value(6).run()
    assert app.query_params["neuron"] in ("6", ["6"])


def test_methods_are_compared_on_a_neuron(open_page, view, wrong):
    app = open_page("relevance", of="neuron", neuron="6", tab="methods")
    assert not app.exception
    activation = view.test_traces.activations["fc2"][wrong, 6]
    assert f"the activation of neuron 6 is +{activation:.2f}" in headline(app)


def test_layers_are_drawn_in_their_tab(open_page, view):
    app = open_page("relevance", tab="layers", input="17", method="LRP-gamma", bias="redistribute", explain="3")
    assert not app.exception
    assert "every layer sums to the score" in headline(app)
    assert sums(app)["layout"]["title"]["text"] == "Relevance of every layer, and the score"
    layers = [text.partition(",")[0] for text in captions(app)]
    assert layers == [*reversed(view.card.layers), INPUT]
    assert all(text.count("|") == 1 for text in captions(app)), "one sum for each of the two explanations"


@pytest.mark.parametrize(
    ("total", "expected", "bias", "said"),
    [
        (3.88, 5.61, "absorb", "; 1.73 is absorbed by biases"),
        (5.61, 3.88, "absorb", "; it exceeds the score by 1.73"),
        (-5.61, -3.88, "absorb", "; it exceeds the score by 1.73"),
        (-3.88, -5.61, "redistribute", ""),
        (13.034, 13.031, "absorb", ""),
    ],
)
def test_only_what_is_missing_is_absorbed_by_biases(total, expected, bias, said):
    assert findings._rest(total, expected, "score", SimpleNamespace(settings={"bias": bias})) == said


@pytest.mark.parametrize(("method", "after"), [("z", "z"), ("gradient-x-input", "epsilon")])
def test_a_sum_that_misses_the_score_is_told_and_put_right_by_a_click(open_page, method, after):
    app = open_page("relevance", model="LeNet-1 on digits", method=method)
    rest = "; 1.81 is absorbed by biases" if method == "z" else ""
    assert app.main.markdown[2].value == f"The heatmap sums to +1.37, the score is +3.18{rest}."
    app.button(key="conserve").click().run()
    assert app.query_params["bias"] == "redistribute"
    assert app.selectbox(key="method").value == after, "a rule stays"
    assert any(text.startswith("Class 9") and "sum +3.18" in text for text in captions(app))
    assert not any(button.key == "conserve" for button in app.button)


def test_methods_are_compared_in_their_tab(open_page, view, wrong):
    app = open_page("relevance", tab="methods", input=str(view.test.ids[wrong]), method="alpha-beta")
    assert not app.exception
    labels = [METHODS[name].label for name in dict.fromkeys(("alpha-beta", *ONE_PASS))]
    heat = [text for text in captions(app) if ": sum" in text]
    assert [text.partition(":")[0] for text in heat] == labels
    assert "LRP-0 (z) and Gradient times input are equal: contributions to a piecewise linear" in headline(app)
    chart = app.get("plotly_chart")[0].proto
    parts = [
        attribute(view.model, view.test.inputs[wrong : wrong + 1], name)[0] for name in ("alpha-beta", ONE_PASS[0])
    ]
    correlation = spearman(np.stack([one.sum(0).ravel().astype(np.float64) for one in parts]))[0, 1]
    figure = json.loads(chart.spec)
    drawn = figure["data"][0]
    assert figure["layout"]["xaxis"]["ticktext"] == labels
    assert array(drawn["z"])[0, 1] == pytest.approx(correlation, abs=1e-3)
    assert chart.alt == "Rank correlation of the methods, over the pixels of this test"


@pytest.mark.slow
@pytest.mark.usefixtures("data_folder")
def test_methods_of_a_text_name_its_most_relevant_words(open_page):
    app = open_page("relevance", tab="methods", model=TEXT, input="0")
    assert not app.exception
    table = app.dataframe[0].value
    assert table["method"].tolist() == [METHODS[name].label for name in ("epsilon", *ONE_PASS)]
    assert (table["words with half of the positive relevance"] > 0).all()
    view = open_view(Setup("textcnn-20newsgroups", "20newsgroups", "conv2", 6, ()))
    words, target = len(read_tokens(view.test, 0)), int(scores(view, 0).argmax())
    inputs = view.test.inputs[:1]
    without = [attribute(view.model, inputs, name, target=target)[0][:words] for name in ("epsilon", "alpha-beta")]
    figure = json.loads(app.get("plotly_chart")[0].proto.spec)
    row = figure["layout"]["xaxis"]["ticktext"].index("LRP-alpha-beta")
    assert array(figure["data"][0]["z"])[0, row] == pytest.approx(spearman(np.stack(without))[0, 1], abs=1e-3), (
        "padding is left out"
    )


def test_a_second_method_stands_beside_and_the_difference_is_of_shares(open_page):
    app = open_page("relevance", second="DeepLift")
    heat = [text.partition(":")[0] for text in captions(app) if text.startswith("Class") and ": sum" in text]
    assert [text.partition(", ")[2] for text in heat] == ["LRP-epsilon", "DeepLift"]
    assert any("shares of each one's sum" in text for text in captions(app))
    assert app.selectbox(key="baseline").value == 0.0


def test_the_same_beside_itself_is_told(open_page):
    app = open_page("relevance", second="LRP-epsilon")
    assert not app.exception
    assert any("are the same" in caption.value for caption in app.caption)


def test_buttons_step_through_the_misclassified_tests(open_page, view):
    wrong = view.test.ids[pick(view, "misclassified")]
    app = open_page("relevance")
    app.button(key="step-Next").click().run()
    assert f"Test {wrong[1]}** " in finding(app)
    assert app.query_params["input"] == str(wrong[1])
    app.button(key="step-Previous").click().run()
    app.button(key="step-Previous").click().run()
    assert f"Test {wrong[-1]}** " in finding(app)
    assert [app.button(key=f"step-{label}").proto.shortcut for label in ("Previous", "Next")] == ["left", "right"]


def test_all_tests_to_step_through_have_a_tab(open_page, view):
    wrong = view.test.ids[pick(view, "misclassified")]
    app = open_page("relevance", tab="tests", input=str(wrong[-1]))
    assert headline(app) == f"**Misclassified: {len(wrong)} of 540 tests ({percent(len(wrong) / 540)}).**"
    offered = next(json.loads(sent.proto.json) for sent in app.get("bidi_component") if "tiles" in sent.proto.json)
    assert [tile["test"] for tile in offered["tiles"]] == wrong[:20].tolist()
    assert offered["selected"] == wrong[-1]


@pytest.mark.parametrize("typed", ["540", "-1", "x", "9" * 30])
def test_a_number_that_is_no_test_gets_a_sentence(open_page, typed):
    app = open_page("relevance")
    app.text_input(key="test-number").set_value(typed).run()
    assert not app.exception
    assert f"'{typed}' is no test of digits. Expected a number from 0 to 539" in app.warning[0].value


def test_wrong_address_falls_back(open_page):
    app = open_page("relevance", method="magic", second="magic", explain="magic", scale="x", colours="x", overlay="900")
    assert not app.exception
    assert app.selectbox(key="method").value == "epsilon"


@pytest.mark.rare
def test_words_carry_the_colour(open_page):
    app = open_page("relevance", model=TEXT, input="0")
    assert not app.exception
    assert " words: \u201c" in headline(app)
    texts = [element.proto.body for element in app.get("html") if "<span title=" in element.proto.body]
    assert len(texts) == 3, "two explanations and their difference"
    assert all("font-weight:600" in text and "font-style:italic" in text for text in texts)
    assert not any(caption.startswith("input,") for caption in captions(app))


def test_steering_is_the_decision(small_data, open_page):
    app = open_page("relevance", model="Dave-2 on Udacity")
    assert not app.exception
    assert " the network steers " in finding(app)
    assert "Half of the relevance towards the " in headline(app)
    assert "to the left" in "\n".join(caption.value for caption in app.caption)


def test_scores_and_explanations_are_those_of_the_engine(view, wrong):
    one = view.test.inputs[wrong : wrong + 1]
    first = explain(view, wrong, "integrated-gradients", 3, {"steps": 20, "epsilon": 1.0}, "x")
    assert first.settings == {"baseline": 0.0, "steps": 20}
    np.testing.assert_allclose(
        first.layers[INPUT], attribute(view.model, one, "integrated-gradients", target=3, steps=20)[0], rtol=1e-5
    )
    assert list(first.layers) == [*reversed(view.card.layers), INPUT]
    gained = scores(view, wrong)[3] - baseline_scores(view, 0.0)[3]
    assert first.sums[INPUT] == pytest.approx(gained, rel=0.05)
    for layer, up, down in zip(first.layers, first.signed(1), first.signed(-1), strict=True):
        assert up >= 0 >= down
        assert up + down == pytest.approx(first.sums[layer], abs=1e-6)


def test_a_refusal_is_a_sentence_and_the_usual_rule_is_shown(open_page, monkeypatch):
    from idc_core.attribution import methods
    from idc_core.errors import UnsupportedOperationError

    engine = methods.attribute_layers

    def refusing(model, inputs, layers, method, *args, **options):
        if method == "deeplift":
            raise UnsupportedOperationError("DeepLift cannot pass through gelu.")
        return engine(model, inputs, layers, method, *args, **options)

    monkeypatch.setattr(methods, "attribute_layers", refusing)
    for chosen in ({"method": "DeepLift"}, {"second": "DeepLift"}):
        app = open_page("relevance", input="31", **chosen)
        assert not app.exception
        assert app.error[0].value == "DeepLift cannot pass through gelu."
        assert any("LRP-epsilon: sum" in text for text in captions(app))


def test_places_after_a_text_keep_their_share_apart(open_page):
    app = open_page("relevance", model=TEXT, input="0", bias="redistribute")
    assert not app.exception
    assert any(caption.value.startswith("Padding after the text has the relevance ") for caption in app.caption)


def test_choices_of_one_network_do_not_break_another(open_page):
    app = open_page("relevance", step="least confident", explain="9", second="class 8", input="500")
    assert not app.exception
    for model in ("textcnn-20newsgroups", "dave2-udacity", "lenet1-digits"):
        if model == "dave2-udacity" and "IDC_DATA" not in os.environ:
            continue
        app.selectbox(key="model").select(model).run()
        assert not app.exception


def test_what_is_taken_away_can_be_read_again(view, wrong):
    both = [explain(view, wrong, "epsilon", target, {}, f"Class {target}") for target in (3, 5)]
    display = Display(view, wrong, both, "picture", "red-blue")
    packed = np.load(io.BytesIO(display.archive()))
    np.testing.assert_array_equal(packed["first_input"], both[0].layers[INPUT])
    np.testing.assert_allclose(packed["difference_input"], (both[0].layers[INPUT] - both[1].layers[INPUT]).sum(0))
    assert packed["test"] == view.test.ids[wrong]
    table = display.table()
    assert list(table["layer"])[:8] == list(both[0].layers)
    np.testing.assert_allclose(table["sum"], table["positive"] + table["negative"])


def test_tokens_end_where_the_text_ends():
    view = open_view(Setup("textcnn-20newsgroups", "20newsgroups", "conv2", 6, ()))
    tokens = read_tokens(view.test, 0)
    assert len(tokens) == int((view.test.inputs[0] > 0).sum())
    assert "<padding>" not in tokens


def test_lost_digits_are_told_with_the_rule_that_holds(open_page, monkeypatch):
    from idc_core.attribution import digits

    said = (
        "Relevance by LRP-epsilon with biases absorbed loses all its digits from layer 'fc1' on. LRP-gamma holds here."
    )
    monkeypatch.setattr(digits, "first_lost", lambda layers, score: digits.Lost("fc1", 1e9))
    monkeypatch.setattr(digits, "said_lost", lambda *given: said)
    app = open_page("relevance", second="nothing")
    assert not app.exception
    assert [one.value for one in app.warning] == [said]
